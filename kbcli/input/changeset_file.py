"""Reads a changeset from a file or from standard input, JSON or YAML. Every fault names file and line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbcore import limits
from kbcore.errors import InvalidChangeset, InvalidQuery, KBError, LimitExceeded, Problem
from kbcore.text import json_reader
from kbcore.text.escaping import problem_line
from kbcore.text.problems import FileProblem

STDIN = "-"


def read(name: str, folder: Path, warn: Callable[[str], None]) -> Any:
    """Return the request in a file, ``-`` being standard input; relative names start in ``folder``.

    ``warn`` is called with a line for each value of YAML that a comment cuts.
    The ending of the name decides between JSON and YAML; without one, a text that begins with a bracket is JSON.

    Raises: ``InvalidQuery`` when it cannot be read; ``InvalidChangeset`` for a text that is neither JSON nor YAML;
    ``LimitExceeded``.
    """
    shown, text = _shown(name), text_in(name, folder, InvalidChangeset)
    if not text.strip():
        raise InvalidChangeset(f"{shown} is empty.", hint="A changeset has `entities` or `edges`.")
    ending = Path(name).suffix.lower()
    is_json = ending == ".json" or (ending not in {".yaml", ".yml"} and text.lstrip()[:1] in {"{", "["})
    return _json(text, shown) if is_json else _yaml(text, shown, warn)


def text_in(name: str, folder: Path, fault: type[KBError] = InvalidQuery) -> str:
    """Return the text in a file, ``-`` being standard input; relative names start in ``folder``.

    Raises: ``InvalidQuery`` when it cannot be read; ``fault`` when it is no text; ``LimitExceeded``.
    """
    shown = _shown(name)
    data = _read_bytes(name, shown, folder)
    if len(data) > limits.MAX_CHANGESET_BYTES:
        raise LimitExceeded(f"{shown} is larger than {limits.MAX_CHANGESET_BYTES} bytes.")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        message = f"{shown} is not UTF-8 at byte {error.start}."
        raise fault(message, hint="Save it as UTF-8.") from error


def _shown(name: str) -> str:
    return "standard input" if name == STDIN else name


def _read_bytes(name: str, shown: str, folder: Path) -> bytes:
    hint = "Name a file, or `-` for standard input."
    if not name:
        raise InvalidQuery("The name of the file is empty.", hint=hint)
    try:
        if name == STDIN:
            if sys.stdin is None:
                raise InvalidQuery("There is no standard input to read from.", hint="Name a file.")
            return sys.stdin.buffer.read(limits.MAX_CHANGESET_BYTES + 1)
        with (folder / name).open("rb") as file:
            return file.read(limits.MAX_CHANGESET_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidQuery(f"{shown} cannot be read: {reason}.", hint=hint) from error


def _json(text: str, shown: str) -> Any:
    tree = json_reader.read(text)
    _refuse(shown, tree.problems)
    return tree.root


def _yaml(text: str, shown: str, warn: Callable[[str], None]) -> Any:
    from kbcli.input import changeset_yaml

    value, problems = changeset_yaml.read(text)
    _refuse(shown, [one for one in problems if one.severity == "error"])
    for one in problems[: limits.MAX_PROBLEMS]:
        warn(problem_line(shown, one.line, one.message, one.hint))
    return value


def _refuse(shown: str, problems: list[FileProblem]) -> None:
    if not problems:
        return
    details = [
        Problem("$", fault.code, fault.message, fault.hint, shown, fault.line)
        for fault in problems[: limits.MAX_PROBLEMS]
    ]
    first = details[0]
    what = f"{first.source}: {first.message}" if len(problems) == 1 else f"{shown} has {len(problems)} problems"
    hint = first.hint if len(problems) == 1 else ""
    raise InvalidChangeset(f"{what}.", hint=hint, details=details, says_first=len(problems) == 1)
