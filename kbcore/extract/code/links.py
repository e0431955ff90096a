"""The links that a source file states: each mark of a comment belongs to the symbol that the comment is about. Pure.

That is the symbol that the comment is directly above, else the one that ends in its line or is around it, else the
file.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from kbcore.extract.code.marks import Mark, WrongMark, marks_in, marks_of_pytest, wrong_marks
from kbcore.extract.code.symbols import Comment, Module, Symbol

_MAY_HAVE_MARKS: Final = re.compile(r"kb:|->|@|implements|verifies|tests", re.IGNORECASE)
_OWN_MARK: Final = re.compile(r"kb:", re.IGNORECASE)
_FUNCTIONS: Final = frozenset({"function", "method", "test"})


class MarkedSymbol(msgspec.Struct, frozen=True):
    """A mark with the symbol that it belongs to, and its line in the file. Its edge is None for the one that fits."""

    symbol: Symbol
    mark: Mark
    line: int


def marked(module: Module, data: bytes, edges: Collection[str]) -> list[MarkedSymbol]:
    """Return what the comments and decorators of a file say of its symbols, in order of lines.

    A function of which one says that it verifies something is a test from then on.
    """
    found: list[MarkedSymbol] = []
    places = _Places(module, data)
    for number, comment in enumerate(module.comments):
        if not _MAY_HAVE_MARKS.search(comment.text):
            continue
        marks = marks_in(comment.text, edges)
        owner = places.owner(number) if marks else module.whole
        for mark in marks:
            symbol = module.whole if mark.is_of_file else owner
            found.append(MarkedSymbol(symbol, mark, comment.line + mark.line))
    for symbol in module.symbols:
        for line, decorator in symbol.marks:
            keys = marks_of_pytest(decorator)
            for one in places.tested(symbol) if keys else ():
                found += [MarkedSymbol(one, Mark(key, None, 0), line) for key in keys]
    for said in found:
        if said.mark.edge is None and said.symbol.kind in _FUNCTIONS:
            said.symbol.is_test = True
    return sorted(found, key=lambda one: one.line)


def wrongly_marked(module: Module, edges: Collection[str]) -> list[WrongMark]:
    """Return the comments of a file that are meant as marks and state no link, with their lines in the file."""
    return [
        msgspec.structs.replace(one, line=comment.line + one.line)
        for comment in module.comments
        if _OWN_MARK.search(comment.text)
        for one in wrong_marks(comment.text, edges)
    ]


class _Places:
    """The places of the symbols and comments of a file, so that what a comment is about is found without a search.

    Symbols are in order of their beginnings, an outer one before those in it.
    """

    def __init__(self, module: Module, data: bytes) -> None:
        self._module, symbols = module, module.symbols
        self._starts = [one.start for one in symbols]
        self._by_end = sorted(symbols, key=lambda one: (one.end, one.start))
        self._ends = [one.end for one in self._by_end]
        self._around = _innermost_before(symbols)
        self._first_in_line: dict[int, Symbol] = {}
        for one in symbols:
            self._first_in_line.setdefault(one.start_line, one)
        self._line_after = _lines_after(module.comments)
        self._code_ends = _code_ends(module.comments, data)

    def owner(self, number: int) -> Symbol:
        """Return the symbol that the comment of this number is about."""
        comment = self._module.comments[number]
        innermost = self._innermost(comment.start)
        if comment.is_doc:
            return innermost
        last = bisect_right(self._ends, comment.start)
        if not comment.is_alone:
            ended = self._by_end[last - 1] if last else innermost
            return ended if ended.end_line == comment.line else innermost
        line = comment.end_line + 1
        below = self._first_in_line.get(self._line_after.get(line, line))
        if below and below.start > comment.start:
            return below
        # A comment at the end of a block of Python is outside of it for the parser.
        first = bisect_left(self._ends, self._code_ends[number])
        before = [
            one for one in self._by_end[first:last] if one.start >= innermost.start and one.column < comment.column
        ]
        return max(before, key=lambda one: one.column, default=innermost)

    def tested(self, symbol: Symbol) -> list[Symbol]:
        """Return the functions that a mark at a symbol is for: those of a class are its tests."""
        if symbol.kind in _FUNCTIONS:
            return [symbol]
        first, last = bisect_right(self._starts, symbol.start), bisect_left(self._starts, symbol.end)
        inside = [one for one in self._module.symbols[first:last] if one.end <= symbol.end]
        return [one for one in inside if one.kind == "method" and one.name.rpartition(".")[2].startswith("test")]

    def _innermost(self, at: int) -> Symbol:
        number = bisect_right(self._starts, at) - 1
        while number >= 0 and self._module.symbols[number].end <= at:
            number = self._around[number]
        return self._module.symbols[number] if number >= 0 else self._module.whole


def _innermost_before(symbols: Sequence[Symbol]) -> list[int]:
    """Return for each symbol the number of the one that is around its beginning, -1 for none."""
    found: list[int] = []
    open_: list[int] = []
    for number, one in enumerate(symbols):
        while open_ and symbols[open_[-1]].end <= one.start:
            open_.pop()
        found.append(open_[-1] if open_ else -1)
        open_.append(number)
    return found


def _lines_after(comments: Sequence[Comment]) -> dict[int, int]:
    """Return for a line the next one that no comment begins alone in."""
    after: dict[int, int] = {}
    for one in reversed(comments):
        if one.is_alone and not one.is_doc:
            after[one.line] = after.get(one.end_line + 1, one.end_line + 1)
    return after


def _code_ends(comments: Sequence[Comment], data: bytes) -> list[int]:
    """Return for each comment where what is before it ends, but for comments that begin with ``#``."""
    found: list[int] = []
    end, code_end = 0, 0
    for one in comments:
        before = data[end : one.start].rstrip()
        if before:
            code_end = end + len(before)
        found.append(code_end)
        end = one.end
        if data[one.start : one.start + 1] != b"#":
            code_end = end
    return found
