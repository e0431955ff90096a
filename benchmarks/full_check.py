"""How long does `kb check` take with every rule, against starting DuckDB?"""

from __future__ import annotations

from benchmarks.measure import in_turns
from benchmarks.place import DUCKDB_START, Place
from benchmarks.table import Row

_FOUND = 1


def run(place: Place) -> list[Row]:
    """Measure a check of all documents; that it finds something is no failure."""
    root = place.synced_documents()
    kb, floor = in_turns(
        lambda: place.kb(root, "check", allowed=(0, _FOUND)),
        lambda: place.python("-c", DUCKDB_START),
        rounds=place.sizes.rounds,
    )
    size = f"{place.sizes.documents:,} documents"
    return [Row("kb check / duckdb.connect()", size, kb, floor, 8.0, kb.peak_bytes)]
