"""A violation in words: what it says, and as a line. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kbcore.text.escaping import escape_controls, problem_line

if TYPE_CHECKING:
    from kbcore.rules import Violation


def violation_line(violation: Violation) -> str:
    """Return a violation with the file to edit, and the line in it where that is known, as compilers write it."""
    return placed_line(violation) + escape_controls(f" [{violation.rule}]")


def placed_line(violation: Violation) -> str:
    """Return a violation after its file and line, with its remedy and without its rule."""
    return problem_line(violation.source, violation.line, violation.beside_file, violation.hint)


def short_line(violation: Violation) -> str:
    """Return a violation in one line as compilers write it: place, severity, what it says, rule."""
    said = f"{violation.severity}: {violation.beside_file} [{violation.rule}]"
    return problem_line(violation.source, violation.line, said, "")
