"""The file of an index of changes: a database of SQLite, its tables, and which records of a journal are in it.

It is in the cache, and may be deleted at any time. Rows are added many at a time, before anything is asked.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from kbcore.errors import LockTimeout, ViewDamaged
from kbcore.process import interrupting
from kbcore.storage.head import Head

T = TypeVar("T")

_FORMAT: Final = 10
_WAIT_S: Final = 60
"""As long as another process may fill the index that this one waits for."""
_PRIMARY: Final = 0xFF
"""The bits of an error code of SQLite that do not tell it from others of its kind."""
_OF_DISK: Final = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR})
_INSERT: Final = {"seen": "insert", "change": "insert or replace"}
"""The statement that adds rows to tables, where not ``insert or ignore``."""
_KEYS: Final = "select value from json_each(:keys)"

_SCHEMA: Final = """
create table change (
    id text primary key, seq integer, at text, actor text, session text, body blob, head text, restores integer
);
create index change_by_seq on change (seq);
create table held (change text, file text, since integer, until integer, is_committed integer);
create index held_by_change on held (change);
create index held_by_file on held (file);
create table redacted (change text, field text, primary key (change, field)) without rowid;
create table subject (key text, is_end integer, change text, primary key (key, is_end, change)) without rowid;
create table deleted (key text primary key) without rowid;
create table name (id text, creation text, primary key (id, creation)) without rowid;
create index name_by_creation on name (creation);
create table edge (id text primary key, type text, kind text, from_id text, to_id text) without rowid;
create table document_edge (type text, kind text, from_id text, to_id text);
create table former (former text, id text, primary key (former, id)) without rowid;
create table seen (seq integer primary key, sum text, file text, ends integer);
create table stamp (format integer, store text);
"""
"""``change.seq`` is that of the record that is the change, or took it over from another branch; 0 where only a file
has it. ``head`` and ``restores`` are as in ``WrittenAt``. ``redacted`` has the fields of changes that a record has
whole and a later record redacted (``fields_redacted``). ``subject`` has the creations that a change has claims on,
and, with ``is_end``, those that are ends of its edges; ``deleted`` has those that some change deletes, ``name`` each
id that changes give to a creation or know it by, ``edge`` the edges that clients stated, with their ends, and
``former`` the ids that entities had before, by what documents say now. ``document_edge`` has the edges that documents
stated, in no order; with the first edge about an edge they come to ``edge``, as do later ones."""


class IndexNotWritten(ViewDamaged):
    """The file of an index cannot be written or read, because the disk is full or fails. What it has may be whole."""


class ClaimDatabase:
    """The database of the index of one branch, for one thread at a time."""

    def __init__(self, path: str) -> None:
        """Open or create it. Raises: ``ViewDamaged`` when the file cannot be used."""
        self.is_damaged = False
        self._is_filling = False
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}
        """Rows by their table that are not written yet: they are before anything is asked."""
        is_uri = path.startswith("file:")
        try:
            self._opened = sqlite3.connect(
                path, timeout=_WAIT_S, isolation_level=None, check_same_thread=False, uri=is_uri
            )
            self.close = weakref.finalize(self, self._opened.close)
            self._opened.execute("pragma trusted_schema = off")
            self._opened.execute("pragma synchronous = normal")
        except sqlite3.Error as error:
            raise ViewDamaged(str(error)) from error

    def rows(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a statement. Raises: ``ViewDamaged``, ``LockTimeout``."""
        if self._waiting:
            self.write()
        if self._is_filling:  # it is interrupted between two records: none has long statements
            return self._run(lambda: self._opened.execute(sql, params).fetchall())
        with interrupting.step(self._opened.interrupt) as step:
            try:
                return self._run(lambda: self._opened.execute(sql, params).fetchall())
            except (ViewDamaged, LockTimeout) as error:
                if step.is_interrupted:
                    self.is_damaged = False
                    raise step.reason() from error
                raise

    def by_keys(self, sql: str, keys: Iterable[str], **params: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement with ``{}`` in the place of keys."""
        listed = json.dumps(sorted(set(keys)))
        return self.rows(sql.format(_KEYS), keys=listed, **params) if listed != "[]" else []

    def one(self, sql: str, **params: Any) -> tuple[Any, ...] | None:
        """Return the first row of a statement on tables with no rows that wait, without a limit of its time."""
        found: tuple[Any, ...] | None = self._run(lambda: self._opened.execute(sql, params).fetchone())
        return found

    def add(self, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Add rows to a table, but those that it has: before the next statement."""
        self._waiting.setdefault(table, []).extend(rows)

    def run_for_each(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a statement for each of some rows of values, after those that wait are written."""
        self.write()
        self._run_many(sql, rows)

    def write(self) -> None:
        """Write the rows that wait. Raises: ``ViewDamaged``, ``LockTimeout``."""
        waiting, self._waiting = self._waiting, {}
        for table, rows in waiting.items():
            if rows:
                how = _INSERT.get(table, "insert or ignore")
                self._run_many(f"{how} into {table} values ({', '.join('?' * len(rows[0]))})", rows)

    def _run_many(self, sql: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._run(lambda: self._opened.executemany(sql, rows))

    def _run(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except sqlite3.Error as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                message = f"Another process held the index of changes for longer than {_WAIT_S} s."
                raise LockTimeout(message) from error
            self.is_damaged = True
            kind = IndexNotWritten if error.sqlite_errorcode & _PRIMARY in _OF_DISK else ViewDamaged
            raise kind(str(error)) from error

    @contextlib.contextmanager
    def filling(self) -> Iterator[None]:
        """Let the block fill the database, while no other process does; what it wrote is undone where it raises."""
        self.rows("begin immediate")
        self._is_filling = True
        try:
            yield
        except BaseException:
            self._waiting = {}
            if self._opened.in_transaction:  # SQLite rolls back by itself where the disk is full or fails
                self.rows("rollback")
            raise
        finally:
            self._is_filling = False
        self.rows("commit")

    def copy_to(self, other: ClaimDatabase) -> None:
        """Copy all that is in it to another one. Raises: ``ViewDamaged``."""
        try:
            self._opened.backup(other._opened)
        except sqlite3.Error as error:
            raise ViewDamaged(str(error)) from error

    def has(self, head: Head) -> bool:
        """Tell whether the record of a head is in it, and so all before that."""
        if not self.is_of(head.store_id):
            return False
        return not head.seq or bool(
            self.rows("select 1 from seen where seq = :seq and sum = :sum", seq=head.seq, sum=head.hash)
        )

    def reach_in(self, store_id: str) -> int:
        """Return the last record that it has of a store, which need not be there any more; 0 where it has none."""
        return int(self.rows("select coalesce(max(seq), 0) from seen")[0][0]) if self.is_of(store_id) else 0

    def is_of(self, store_id: str) -> bool:
        """Tell whether it was filled from this store."""
        if not self.rows("select 1 from sqlite_master where name = 'stamp'"):
            return False
        return self.rows("select * from stamp") == [(_FORMAT, store_id)]

    def empty(self, store_id: str = "") -> None:
        """Make the tables, without any record; filled from this store, if it is named. Raises: ``ViewDamaged``."""
        for kind, name in self.rows("select type, name from sqlite_master where name not like 'sqlite_%'"):
            self.rows(f'drop {kind} if exists "{name}"')
        for statement in filter(str.strip, _SCHEMA.split(";")):
            self.rows(statement)
        if store_id:
            self.rows("insert into stamp values (:format, :store)", format=_FORMAT, store=store_id)


def inspect(path: Path) -> int:
    """Return how many changes an index has, for a diagnosis; nothing is written. Raises: ``ViewDamaged``."""
    database = ClaimDatabase(f"{path.as_uri()}?mode=ro")
    found = database.rows("pragma quick_check")
    if found != [("ok",)]:
        raise ViewDamaged(str(found[0][0]))
    return int(database.rows("select count(*) from change")[0][0])
