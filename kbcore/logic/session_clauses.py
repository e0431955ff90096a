"""The clauses of one process: kept in memory alone, for a workspace that ends with its server."""

from __future__ import annotations

import threading

import msgspec

from kbcore.clock import Clock, epoch_ms
from kbcore.errors import InvalidQuery
from kbcore.logic.clauses import NO_RETRY, Changed, Clause, Clauses, Plan, RetryKey, check, new_ids


class SessionClauses:
    """A ``ClauseStore`` in memory, for all threads of the process; ``most`` clauses are allowed."""

    def __init__(self, clock: Clock, most: int) -> None:
        self._clock = clock
        self.most = most
        self._gate = threading.Lock()
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
    ) -> Changed:
        """Carry out a plan. Raises: as ``check``; what ``plan`` raises; ``InvalidQuery`` for an id."""
        if retry.changeset_id:
            message = "The workspace of this session has no records, and knows no `changeset_id`."
            raise InvalidQuery(message, hint="Leave it out.")
        with self._gate:
            now = self._now
            asked = plan(now)
            check(now, asked, self.most)
            if not (asked.added or asked.removed):
                return Changed("", now.seq)
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
            return Changed("", self._now.seq, tuple(ids), tuple(asked.removed), is_written=True)
