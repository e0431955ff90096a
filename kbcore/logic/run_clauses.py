"""The clauses of a branch with those of files that hold for one run: they are in no record."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kbcore.logic.clauses import NO_RETRY, Changed, Clause, Clauses, ClauseStore, NewClause, Plan, RetryKey, new_ids


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

    def change(self, plan: Plan, *, message: str = "", retry: RetryKey = NO_RETRY) -> Changed:
        """Carry out a plan on the clauses of the store alone. Raises: as the store."""
        return self.recorded.change(plan, message=message, retry=retry)
