"""The time that change files add to syncs: to a first one, to one without changes, and to one after a pull."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

from benchmarks.measure import Sample, Series, in_turns
from benchmarks.place import Place
from benchmarks.stores import PULLED
from benchmarks.table import IN_PROPORTION, Row
from kbcore.git import find_repository
from kbcore.store.folders import data_dir_of
from tests.support.repository.repos import git

_LEAST_S = 0.001
"""Less is noise, and may be below zero: growth is fitted to logarithms."""


def run(place: Place) -> list[Row]:
    """Measure syncs of repositories with packs and change files of their own, against the same without them."""
    return [row for count in place.sizes.packed for row in _rows(place, count)]


def _rows(place: Place, count: int) -> list[Row]:
    documents = place.documents(place.sizes.documents[0])
    root = place.copy_of(documents, f"change-files-{count}")
    bare = place.copy_of(documents, f"no-change-files-{count}")
    place.python("-m", "benchmarks.stores", "share", str(root), str(count))
    before = git(root, "rev-parse", "HEAD").strip()
    rounds = place.sizes.long_rounds_of(count)

    def pulled() -> Sample:
        git(root, "reset", "--quiet", "--hard", before)
        place.settle(root)
        git(root, "reset", "--quiet", "--hard", PULLED)
        return place.kb(root, "sync")

    first = in_turns(lambda: _first_sync(place, root), lambda: _first_sync(place, bare), rounds=rounds)
    for one in (root, bare):
        place.settle(one)
    unchanged = in_turns(lambda: place.kb(root, "sync"), lambda: place.kb(bare, "sync"), rounds=rounds)
    after_pull = in_turns(pulled, lambda: place.kb(bare, "sync"), rounds=rounds)
    return [
        _row("what change files add to a first sync", count, first, 2.0),
        _row("what change files add to an unchanged sync", count, unchanged, 0.3),
        _row("what 1 % more change files add to a sync", count, after_pull),
    ]


def _first_sync(place: Place, root: Path) -> Sample:
    """Sync a repository as a new clone of it does."""
    shutil.rmtree(data_dir_of(find_repository(root)), ignore_errors=True)
    # What was acknowledged is noted for the user as well, under the repository's id.
    git(root, "config", "kb.id", secrets.token_hex(16))
    return place.kb(root, "sync", with_children=True)


def _row(name: str, count: int, measured: tuple[Series, ...], at_most_s: float | None = None) -> Row:
    kb, floor = measured
    added = [
        Sample(max(_LEAST_S, one.wall_s - alone.wall_s), max(_LEAST_S, (one.cpu_s or 0.0) - (alone.cpu_s or 0.0)))
        for one, alone in zip(kb.samples, floor.samples, strict=True)
    ]
    return Row(
        name=name,
        against="the same sync without them",
        count=count,
        unit="changes",
        kb=Series(tuple(added)),
        floor=floor,
        peak_bytes=kb.peak_bytes,
        at_most_s=at_most_s,
        grows_at_most=IN_PROPORTION,
    )
