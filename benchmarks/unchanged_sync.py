"""How long does a sync take that finds nothing new, against `git status` and importing DuckDB?"""

from __future__ import annotations

from benchmarks.measure import Sample, in_turns, process, together
from benchmarks.place import Place
from benchmarks.table import Row


def run(place: Place) -> list[Row]:
    """Measure ``kb sync`` on documents that were synced before."""
    root = place.synced_documents()

    def sync() -> Sample:
        return place.kb(root, "sync")

    def floor() -> Sample:
        status = process(["git", "status"], cwd=root, env=place.env)
        return together(status, place.python("-c", "import duckdb"))

    kb, below = in_turns(sync, floor, rounds=place.sizes.rounds)
    size = f"{place.sizes.documents:,} documents"
    return [Row("unchanged sync / git status + import duckdb", size, kb, below, 3.0, kb.peak_bytes)]
