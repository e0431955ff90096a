"""What is wrong in a file, as values: place, code, message and remedy. Plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from kbcore import limits
from kbcore.phrases import counted

Severity = Literal["error", "warning", "note"]


class FileProblem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something about one file that its author should know. ``line`` counts from 1; 0 is the whole file.

    ``id`` is the entity that it is about, and no other one of the file; "" where it may be about several.
    """

    line: int
    code: str
    message: str
    hint: str
    severity: Severity = "error"
    column: int = 0
    id: str = ""


def at_most(problems: Sequence[FileProblem]) -> tuple[FileProblem, ...]:
    """Return the problems of one file, and how many there are beyond those that are kept."""
    kept = tuple(problems[: limits.MAX_PROBLEMS])
    rest = len(problems) - len(kept)
    if not rest:
        return kept
    last = FileProblem(
        0, "more_problems", f"{counted(rest, 'more problem')} of this file, not shown here", "Correct these first."
    )
    return (*kept, last)
