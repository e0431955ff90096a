"""Open a published base, or build one by folding the journal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kbcore import collector, progress
from kbcore.errors import ViewDamaged
from kbcore.view import database
from kbcore.view.basis import Basis, write_stamp
from kbcore.view.behind import Behind
from kbcore.view.database import quoted
from kbcore.view.fold import CHUNK_RECORDS, ROW_OF, Batch, Entry, Start, fold, pruned_rows
from kbcore.view.tables import ELEMENTS, RECORD, VIEW_FORMAT
from kbcore.view.view import View

_PUBLISHED: Final = "read_only"

_WORDS: Final = {"node": "entities", "link": "edges", "source": "files"}


def open_base(path: str, temp_dir: str, *, is_own: bool = False) -> View:
    """Return a view that stands on a published base, or on one that is the view's own to write in.

    Raises: ``ViewDamaged`` when the file is not a base that this program can use; the caller then builds a new one.
    """
    connection = database.connect(temp_dir)
    try:
        with database.explained_all():
            connection.execute(f"attach '{quoted(path)}' as base ({database.UNLOGGED if is_own else _PUBLISHED})")
            stamp = _read_stamp(connection, path)
    except BaseException:
        connection.close()
        raise
    return View(connection, stamp, is_own=is_own)


def _empty(temp_dir: str, basis: Basis) -> View:
    """Return a view of a branch to which nothing was written; its database is made when it is first asked."""

    def made() -> database.Connection:
        connection = database.connect(temp_dir)
        connection.execute(database.attaching_new(":memory:", "base"))
        database.create_base(connection, "base")
        return connection

    return View(made, basis, is_own=True)


def build(target: str, temp_dir: str, start: Start, entries: Iterable[Entry], basis: Basis) -> View:
    """Fold records onto what stood before them and return a view whose base holds the whole of it.

    ``target`` is a file that does not exist yet, or ``:memory:``.

    Raises: ``ViewDamaged`` when the file cannot be written; what ``entries`` raises.
    """
    if target == ":memory:" and not basis.seq:
        return _empty(temp_dir, basis)
    connection = database.connect(temp_dir)
    try:
        with database.explained(), collector.paused():
            connection.execute(database.attaching_new(target, "base"))
            database.create_base(connection, "base")
            _load_all(connection, start, entries)
            database.finish_base(connection, "base")
            write_stamp(connection, "base", basis)
            if target != ":memory:":
                connection.execute("force checkpoint base")
                connection.execute("detach base")
                connection.execute(f"attach '{quoted(target)}' as base (read_only)")
    except BaseException:
        connection.close()
        raise
    return View(connection, basis)


def _load_all(connection: database.Connection, start: Start, entries: Iterable[Entry]) -> None:
    state = start.state
    database.load(connection, "base.record", RECORD, pruned_rows(start))
    with Behind() as behind:
        batch = Batch()
        for entry in entries:
            batch.add_past(entry, fold(state, entry))
            if len(batch.records) >= CHUNK_RECORDS:
                behind.do(_load_past, connection, batch)
                batch = Batch()
        behind.do(_load_past, connection, batch)
        for table, elements in (("node", state.nodes), ("link", state.links), ("source", state.sources)):
            keys = progress.counted(sorted(elements), len(elements), f"{_WORDS[table]} loaded")
            rows = (ROW_OF[table](elements[key]) for key in keys)
            for chunk in database.chunks(rows):
                behind.do(database.load, connection, f"base.{table}", ELEMENTS[table][1], chunk)


def _load_past(connection: database.Connection, batch: Batch) -> None:
    for table, (_, columns) in ELEMENTS.items():
        database.load(connection, f"base.{table}_history", database.history_columns(columns), batch.ended[table])
    database.load(connection, "base.record", RECORD, batch.records)


def _read_stamp(connection: database.Connection, path: str) -> Basis:
    rows = connection.execute(f"select {', '.join(database.STAMP)} from base.stamp").fetchall()
    if len(rows) != 1 or rows[0][0] != VIEW_FORMAT:
        raise ViewDamaged(f"{path} has no usable stamp")
    return Basis(*rows[0][1:])
