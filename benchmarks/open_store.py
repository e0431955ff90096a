"""How long does it take to open a large store that has a snapshot and a view, against starting DuckDB?

Opened, and asked one question, by a whole process; the last records of the journal are in neither of the two.
"""

from __future__ import annotations

from benchmarks import generate
from benchmarks.measure import in_turns
from benchmarks.place import DUCKDB_START, Place
from benchmarks.table import Row


def run(place: Place) -> list[Row]:
    """Measure ``kb query --id`` on the large store."""
    count, tail = place.sizes.records, place.sizes.tail
    root = place.compacted_store(count, tail)
    key = generate.entity_id(count // 2)
    kb, floor = in_turns(
        lambda: place.kb(root, "query", "--id", key),
        lambda: place.python("-c", DUCKDB_START),
        rounds=place.sizes.rounds,
    )
    size = f"{count:,} + {tail} records"
    return [Row("open and ask (kb query --id) / duckdb.connect()", size, kb, floor, 4.0, kb.peak_bytes)]
