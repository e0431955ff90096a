"""Clauses that are in no record: those of a workspace that ends with its server, and those of files for one run."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import msgspec

from kbcore.clock import Clock, epoch_ms
from kbcore.errors import InvalidQuery
from kbcore.logic.clauses import (
    NO_RETRY,
    ChangedClauses,
    Clause,
    Clauses,
    ClauseStore,
    NewClause,
    Plan,
    RetryKey,
    check,
    new_ids,
)


class SessionClauses:
    """A ``ClauseStore`` in memory, for all threads of the process; ``most`` clauses are allowed."""

    def __init__(self, clock: Clock, most: int) -> None:
        self._clock = clock
        self.most = most
        self._lock = threading.Lock()
        self._now = Clauses("", 0)

    def read(self, at: int | None = None) -> Clauses:
        """Return the clauses. Raises: ``InvalidQuery`` for an earlier seq, which nothing keeps."""
        now = self._now
        if at is not None and at != now.seq:
            message = f"The workspace of this session has no history: only seq {now.seq} can be read."
            raise InvalidQuery(message, hint='With `logic.workspace` set to "branch" each change is kept.')
        return now

    def change(
        self,
        plan: Plan,
        *,
        message: str = "",
        retry: RetryKey = NO_RETRY,
    ) -> ChangedClauses:
        """Carry out a plan. Raises: as ``check``; what ``plan`` raises; ``InvalidQuery`` for an id."""
        if retry.changeset_id:
            message = "The workspace of this session has no records, and knows no `changeset_id`."
            raise InvalidQuery(message, hint="Leave it out.")
        with self._lock:
            now = self._now
            asked = plan(now)
            check(now, asked, self.most)
            if not (asked.added or asked.removed):
                return ChangedClauses("", now.seq)
            taken, removed = {one.id for one in now.clauses}, frozenset(asked.removed)
            ids = new_ids(len(asked.added), taken.intersection)
            at_ms = epoch_ms(self._clock.now())
            added = [
                Clause(id_, one.text, one.key, one.name, one.kind, one.file, one.line, now.last_order + place, at_ms)
                for place, (id_, one) in enumerate(zip(ids, asked.added, strict=True), start=1)
            ]
            kept = [one for one in now.clauses if one.id not in removed]
            last = now.last_order + len(added)
            self._now = msgspec.structs.replace(now, seq=now.seq + 1, clauses=(*kept, *added), last_order=last)
            return ChangedClauses("", self._now.seq, tuple(ids), tuple(asked.removed), is_written=True)


def numbered(clauses: Sequence[NewClause]) -> tuple[Clause, ...]:
    """Return clauses that are in no record with ids of their own, to be read before all that a branch has."""
    ids = new_ids(len(clauses), lambda _: ())
    return tuple(
        Clause(id_, one.text, one.key, one.name, one.kind, one.file, one.line, place - len(clauses), 0)
        for place, (id_, one) in enumerate(zip(ids, clauses, strict=True))
    )


class RunClauses:
    """A ``ClauseStore`` that reads the clauses of a run before those of another store, which takes the changes.

    It lives as long as the run; ``recorded`` is the store of one request.
    """

    def __init__(self, of_run: tuple[Clause, ...]) -> None:
        self._of_run = of_run
        self._last: tuple[Clauses, Clauses] | None = None
        self.recorded: ClauseStore

    def read(self, at: int | None = None) -> Clauses:
        """Return all clauses; the same object where nothing has changed. Raises: as the store."""
        recorded = self.recorded.read(at)
        if self._last is None or self._last[0] is not recorded:
            both = msgspec.structs.replace(recorded, clauses=(*self._of_run, *recorded.clauses))
            self._last = recorded, both
        return self._last[1]

    def change(self, plan: Plan, *, message: str = "", retry: RetryKey = NO_RETRY) -> ChangedClauses:
        """Carry out a plan on the clauses of the store alone. Raises: as the store."""
        return self.recorded.change(plan, message=message, retry=retry)
