"""Outcomes of tests, and lines that ran, as reports of any format state them. Plain data."""

from __future__ import annotations

import math
from typing import Final

import msgspec

from kbcore import limits
from kbcore.model.values import normal_time
from kbcore.model.verdict import Outcome

_WORST: Final[tuple[Outcome, ...]] = ("error", "failed", "passed", "skipped")
_HAS_OFFSET: Final = ("Z", "z")
_OFFSET_CHARS: Final = 6


class ReportedOutcome(msgspec.Struct, frozen=True):
    """One test as a report has it.

    ``scope`` is what the report puts around the name, such as a class; ``ids`` are those that a property gives it, and
    ``requirements`` those of what it verifies, as a property says.
    ``at`` is the time of the run, "" where the report does not say it with its offset; ``line`` is that of the report.
    """

    name: str
    outcome: Outcome
    scope: str = ""
    file: str = ""
    duration_s: float | None = None
    message: str = ""
    at: str = ""
    ids: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    line: int = 0

    @property
    def shown(self) -> str:
        """Return the name with what is around it."""
        return " ".join(part for part in (self.file or self.scope, self.name) if part)


class CoveredLines(msgspec.Struct, frozen=True):
    """The lines of a source file that ran, and the test that ran them, "" where the report does not say it.

    ``file`` is as the report has it; ``folders`` are those that it may be relative to.
    """

    file: str
    lines: frozenset[int]
    test: str = ""
    folders: tuple[str, ...] = ()


class ReportFault(Exception):
    """The reason why a report cannot be used: a code, a sentence, the remedy, and the line, 0 where there is none."""

    def __init__(self, code: str, message: str, remedy: str, line: int = 0) -> None:
        super().__init__(message)
        self.code, self.message, self.remedy, self.line = code, message, remedy, line


def worst(outcomes: set[Outcome]) -> Outcome:
    """Return the outcome of a test that ran several times, as with parameters: one that failed counts.

    It passed where at least one of them did, and was skipped where all were.
    """
    return next(one for one in _WORST if one in outcomes)


def duration_in(text: str) -> float | None:
    """Return seconds as a report writes them, ``1.5`` or ``1,234.5``; None where it is no such number."""
    try:
        found = float(text.replace(",", ""))
    except ValueError:
        return None
    return found if math.isfinite(found) and found >= 0 else None


def time_in(text: str) -> str:
    """Return a time as records have it; "" for one without an offset, which may be of any zone."""
    has_offset = text.endswith(_HAS_OFFSET) or (len(text) > _OFFSET_CHARS and text[-_OFFSET_CHARS] in "+-")
    return (normal_time(text) or "") if has_offset else ""


def first_paragraph(text: str) -> str:
    """Return the lines of a text up to the first empty one after its beginning."""
    lines = text[: limits.MAX_REPORTED_TEXT_CHARS].strip().splitlines()
    end = next((at for at, line in enumerate(lines) if not line.strip()), len(lines))
    return "\n".join(line.rstrip() for line in lines[:end])
