"""The clauses of the Prolog workspace as plain data, and the rules that hold for each change of them. Pure.

Invariant: no two clauses of a workspace have the same order number, and what is added later has a larger one than all
before it, those that are removed included, as far as the history knows them. A clause that an undo brings back has its
own again.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol

import msgspec

from kbcore.errors import InvalidChangeset, LimitExceeded, NotFound, Problem, of_problems
from kbcore.model.schema import GENERATED_DIGITS
from kbcore.model.values import text_problem
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import some_of

CLAUSE: Final = "clause"
"""The type of the entities that clauses of a branch are."""

_SHOWN: Final = 5
"""The unknown ids that a message names."""

MARK: Final = "import"
Kind = Literal["clause", "directive", "import"]
"""An import is no clause: it says that a file was imported, and its key is the digest of the file."""


class NewClause(msgspec.Struct, frozen=True):
    """A clause to add: its text with the full stop, and the digest ``key`` of it up to names of variables.

    ``name`` is its predicate as ``name/arity``, or the name of the directive: that of ``dynamic`` is followed by the
    predicates that it declares, each in a line of its own.
    ``file`` is the path from the top of the worktree, absolute where it is elsewhere, "" for none; ``line`` is the one
    at which the clause begins, the first is 1, and 0 is for none.
    """

    text: str
    key: str
    name: str
    kind: Kind = "clause"
    file: str = ""
    line: int = 0


class Clause(msgspec.Struct, frozen=True):
    """A clause of a workspace; the other members are those of ``NewClause``.

    ``order`` is its place among all, from 1. ``added_at`` is the time of the record that added it, in milliseconds
    since 1970.
    """

    id: str
    text: str
    key: str
    name: str
    kind: Kind
    file: str
    line: int
    order: int
    added_at: int


class Clauses(msgspec.Struct, frozen=True):
    """All clauses at a seq, in their order. ``last_order`` is the largest number that any clause had up to there.

    The branch of a workspace of one process is "", and its seq counts the changes.
    """

    branch: str
    seq: int
    clauses: tuple[Clause, ...] = ()
    last_order: int = 0


class ClauseChange(msgspec.Struct, frozen=True):
    """A change: clauses to add, in this order, and ids of those to remove. One without either writes no record."""

    added: Sequence[NewClause] = ()
    removed: Sequence[str] = ()


class ChangedClauses(msgspec.Struct, frozen=True):
    """The result of a change: the seq after it, and the ids of the clauses that were added, in the order of the plan.

    ``is_written`` is false where the change was empty.
    """

    branch: str
    seq: int
    ids: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    is_written: bool = False
    warnings: tuple[str, ...] = ()
    is_duplicate: bool = False
    """The change was made before, at this seq, under the same id; ``ids`` and ``removed`` are in their order."""


class RetryKey(msgspec.Struct, frozen=True):
    """The id that a client gave to a change, by which it is known when it is sent again, and what it asks for."""

    changeset_id: str = ""
    asked: Mapping[str, Any] = {}


NO_RETRY: Final = RetryKey()
Plan = Callable[[Clauses], ClauseChange]
"""Returns the change of a workspace. It is called again, on other clauses, where another writer was first."""


class ClauseStore(Protocol):
    """The clauses of one workspace."""

    def read(self, at: int | None = None) -> Clauses:
        """Return the clauses as of a seq, None for now."""

    def change(self, plan: Plan, *, message: str = "", retry: RetryKey = NO_RETRY) -> ChangedClauses:
        """Carry out a plan in one step, once for each id of ``retry``; ``message`` says why.

        Raises: as ``check``, and what ``plan`` raises; ``ChangesetIdReused`` for an id of another change.
        """


def check(clauses: Clauses, change: ClauseChange, most: int) -> None:
    """Refuse a change that cannot be made. ``most`` clauses are allowed after one that adds any; imports do not count.

    Raises: ``LimitExceeded`` for too many; ``NotFound`` for an unknown id; ``InvalidChangeset`` for an id that is named
    twice, and for texts that cannot be kept.
    """
    gone = set(change.removed)
    unknown = sorted(gone - {one.id for one in clauses.clauses}) if gone else []
    if unknown:
        raise NotFound(f"No clause has the id {some_of([in_quotes(one) for one in unknown], _SHOWN)}.")
    problems = [] if len(gone) == len(change.removed) else [_wrong("$.removed", "duplicate", "An id is named twice.")]
    for at, one in enumerate(change.added):
        for name in ("text", "key", "name", "file"):
            fault = text_problem(getattr(one, name))
            if fault:
                message = f"`{name}` of a clause {fault.message}."
                problems.append(_wrong(f"$.added[{at}].{name}", fault.code, message, fault.hint))
    if problems:
        raise of_problems(InvalidChangeset, "The change of the workspace is not valid", problems)
    if not change.added or len(clauses.clauses) - len(gone) + len(change.added) <= most:
        return
    before = count_clauses(clauses.clauses)
    after = before - count_clauses(one for one in clauses.clauses if one.id in gone) + count_clauses(change.added)
    if after > most:
        raise LimitExceeded(
            f"The workspace has {before} clauses and would have {after}; `logic.maxClauses` allows {most}.",
            hint="Remove clauses, or set `logic.maxClauses` in .kb/config.json to a larger number.",
        )


def declared_by(clause: Clause) -> Sequence[str]:
    """Return the predicates that a directive declares, as ``name/arity``; none for another clause."""
    name, *declared = clause.name.split("\n")
    return declared if clause.kind == "directive" and name == "dynamic" else ()


def count_clauses(entries: Iterable[Clause | NewClause]) -> int:
    """Count the clauses and directives."""
    return sum(one.kind != MARK for one in entries)


def new_ids(number: int, taken: Callable[[list[str]], Iterable[object]]) -> list[str]:
    """Return new ids of clauses, of random bits; ``taken`` returns what has one of these ids already.

    They say nothing of the clause: the same text may be added twice, and each has its own record.
    """
    while True:
        digits = secrets.token_hex(number * GENERATED_DIGITS // 2)
        ids = [f"{CLAUSE}:{digits[at : at + GENERATED_DIGITS]}" for at in range(0, len(digits), GENERATED_DIGITS)]
        if len({*ids}) == number and not any(True for _ in taken(ids)):
            return ids


def _wrong(path: str, code: str, message: str, remedy: str = "") -> Problem:
    return Problem(path, code, message, remedy)
