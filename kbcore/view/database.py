"""The DuckDB connection of a view: its settings, its tables, and loading rows in bulk.

User text enters SQL only as a bound parameter; names come from the tables of this package.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import duckdb
import msgspec

from kbcore.view.tables import ELEMENTS, RECORD, Columns

Connection = duckdb.DuckDBPyConnection
Row = Mapping[str, Any]

STAMP: Final[Columns] = {
    "format": "BIGINT",
    "lineage": "VARCHAR",
    "seq": "BIGINT",
    "sum": "VARCHAR",
    "written_at": "VARCHAR",
    "file": "VARCHAR",
    "end_bytes": "BIGINT",
    "history_from": "BIGINT",
}
"""What the base was folded from: the record at ``seq`` and where the next one begins. History and the log are whole
for every seq after ``history_from``."""

_CHUNK_ROWS: Final = 5000
_SMALL_LIST: Final = 64
_encode = msgspec.json.Encoder().encode


_OF_FILES: Final = (
    duckdb.IOException,
    duckdb.InternalException,
    duckdb.FatalException,
    duckdb.SerializationException,
    duckdb.TransactionException,
)


class ViewDamaged(Exception):
    """The published view cannot be read. It is disposable: delete it and fold the journal again."""


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn an error of DuckDB about its files into ``ViewDamaged``; a fault of ours stays a bug."""
    try:
        yield
    except duckdb.Error as error:
        # A block with a wrong checksum is an error of no class of its own.
        if type(error) is duckdb.Error or isinstance(error, _OF_FILES):
            raise ViewDamaged(str(error)) from error
        raise


@contextlib.contextmanager
def explained_all() -> Iterator[None]:
    """Turn every error of DuckDB into ``ViewDamaged``: for opening a file of which nothing is known yet."""
    try:
        yield
    except duckdb.Error as error:
        raise ViewDamaged(str(error)) from error


def connect(temp_dir: str) -> Connection:
    """Return a private in-memory database that loads nothing by itself and spills only into ``temp_dir``."""
    return duckdb.connect(
        ":memory:",
        config={
            "threads": 2,
            "temp_directory": temp_dir,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        },
    )


def history_columns(columns: Columns) -> dict[str, str]:
    """Return the columns of the table of superseded rows."""
    return {**columns, "ended": "BIGINT"}


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
    """Derive the look-up tables of a filled base, and index what is looked up by key."""
    for name in ("node", "link"):
        connection.execute(
            f"create table {catalog}.{name}_src as select unnest(files) as src, id from {catalog}.{name}"
        )
    for table, column in (
        ("node", "id"),
        ("node", "type"),
        ("node_src", "src"),
        ("link", "id"),
        ("link", "from_id"),
        ("link", "to_id"),
        ("link_src", "src"),
        ("source", "path"),
        ("node_history", "id"),
        ("link_history", "id"),
        ("link_history", "from_id"),
        ("link_history", "to_id"),
        ("record", "seq"),
        ("record", "changeset_id"),
    ):
        connection.execute(f"create index {table}_by_{column} on {catalog}.{table} ({column})")


def create_overlay(connection: Connection) -> None:
    """Create the tail tables over ``base``, and the views that queries read."""
    for name, (key, columns) in ELEMENTS.items():
        listed = ", ".join(columns)
        past = ", ".join(history_columns(columns))
        _create(connection, f"{name}_tail", columns)
        _create(connection, f"{name}_history_tail", history_columns(columns))
        _create(connection, f"{name}_touched", {key: "VARCHAR"})
        connection.execute(
            f"create view {name} as select {listed} from base.{name} where {key} not in (select {key} from {name}_touched) "  # noqa: E501
            f"union all select {listed} from {name}_tail"
        )
        connection.execute(
            f"create view {name}_history as select {past} from base.{name}_history "
            f"union all select {past} from {name}_history_tail"
        )
    _create(connection, "record_tail", RECORD)
    listed = ", ".join(RECORD)
    connection.execute(
        f"create view record as select {listed} from base.record union all select {listed} from record_tail"
    )


def _create(connection: Connection, table: str, columns: Columns) -> None:
    connection.execute(f"create table {table} ({', '.join(f'{name} {kind}' for name, kind in columns.items())})")


def load(connection: Connection, table: str, columns: Columns, rows: Iterable[Row]) -> None:
    """Append rows to a table, in chunks that bound the memory that it takes."""
    shape = ", ".join(f'"{name}": {_json_kind(kind)}' for name, kind in columns.items())
    cells = ", ".join(f"r.{name}" for name in columns)
    statement = (
        f"insert into {table} ({', '.join(columns)}) "
        f"select {cells} from (select unnest(from_json(?::json, '[{{{shape}}}]')) as r)"
    )
    for chunk in _chunks(rows):
        connection.execute(statement, [_encode(chunk).decode()])


def _json_kind(kind: str) -> str:
    if kind == "VARCHAR[]":
        return '["VARCHAR"]'
    return '"VARCHAR"' if kind == "JSON" else f'"{kind}"'


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    source = iter(rows)
    while chunk := list(islice(source, _CHUNK_ROWS)):
        yield chunk


def among(keys: Sequence[str]) -> tuple[str, list[Any]]:
    """Return a condition ``in (…)`` on keys, and its parameters.

    A short list is written out, because DuckDB then uses the index; a long one is joined.
    """
    if len(keys) <= _SMALL_LIST:
        return f"in ({', '.join('?' * len(keys))})", list(keys)
    return "in (select unnest(?::varchar[]))", [list(keys)]


def quoted(path: str) -> str:
    """Return a path for use between single quotes, which is the one place where no parameter can stand."""
    return path.replace("'", "''")
