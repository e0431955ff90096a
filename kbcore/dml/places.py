"""Places in the text of a program: lines and columns for the characters that an engine counts. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import Any, Final

import msgspec

_NAME: Final = re.compile(r"\{\{\w+\}\}|\{(?P<name>\w+)\}")


class TextRange(msgspec.Struct, frozen=True, order=True):
    """A part of a text. Lines and columns, in characters, count from 1; the end is the first character after it."""

    line: int
    column: int
    end_line: int
    end_column: int

    def as_json(self) -> dict[str, Any]:
        """Return the place as members of a JSON object."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class Lines:
    """The lines of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._named: tuple[tuple[int, int], dict[str, tuple[int, int]]] = (0, 0), {}
        """The quoted text that was looked at last, and where each name is in it first."""
        self._begins = [0, *(found.end() for found in re.finditer("\n", text))]

    def place(self, start: int, end: int) -> TextRange:
        """Return the place from one character up to another one, counted from 0; layout at its end is left out."""
        most = len(self._text)
        start = min(start, most)
        end = start + len(self._text[start : min(end, most)].rstrip())
        return TextRange(*self._at(start), *self._at(max(end, start)))

    def name_place(self, start: int, end: int, name: str) -> TextRange:
        """Return the place of the first ``{name}`` in a quoted text; that of the text where escapes hide it."""
        if self._named[0] != (start, end):
            found = _NAME.finditer(self._text, start, end)
            spans = {one["name"]: one.span() for one in reversed([*found]) if one["name"]}
            self._named = (start, end), spans
        return self.place(*self._named[1].get(name, (start, end)))

    def names(self, start: int, end: int) -> set[str]:
        """Return the names in braces in a part of the text."""
        return {one["name"] for one in _NAME.finditer(self._text, start, end) if one["name"]}

    def _at(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._begins, offset)
        return line, offset - self._begins[line - 1] + 1
