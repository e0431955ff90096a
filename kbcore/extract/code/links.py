"""The links that a source file states: each mark of a comment belongs to the symbol that the comment is about. Pure.

That is the symbol that the comment stands directly above, else the one that ends in its line or is around it, else the
file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from kbcore.extract.code.marks import Mark, WrongMark, marks_in, marks_of_pytest, wrong_marks
from kbcore.extract.code.symbols import Comment, Module, Symbol

_MAY_HAVE_MARKS: Final = re.compile(r"kb:|->|@|implements|verifies|tests", re.IGNORECASE)
_OWN_MARK: Final = re.compile(r"kb:", re.IGNORECASE)
_ONLY_COMMENTS: Final = re.compile(rb"(?:[ \t\r\n]*+#[^\n]*+)*+[ \t\r\n]*+")
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
    for comment in module.comments:
        if not _MAY_HAVE_MARKS.search(comment.text):
            continue
        marks = marks_in(comment.text, edges)
        owner = _owner(module, comment, data) if marks else module.whole
        for mark in marks:
            symbol = module.whole if mark.is_of_file else owner
            found.append(MarkedSymbol(symbol, mark, comment.line + mark.line))
    for symbol in module.symbols:
        for line, decorator in symbol.marks:
            keys = marks_of_pytest(decorator)
            for one in _tested(module.symbols, symbol) if keys else ():
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


def _tested(symbols: Sequence[Symbol], symbol: Symbol) -> list[Symbol]:
    """Return the functions that a mark at a symbol is for: those of a class are its tests."""
    if symbol.kind in _FUNCTIONS:
        return [symbol]
    inside = [one for one in symbols if symbol.start < one.start and one.end <= symbol.end]
    return [one for one in inside if one.kind == "method" and one.name.rpartition(".")[2].startswith("test")]


def _owner(module: Module, comment: Comment, data: bytes) -> Symbol:
    around = [one for one in module.symbols if one.start <= comment.start < one.end]
    innermost = max(around, key=lambda one: (one.start, -one.end), default=module.whole)
    if comment.is_doc:
        return innermost
    before = [one for one in module.symbols if one.end <= comment.start]
    if comment.is_alone:
        below = _below(module, comment)
        if below:
            return below
        # A comment at the end of a block of Python is outside of it for the parser.
        ended = [
            one
            for one in before
            if one.start >= innermost.start
            and one.column < comment.column
            and _ONLY_COMMENTS.fullmatch(data, one.end, comment.start)
        ]
        return max(ended, key=lambda one: one.column, default=innermost)
    in_line = [one for one in before if one.end_line == comment.line]
    return max(in_line, key=lambda one: (one.end, one.start), default=innermost)


def _below(module: Module, comment: Comment) -> Symbol | None:
    """Return the symbol that begins in the line after a comment, or after the comments that follow it directly."""
    line = comment.end_line + 1
    for one in module.comments:
        if one.is_alone and not one.is_doc and one.line == line:
            line = one.end_line + 1
    begun = [one for one in module.symbols if one.start_line == line and one.start > comment.start]
    return min(begun, key=lambda one: (one.start, -one.end), default=None)
