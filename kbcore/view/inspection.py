"""Inspect an attached file before anything in it is queried: it must have the tables that KB makes, and nothing else.

A file of a cache may have been made by another user, who put a view under the name of a table. Invariant: the
inspection reads the catalog alone. No view, default, generated column, check or index expression of the file is
evaluated, here or later, because a file that has one is refused. So is one with a macro, although none could be
reached: KB never looks for names in an attached file, and nothing in the file that could call one is let through.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kbcore import limits
from kbcore.errors import ViewDamaged, ViewForeign
from kbcore.text.escaping import in_quotes
from kbcore.view.tables import Columns, Rows

_OTHERS: Final = {
    "schema": "select schema_name from duckdb_schemas() where database_name = $1 and schema_name <> 'main'",
    "view": "select view_name from duckdb_views() where database_name = $1",
    "sequence": "select sequence_name from duckdb_sequences() where database_name = $1",
    "trigger": "select trigger_name from duckdb_triggers() where database_name = $1",
    "type": "select type_name from duckdb_types() where database_name = $1 and not internal",
}
"""Things that KB puts into no file."""

_MACROS: Final = "select function_name from duckdb_functions() where database_name = $1"
"""Asked only when the file took more numbers than its tables and indexes need: it takes long."""

_SCHEMA_NUMBERS: Final = 3
_TABLE_NUMBERS: Final = 6
_INDEX_NUMBERS: Final = 10
"""DuckDB numbers what it reads of a file, one after the other, and the database itself last. These are how many
numbers it takes for each kind; the source is observation. Where another DuckDB takes more or fewer, functions are
listed at every opening, which costs time and lets nothing through."""

_TABLES: Final = (
    "select 'table' as what, table_name as name, sql, estimated_size as size, column_count as width "
    "from duckdb_tables() where database_name = $1"
)
_NUMBERS: Final = (
    "select 'numbers', schema_name, '', oid, database_oid from duckdb_schemas() "
    "where database_name = $1 and schema_name = 'main'"
)
_LISTED: Final = " union all ".join(
    (
        _TABLES,
        "select 'index', index_name, sql, 0, 0 from duckdb_indexes() where database_name = $1",
        *(f"select '{what}', name, '', 0, 0 from ({sql}) t(name)" for what, sql in _OTHERS.items()),
        _NUMBERS,
    )
)
_PLAIN: Final = re.compile(r"CREATE TABLE \w+\(\w+ [A-Z]+(?:\[\])*(?:, \w+ [A-Z]+(?:\[\])*)*\);")
_INDEX: Final = re.compile(r"CREATE INDEX (\w+)_by_(\w+) ON \1\(\2\);")
_MAX_SHOWN: Final = 60


def check(rows: Rows, catalog: str, tables: Mapping[str, Columns], length_bytes: int) -> None:
    """Refuse an attached file of this length that does not hold exactly these tables, indexed or not.

    Raises: ``ViewForeign`` when it holds what KB puts into no file, ``ViewDamaged`` when its tables are others.
    """
    found: dict[str, tuple[str, int]] = {}
    count = numbers = 0
    for what, name, sql, size, width in rows(_LISTED, [catalog]):
        # No name or type of ours needs quotes; without them the width tells whether a name held a comma.
        plain = sql.replace('"', "")
        if what == "table" and _PLAIN.fullmatch(plain):
            found[name] = plain, width
            count += size
            numbers -= _TABLE_NUMBERS
        elif what == "index" and _INDEX.fullmatch(plain):
            numbers -= _INDEX_NUMBERS
        elif what == "numbers":
            numbers += width - size - _SCHEMA_NUMBERS
        else:
            raise ViewForeign(f"it holds the {what} {in_quotes(name[:_MAX_SHOWN])}, which KB does not make so")
    if found != {name: (_definition(name, columns), len(columns)) for name, columns in tables.items()}:
        raise ViewDamaged("its tables are not those of this version")
    if count > limits.MAX_BASE_ROWS_PER_BYTE * length_bytes:
        raise ViewForeign(f"it claims to hold {count} rows in {length_bytes} bytes")
    if numbers and (found_macros := rows(_MACROS, [catalog])):
        name = min(name for (name,) in found_macros)
        raise ViewForeign(f"it holds the macro {in_quotes(name[:_MAX_SHOWN])}, which KB does not make")


def _definition(name: str, columns: Columns) -> str:
    """Return how DuckDB writes a table of plain columns, without quotes."""
    return f"CREATE TABLE {name}({', '.join(f'{column} {kind}' for column, kind in columns.items())});"
