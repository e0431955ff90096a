"""The report of a bug that ended a command: what was run, without what was typed, and where the report is."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kbcli.invocation import exits
from kbcli.terminal.output import Output
from kbcore.storage import bug_reports
from kbcore.text.escaping import escape_controls

_BUG_HINT: Final = "What KB has acknowledged is safe. Please report it, with that file."
_LEFT_OUT: Final = "…"


def show_bug(output: Output, error: BaseException, arguments: Sequence[str], cache: Path | None) -> int:
    """Save a report of an error that KB does not know, and say where it is."""
    kind = escape_controls(f"{type(error).__name__}: {error}")[:300]
    saved = write_report(error, arguments, cache)
    message = f"KB failed unexpectedly ({kind}). {bug_reports.place_of(saved)}"
    if output.is_json:
        body: Mapping[str, Any] = {
            "code": exits.BUG_CODE,
            "message": message,
            "hint": _BUG_HINT,
            "retryable": False,
            "applied": "unknown",
            "details": [],
            "report": str(saved) if saved else None,
        }
        output.document({"error": body})
    else:
        output.error(message)
        output.error_detail(f"hint: {_BUG_HINT}")
    return exits.BUG


def write_report(error: BaseException, arguments: Sequence[str], cache: Path | None) -> Path | None:
    """Write a report of a bug that ended a command, and return where; see ``bugs.write_report``."""
    return bug_reports.write_report(error, f"command: {_command(arguments)}", cache)


def _command(arguments: Sequence[str]) -> str:
    """Return the names of the command and of its options; whatever else was typed is a sign of its place."""
    shown: list[str] = []
    try:
        from kbcli.invocation.command_tree import COMMANDS, root

        command: Any = root()
        for word in itertools.takewhile(lambda one: one != "--", arguments):
            below = COMMANDS if command is root() else getattr(command, "commands", {})
            names = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
            if word.startswith("-"):
                name = word.partition("=")[0]
                shown.append(name if name in names else _LEFT_OUT)
            elif word in below:
                shown.append(word)
                command = root().get_command(None, word) if command is root() else below[word]
            else:
                shown.append(_LEFT_OUT)
    except Exception as error:  # noqa: BLE001 - what is to be reported may be in the command's own module
        shown.append(f"({type(error).__name__} while the names of its options were looked up)")
    return " ".join(shown)
