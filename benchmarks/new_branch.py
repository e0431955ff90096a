"""The time of a new branch for histories of different lengths, with an active segment of the same size.

The store of a new branch is a copy of the default branch's, history included; what is sealed is linked. The active
segment is copied, synced and proven, so it has a row of its own: against copying and syncing the same bytes.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.inside import opened, series_of
from benchmarks.measure import Sample, Series, call, in_turns
from benchmarks.place import Place
from benchmarks.table import FLAT, Row
from tests.support.repository.places import stores_at
from tests.support.repository.repos import git

if TYPE_CHECKING:
    from kbcore.store.workspace import Workspace

_AT_MOST = 1.1
"""The same time, with room for the noise of the disk."""


def run(place: Place) -> list[Row]:
    """Measure the first use of branch after branch, in a process that does nothing else."""
    counts = place.sizes.records
    stores = [*(place.compacted_store(count) for count in counts), place.store(counts[-1])]
    copies = [place.copy_of(root, f"branching-{number}") for number, root in enumerate(stores)]
    taken = place.answer("-m", "benchmarks.new_branch", str(place.sizes.rounds), *map(str, copies))
    *sealed, active, copied = series_of(taken)
    length = _active_segment(copies[-1]).stat().st_size
    whole = Row(
        name="new branch, not sealed",
        against="copy and sync the same bytes",
        count=round(length / 2**20),
        unit="MiB active",
        kb=active,
        floor=copied,
        peak_bytes=None,
    )
    return [*(_sealed(place, *one, sealed[0]) for one in zip(counts, copies, sealed, strict=False)), whole]


def _sealed(place: Place, count: int, root: Path, taken: Series, smallest: Series) -> Row:
    git(root, "branch", "measured")
    return Row(
        name="new branch",
        against=f"the same of {place.sizes.records[0]:,} records",
        count=count,
        unit="records, sealed",
        kb=taken,
        floor=smallest,
        peak_bytes=place.kb(root, "branch", "ensure", "measured").peak_bytes,
        at_most=_AT_MOST,
        grows_at_most=FLAT,
    )


def main(rounds: int, *roots: str) -> None:
    """Print the seconds of each kind, round by round: the sealed stores, the active segment, and its floor."""
    *sealed, active = (Branching(opened(root)) for root in roots)
    source = _active_segment(Path(roots[-1]))
    target = source.with_name("copy")
    taken = [
        *in_turns(*(one.branch for one in sealed), rounds=rounds),
        *in_turns(active.branch, lambda: copy_synced(source, target), rounds=rounds),
    ]
    print(json.dumps([series.walls_s for series in taken]))


class Branching:
    """Gives a repository branch after branch, and takes each away again."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._number = 0

    def branch(self) -> Sample:
        """Make the store of a new branch; what was written before is on the disk by then."""
        from kbcore.store import branches

        self._number += 1
        name = f"branch-{self._number}"
        git(self._workspace.repo.worktree, "branch", name)
        os.sync()
        sample = call(lambda: branches.ensure(self._workspace, name))
        for folder in (self._workspace.folders.directory_of(name), self._workspace.folders.cache_of(name)):
            shutil.rmtree(folder)
        return sample


def copy_synced(source: Path, target: Path) -> Sample:
    """Copy a file and make the copy durable, then remove it."""

    def copy() -> None:
        shutil.copyfile(source, target)
        with target.open("rb+") as file:
            os.fsync(file.fileno())

    os.sync()
    sample = call(copy)
    target.unlink()
    return sample


def _active_segment(root: Path) -> Path:
    return max((stores_at(root) / "main").glob("journal-*.jsonl"))


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
