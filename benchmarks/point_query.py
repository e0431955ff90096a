"""How long does `kb query --id` take, against starting DuckDB?"""

from __future__ import annotations

from benchmarks import generate
from benchmarks.measure import in_turns
from benchmarks.place import DUCKDB_START, Place
from benchmarks.table import Row


def run(place: Place) -> list[Row]:
    """Measure the query for one entity, as a user types it."""
    root = place.synced_documents()
    key = generate.document_id(place.sizes.documents)
    kb, floor = in_turns(
        lambda: place.kb(root, "query", "--id", key),
        lambda: place.python("-c", DUCKDB_START),
        rounds=place.sizes.rounds,
    )
    size = f"{place.sizes.documents:,} documents"
    return [Row("kb query --id / duckdb.connect()", size, kb, floor, 2.5, kb.peak_bytes)]
