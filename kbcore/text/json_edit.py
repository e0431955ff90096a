"""Sets or removes one member of a JSON text, with comments or without; every other byte stays as it is. Pure.

What clients read is JSON with ``//`` and ``/* */`` comments and with commas after the last member; it is kept so.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

_SPACE: Final = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_TEXT: Final = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_WORD: Final = re.compile(r"[-+.0-9A-Za-z]+")
_MAX_DEPTH: Final = 100


class NotJson(Exception):
    """The text is no JSON. ``line`` and ``column``, from 1, are where it stops being any."""

    def __init__(self, text: str, at: int, why: str) -> None:
        before = text[:at]
        self.line, self.column = before.count("\n") + 1, at - before.rfind("\n")
        super().__init__(why)


class ValueSpan(msgspec.Struct, frozen=True):
    """A value and where it stands: from ``start`` up to ``end``. An object has members, by key."""

    start: int
    end: int
    plain: Any
    members: dict[str, ValueSpan] = {}
    tail: int = 0
    """In an object: behind its last member, or behind the comma or the comment after it."""
    has_comma: bool = False


def parse(text: str) -> ValueSpan:
    """Return the value of a text. Raises: ``NotJson``."""
    found = _value(text, _skip(text, 0), 0)
    end = _skip(text, found.end)
    if end < len(text):
        raise NotJson(text, end, "there is something after the end of the document")
    return found


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """Return the text with a value at a path of keys; what is on the way there and missing is made.

    The text is an object. Raises: ``NotJson``, also where something on the way is no object.
    """
    outer = parse(text)
    for depth, key in enumerate(path):
        if not isinstance(outer.plain, dict):
            raise NotJson(text, outer.start, f"`{'.'.join(path[:depth])}` is no object" if depth else "it is no object")
        inner = outer.members.get(key)
        if inner is None:
            for left in reversed(path[depth + 1 :]):
                value = {left: value}
            return _with_new(text, outer, depth, key, value)
        outer = inner
    shown = _shown(value, _unit(text), len(path), _newline(text))
    return text[: outer.start] + shown + text[outer.end :]


def without_member(text: str, path: Sequence[str]) -> str:
    """Return the text without what is at a path of keys; as it is where nothing is there.

    The text is an object. Raises: ``NotJson``.
    """
    outer = parse(text)
    *above, name = path
    for key in above:
        if key not in outer.members:
            return text
        outer = outer.members[key]
    names = list(outer.members)
    if name not in names:
        return text
    at = names.index(name)
    ends = [outer.start + 1, *(one.end for one in outer.members.values())]
    if len(names) == 1:
        return text[: outer.start + 1] + text[outer.end - 1 :]
    if at == len(names) - 1:
        return text[: ends[at]] + text[ends[at + 1] :]
    return text[: _key_after(text, ends[at])] + text[_key_after(text, ends[at + 1]) :]


def _key_after(text: str, end: int) -> int:
    """Return where the next key begins after a member, or after the brace before the first one."""
    at = _skip(text, end)
    return _skip(text, at + 1) if text[at : at + 1] == "," else at


def _with_new(text: str, outer: ValueSpan, depth: int, key: str, value: Any) -> str:
    unit, newline = _unit(text), _newline(text)
    member = f"{json.dumps(key, ensure_ascii=False)}: {_shown(value, unit, depth + 1, newline)}"
    begin = text[outer.start + 1 : outer.tail]
    rest = text[outer.tail : outer.end]
    closing = rest if "\n" in rest else newline + unit * depth + rest.lstrip(" \t")
    if outer.members and not outer.has_comma:
        last = max(one.end for one in outer.members.values()) - outer.start - 1
        begin = f"{begin[:last]},{begin[last:]}"
    comma = "," if outer.has_comma else ""
    middle = f"{begin}{newline}{unit * (depth + 1)}{member}{comma}{closing}"
    return text[: outer.start + 1] + middle + text[outer.end :]


def _shown(value: Any, unit: str, depth: int, newline: str) -> str:
    """Return a value as it stands in such a depth: objects in lines, lists in one line."""
    if isinstance(value, dict) and value:
        inside = f",{newline}".join(
            f"{unit * (depth + 1)}{json.dumps(key, ensure_ascii=False)}: {_shown(one, unit, depth + 1, newline)}"
            for key, one in value.items()
        )
        return f"{{{newline}{inside}{newline}{unit * depth}}}"
    return json.dumps(value, ensure_ascii=False)


def _unit(text: str) -> str:
    """Return what one level is indented by."""
    found = re.search(r"^([ \t]+)\"", text, re.MULTILINE)
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found  # noqa: S101 - the pattern fits the empty text
    return found.end()


def _value(text: str, at: int, depth: int) -> ValueSpan:
    if depth > _MAX_DEPTH:
        raise NotJson(text, at, f"it is nested more than {_MAX_DEPTH} levels deep")
    mark = text[at : at + 1]
    if mark == "{":
        return _object(text, at, depth)
    if mark == "[":
        return _list(text, at, depth)
    found = (_TEXT if mark == '"' else _WORD).match(text, at)
    if not found:
        raise NotJson(text, at, "the text ends too early" if not mark else f"there is no value at {mark!r}")
    try:
        plain = json.loads(found[0])
    except ValueError as error:
        raise NotJson(text, at, f"{found[0][:40]!r} is no value") from error
    return ValueSpan(at, found.end(), plain)


def _object(text: str, start: int, depth: int) -> ValueSpan:
    members: dict[str, ValueSpan] = {}
    at, tail, has_comma = _skip(text, start + 1), start + 1, False
    while text[at : at + 1] != "}":
        if members and not has_comma:
            raise NotJson(text, at, "a comma or the closing brace is missing")
        key = _TEXT.match(text, at)
        colon = _skip(text, key.end()) if key else at
        if not key or text[colon : colon + 1] != ":":
            raise NotJson(text, colon, "a key in quotes and a colon are missing")
        name = _value(text, at, depth).plain
        if name in members:
            raise NotJson(text, at, f"the key {name!r} stands there twice")
        members[name] = _value(text, _skip(text, colon + 1), depth + 1)
        at = _skip(text, members[name].end)
        has_comma = text[at : at + 1] == ","
        tail = at + 1 if has_comma else members[name].end
        at = _skip(text, tail)
    while tail < at and (comment := re.compile(r"[ \t\r\n]*(?://[^\r\n]*|/\*.*?\*/)", re.DOTALL).match(text, tail)):
        tail = comment.end()
    return ValueSpan(start, at + 1, {key: one.plain for key, one in members.items()}, members, tail, has_comma)


def _list(text: str, start: int, depth: int) -> ValueSpan:
    items: list[Any] = []
    at, has_comma = _skip(text, start + 1), True
    while text[at : at + 1] != "]":
        if not has_comma:
            raise NotJson(text, at, "a comma or the closing bracket is missing")
        item = _value(text, at, depth + 1)
        items.append(item.plain)
        at = _skip(text, item.end)
        has_comma = text[at : at + 1] == ","
        at = _skip(text, at + 1) if has_comma else at
    return ValueSpan(start, at + 1, items)
