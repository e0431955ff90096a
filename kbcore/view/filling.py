"""What a new base is filled with: all that a view shows, or, where nothing stood before, what came first.

And what is lent of it: one table in a file of its own.
"""

from __future__ import annotations

from kbcore.view import database
from kbcore.view.fold import ROW_OF, Batch
from kbcore.view.tables import ELEMENTS, RECORD


def from_shown(connection: database.Connection, into: str) -> None:
    """Fill a database, attached under this name and empty, with the tables that queries read."""
    for name, (key, _) in ELEMENTS.items():
        connection.execute(f"create table {into}.{name} as select * from {name} order by {key}")
        connection.execute(f"create table {into}.{name}_history as select * from {name}_history")
    connection.execute(f"create table {into}.record as select * from record order by seq")
    database.create_stamp(connection, into)


def from_batch(connection: database.Connection, into: str, batch: Batch) -> None:
    """Fill a database, attached under this name and empty, straight from values that are in no table yet."""
    database.create_base(connection, into)
    for name, (_, columns) in ELEMENTS.items():
        current = batch.current[name]
        rows = (ROW_OF[name](current[key]) for key in sorted(current) if current[key] is not None)
        database.load(connection, f"{into}.{name}", columns, rows)
        history = database.history_columns(columns)
        database.load(connection, f"{into}.{name}_history", history, batch.ended[name])
    database.load(connection, f"{into}.record", RECORD, batch.records)


def one_table(connection: database.Connection, table: str, path: str) -> None:
    """Copy a table that queries read into a new database file, under its own name."""
    connection.execute(f"attach '{database.quoted(path)}' as lent")
    try:
        connection.execute(f"create table lent.{table} as from {table}")
    finally:
        connection.execute("detach lent")
