"""Statements that others made, answered from the tables of a view, and small tables of constants beside these.

One that takes too much time or memory is ended; the view goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import duckdb

from kbcore.view import database
from kbcore.view.tables import Columns

T = TypeVar("T")
M = TypeVar("M")


class SqlRefused(Exception):
    """The database cannot do with the values it met what the statement asks for; the text says what.

    Never shown to a user: who asked says what for.
    """


class DatabaseSession:
    """One connection with its lock; ``show`` brings everything that the view holds before the statements."""

    def __init__(self, connection: database.Connection, lock: threading.RLock, show: Callable[[], None]) -> None:
        self._connection = connection
        self._lock = lock
        self._show = show
        self._parsed = database.parser(connection)
        self._held: dict[str, object] = {}
        self._known: dict[str, tuple[object, Any]] = {}

    def rows(self, sql: str, params: Sequence[Any] = (), *, time_s: float | None = None) -> list[tuple[Any, ...]]:
        """Return all rows of a statement over the tables of ``tables.py`` and those of ``hold``.

        ``time_s`` is its time, where that is not the one of every statement.

        Raises: ``StatementTimeout``, ``ResourceLimit``, ``Refused``; ``ViewDamaged`` when the database cannot be read.
        """
        with self._lock, database.explained():
            self._show()
            try:
                [statement] = self._parsed(sql)
                return self._connection.rows(statement, params, time_s=time_s)
            except duckdb.InvalidInputException as error:
                raise SqlRefused(str(error).partition(":")[2].strip()) from error

    def hold(self, name: str, columns: Columns, mark: object, rows: Iterable[database.Row]) -> None:
        """Keep a table of constants under a name of its own; it is filled anew when ``mark`` is not what it was."""
        with self._lock:
            if name in self._held and self._held[name] == mark:
                return
            listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
            with database.explained(), database.transaction(self._connection):
                self._connection.execute(f"create or replace table {name} ({listed})")
                database.load(self._connection, name, columns, rows)
            self._held[name] = mark

    def once(self, name: str, mark: M, make: Callable[[M], T]) -> T:
        """Return what is made of a mark, made anew only when it is another one than the last time."""
        with self._lock:
            last = self._known.get(name)
            if last is None or not (last[0] is mark or last[0] == mark):
                last = self._known[name] = mark, make(mark)
            found: T = last[1]
            return found
