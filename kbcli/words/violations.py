"""A violation in words: what it says, and as a line. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbcore.visible import problem_line, visible

if TYPE_CHECKING:
    from kbcore.rules import Violation


def violation_line(violation: Violation, line: int = 0) -> str:
    """Return a violation with the file to edit, and the line in it where that is known, as compilers write it."""
    said = problem_line(violation.source, line, violation.sentence, violation.hint)
    return said + visible(f" [{violation.rule}]")


def short_line(violation: Violation, line: int = 0) -> str:
    """Return a violation in one line as compilers write it: place, severity, what it says, rule."""
    place, said = violation.source, violation.sentence
    if said.startswith(f"{place}:"):
        place, _, said = said.partition(": ")
    elif line:
        place = f"{place}:{line}"
    lead = f"{place}: " if place else ""
    return visible(f"{lead}{violation.severity}: {said} [{violation.rule}]")
