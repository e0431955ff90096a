"""The end of a command: the statuses that no error class fixes, and the report of a failure. No traceback is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from kbcli.terminal.output import Output
from kbcore.errors import KBError, Problem, Rejected, StorageError
from kbcore.limits import MAX_PROBLEMS
from kbcore.text.escaping import escape_controls, escape_lines

if TYPE_CHECKING:
    from kbcli.hooks import HookResult
    from kbcore.maintenance.findings import DoctorFinding

DONE: Final = 0
VIOLATIONS: Final = 1
"""``kb check`` found violations, or ``kb verify`` or ``kb doctor`` something that no error class reports."""
USAGE: Final = 2
UNREADABLE: Final = 3
"""``kb sync --strict`` met files that it could not read whole."""
HOOKS_FAILED: Final = StorageError.exit_status
"""The operating system refused to read or write a git hook; all else was done."""
BUG: Final = 70
OUTPUT_FAILED: Final = 74
"""Standard output took no more."""
INTERRUPTED: Final = 130
READER_GONE: Final = 141
"""The status that a shell shows for a program that SIGPIPE ended."""

USAGE_CODE: Final = "usage"
BUG_CODE: Final = "internal_error"
"""Codes of the two failures that have no error class."""

_ALIKE: Final = 5
"""The most lines that list problems of one code at one place of several items."""
_INDEX: Final = re.compile(r"\[\d+\]")


def statuses() -> dict[str, int]:
    """Return the exit status of every error code."""

    def below(parent: type[KBError]) -> Iterator[type[KBError]]:
        for child in parent.__subclasses__():
            yield child
            yield from below(child)

    return {error.code: error.exit_status for error in below(KBError) if error.code}


def status_of(findings: Iterable[DoctorFinding]) -> int:
    """Return the status of the gravest finding: that of its error, or 1 where no error has its code."""
    failed = [one.code for one in findings if one.severity in {"error", "not_checked"}]
    known = statuses()
    return next((known[code] for code in failed if code in known), VIOLATIONS if failed else DONE)


def status_of_hooks(results: Iterable[HookResult]) -> int:
    """Return the status of what was done about git hooks."""
    return HOOKS_FAILED if any(result.state == "failed" for result in results) else DONE


def show(output: Output, error: KBError, *, writes: bool = False) -> int:
    """Report an error of KB's to a command that ``writes``, or only reads, and return the status to end with."""
    if output.is_json:
        output.document({"error": error.as_json(writes=writes)})
        return error.exit_status
    output.error(escape_controls(error.message_for(writes=writes)))
    remedy = _remedy(error)
    for line in _details(error, remedy):
        output.error_detail(escape_controls(line))
    if remedy:
        # A hint may have lines, such as git's advice. No text of others begins one.
        output.error_detail(f"hint: {escape_lines(remedy)}".replace("\n", "\n  "))
    return error.exit_status


def _remedy(error: KBError) -> str:
    """Return the remedy to end with: that of the only problem is used before the one of its class."""
    is_of_problem = len(error.details) == 1 and not error.has_own_remedy
    return (error.details[0].hint if is_of_problem else "") or error.hint


def _details(error: KBError, remedy: str) -> Iterator[str]:
    """Return the problems as lines; of many of one code at one place of several items the first ones, and a count.

    Problems with a field that only KB sets are equal whatever the field: an export has several in each item.
    """
    from kbcore.model.changeset import SET_BY_KB

    alike: dict[tuple[str, ...], list[str]] = {}
    is_request = isinstance(error, Rejected)
    for at, problem in enumerate(error.details):
        line = _detail(problem, remedy, is_said=error.says_first and at == 0, is_request=is_request)
        kind = ("" if problem.code == SET_BY_KB else _INDEX.sub("[]", problem.path), problem.code)
        if line:
            alike.setdefault(kind, []).append(line)
    for lines in alike.values():
        if len(lines) <= _ALIKE:
            yield from lines
            continue
        yield from lines[: _ALIKE - 1]
        of_all = f" of the first {MAX_PROBLEMS} problems" if len(error.details) >= MAX_PROBLEMS else ""
        yield f"  … and {len(lines) - _ALIKE + 1} more like these{of_all}; --json has each."


def _detail(problem: Problem, remedy: str, *, is_said: bool, is_request: bool) -> str:
    """Return one problem as a line, the place first, as compilers write it.

    Of the one that the message of the error says (``is_said``) only what is missing: that message names the file of
    what a file holds. With ``is_request`` the path leads into what was asked for, and the file, if there is one, is
    another one.
    """
    is_inside = is_request and problem.path.startswith("$.")
    place = f"{problem.place}: {problem.path}" if problem.source and is_inside else problem.place or problem.path
    hint = f" ({problem.hint})" if problem.hint not in {"", remedy} else ""
    if not is_said:
        return f"  {place}: {problem.message}{hint}" if place != "$" else f"  {problem.message}{hint}"
    is_place_said = bool(problem.source) and not is_inside
    place = problem.path if is_inside else place
    if place == "$":
        return f" {hint}" if hint else ""
    return f"  at {place}{hint}" if hint or not is_place_said else ""


def show_usage(output: Output, message: str, hint: str) -> int:
    """Report a command line that cannot be understood."""
    if output.is_json:
        body = {
            "code": USAGE_CODE,
            "message": message,
            "hint": hint,
            "retryable": False,
            "applied": "no",
            "details": [],
        }
        output.document({"error": body})
    else:
        output.error(escape_lines(message))
        output.error_detail(f"hint: {hint}")
    return USAGE
