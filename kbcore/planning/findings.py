"""What planning gathers on its way: operations, warnings, and problems, which together refuse the changeset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.changeset import EdgeDelete, EdgeWrite
from kbcore.errors import DerivedFact, IntegrityViolation, InvalidChangeset, KBError, Problem, StaleBase
from kbcore.ids import link_id
from kbcore.record import Operation
from kbcore.schema import Schema
from kbcore.state import Stamp, State

_MAX_HINTS: Final = 20
"""Each nearest id costs a look at all of them."""
_STALE: Final = frozenset({"stale"})
_DERIVED: Final = frozenset({"derived_fact"})
_INTEGRITY: Final = frozenset({"unknown_entity", "endpoint_type", "in_use"})


class Surroundings(msgspec.Struct, frozen=True):
    """What a plan needs to know beside the state.

    ``gone`` maps an id that the changeset names and that no longer exists to the seq that removed it;
    ``suggest`` returns the nearest known entity id to a mistyped one, or "".
    """

    schema: Schema
    stamp: Stamp
    gone: Mapping[str, int]
    suggest: Callable[[str], str]


class Findings:
    """The plan of one changeset while it grows. ``types`` holds the type after it of entities that come, go or turn."""

    def __init__(self, state: State, around: Surroundings) -> None:
        self.state = state
        self.around = around
        self.schema = around.schema
        self.problems: list[Problem] = []
        self.warnings: list[str] = []
        self.ops: list[Operation] = []
        self.types: dict[str, str | None] = {}
        self.withdrawn: set[str] = set()
        self._hints_left = _MAX_HINTS

    def wrong(self, path: str, code: str, message: str, hint: str = "", source: str = "") -> None:
        """Note a problem at a JSON path; ``source`` is the file that states the fact, if one does."""
        self.problems.append(Problem(path, code, message, hint, source))

    def check_owned(self, path: str, key: str, owners: Mapping[str, str], names: Iterable[str]) -> None:
        """Note a problem for each of these fields that a file states."""
        for name in names:
            if name in owners:
                message = f"`{name}` of {key} is stated by {owners[name]}."
                hint = f"Edit {owners[name]} and run `kb sync`; fields that it does not state are free."
                self.wrong(f"{path}.{name}", "derived_fact", message, hint, owners[name])

    def hint_for_id(self, word: str) -> str:
        """Return a hint with the nearest known id, or the empty text."""
        if self._hints_left == 0:
            return ""
        self._hints_left -= 1
        near = self.around.suggest(word)
        return f"Did you mean {near!r}? " if near else ""

    def refuse(self) -> None:
        """Raise the error that fits the problems, if there are any; all of them are in its details.

        Raises: ``InvalidChangeset``, ``StaleBase``, ``DerivedFact`` or ``IntegrityViolation``.
        """
        if not self.problems:
            return
        codes = {problem.code for problem in self.problems}
        error, what = _error_for(codes)
        first, others = self.problems[0], len(self.problems) - 1
        more = f" (and {others} more)" if others else ""
        message = f"The changeset {what}: {first.message}{more} Nothing was written."
        raise error(message, details=self.problems[: limits.MAX_PROBLEMS])


def _error_for(codes: set[str]) -> tuple[type[KBError], str]:
    """Return the class for a mixture of problems, the one first that a client has to mend first."""
    if codes - _STALE - _DERIVED - _INTEGRITY:
        return InvalidChangeset, "cannot be taken as it is"
    if codes & _STALE:
        return StaleBase, "names what changed after it was read"
    if codes & _DERIVED:
        return DerivedFact, "names what a file states"
    return IntegrityViolation, "would break a reference"


def edge_key(edge: EdgeWrite | EdgeDelete) -> str:
    """Return the id of the link that an item of a changeset names."""
    return link_id(edge.type, edge.kind, edge.from_id, edge.to_id)


def edge_words(edge: Any) -> str:
    """Return an edge as a person reads it."""
    return f"{edge.from_id} {edge.type} {edge.to_id}"


def replaced(
    fields: Mapping[str, Any], owners: Mapping[str, str], prefix: str, members: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Return what to set and what to remove so that a client's object takes the place of the old one.

    Members that a file states stay where the client does not name them.
    """
    head = prefix + "."
    wanted = {head + key: value for key, value in members.items()}
    gone = [name for name in fields if name.startswith(head) and name not in wanted and name not in owners]
    return wanted, gone
