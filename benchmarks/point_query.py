"""The time of `kb query --id`, against starting DuckDB."""

from __future__ import annotations

from benchmarks import generate
from benchmarks.place import Place
from benchmarks.starts import DUCKDB, against_duckdb
from benchmarks.table import FLAT, Row


def run(place: Place) -> list[Row]:
    """Measure the query for one entity, as a user types it."""
    return [_row(place, count) for count in place.sizes.documents]


def _row(place: Place, count: int) -> Row:
    kb, floor = against_duckdb(
        place, place.synced_documents(count), count, "query", "--id", generate.document_id(count)
    )
    return Row(
        name="kb query --id",
        against=DUCKDB,
        count=count,
        unit="documents",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        at_most=2.5,
        grows_at_most=FLAT,
    )
