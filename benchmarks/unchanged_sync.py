"""The time of a sync without changes, against `git status` and importing DuckDB."""

from __future__ import annotations

from benchmarks.measure import Sample, in_turns, process, together
from benchmarks.place import Place
from benchmarks.table import IN_PROPORTION, Row


def run(place: Place) -> list[Row]:
    """Measure ``kb sync`` on documents that were synced before."""
    return [_row(place, count) for count in place.sizes.documents]


def _row(place: Place, count: int) -> Row:
    root = place.synced_documents(count)

    def floor() -> Sample:
        status = process(["git", "status"], cwd=root, env=place.env)
        return together(status, place.python("-c", "import duckdb"))

    kb, below = in_turns(lambda: place.kb(root, "sync"), floor, rounds=place.sizes.rounds_of(count))
    return Row(
        name="unchanged sync",
        against="git status + import duckdb",
        count=count,
        unit="documents",
        kb=kb,
        floor=below,
        peak_bytes=kb.peak_bytes,
        at_most=3.0,
        grows_at_most=IN_PROPORTION,
    )
