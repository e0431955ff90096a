"""The rows of a view as Parquet files, and a view over such files.

A file has the columns of a table of ``tables.py``, JSON as text, and for elements ``ended``: null for a present row,
else the seq that ended it. Of the same key and version the row with the least ``ended`` counts, so that a later file
says of a row in an earlier one that it ended: no file is ever changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.model.graph import Link, Node
from kbcore.view import database, table_creation
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.database import Room, quoted
from kbcore.view.tables import ELEMENTS, LINK, NODE, RECORD, Columns, link_row, node_row
from kbcore.view.view import View

TABLES: Final[Mapping[str, str]] = {"entity": "node", "edge": "link", "source": "source", "record": "record"}
"""The table of each kind of file."""
KINDS: Final = tuple(TABLES)
HISTORY: Final = frozenset({"record"})
"""Kinds that are history alone."""
FORMAT_KEY: Final = "kb_fleet_format"
ENDED: Final = "ended"
_LOCAL: Final = {"file": "''", "offset_bytes": "0", "length_bytes": "0"}
"""Columns of a record that say where its line is in a journal, with what they are elsewhere."""
_PASSING: Final = frozenset({"created_at", "updated_at", "created_by", "created_seq", "version"})
"""Columns that differ between stores which hold the same facts."""
_LEFT_OUT: Final = "fleet_left_out"
READ_FILES: Final = "read_parquet($1, hive_partitioning = false)"
"""Reads files, given by path. Signs such as `=` in the names of their folders mean nothing."""


class LeftOut(msgspec.Struct, frozen=True):
    """Elements of a view that are not written: ``ids``, and those in the place of which others are written."""

    ids: frozenset[str] = frozenset()
    nodes: tuple[Node, ...] = ()
    links: tuple[Link, ...] = ()


class WrittenFile(msgspec.Struct, frozen=True):
    """A file that was written: its kind, where it is, and how many rows it has."""

    kind: str
    path: Path
    rows: int


class PartWriter:
    """Writes the rows of a view. Close it after use; the view must not change meanwhile."""

    def __init__(self, view: View, left_out: LeftOut | None = None) -> None:
        self._connection = view.cursor()
        self._left_out = left_out
        if left_out:
            ids = {*left_out.ids, *(one.id for one in left_out.nodes), *(one.id for one in left_out.links)}
            self._hold(_LEFT_OUT, {"id": "VARCHAR"}, ({"id": one} for one in sorted(ids)))
            self._hold("fleet_node", NODE, map(node_row, left_out.nodes))
            self._hold("fleet_link", LINK, map(link_row, left_out.links))

    def _hold(self, name: str, columns: Columns, rows: Iterable[database.Row]) -> None:
        self._connection.hold(name, columns, None, rows)

    def close(self) -> None:
        """Close the connection, with the tables of what is left out."""
        self._connection.close()

    def fingerprint(self, since: int | None = None) -> int:
        """Return a number of 128 bits that depends on all present facts, and on nothing else; not on their order.

        Of ``since``, a seq of the same store, it is what the number of that seq differs by, to be combined by XOR.
        Seqs, times and who first stated an edge are no facts. It is no protection against a forger.
        """
        found = 0
        for kind, table in TABLES.items():
            if table not in ELEMENTS:
                continue
            columns = ELEMENTS[table][1]
            cells = ", ".join(f"'{name}': {name}" for name in columns if name not in _PASSING)
            hashed = f"select bit_xor(md5_number('{kind}' || cast(to_json({{{cells}}}) as varchar))) from"
            asked = [f"{hashed} {self._present(table)}"]
            if since is not None:
                asked = [
                    f"{hashed} {table} where version > {since:d}",
                    f"{hashed} {table}_history where version <= {since:d} and ended > {since:d}",
                ]
            for sql in asked:
                found ^= self._rows(sql)[0][0] or 0
        return found

    def write(self, folder: Path, form: int, *, since: int = 0, has_history: bool) -> Iterator[WrittenFile]:
        """Write a file of each kind that has rows after a seq into a folder that the database may use.

        ``form`` is noted in each file as the version of the format. Without history there are only present rows.
        """
        for kind, table in TABLES.items():
            if not has_history and kind in HISTORY:
                continue
            path = folder / f"{kind}.parquet"
            [(rows,)] = self._rows(
                f"copy ({self._select(table, since, has_history=has_history)}) to '{quoted(str(path))}' "
                f"(format parquet, compression zstd, kv_metadata {{{FORMAT_KEY}: '{form:d}'}})"
            )
            if rows:
                yield WrittenFile(kind, path, rows)

    def _select(self, table: str, since: int, *, has_history: bool) -> str:
        if table not in ELEMENTS:
            cells = _as_text({name: kind for name, kind in RECORD.items() if name not in _LOCAL})
            return f"select {cells} from record where seq > {since:d} order by seq"
        key, columns = ELEMENTS[table]
        cells = _as_text(columns)
        rows = f"select {cells}, null::bigint as {ENDED} from {self._present(table)} where version > {since:d}"
        if has_history:
            rows += f" union all select {cells}, {ENDED} from {table}_history where {ENDED} > {since:d}"
        return f"{rows} order by {key}, version"

    def _present(self, table: str) -> str:
        """Return the relation of the present rows of a table, without what is left out."""
        if not self._left_out or table not in {"node", "link"}:
            return table
        listed = ", ".join(ELEMENTS[table][1])
        kept = f"select {listed} from {table} where id not in (select id from {_LEFT_OUT})"
        return f"({kept} union all select {listed} from fleet_{table})"

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        with database.explained():
            return self._connection.rows(sql)


def _as_text(columns: Columns) -> str:
    return ", ".join(f"cast({name} as varchar) as {name}" if kind == "JSON" else name for name, kind in columns.items())


def database_of_parts(folders: Sequence[str] = (), memory_bytes: int = limits.VIEW_MEMORY_BYTES) -> database.Connection:
    """Return a database in which ``open_parts`` opens one branch after the other; the caller closes it.

    It reads files below ``folders``, and in the folders of ``database.scratch_folder``. It has all that queries read,
    because to make that takes longer than to read a branch of a thousand facts: present and superseded rows are views
    over one table for each kind of file, and a branch replaces these tables alone.
    """
    connection = database.connect(Room(folders=tuple(folders), memory_bytes=memory_bytes))
    try:
        connection.execute(database.attaching_new(":memory:", "base"))
        for table in TABLES.values():
            _empty(connection, table)
            if table in ELEMENTS:
                listed = ", ".join(ELEMENTS[table][1])
                rows = f"from base.{table}_rows where {ENDED}"
                connection.execute(f"create view base.{table} as select {listed} {rows} is null")
                connection.execute(f"create view base.{table}_history as select {listed}, {ENDED} {rows} is not null")
        table_creation.derive(connection, "base", kind="view")
        table_creation.create_plain(connection)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def open_parts(shared: database.Connection, paths: Mapping[str, Sequence[str]], basis: BaseStamp) -> Iterator[View]:
    """Yield a view in memory of the rows of files, given by kind, in the place of those that were opened before.

    It has no indexes: to make them takes longer than to answer one question without them. Of a kind that is not given
    there are no rows.

    Raises: ``ViewDamaged`` where one is missing, or is not such a file; what the block raises.
    """
    with contextlib.closing(shared.cursor()) as connection:
        with database.explained_all():
            for kind, table in TABLES.items():
                if files := paths.get(kind):
                    _load(connection, table, files)
                else:
                    _empty(connection, table)
        yield View(connection, basis, is_queryable=True)


def _empty(connection: database.Connection, table: str) -> None:
    listed = ", ".join(f"{name} {kind}" for name, kind in _columns(table).items())
    connection.execute(f"create or replace table base.{_filled(table)} ({listed})")


def _load(connection: database.Connection, table: str, files: Sequence[str]) -> None:
    cells = ", ".join(f"cast({_LOCAL.get(name, name)} as {kind}) as {name}" for name, kind in _columns(table).items())
    rows = f"select {cells} from {READ_FILES}"
    if len(files) > 1:
        key = "seq"
        if table in ELEMENTS:
            key = ELEMENTS[table][0]
            rows += f" qualify row_number() over (partition by {key}, version order by {ENDED} nulls last) = 1"
        rows += f" order by {key}"  # those of one file are in this order
    connection.execute(f"create or replace table base.{_filled(table)} as {rows}", [[*files]])


def _filled(table: str) -> str:
    """Return the name of the table that has the rows of files."""
    return f"{table}_rows" if table in ELEMENTS else table


def _columns(table: str) -> Columns:
    return {**ELEMENTS[table][1], ENDED: "BIGINT"} if table in ELEMENTS else RECORD
