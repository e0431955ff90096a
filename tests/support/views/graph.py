"""Loads nodes, links and files into an in-memory DuckDB that has the tables queries read."""

from __future__ import annotations

import atexit
import itertools
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import duckdb

from kbcore.ids import link_id
from kbcore.model.graph import Link, Node, Statement, SyncedFile
from kbcore.view import as_of, database, table_creation, tables
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.text_index import TextIndex

AT = "2026-11-20T09:30:00.000000Z"


_NUMBERS = itertools.count()


@cache
def _database() -> database.Connection:
    """Return the database that all graphs of this process are attached to: making one costs more than most of them."""
    return database.Connection(duckdb.connect(config={"threads": 1}))


_connections: dict[str, database.Connection] = {}
"""That of each graph, by the name of its database."""
_gone: list[str] = []
"""The databases of graphs that nobody has any more. The collector may run anywhere, so it does not use them."""


def _detach_gone() -> None:
    while _gone:
        name = _gone.pop()
        connection = _connections.pop(name)
        connection.execute(f"use memory; detach {name}")
        connection.close()


@atexit.register
def _free() -> None:
    """Free all connections: what keeps a strategy keeps graphs beyond the end of DuckDB, which then reports a leak."""
    _connections.clear()
    _database.cache_clear()


class Graph:
    """The tables ``node``, ``link``, ``source``, ``record`` and their histories, as a view presents them."""

    def __init__(self) -> None:
        _detach_gone()
        self._name = name = f"graph_{next(_NUMBERS)}"
        _connections[name] = _database().cursor()
        self.connection.execute(f"attach ':memory:' as {name}; use {name}")
        weakref.finalize(self, _gone.append, name)
        self.seq = 1
        self.overlay_mark = ""
        self.basis = BaseStamp("store", "", 1, "", "", "", 0)
        self.asked: list[str] = []
        self._columns: dict[str, Mapping[str, str]] = {"record": tables.RECORD}
        for name, (_key, columns) in tables.ELEMENTS.items():
            self._columns |= {name: columns, f"{name}_history": table_creation.history_columns(columns)}
        for name, columns in self._columns.items():
            listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            self.connection.execute(f"create table {name} ({listed})")

    @property
    def connection(self) -> database.Connection:
        """Return the connection to its database."""
        return _connections[self._name]

    @property
    def recorded_seq(self) -> int:
        """Return the seq: all of a graph counts as recorded."""
        return self.seq

    def rows(self, sql: str, params: Sequence[Any] = (), *, time_s: float | None = None) -> list[tuple[Any, ...]]:
        """Answer one statement, as ``View.rows`` does, and remember that it was asked."""
        self.asked.append(sql)
        with database.explained():
            return self.connection.rows(sql, params, time_s=time_s)

    def hold(self, name: str, columns: Mapping[str, str], mark: object, rows: Iterable[Mapping[str, Any]]) -> None:
        """Keep a table of constants, as ``View.hold`` does."""
        self.connection.hold(name, columns, mark, rows)

    def once(self, name: str, mark: Any, make: Callable[[Any], Any]) -> Any:
        """Return what is made of a mark, as ``View.once`` does."""
        return self.connection.once(name, mark, make)

    def cursor(self) -> database.Connection:
        """Return another connection to the same tables, as ``View.cursor`` does."""
        cursor = self.connection.cursor()
        cursor.execute(f"use {self._name}")
        return cursor

    def add(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Insert rows whose cells are named."""
        database.load(self.connection, table, self._columns[table], rows)


class Texts:
    """The text index of a graph's entities, filled once for each seq; without documents."""

    hint = remark = ""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._indexes: dict[int | None, TextIndex] = {}

    def index(self, at: int | None) -> TextIndex:
        """Return an index of the entities as of a seq."""
        if at not in self._indexes:
            made = self._indexes[at] = TextIndex()
            made.add(self._graph, as_of.nodes(at), "(select '' as id, '' as text where false)")
        return self._indexes[at]

    def meanings(self, at: int | None) -> None:
        """Search words alone."""

    def bodies(self, entities: Sequence[Node], at: int | None) -> dict[str, str]:
        """Return nothing."""
        return {}


def graph_of(
    nodes: Iterable[Node] = (),
    links: Iterable[Link] = (),
    files: Iterable[SyncedFile] = (),
    *,
    old_nodes: Iterable[tuple[Node, int]] = (),
    old_links: Iterable[tuple[Link, int]] = (),
    old_files: Iterable[tuple[SyncedFile, int]] = (),
) -> Graph:
    """Return a graph that holds these elements; ``old_*`` are superseded ones, each with the seq that ended it."""
    graph = Graph()
    graph.add("node", [tables.node_row(node) for node in nodes])
    graph.add("link", [tables.link_row(link) for link in links])
    graph.add("source", [tables.source_row(file) for file in files])
    graph.add("node_history", [{**tables.node_row(node), "ended": ended} for node, ended in old_nodes])
    graph.add("link_history", [{**tables.link_row(link), "ended": ended} for link, ended in old_links])
    graph.add("source_history", [{**tables.source_row(file), "ended": ended} for file, ended in old_files])
    return graph


def node(id_: str, type_: str = "req", **fields: Any) -> Node:
    """Return an entity; ``attributes__kind`` is the field ``attributes.kind``, ``path`` the file that states it.

    ``title`` and ``status`` are filled in; None leaves a field out.
    """
    path = fields.pop("path", "")
    version = fields.pop("version", 1)
    source = fields.pop("source", path or "test")
    named = {"type": type_, "title": f"Title of {id_}", "status": "open"} | {
        name.replace("__", "."): value for name, value in fields.items()
    }
    stated = {name: value for name, value in named.items() if value is not None}
    owners = dict.fromkeys(stated, path) if path else {}
    return Node(id_, stated, owners, AT, AT, source, 1, version)


def link(from_id: str, type_: str, to_id: str, **given: Any) -> Link:
    """Return a resolved edge; ``files`` are the files that state it, none for a client's."""
    kind = given.get("kind", "")
    files: Sequence[str] = given.get("files", ())
    statements = tuple(sorted(Statement(path) for path in files)) or (Statement("", via="test"),)
    return Link(
        id=link_id(type_, kind, from_id, to_id),
        type=type_,
        kind=kind,
        from_id=from_id,
        to_id=to_id,
        fields=given.get("fields", {}),
        owners={},
        statements=statements,
        is_resolved=given.get("is_resolved", True),
        created_at=AT,
        created_by=given.get("created_by", "tester"),
        created_seq=1,
        version=given.get("version", 1),
    )
