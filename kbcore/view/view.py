"""One process's view of a branch: the published base, attached read-only, and the tail that came after it.

A view is never asked what is durable. It answers for exactly one seq, and moves only forward.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any, Self

import msgspec

from kbcore.model import Link, Node, SourceFile
from kbcore.needs import Needs, needs
from kbcore.state import Changes, State
from kbcore.view import database
from kbcore.view.database import among, quoted
from kbcore.view.fold import CHUNK_RECORDS, ROW_OF, Batch, Entry, fold
from kbcore.view.tables import (
    ELEMENTS,
    LINK,
    NODE,
    RECORD,
    SOURCE,
    VIEW_FORMAT,
    link_of,
    node_of,
    source_of,
)


class Basis(msgspec.Struct, frozen=True):
    """What a view was folded from: the last record, and where in the journal the next one begins.

    ``lineage`` is the beginning of the history that the record belongs to, shared by copies of a branch;
    ``history_from`` is the seq after which history and log are whole (0: from the first record).
    """

    lineage: str
    seq: int
    sum: str
    at: str
    file: str
    end_bytes: int
    history_from: int = 0


class View:
    """The graph of a branch at one seq, ready for SQL. Safe for many threads, one statement at a time."""

    def __init__(self, connection: database.Connection, basis: Basis) -> None:
        self._connection = connection
        self._lock = threading.RLock()
        self._waiting = Batch()
        self._touched: dict[str, set[str]] = {name: set() for name in ELEMENTS}
        self.basis = basis
        self.tail_rows = 0

    @property
    def seq(self) -> int:
        """Return the seq that this view answers for."""
        return self.basis.seq

    @property
    def waiting_rows(self) -> int:
        """Return how many rows were taken in and not yet loaded."""
        return len(self._waiting)

    def base_rows(self) -> int:
        """Return how many rows of elements, current and superseded, the base holds."""
        counts = [f"(select count(*) from base.{name}{past})" for name in ELEMENTS for past in ("", "_history")]
        return int(self.rows(f"select {' + '.join(counts)}")[0][0])

    def close(self) -> None:
        """Let go of the database; the view must not be used again."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Return the view itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the view."""
        self.close()

    def rows(self, sql: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a statement over the tables of ``tables.py``.

        Raises: ``ViewDamaged`` when the database cannot be read; the store then builds a new view.
        """
        with self._lock, database.explained():
            self._load_waiting()
            return self._connection.execute(sql, list(params)).fetchall()

    def nodes(self, ids: Sequence[str]) -> list[Node]:
        """Return the nodes with these ids, as far as they exist."""
        return [node_of(row) for row in self._keyed("node", ", ".join(NODE), "id", ids)]

    def links(self, ids: Sequence[str]) -> list[Link]:
        """Return the links with these ids, as far as they exist."""
        return [link_of(row) for row in self._keyed("link", ", ".join(LINK), "id", ids)]

    def sources(self, paths: Sequence[str]) -> list[SourceFile]:
        """Return the source files with these paths, as far as they were read."""
        return [source_of(row) for row in self._keyed("source", ", ".join(SOURCE), "path", paths)]

    def touching(self, ids: Sequence[str]) -> list[Link]:
        """Return the links that have one of these ids as an end, standing or not."""
        columns = ", ".join(LINK)
        found = [*self._keyed("link", columns, "from_id", ids), *self._keyed("link", columns, "to_id", ids)]
        return list({row[0]: link_of(row) for row in found}.values())

    def stated_by(self, paths: Sequence[str]) -> tuple[list[str], list[str]]:
        """Return the ids of the nodes and of the links of which these files state something."""
        found = []
        for table in ("node", "link"):
            condition, params = among(paths)
            rows = self.rows(
                f"select id from base.{table}_src where src {condition} and id not in (select id from {table}_touched) "
                f"union select id from {table}_tail where list_has_any(files, ?)",
                [*params, list(paths)],
            )
            found.append(sorted(row[0] for row in rows))
        return found[0], found[1]

    def _keyed(self, table: str, columns: str, key: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
        if not values:
            return []
        condition, params = among(values)
        return self.rows(f"select {columns} from {table} where {key} {condition}", params)

    def gather(self, wanted: Needs) -> State:
        """Return the working set that folding or planning needs: what is named, and what hangs on it."""
        sources = self.sources(sorted(wanted.sources))
        links = {link.id: link for link in self.links(sorted(wanted.links))}
        frontier, asked = set(wanted.touching), set[str]()
        while frontier:
            found = self.touching(sorted(frontier))
            asked |= frontier
            links |= {link.id: link for link in found}
            frontier = {link.id for link in found} - asked
        ends = {end for link in links.values() for end in (link.from_id, link.to_id)}
        nodes = self.nodes(sorted(wanted.nodes | ends))
        about = sorted(end for end in ends if end.startswith("link:") and end not in links)
        links |= {link.id: link for link in self.links(about)}
        return State(nodes, links.values(), sources)

    def extend(self, entries: Iterable[Entry], basis: Basis) -> None:
        """Take in the records that came after this view; ``basis`` is where they end."""
        chunk: list[Entry] = []
        for entry in entries:
            chunk.append(entry)
            if len(chunk) == CHUNK_RECORDS:
                self._extend(chunk)
                chunk = []
        if chunk:
            self._extend(chunk)
        self.basis = msgspec.structs.replace(basis, history_from=self.basis.history_from)

    def _extend(self, entries: Sequence[Entry]) -> None:
        state = self.gather(needs(op for entry in entries for op in entry.record.ops))
        for entry in entries:
            self._waiting.add(entry, fold(state, entry))

    def adopt(self, entry: Entry, changes: Changes, basis: Basis) -> None:
        """Take in a record whose changes are known already, because this process has just committed it."""
        self._waiting.add(entry, changes)
        self.basis = msgspec.structs.replace(basis, history_from=self.basis.history_from)

    def _load_waiting(self) -> None:
        """Bring what waits into the tail tables."""
        batch = self._waiting
        if not len(batch):
            return
        self._waiting = Batch()
        connection = self._connection
        connection.execute("begin")
        try:
            for table, (key, columns) in ELEMENTS.items():
                current = batch.current[table]
                new = [name for name in current if name not in self._touched[table]]
                again = [name for name in current if name in self._touched[table]]
                database.load(connection, f"{table}_touched", {key: "VARCHAR"}, ({key: name} for name in new))
                if again:
                    condition, params = among(again)
                    connection.execute(f"delete from {table}_tail where {key} {condition}", params)
                rows = (ROW_OF[table](element) for element in current.values() if element is not None)
                database.load(connection, f"{table}_tail", columns, rows)
                history = database.history_columns(columns)
                database.load(connection, f"{table}_history_tail", history, batch.ended[table])
                self._touched[table].update(new)
            database.load(connection, "record_tail", RECORD, batch.records)
            connection.execute("commit")
        except BaseException:
            self._waiting = batch
            connection.execute("rollback")
            raise
        self.tail_rows += len(batch)

    def write_base(self, path: str) -> None:
        """Write everything that this view holds as a new base into a file that does not exist yet.

        Raises: ``ViewDamaged`` when the file cannot be written.
        """
        with self._lock, database.explained():
            self._load_waiting()
            connection = self._connection
            connection.execute(f"attach '{quoted(path)}' as fresh")
            try:
                for name, (key, _) in ELEMENTS.items():
                    connection.execute(f"create table fresh.{name} as select * from {name} order by {key}")
                    connection.execute(f"create table fresh.{name}_history as select * from {name}_history")
                connection.execute("create table fresh.record as select * from record order by seq")
                database.create_stamp(connection, "fresh")
                database.finish_base(connection, "fresh")
                write_stamp(connection, "fresh", self.basis)
                connection.execute("force checkpoint fresh")
            finally:
                connection.execute("detach fresh")

    def rebase(self, path: str) -> None:
        """Stand on a base that this view has just written, and empty the tail.

        Raises: ``ViewDamaged`` when the base cannot be read; this view must not be used again.
        """
        with self._lock, database.explained():
            self._connection.execute("detach base")
            self._connection.execute(f"attach '{quoted(path)}' as base (read_only)")
            for name in ELEMENTS:
                for table in (f"{name}_tail", f"{name}_history_tail", f"{name}_touched"):
                    self._connection.execute(f"delete from {table}")
                self._touched[name].clear()
            self._connection.execute("delete from record_tail")
            self.tail_rows = 0


def write_stamp(connection: database.Connection, catalog: str, basis: Basis) -> None:
    """Note in a filled base what it was folded from."""
    values = (VIEW_FORMAT, *msgspec.structs.astuple(basis))
    row = dict(zip(database.STAMP, values, strict=True))
    database.load(connection, f"{catalog}.stamp", database.STAMP, [row])
