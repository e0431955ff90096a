"""The time of `kb log ID` for an entity with a long history, against starting DuckDB."""

from __future__ import annotations

from benchmarks import generate
from benchmarks.place import Place
from benchmarks.starts import DUCKDB, against_duckdb
from benchmarks.table import FLAT, Row


def run(place: Place) -> list[Row]:
    """Measure the first page of the history, newest first."""
    return [_row(place, count) for count in place.sizes.changes]


def _row(place: Place, count: int) -> Row:
    kb, floor = against_duckdb(place, place.changed_store(count), count, "log", generate.entity_id(1))
    return Row(
        name="kb log ID",
        against=DUCKDB,
        count=count,
        unit="changes",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        at_most=2.5,
        grows_at_most=FLAT,
    )
