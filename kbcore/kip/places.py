"""A place in a KIP text: line, column, and the line shown with a mark below it. Pure.

Positions in the tree are offsets in characters; lines and columns are counted only when needed, from 1.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from kbcore.text.escaping import escape_controls

_BREAK: Final = re.compile(r"\r\n|\r|\n")
_WIDEST: Final = 120
_BEFORE: Final = 80
"""Characters that are kept in front of the place when its line is too wide to be shown whole."""


class TextPosition(msgspec.Struct, frozen=True):
    """A line and a column, both from 1; columns count characters."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


def place_of(text: str, at: int) -> TextPosition:
    """Return line and column of an offset; one beyond the end is the end."""
    line, start = 1, 0
    for found in _BREAK.finditer(text, 0, min(at, len(text))):
        line, start = line + 1, found.end()
    return TextPosition(line, min(at, len(text)) - start + 1)


def excerpt(text: str, at: int) -> str:
    """Return the line of an offset and, below it, a caret under the place; a wide line is cut around it."""
    place = place_of(text, at)
    start = at - (place.column - 1)
    found = _BREAK.search(text, at)
    end = found.start() if found else len(text)
    first = start if end - start <= _WIDEST else max(start, at - _BEFORE)
    last = min(end, first + _WIDEST)
    before = ("…" if first > start else "") + escape_controls(text[first:at])
    after = escape_controls(text[at:last]) + ("…" if last < end else "")
    margin = f"{place.line} | "
    return f"{margin}{before}{after}\n{'| '.rjust(len(margin))}{' ' * len(before)}^"
