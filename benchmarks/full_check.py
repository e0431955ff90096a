"""The time of `kb check` with every rule, against starting DuckDB."""

from __future__ import annotations

from benchmarks.place import Place
from benchmarks.starts import DUCKDB, against_duckdb
from benchmarks.table import IN_PROPORTION, Row

_FOUND = 1


def run(place: Place) -> list[Row]:
    """Measure a check of all documents; that it finds something is no failure."""
    return [_row(place, count) for count in place.sizes.documents]


def _row(place: Place, count: int) -> Row:
    kb, floor = against_duckdb(place, place.synced_documents(count), count, "check", allowed=(0, _FOUND))
    return Row(
        name="kb check",
        against=DUCKDB,
        count=count,
        unit="documents",
        kb=kb,
        floor=floor,
        peak_bytes=kb.peak_bytes,
        at_most=8.0,
        grows_at_most=IN_PROPORTION,
    )
