"""The time to open a store that has a snapshot and a view, against starting DuckDB.

Opened, and asked one question, by a whole process; the last records of the journal are in neither of the two.
"""

from __future__ import annotations

from benchmarks import generate
from benchmarks.place import Place
from benchmarks.starts import DUCKDB, against_duckdb
from benchmarks.table import FLAT, Row


def run(place: Place) -> list[Row]:
    """Measure ``kb query --id`` on stores of many records."""
    return [_row(place, count) for count in place.sizes.records]


def _row(place: Place, count: int) -> Row:
    kb, floor = against_duckdb(
        place, place.compacted_store(count, place.sizes.tail), count, "query", "--id", generate.entity_id(count // 2)
    )
    return Row(
        name="open and ask (kb query --id)",
        against=DUCKDB,
        count=count,
        unit=f"records + {place.sizes.tail}",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        at_most=4.0,
        grows_at_most=FLAT,
    )
