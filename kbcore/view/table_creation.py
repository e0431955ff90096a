"""The tables of a base and of the tail over it, and the views that queries read: created, and indexed when filled."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from kbcore.view.database import Connection
from kbcore.view.tables import ELEMENTS, IS_HIDDEN, RECORD, WHOLE, Columns

STAMP: Final[Columns] = {
    "format": "BIGINT",
    "store_id": "VARCHAR",
    "lineage": "VARCHAR",
    "seq": "BIGINT",
    "sum": "VARCHAR",
    "written_at": "VARCHAR",
    "file": "VARCHAR",
    "end_bytes": "BIGINT",
    "history_from": "BIGINT",
    "listed_from": "BIGINT",
}
"""The origin of the base: the record at ``seq`` and where the next one begins. The fields of ``Basis``."""
_INDEXED_ROWS: Final = 2048
"""More rows than this are indexed: DuckDB reads as many at a time, and that takes no longer than asking an index."""
_LOOKED_UP: Final = ("node", "link")
"""Tables that are looked up by the files that state their rows."""
_INDEXED: Final[Mapping[str, tuple[str, ...]]] = {
    "node": ("id", "type"),
    "node_src": ("src",),
    "link": ("id", "from_id", "to_id"),
    "link_src": ("src",),
    "source": ("path",),
    "node_history": ("id",),
    "link_history": ("id", "from_id", "to_id"),
    "record": ("seq", "changeset_id"),
}
"""Columns that are looked up by key."""


def history_columns(columns: Columns) -> dict[str, str]:
    """Return the columns of the table of superseded rows."""
    return {**columns, "ended": "BIGINT"}


def base_tables() -> dict[str, Columns]:
    """Return the tables of a base, with their columns."""
    lookups = {f"{name}_src": {"src": "VARCHAR", "id": "VARCHAR"} for name in _LOOKED_UP}
    return {**_shown(), **lookups, "stamp": STAMP}


def create_base(connection: Connection, catalog: str) -> None:
    """Create the empty tables of a base in an attached catalog."""
    for name, (_, columns) in ELEMENTS.items():
        _create(connection, f"{catalog}.{name}", columns)
        _create(connection, f"{catalog}.{name}_history", history_columns(columns))
    _create(connection, f"{catalog}.record", RECORD)
    create_stamp(connection, catalog)


def create_stamp(connection: Connection, catalog: str) -> None:
    """Create the empty table that says what a base was folded from."""
    _create(connection, f"{catalog}.stamp", STAMP)


def finish_base(connection: Connection, catalog: str) -> None:
    """Derive the look-up tables of a filled base, and index what is looked up by key where it has many rows."""
    derive(connection, catalog)
    counted = " union all ".join(f"select '{table}', count(*) from {catalog}.{table}" for table in _INDEXED)
    for table, rows in connection.execute(counted).fetchall():
        for column in _INDEXED[table] if rows > _INDEXED_ROWS else ():
            connection.execute(f"create index {table}_by_{column} on {catalog}.{table} ({column})")


def derive(connection: Connection, catalog: str, kind: Literal["table", "view"] = "table") -> None:
    """Make the look-up tables of a filled base, or views in their place, which are read once or never."""
    for name in _LOOKED_UP:
        connection.execute(
            f"create {kind} {catalog}.{name}_src as select unnest(files) as src, id from {catalog}.{name}"
        )


def create_plain(connection: Connection) -> None:
    """Create the views that queries read, over a base that nothing came after."""
    for name, columns in _shown().items():
        _create_view(connection, name, f"select {', '.join(columns)} from base.{name}")


def create_overlay(connection: Connection) -> None:
    """Create the tail tables over ``base``, and the views that queries read, instead of the plain ones."""
    for name, columns in _shown().items():
        _create(connection, f"{name}_tail", columns)
        kept = ""
        if name in ELEMENTS:
            key = ELEMENTS[name][0]
            _create(connection, f"{name}_touched", {key: "VARCHAR"})
            kept = f" where {key} not in (select {key} from {name}_touched)"
        listed = ", ".join(columns)
        rows = f"select {listed} from base.{name}{kept} union all select {listed} from {name}_tail"
        _create_view(connection, name, rows)


def _create_view(connection: Connection, name: str, rows: str) -> None:
    """Create the view of a table that queries read, and where entities may be hidden the one of all rows."""
    whole = WHOLE.get(name, name)
    connection.execute(f"create or replace view {whole} as {rows}")
    if whole != name:
        connection.execute(f"create or replace view {name} as select * from {whole} where not ({IS_HIDDEN})")


def _shown() -> dict[str, Columns]:
    """Return what queries read, by name, with its columns."""
    shown: dict[str, Columns] = {"record": RECORD}
    for name, (_, columns) in ELEMENTS.items():
        shown |= {name: columns, f"{name}_history": history_columns(columns)}
    return shown


def _create(connection: Connection, table: str, columns: Columns) -> None:
    connection.execute(f"create table {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")
