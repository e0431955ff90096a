"""Checks of programs for tests."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

from kbcore.dml.check import CallerTools, CheckedProgram
from kbcore.dml.check_with_engines import check_program
from tests.support.repository.repos import git_env


def checked(
    text: str, engine: Mapping[str, str], tools: Collection[str] = (), *, is_whole: bool = False
) -> CheckedProgram:
    """Return the check of a program as `x.dml`."""
    return asyncio.run(check_program(text, "x.dml", CallerTools(tools, is_whole), git_env(engine)))


def finding_lines(found: CheckedProgram) -> list[str]:
    """Return the findings as `line:column code name`."""
    return [
        f"{one.place.line}:{one.place.column} {one.problem.code} {one.problem.subject}".strip()
        for one in found.findings
    ]


def found_texts(found: CheckedProgram, text: str) -> list[tuple[str, str]]:
    """Return the code of each finding with the part of the text that it is about."""
    lines = text.split("\n")
    parts = []
    for one in found.findings:
        at = one.place
        rows = lines[at.line - 1 : at.end_line]
        rows[-1] = rows[-1][: at.end_column - 1]
        rows[0] = rows[0][at.column - 1 :]
        parts.append((one.problem.code, "\n".join(rows)))
    return parts
