"""An attached file that KB made is found to be so without listing the functions of DuckDB, which takes longer."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kbcore.errors import ViewForeign
from kbcore.view import database, inspection, table_creation
from kbcore.view.database import Room

TABLES = table_creation.base_tables()


def made(path: Path, *, indexes: int) -> Path:
    """Make the tables of a base in a file, and so many indexes."""
    with duckdb.connect(str(path)) as connection:
        for name, columns in TABLES.items():
            connection.execute(f"create table {name} ({', '.join(f'{one} {kind}' for one, kind in columns.items())})")
        for column in [*TABLES["node"]][:indexes]:
            connection.execute(f"create index node_by_{column} on node ({column})")
    return path


def asked(path: Path) -> list[str]:
    """Check a file; return the statements that this took."""
    connection = database.connect(Room(folders=(str(path.parent),)))
    statements: list[str] = []

    def rows(sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
        statements.append(sql)
        return connection.rows(sql, params)

    try:
        connection.execute(f"attach '{path}' as base (read_only)")
        inspection.check(rows, "base", TABLES, path.stat().st_size)
    finally:
        connection.close()
    return statements


@pytest.mark.parametrize("indexes", [0, 1, 3])
def test_one_statement_tells_that_a_file_is_one_of_ours(tmp_path: Path, indexes: int) -> None:
    [statement] = asked(made(tmp_path / "base.duckdb", indexes=indexes))
    assert "duckdb_functions" not in statement


@pytest.mark.sliced(2)
@pytest.mark.parametrize("indexes", [0, 3])
@pytest.mark.parametrize(
    "macro",
    ["create macro mine(x) as x", "create macro mine(x) as x, (x, y) as y", "create macro mine() as table select 1"],
)
def test_a_single_macro_is_noticed(tmp_path: Path, indexes: int, macro: str) -> None:
    path = made(tmp_path / "base.duckdb", indexes=indexes)
    with duckdb.connect(str(path)) as connection:
        connection.execute(macro)
    with pytest.raises(ViewForeign, match="the macro 'mine', which KB does not make"):
        asked(path)
