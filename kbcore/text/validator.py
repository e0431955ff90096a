"""Walks what a settings file says: each member is checked, each fault kept with its file, line and JSON path.

Nothing is raised until everything has been looked at; then ``refuse`` raises one error with all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import InvalidConfig, Problem
from kbcore.text import conflict_markers, json_reader
from kbcore.text.escaping import in_quotes
from kbcore.text.problems import FileProblem
from kbcore.text.suggest import did_you_mean
from kbcore.text.tree import COMMENT_LIKE_TEXT, DUPLICATE_KEY, TextTree
from kbcore.text.wording import shortened

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONFLICT: Final = re.compile(r"^(?:<{7,}|>{7,})(?: |$)", re.MULTILINE)
_MAX_SHOWN_CHARS: Final = 60
_MAX_MESSAGE_CHARS: Final = 400
_MAX_COMPARED: Final = 500
"""Names, characters of a name and problems so far, beyond which no nearest name is looked for."""

_KINDS: Final = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


class ConfigNode(msgspec.Struct, frozen=True):
    """A value in a settings file and its place; ``problems`` is shared by all spots of one reading."""

    value: Any
    file: str
    tree: TextTree
    problems: list[Problem]
    path: str = "$"
    line: int = 1

    @property
    def source(self) -> str:
        """Return file and line, as problems and messages show them."""
        return f"{self.file}:{self.line}"

    def wrong(self, code: str, message: str, hint: str = "") -> None:
        """Keep a problem of this value."""
        self.problems.append(Problem(self.path, code, message, hint, self.file, self.line))

    def must_be(self, expected: str, hint: str = "") -> None:
        """Keep the problem that this value is of the wrong kind or size."""
        found = "and it is empty"
        if self.value is not None:
            kind = _KINDS[type(self.value)]
            found = f"not {shown(self.value) if kind in {'text', 'a number'} else kind}"
        self.wrong("wrong_type", f"{_name(self.path)} must be {expected}, {found}.", hint)

    def members(self) -> dict[str, ConfigNode]:
        """Return the members of an object, by key; anything else is a problem and has none."""
        if not isinstance(self.value, dict):
            self.must_be("an object")
            return {}
        return {key: self._inside(key, member) for key, member in self.value.items()}

    def known_members(self, allowed: Collection[str], what: str) -> dict[str, ConfigNode]:
        """Return the members of an object; those that are not allowed are problems and are left out."""
        members = self.members()
        for key in [key for key in members if key not in allowed]:
            members.pop(key).unknown("unknown_key", what, key, allowed)
        return members

    def unknown(self, code: str, what: str, name: str, known: Collection[str]) -> None:
        """Keep the problem that there is no such thing of this name; the nearest known name is the hint."""
        is_cheap = max(len(known), len(name), len(self.problems)) <= _MAX_COMPARED
        self.wrong(code, f"There is no {what} {shown(name)}.", did_you_mean(name, known) if is_cheap else "")

    def items(self) -> list[ConfigNode]:
        """Return the members of a list; anything else is a problem and has none."""
        if not isinstance(self.value, list):
            self.must_be("a list")
            return []
        return [self._inside(number, member) for number, member in enumerate(self.value)]

    def _inside(self, member: str | int, value: Any) -> ConfigNode:
        line = self.tree.line(self.value, member) or self.line
        step = f"[{member}]" if isinstance(member, int) else _step(member)
        return ConfigNode(value, self.file, self.tree, self.problems, self.path + step, line)


def read_json(text: str, file: str, problems: list[Problem]) -> ConfigNode | None:
    """Return the root of a JSON file, or None when it cannot be read; what is wrong joins the problems."""
    plain = _plain(text, file, problems)
    if plain is None:
        return None
    tree = json_reader.read(plain)
    _take(tree.problems, file, problems)
    is_unread = tree.root is None and bool(tree.problems)
    return None if is_unread else ConfigNode(tree.root, file, tree, problems)


def read_yaml(text: str, file: str, problems: list[Problem]) -> ConfigNode | None:
    """Return the root of a YAML file, in which every scalar is text as typed, or None when it cannot be read.

    What is wrong joins the problems. An empty file has None for its value.
    """
    import yaml  # noqa: PLC0415 - only a project with its own files pays for it

    from kbcore.text import yaml_faults, yaml_text  # noqa: PLC0415 - they import yaml

    plain = _plain(text, file, problems)
    if plain is None:
        return None
    try:
        tree = yaml_text.read(plain)
    except yaml.YAMLError as error:
        _take([yaml_faults.explain(error, plain, 1)], file, problems)
        return None
    _take(tree.problems, file, problems)
    return ConfigNode(tree.root, file, tree, problems)


def cut_values(text: str, file: str) -> list[Problem]:
    """Return a warning for each value of a YAML file that ends before a comment which may be meant as text.

    A file that cannot be read has none: whoever uses it is refused.
    """
    if not COMMENT_LIKE_TEXT.search(text):  # nothing imports yaml for it
        return []
    problems: list[Problem] = []
    root = read_yaml(text, file, problems)
    if root is None:
        return []
    cut = (one for one in root.tree.problems if one.severity == "warning")
    return [Problem("$", one.code, _sentence(one), one.hint, file, one.line) for one in cut]


def refuse(problems: list[Problem]) -> None:
    """Raise what is wrong, if anything is.

    Raises: ``InvalidConfig`` with every problem in the order of files and lines, the first in its message.
    """
    if not problems:
        return
    problems.sort(key=lambda problem: (problem.source, problem.line))
    first = problems[0]
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise InvalidConfig(
        f"{first.place}: {first.message}{more}",
        hint=first.remedy,
        details=problems[: limits.MAX_PROBLEMS],
        says_first=True,
    )


def number_hint(value: Any) -> str:
    """Return what to do about a value that had to be a number within a range."""
    return "Write a number without quotes." if isinstance(value, str) else "Write such a number, or leave the key out."


def shown(value: Any) -> str:
    """Return a value for a message: short, and on one line whatever it holds."""
    return shortened(in_quotes(value) if isinstance(value, str) else repr(value), _MAX_SHOWN_CHARS)


def _plain(text: str, file: str, problems: list[Problem]) -> str | None:
    """Return a text with plain line breaks and no byte order mark, or None when it is no use reading it."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    fault: tuple[int, str, str, str] | None = None
    conflict = _CONFLICT.search(text)
    odd = _no_utf8(text)
    if len(text) > limits.MAX_CONFIG_BYTES:
        message = f"The file is longer than {limits.MAX_CONFIG_BYTES} bytes."
        fault = (0, "too_long", message, "Split it, or remove what does not belong here.")
    elif odd is not None:
        fault = (odd, "wrong_encoding", "A byte here is not UTF-8.", "Save the file as UTF-8.")
    elif conflict:
        message = "A git merge stopped here: the file holds both sides of a conflict."
        fault = (conflict.start(), conflict_markers.CODE, message, conflict_markers.REMEDY)
    if fault is None:
        return text
    at, code, message, hint = fault
    problems.append(Problem("$", code, message, hint, file, text.count("\n", 0, at) + 1))
    return None


def _no_utf8(text: str) -> int | None:
    """Return where a text holds what no UTF-8 file can: half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def _take(faults: list[FileProblem], file: str, problems: list[Problem]) -> None:
    for fault in faults:
        if fault.severity != "error":
            continue
        # No member of a file that is refused counts, neither the first nor the second.
        hint = "Keep one of the two lines." if fault.code == DUPLICATE_KEY else fault.hint
        problems.append(Problem("$", fault.code, _sentence(fault), hint, file, fault.line))


def _sentence(fault: FileProblem) -> str:
    message = fault.message[:_MAX_MESSAGE_CHARS]
    column = f" (column {fault.column})" if fault.column else ""
    return f"{message[:1].upper()}{message[1:]}{column}."


def _step(key: str) -> str:
    return f".{key}" if _IDENTIFIER.fullmatch(key) else f"[{json.dumps(key[:_MAX_SHOWN_CHARS])}]"


def _name(path: str) -> str:
    return "The file" if path == "$" else f"`{path[2:]}`"
