"""``kb dml check``: programs are read by engines and judged, and none of them is run."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from kbcli.dml import check_view
from kbcli.dml.program_tools import RunTools, ToolChoice
from kbcli.dml.running import code_of, name_of
from kbcli.input import changeset_file
from kbcli.invocation import exits
from kbcore.dml.check import CallerTools, Checked
from kbcore.dml.checking import check_programs
from kbcore.dml.recording import new_run
from kbcore.errors import GitUnusable, NotARepository
from kbcore.git import find_repository

if TYPE_CHECKING:
    from kbcli.invocation.context import Session

Format = Literal["text", "json", "sarif"]
FailOn = Literal["error", "warning", "never"]


class CheckRequest(msgspec.Struct, frozen=True):
    """What the command line asks for; ``tools`` is the name of a file, "" for none."""

    files: Sequence[str]
    tools: str = ""
    format: Format = "text"
    fail_on: FailOn = "error"


def check(session: Session, asked: CheckRequest) -> int:
    """Check programs, show what was found, and return the status to exit with.

    Raises: ``InvalidQuery``, ``NotFound`` or ``LimitExceeded`` where a file cannot be read; ``PrologUnavailable``.
    """
    programs = [(_shown(file), code_of(file, session.start)) for file in dict.fromkeys(asked.files)]
    tools = _tools(session, asked.tools)
    with session.output.waiting("Checking"):
        found = asyncio.run(check_programs(programs, tools, session.env))
    if asked.format == "sarif":
        check_view.show_sarif(session.output, found, _from_top(session.start))
    elif session.output.is_json:
        check_view.show_json(session.output, found)
    else:
        check_view.show_text(session.output, found)
    return exits.VIOLATIONS if any(_fails(one, asked.fail_on) for one in found) else exits.DONE


def _shown(file: str) -> str:
    return name_of(file) if file == changeset_file.STDIN else file


def _tools(session: Session, file: str) -> CallerTools:
    """Return the tools of KB and those of a file; with one it is taken that there are no others."""
    found = RunTools(ToolChoice(file, allow=("*",)), session.start, session.env, new_run("check"), session.named_branch)
    try:
        return CallerTools(frozenset(found.toolset.names), is_whole=bool(file))
    finally:
        found.close()


def _from_top(start: Path) -> str:
    """Return the path of a folder from the top of its repository, "" for the top itself and outside of a repository."""
    try:
        top = find_repository(start).worktree
    except (NotARepository, GitUnusable):
        return ""
    path = start.resolve().relative_to(top).as_posix() if start.resolve().is_relative_to(top) else "."
    return "" if path == "." else path


def _fails(checked: Checked, fail_on: FailOn) -> bool:
    counts = {"error": checked.errors, "warning": checked.errors + checked.warnings, "never": 0}
    return counts[fail_on] > 0
