"""The rows of a new base: those that a view shows, now or at a seq, or, where its base was empty, those of its tail.

Also the rows of one relation, which is copied into a file of its own, and those that a tail takes in.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator

from kbcore.view import database, table_creation
from kbcore.view.background_writer import BackgroundWriter
from kbcore.view.base_stamp import BaseStamp, write_stamp
from kbcore.view.record_rows import ROW_OF, RowBatch
from kbcore.view.relations import Relation
from kbcore.view.tables import ELEMENTS, RECORD, WHOLE


def new_base(connection: database.Connection, path: str, basis: BaseStamp, first: RowBatch | None) -> None:
    """Write a base into a file that does not exist yet: what queries read, or, if given, what is in no table yet."""
    with _attached(connection, path) as into:
        if first is None:
            from_shown(connection, into)
        else:
            from_batch(connection, into, first)
        table_creation.finish_base(connection, into)
        write_stamp(connection, into, basis)


def past_base(connection: database.Connection, path: str, basis: BaseStamp) -> None:
    """Write the state at the seq of ``basis`` into a file that does not exist yet, for one use and without indexes."""
    with _attached(connection, path) as into:
        for name, (key, columns) in ELEMENTS.items():
            listed, (current, past) = ", ".join(columns), _sources(name)
            connection.execute(
                f"create table {into}.{name} as select {listed} from {current} where version <= $1 union all "
                f"select {listed} from {past} where version <= $1 and ended > $1 order by {key}",
                [basis.seq],
            )
            ended = f"select * from {past} where ended <= $1"
            connection.execute(f"create table {into}.{name}_history as {ended}", [basis.seq])
        connection.execute(f"create table {into}.record as select * from record where seq <= $1", [basis.seq])
        table_creation.create_stamp(connection, into)
        table_creation.derive(connection, into)
        write_stamp(connection, into, basis)


@contextlib.contextmanager
def _attached(connection: database.Connection, path: str) -> Iterator[str]:
    """Attach a new file that the block fills; returns the name under which it is known."""
    connection.execute(database.attaching_new(path, "fresh"))
    try:
        yield "fresh"
        connection.execute("force checkpoint fresh")
    finally:
        connection.execute("detach fresh", is_cleanup=True)


def from_shown(connection: database.Connection, into: str) -> None:
    """Fill a database, attached under this name and empty, with the tables that queries read."""
    for name, (key, _) in ELEMENTS.items():
        current, past = _sources(name)
        connection.execute(f"create table {into}.{name} as select * from {current} order by {key}")
        connection.execute(f"create table {into}.{name}_history as select * from {past}")
    connection.execute(f"create table {into}.record as select * from record order by seq")
    table_creation.create_stamp(connection, into)


def _sources(name: str) -> tuple[str, str]:
    """Return what has all present rows of a table, and all superseded ones."""
    past = f"{name}_history"
    return WHOLE.get(name, name), WHOLE.get(past, past)


def from_batch(connection: database.Connection, into: str, batch: RowBatch) -> None:
    """Fill a database, attached under this name and empty, straight from values that are in no table yet."""
    table_creation.create_base(connection, into)
    with BackgroundWriter() as writer:
        for name, (_, columns) in ELEMENTS.items():
            current = batch.current[name]
            rows = (ROW_OF[name](current[key]) for key in sorted(current) if current[key] is not None)
            for chunk in database.chunks(rows):
                writer.do(database.load, connection, f"{into}.{name}", columns, chunk)
    for name, (_, columns) in ELEMENTS.items():
        history = table_creation.history_columns(columns)
        database.load(connection, f"{into}.{name}_history", history, batch.ended[name])
    database.load(connection, f"{into}.record", RECORD, batch.records)


def tail_of(
    connection: database.Connection, table: str, batch: RowBatch, loaded: Container[str], hidden: set[str]
) -> None:
    """Load one table's part of a batch: the keys that it hides of the base, and the rows that replace them.

    ``loaded`` are the keys that have a row in the tail already, ``hidden`` those of which the base shows none.
    """
    key, _ = ELEMENTS[table]
    newly = ({key: name} for name in sorted(batch.older[table] - hidden))
    database.load(connection, f"{table}_touched", {key: "VARCHAR"}, newly)
    rows_of(connection, table, batch, loaded, (f"{table}_tail", f"{table}_history_tail"))


def rows_of(
    connection: database.Connection, table: str, batch: RowBatch, loaded: Container[str], into: tuple[str, str]
) -> None:
    """Load one table's rows of what waits into a table of current rows and one of superseded ones.

    ``loaded`` are the keys that have a row in the first already.
    """
    key, columns = ELEMENTS[table]
    current = batch.current[table]
    again = [name for name in current if name in loaded]
    if again:
        condition, params = database.among(again)
        connection.execute(f"delete from {into[0]} where {key} {condition}", params)
    rows = (ROW_OF[table](element) for element in current.values() if element is not None)
    database.load(connection, into[0], columns, rows)
    database.load(connection, into[1], table_creation.history_columns(columns), batch.ended[table])


def one_relation(connection: database.Connection, relation: Relation, path: str) -> None:
    """Copy a relation over what queries read into a new database file, under its own name."""
    connection.execute(f"attach '{database.quoted(path)}' as lent")
    try:
        connection.execute(f"create table lent.{relation.name} as {relation.select}")
    finally:
        connection.execute("detach lent", is_cleanup=True)
