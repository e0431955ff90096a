"""The clauses of a text that are nested too deeply: an engine reads brackets inside of each other by recursion.

A text is split into clauses and brackets only: comments, character codes and quoted texts are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from kbcore.limits import MAX_CLAUSE_NESTING
from kbcore.text.prolog_tokens import OPAQUE, SYMBOL

TOO_DEEP: Final = f"The clause is nested too deeply; the limit is {MAX_CLAUSE_NESTING:,} brackets inside of each other."
_STOP: Final = rf"(?<!{SYMBOL})\.(?=[\s%]|\Z)"
_CLAUSE: Final = re.compile(rf"(?:[^0-9.%/'\"`]++|{OPAQUE}|(?!{_STOP}).)*+(?:{_STOP}|\Z)", re.VERBOSE | re.DOTALL)
_BRACKET: Final = re.compile(rf"(?P<open>[(\[{{{{])|(?P<close>[)\]}}}}])|{OPAQUE}", re.VERBOSE | re.DOTALL)
_LAYOUT: Final = re.compile(r"(?:\s|%[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NO_BREAK: Final = re.compile(r"[^\n]")


class DeepClause(msgspec.Struct, frozen=True):
    """The place of a clause: the characters from ``start`` to ``end``, and the line of the first, from 1."""

    start: int
    end: int
    line: int


def deep_clauses(text: str) -> list[DeepClause]:
    """Return the clauses with more brackets inside of each other than a clause may have, in their order."""
    if sum(map(text.count, "([{")) <= MAX_CLAUSE_NESTING:
        return []
    found: list[DeepClause] = []
    for clause in _CLAUSE.finditer(text):
        begin, end = clause.span()
        if end - begin > MAX_CLAUSE_NESTING and _depth(text, begin, end) > MAX_CLAUSE_NESTING:
            layout = _LAYOUT.match(text, begin)
            start = layout.end() if layout else begin
            found.append(DeepClause(start, end, text.count("\n", 0, start) + 1))
    return found


def _depth(text: str, begin: int, end: int) -> int:
    depth = deepest = 0
    for token in _BRACKET.finditer(text, begin, end):
        if token["open"]:
            depth += 1
            deepest = max(deepest, depth)
        elif token["close"]:
            depth = max(0, depth - 1)
    return deepest


def without_clauses(text: str, clauses: Sequence[DeepClause]) -> str:
    """Return a text with a comment in place of each of these clauses: all others keep their places and lines."""
    parts, begin = [], 0
    for one in clauses:
        blank = _NO_BREAK.sub(" ", text[one.start + 2 : one.end - 2])
        parts += [text[begin : one.start], "/*", blank, "*/"]
        begin = one.end
    return "".join([*parts, text[begin:]])
