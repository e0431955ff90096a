"""Problems of a file, as values: place, code, message and remedy. Plain data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal, Protocol, TypeVar

import msgspec

from kbcore import limits
from kbcore.secrets import mask_fields
from kbcore.text.wording import pluralize

MORE: Final = "more_problems"
"""The code of the problem that replaces all that are not kept of a file."""

REPEATED_ID: Final = "repeated_id"
"""The code of the problem that an entry has the id of another one of the file."""

Severity = Literal["error", "warning", "note"]


class FileProblem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something about one file that its author should know. ``line`` counts from 1; 0 is the whole file.

    ``id`` is the entity that it is about, and no other one of the file; "" where it may be about several. ``values``
    say without words what is wrong, where the same may be wrong with several. What looks like a secret is masked.
    """

    line: int
    code: str
    message: str
    hint: str
    severity: Severity = "error"
    column: int = 0
    id: str = ""
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Mask what looks like a secret."""
        mask_fields(self, "message", "hint", "values")


class Noted(Protocol):
    """A problem of a file, as it was read or as the records have it."""

    @property
    def code(self) -> str:
        """Return what kind of problem it is."""

    @property
    def id(self) -> str:
        """Return the entity that it is about, "" where it may be about several."""


P = TypeVar("P", bound=Noted)


def added(before: Iterable[Noted], after: Iterable[P]) -> list[P]:
    """Return the problems of a file that are there beyond those that it had: of each code and entity, the last ones."""
    known = Counter((one.code, one.id) for one in before)
    found = []
    for one in after:
        known[one.code, one.id] -= 1
        if known[one.code, one.id] < 0:
            found.append(one)
    return found


def at_most(problems: Sequence[FileProblem]) -> tuple[FileProblem, ...]:
    """Return the problems of one file, and how many there are beyond those that are kept."""
    kept = tuple(problems[: limits.MAX_PROBLEMS])
    rest = len(problems) - len(kept)
    if not rest:
        return kept
    last = FileProblem(
        0, MORE, f"{pluralize(rest, 'more problem')} of this file, not shown here", "Correct these first."
    )
    return (*kept, last)
