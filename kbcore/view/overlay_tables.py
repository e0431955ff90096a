"""What SQL sees of a view: the base and, over it, what came after. That waits as values until a statement needs it.

Tables and views cost more than most statements, so each is made for the first one that reads it. A base that is
the view's own takes in itself what comes; over a published one it goes to tail tables.
"""

from __future__ import annotations

from kbcore.model.state import Changes
from kbcore.view import base_rows, database
from kbcore.view.fold import FoldedRecord, RowBatch
from kbcore.view.tables import ELEMENTS, RECORD


class OverlayTables:
    """How far the tables of one connection hold what a view has taken in. Whoever calls it holds the view's lock."""

    def __init__(self, *, is_bare: bool, is_own: bool) -> None:
        self.is_bare = is_bare
        """Nothing stood in the base, so that nobody need ask it: all there is came after."""

        self._is_own = is_own
        self.waiting = RowBatch()
        self._has_views = False
        self._has_overlay = False
        self._hidden: dict[str, set[str]] = {name: set() for name in ELEMENTS}
        self._loaded: dict[str, set[str]] = {name: set() for name in ELEMENTS}
        self._loaded_rows = 0

    @property
    def tail_rows(self) -> int:
        """Return how many rows came after the base that is published."""
        return self._loaded_rows + len(self.waiting)

    @property
    def first(self) -> RowBatch | None:
        """Return what waits where that is all there is, as values; None where something is in tables."""
        return self.waiting if self.is_bare and not self._loaded_rows else None

    def add(self, entry: FoldedRecord, changes: Changes) -> None:
        """Take in what one record changed."""
        self.waiting.add(entry, changes)

    def load(self, connection: database.Connection) -> None:
        """Make everything visible to SQL."""
        if not (self._has_views or (len(self.waiting) and not self._is_own)):
            # Tables that are not as they should be come to light here.
            with database.transaction(connection), database.explained_all():
                database.create_plain(connection)
            self._has_views = True
        if len(self.waiting):
            self._load_waiting(connection)

    def _load_waiting(self, connection: database.Connection) -> None:
        """Bring what waits into tables, whole or not at all."""
        batch = self.waiting
        with database.transaction(connection):
            if not (self._is_own or self._has_overlay):
                with database.explained_all():  # or here
                    database.create_overlay(connection)
            for table in ELEMENTS:
                if self._is_own:
                    into = f"base.{table}", f"base.{table}_history"
                    base_rows.rows_of(connection, table, batch, self._loaded[table] | batch.older[table], into)
                else:
                    base_rows.tail_of(connection, table, batch, self._loaded[table], self._hidden[table])
            database.load(connection, "base.record" if self._is_own else "record_tail", RECORD, batch.records)
        # Only what is committed counts as loaded: whatever ended this early is tried again as a whole.
        self.waiting, self._has_views, self._has_overlay = RowBatch(), True, not self._is_own
        for table in ELEMENTS:
            self._hidden[table] |= batch.older[table]
            self._loaded[table].update(batch.current[table])
        self._loaded_rows += len(batch)

    def empty(self, connection: database.Connection) -> None:
        """Forget what came after a base, because everything stands in the one that is attached now."""
        if self._has_overlay:
            tails = [f"{name}_{part}" for name in ELEMENTS for part in ("tail", "history_tail", "touched")]
            for table in [*tails, "record_tail"]:
                connection.execute(f"delete from {table}")
        for keys in (*self._hidden.values(), *self._loaded.values()):
            keys.clear()
        self.waiting, self._loaded_rows, self.is_bare, self._is_own = RowBatch(), 0, False, False
