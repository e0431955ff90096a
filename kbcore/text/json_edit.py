"""Sets, adds or removes members of a JSON text, or items of its lists; every other byte stays as it is. Pure.

What clients read is JSON with ``//`` and ``/* */`` comments and with commas after the last member; it is kept so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from kbcore.text.decoding import place
from kbcore.text.json_reader import NotJson, ObjectSpan, read_spans

_SKIPPED: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*+", re.DOTALL)
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*+"|//[^\r\n]*|/\*.*?\*/|,', re.DOTALL)
"""Texts and comments, in which a comma is none, and commas."""
_COMMENTS: Final = re.compile(r"(?:[ \t\r\n]*+(?://[^\r\n]*|/\*.*?\*/))*+", re.DOTALL)


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with a value at a path of keys; what is on the way there and missing is made.

    The text is an object. Raises: ``NotJson``, also where something on the way is no object.
    """
    read = read_spans(text)
    outer, (start, end) = read.root, read.span
    for depth, key in enumerate(path):
        if not isinstance(outer, dict):
            line, column = place(text, start)
            raise NotJson(line, column, f"`{'.'.join(path[:depth])}` is no object" if depth else "it is no object")
        span = read.spans[id(outer)]
        if key not in outer:
            for left in reversed(path[depth + 1 :]):
                value = {left: value}
            return _with_new(text, span, depth, key, value)
        outer, (start, end) = outer[key], span.members[key]
    return text[:start] + _shown(value, _unit(text), len(path), _newline(text)) + text[end:]


def with_item(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with a value added to the list at a path of keys, which is made where it is missing.

    A value that the list has already is not added. The text is an object. Raises: ``NotJson``.
    """
    read = read_spans(text)
    outer: Any = read.root
    for key in path:
        outer = outer.get(key) if isinstance(outer, dict) else None
    if not isinstance(outer, list):
        return with_member(text, path, [value])
    if value in outer:
        return text
    last = outer[-1] if outer else None
    if not isinstance(last, dict):
        return with_member(text, path, [*outer, value])
    # What the items say stays as it is written.
    end = read.spans[id(last)].end
    newline, margin = _newline(text), _unit(text) * (len(path) + 1)
    return f"{text[:end]},{newline}{margin}{_shown(value, _unit(text), len(path) + 1, newline)}{text[end:]}"


def without_member(text: str, path: Sequence[str]) -> str:
    """Return the text without what is at a path of keys; as it is where nothing is there.

    The text is an object. Raises: ``NotJson``.
    """
    read = read_spans(text)
    outer = read.root
    *above, name = path
    for key in above:
        if not isinstance(outer, dict) or key not in outer:
            return text
        outer = outer[key]
    if not isinstance(outer, dict) or name not in outer:
        return text
    span = read.spans[id(outer)]
    names = list(span.members)
    at = names.index(name)
    ends = [span.start + 1, *(end for _, end in span.members.values())]
    if len(names) == 1:
        return text[: span.start + 1] + text[span.end - 1 :]
    if at == len(names) - 1:
        return text[: ends[at]] + text[ends[at + 1] :]
    return text[: _key_after(text, ends[at])] + text[_key_after(text, ends[at + 1]) :]


def without_items(text: str, path: Sequence[str], is_unwanted: Callable[[dict[str, Any]], bool]) -> str:
    """Return the text without the objects that are unwanted in the list at a path of keys.

    The text is an object. Raises: ``NotJson``.
    """
    while True:
        read = read_spans(text)
        outer: Any = read.root
        for key in path:
            outer = outer.get(key) if isinstance(outer, dict) else None
        found = outer if isinstance(outer, list) else []
        at = next((at for at, one in enumerate(found) if isinstance(one, dict) and is_unwanted(one)), None)
        if at is None:
            return text
        span = read.spans[id(found[at])]
        if len(found) == 1:
            return with_member(text, path, [])
        after = _skip(text, span.end)
        if text[after : after + 1] == ",":
            text = text[: span.start] + text[_skip(text, after + 1) :]
        else:
            comma = max(one.start() for one in _TOKENS.finditer(text, 0, span.start) if one[0] == ",")
            text = text[:comma] + text[span.end :]


def without_empty(text: str, path: Sequence[str]) -> str:
    """Return the text without what is empty at a path of keys, and then without what that leaves empty above it.

    The text is an object. Raises: ``NotJson``.
    """
    for depth in range(len(path), 0, -1):
        found: Any = read_spans(text).root
        for key in path[:depth]:
            found = found.get(key) if isinstance(found, dict) else None
        if found not in ({}, []):
            return text
        text = without_member(text, path[:depth])
    return text


def _key_after(text: str, end: int) -> int:
    """Return where the next key begins after a member, or after the brace before the first one."""
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at : at + 1] == "," else at


def _with_new(text: str, span: ObjectSpan, depth: int, key: str, value: Any) -> str:
    unit, newline = _unit(text), _newline(text)
    member = f"{json.dumps(key, ensure_ascii=False)}: {_shown(value, unit, depth + 1, newline)}"
    last = max((end for _, end in span.members.values()), default=span.start + 1)
    comma = _skip(text, last)
    has_comma = text[comma : comma + 1] == ","
    tail = _end_of(_COMMENTS, text, comma + 1 if has_comma else last)
    begin, rest = text[last:tail], text[tail : span.end]
    closing = rest if "\n" in rest else newline + unit * depth + rest.lstrip(" \t")
    parting = "," if span.members and not has_comma else ""
    middle = f"{parting}{begin}{newline}{unit * (depth + 1)}{member}{',' if has_comma else ''}{closing}"
    return text[:last] + middle + text[span.end :]


def _shown(value: Any, unit: str, depth: int, newline: str) -> str:
    """Return a value as text at such a depth: objects in lines, and lists of them; other lists in one line."""
    if isinstance(value, dict) and value:
        inside = f",{newline}".join(
            f"{unit * (depth + 1)}{json.dumps(key, ensure_ascii=False)}: {_shown(one, unit, depth + 1, newline)}"
            for key, one in value.items()
        )
        return f"{{{newline}{inside}{newline}{unit * depth}}}"
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        items = f",{newline}".join(unit * (depth + 1) + _shown(one, unit, depth + 1, newline) for one in value)
        return f"[{newline}{items}{newline}{unit * depth}]"
    return json.dumps(value, ensure_ascii=False)


def _unit(text: str) -> str:
    """Return what one level is indented by."""
    found = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _skip(text: str, at: int) -> int:
    return _end_of(_SKIPPED, text, at)


def _end_of(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    assert found  # noqa: S101 - the pattern fits the empty text
    return found.end()
