"""The time of the first sync of a repository, against reading and YAML-parsing the same files in one thread.

From some thousand files on a sync has processes of its own: its peak of memory is that of all of them together.
"""

from __future__ import annotations

import json
import secrets
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from benchmarks.measure import Sample, in_turns
from benchmarks.place import Place
from benchmarks.table import IN_PROPORTION, Row
from kbcore.git import find_repository
from kbcore.store.folders import data_dir_of
from tests.support.repository.repos import git

_MANY = 100_000
"""With so many documents the start of the program and of its workers is of no account."""


def run(place: Place) -> list[Row]:
    """Measure ``kb sync`` on KBs that were just set up, again and again."""
    return [_row(place, count) for count in place.sizes.documents]


def _row(place: Place, count: int) -> Row:
    root = place.documents(count)
    row = first_sync_row(place, root, ("benchmarks.floor_documents", str(root / "docs")), count=count, unit="documents")
    at_most = 1.3 if count >= _MANY else 3.0
    return msgspec.structs.replace(row, name="cold sync", against="read and parse YAML", at_most=at_most)


def first_sync_row(
    place: Place, root: Path, floor: Sequence[str], *, count: int, unit: str, config: Mapping[str, object] | None = None
) -> Row:
    """Return a row of first syncs against a floor, a module and its arguments; the caller names both."""
    kb, least = in_turns(
        lambda: first_sync(place, root, config),
        lambda: place.python("-m", *floor),
        rounds=place.sizes.long_rounds_of(count),
    )
    return Row(
        name="",
        against="",
        count=count,
        unit=unit,
        kb=kb,
        floor=least,
        peak_bytes=kb.peak_bytes,
        grows_at_most=IN_PROPORTION,
    )


def first_sync(place: Place, root: Path, config: Mapping[str, object] | None = None) -> Sample:
    """Set the KB of a repository up again, with these settings or the usual ones; return what its first sync took."""
    shutil.rmtree(data_dir_of(find_repository(root)), ignore_errors=True)
    # What was acknowledged is noted for the user as well, under the repository's id.
    git(root, "config", "kb.id", secrets.token_hex(16))
    shutil.rmtree(root / ".kb")
    place.kb(root, "init", "--no-hooks")
    if config is not None:
        (root / ".kb" / "config.json").write_text(json.dumps(config))
    return place.kb(root, "sync", with_children=True)
