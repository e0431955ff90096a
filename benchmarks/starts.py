"""Questions of one kind: how long does a command that only reads take, against starting DuckDB?"""

from __future__ import annotations

from pathlib import Path

from benchmarks.measure import Series, in_turns
from benchmarks.place import DUCKDB_START, Place

DUCKDB = "duckdb.connect()"


def against_duckdb(
    place: Place, root: Path, count: int, *words: str, allowed: tuple[int, ...] = (0,)
) -> tuple[Series, Series]:
    """Measure ``kb`` with these words, alternately with the start of DuckDB."""
    kb, floor = in_turns(
        lambda: place.kb(root, *words, allowed=allowed),
        lambda: place.python("-c", DUCKDB_START),
        rounds=place.sizes.rounds_of(count),
    )
    return kb, floor
