"""Statements that a view answers within a time, and small tables of constants beside its own.

A statement of somebody else's making is ended when its time is over; the view goes on.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import duckdb

from kbcore.view import database
from kbcore.view.tables import Columns

T = TypeVar("T")
M = TypeVar("M")


class TimeOver(Exception):
    """A statement took longer than it may. Never shown to a user: who asked says what was asked for."""


class TooMuchMemory(Exception):
    """A statement needs more memory than the database may take. Likewise."""


class Refused(Exception):
    """The database cannot do with the values it met what the statement asks for; the text says what. Likewise."""


class Session:
    """One connection with its lock; ``show`` brings everything that the view holds before the statements."""

    def __init__(self, connection: database.Connection, lock: threading.RLock, show: Callable[[], None]) -> None:
        self._connection = connection
        self._lock = lock
        self._show = show
        self._alarm = _Alarm(connection)
        self._parsed = database.parser(connection)
        self._held: dict[str, object] = {}
        self._known: dict[str, tuple[object, Any]] = {}

    def rows(self, sql: str, params: Sequence[Any] = (), *, time_s: float | None = None) -> list[tuple[Any, ...]]:
        """Return all rows of a statement over the tables of ``tables.py`` and those of ``hold``.

        Raises: ``TimeOver``, ``TooMuchMemory``, ``Refused``; ``ViewDamaged`` when the database cannot be read.
        """
        with self._lock, database.explained():
            self._show()
            try:
                with self._alarm.within(time_s):
                    [statement] = self._parsed(sql)
                    return self._connection.execute(statement, list(params)).fetchall()
            except duckdb.InterruptException as error:
                if self._alarm.is_over:
                    raise TimeOver from error
                raise
            except duckdb.OutOfMemoryException as error:
                raise TooMuchMemory from error
            except duckdb.InvalidInputException as error:
                raise Refused(str(error).partition(":")[2].strip()) from error

    def close(self) -> None:
        """End the thread that waits for statements; nothing is asked any more."""
        self._alarm.close()

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


class _Alarm:
    """Interrupts a connection when the time of a statement is over, in a thread that waits for the next one as well."""

    def __init__(self, connection: database.Connection) -> None:
        self._connection = connection
        self._turn = threading.Lock()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="kb-alarm")
        self.is_over = False

    @contextlib.contextmanager
    def within(self, time_s: float | None) -> Iterator[None]:
        """Let the block take so long; whatever it has started is interrupted before it ends, never what comes later."""
        self.is_over = False
        if time_s is None:
            yield
            return
        is_done = threading.Event()
        self._pool.submit(self._wait, is_done, time_s)
        try:
            yield
        finally:
            with self._turn:
                is_done.set()

    def close(self) -> None:
        """End the thread, if there is one."""
        self._pool.shutdown()

    def _wait(self, is_done: threading.Event, time_s: float) -> None:
        is_done.wait(time_s)
        with self._turn:
            if not is_done.is_set():
                self.is_over = True
                self._connection.interrupt()
