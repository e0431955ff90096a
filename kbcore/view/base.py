"""Open a published base, or build one by folding the journal."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from kbcore import gc_pause, progress
from kbcore.errors import StorageError, ViewDamaged
from kbcore.model.state import EncodedChanges
from kbcore.storage import files
from kbcore.storage.fs import Fs
from kbcore.view import database, inspection, table_creation
from kbcore.view.background_writer import BackgroundWriter
from kbcore.view.base_stamp import BaseStamp, write_stamp
from kbcore.view.cache_files import CacheFiles, refuse_log, room_of
from kbcore.view.database import Room, quoted
from kbcore.view.record_rows import (
    CHUNK_RECORDS,
    ROW_OF,
    FoldedRecord,
    FoldStart,
    RowBatch,
    first_record_row,
    fold,
    pruned_rows,
)
from kbcore.view.tables import ELEMENTS, RECORD, VIEW_FORMAT
from kbcore.view.view import View

_PUBLISHED: Final = "read_only"

_WORDS: Final = {"node": "entities", "link": "edges", "source": "files"}


def open_published(cache: CacheFiles) -> View | None:
    """Return a view on the published base of a cache, None where there is none; a damaged one is deleted."""
    for path in cache.view_paths:
        try:
            if cache.usable_size(path) is not None:
                return open_view(cache.fs, path, cache.room)
        except ViewDamaged as error:
            cache.discard_damaged(path, error)
        except StorageError:
            continue  # whatever is there is no view
    return None


def published_stamp(cache: CacheFiles) -> BaseStamp | None:
    """Return the stamp of the published base of a cache, None where there is none."""
    view = open_published(cache)
    if view is None:
        return None
    with view:
        return view.basis


def open_view(fs: Fs, path: Path, room: Room | None = None) -> View:
    """Return a view on a published base. ``room`` is that of a database of its folder where it is not given.

    KB leaves no log next to a base. Where there is one, another program wrote to the base, and DuckDB would take its
    rows in as if they had been published.

    Raises: ``ViewDamaged`` when it is not a base that this program can use; ``StorageError`` when something else is
    there.
    """
    refuse_log(fs, path)
    length_bytes = files.read_size(fs, path)
    if length_bytes is None:
        raise ViewDamaged(f"{path} is not there")
    return open_base(str(path), room or room_of(fs, path), length_bytes)


def open_base(path: str, room: Room, length_bytes: int) -> View:
    """Return a view on a published base, a file of this length.

    The file may be anybody's: nothing in it is asked before ``inspection`` has found it to be what KB makes.

    Raises: ``ViewDamaged`` when the file is not a base that this program can use; the caller then builds a new one.
    """
    return _opened(path, room, length_bytes)


def open_own(path: str, room: Room) -> View:
    """Return a view on a base which this process has just made for it, and may write in.

    Raises: ``ViewDamaged`` when the file cannot be read.
    """
    return _opened(path, room, None)


def _opened(path: str, room: Room, length_bytes: int | None) -> View:
    """Open a base. One of no known length is the view's own."""
    is_own = length_bytes is None
    connection = database.connect(room)
    try:
        with database.explained_all():
            connection.execute(f"attach '{quoted(path)}' as base ({database.UNLOGGED if is_own else _PUBLISHED})")
            if length_bytes is not None:
                inspection.check(connection.rows, "base", table_creation.base_tables(), length_bytes)
            stamp = _read_stamp(connection, path)
    except BaseException:
        connection.close()
        raise
    return View(connection, stamp, is_own=is_own)


def _empty(room: Room, basis: BaseStamp) -> View:
    """Return a view of a branch to which nothing was written; its database is made when it is first asked."""

    def made() -> database.Connection:
        connection = database.connect(room)
        connection.execute(database.attaching_new(":memory:", "base"))
        table_creation.create_base(connection, "base")
        return connection

    return View(made, basis, is_own=True)


def build(target: str, room: Room, start: FoldStart, entries: Iterable[FoldedRecord], basis: BaseStamp) -> View:
    """Fold records onto the state before them and return a view whose base holds the whole of it.

    ``target`` is a file that does not exist yet, or ``:memory:``.

    Raises: ``ViewDamaged`` when the file cannot be written; what ``entries`` raises.
    """
    if target == ":memory:" and not basis.seq:
        return _empty(room, basis)
    connection = database.connect(room)
    try:
        with database.explained(), gc_pause.paused():
            connection.execute(database.attaching_new(target, "base"))
            table_creation.create_base(connection, "base")
            _load_all(connection, start, entries)
            table_creation.finish_base(connection, "base")
            write_stamp(connection, "base", basis)
            if target != ":memory:":
                connection.execute("force checkpoint base")
                connection.execute("detach base")
                connection.execute(f"attach '{quoted(target)}' as base (read_only)")
    except BaseException:
        connection.close()
        raise
    return View(connection, basis)


def write_first(target: str, room: Room, entry: FoldedRecord, encoded: EncodedChanges, basis: BaseStamp) -> None:
    """Write the base of a branch with one record, out of the files with its rows. ``target`` does not exist yet.

    Raises: ``ViewDamaged`` when the file cannot be written.
    """
    connection = database.connect(room)
    try:
        with database.explained():
            connection.execute(database.attaching_new(target, "base"))
            table_creation.create_base(connection, "base")
            for table, (key, columns) in ELEMENTS.items():
                rows_in = database.RowFiles(encoded.row_files[table], encoded.row_bytes)
                if table == "link":
                    rows_in = msgspec.structs.replace(
                        rows_in, replaced=encoded.replaced, replacing=encoded.replacing_files
                    )
                database.load_row_files(connection, f"base.{table}", key, columns, rows_in)
            database.load(connection, "base.record", RECORD, [first_record_row(entry, encoded)])
            table_creation.finish_base(connection, "base")
            write_stamp(connection, "base", basis)
            connection.execute("force checkpoint base")
    finally:
        connection.close()


def _load_all(connection: database.Connection, start: FoldStart, entries: Iterable[FoldedRecord]) -> None:
    state = start.state
    database.load(connection, "base.record", RECORD, pruned_rows(start))
    with BackgroundWriter() as writer:
        batch = RowBatch()
        for entry in entries:
            batch.add_past(entry, fold(state, entry))
            if len(batch.records) >= CHUNK_RECORDS:
                writer.do(_load_past, connection, batch)
                batch = RowBatch()
        writer.do(_load_past, connection, batch)
        for table, elements in (("node", state.nodes), ("link", state.links), ("source", state.sources)):
            keys = progress.track(sorted(elements), len(elements), f"{_WORDS[table]} loaded")
            rows = (ROW_OF[table](elements[key]) for key in keys)
            for chunk in database.chunks(rows):
                writer.do(database.load, connection, f"base.{table}", ELEMENTS[table][1], chunk)


def _load_past(connection: database.Connection, batch: RowBatch) -> None:
    for table, (_, columns) in ELEMENTS.items():
        database.load(connection, f"base.{table}_history", table_creation.history_columns(columns), batch.ended[table])
    database.load(connection, "base.record", RECORD, batch.records)


def _read_stamp(connection: database.Connection, path: str) -> BaseStamp:
    rows = connection.execute(f"select {', '.join(table_creation.STAMP)} from base.stamp").fetchall()
    if len(rows) != 1 or rows[0][0] != VIEW_FORMAT:
        raise ViewDamaged(f"{path} has no usable stamp")
    return BaseStamp(*rows[0][1:])
