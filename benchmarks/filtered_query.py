"""The time of a query with several filters, against starting DuckDB."""

from __future__ import annotations

from benchmarks.place import Place
from benchmarks.starts import DUCKDB, against_duckdb
from benchmarks.table import IN_PROPORTION, Row

_FILTERS = ("query", "req", "--status", "active", "--tag", "billing", "--where", "owner=fatou")


def run(place: Place) -> list[Row]:
    """Measure the first page of what four filters leave."""
    return [_row(place, count) for count in place.sizes.documents]


def _row(place: Place, count: int) -> Row:
    kb, floor = against_duckdb(place, place.synced_documents(count), count, *_FILTERS)
    return Row(
        name="kb query with four filters",
        against=DUCKDB,
        count=count,
        unit="documents",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        at_most=2.5,
        grows_at_most=IN_PROPORTION,
    )
