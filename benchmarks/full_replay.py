"""The time of a full replay, against decoding the same lines with msgspec and loading them into DuckDB in bulk.

A replay verifies each record against the one before, folds it into the state, and leaves a view with its history and
its indexes on disk. The floor does none of that.
"""

from __future__ import annotations

import shutil
import sys

from benchmarks.inside import opened
from benchmarks.measure import Sample, in_turns
from benchmarks.place import Place
from benchmarks.table import IN_PROPORTION, Row
from tests.support.repository.places import caches_at, stores_at


def run(place: Place) -> list[Row]:
    """Measure opening stores whose cache was deleted."""
    return [_row(place, count) for count in place.sizes.records]


def _row(place: Place, count: int) -> Row:
    root = place.copy_of(place.store(count), f"replayed-{count}")
    [journal] = (stores_at(root) / "main").glob("journal-*.jsonl")

    def replay() -> Sample:
        shutil.rmtree(caches_at(root) / "main", ignore_errors=True)
        return place.python("-m", "benchmarks.full_replay", str(root))

    kb, floor = in_turns(
        replay,
        lambda: place.python("-m", "benchmarks.floor_journal", str(journal)),
        rounds=place.sizes.long_rounds_of(count),
    )
    return Row(
        name="full replay",
        against="decode and load in bulk",
        count=count,
        unit="records",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        at_most=2.5,
        grows_at_most=IN_PROPORTION,
    )


def main(root: str) -> None:
    """Open the store of a repository, in this process."""
    store = opened(root).store("main")
    if store.read(lambda view: view.seq) != store.head().seq:
        raise SystemExit("the view is not at the head")


if __name__ == "__main__":
    main(sys.argv[1])
