"""Rule ``staged-symbol``: what is staged of the source code says which requirement it is for. Pure.

A symbol says so by an ``implements`` edge, a file for all its symbols by a comment ``kb: implements REQ-1, REQ-2``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from kbcore.extract.code.marks import IMPLEMENTS, items_in, spellings
from kbcore.model.schema import Schema
from kbcore.rules import Finding, Rule, RuleContext, staged_symbol
from kbcore.text.escaping import in_quotes

_SHOWN: Final = 80
_MAX_HINTS: Final = 20
"""Each nearest id costs a look at all of them."""


class NamedId(msgspec.Struct, frozen=True):
    """An id that a comment names, and its line."""

    id: str
    line: int


class RequirementMention(msgspec.Struct, frozen=True):
    """A requirement that a comment names, in this line of a file. No fact says so: only this rule counts it."""

    file: str
    line: int
    id: str


class StagedFile(msgspec.Struct, frozen=True):
    """A file of source code. ``is_wanted``: it is staged, and the configuration asks that it names a requirement."""

    path: str
    text: str
    is_wanted: bool


class StagedSymbol(msgspec.Struct, frozen=True):
    """A symbol of a staged file, or a staged one: where it is stated, and the file that it is in ("" for none)."""

    id: str
    source: str
    file: str
    implements: bool


class Staged(msgspec.Struct, frozen=True):
    """The input of the rule. ``files`` has, by path, each file that is staged or has one of the symbols."""

    files: Mapping[str, StagedFile]
    symbols: tuple[StagedSymbol, ...]
    types: Mapping[str, str]
    """The type of each entity that a comment names, as far as there is one."""
    nearest: Callable[[str], str]
    schema: Schema
    implemented: frozenset[tuple[str, str]] = frozenset()
    """Each file with a requirement that one of its symbols implements by an edge."""
    renamed: Mapping[str, str] = {}
    """The present id of each former one that a comment names; ``types`` has both."""


def named_in(text: str) -> list[str]:
    """Return, for each id that comments name, both the text up to the next comma and its first word."""
    return [spelling for _, item in items_in(text) for spelling in spellings(item)]


def unchecked_in(staged: Staged) -> tuple[RequirementMention, ...]:
    """Return the comments that name no requirement, in files that are given for these alone, in order."""
    found = [
        RequirementMention(file.path, one.line, one.id)
        for file in staged.files.values()
        for one in _named(file, staged)
        if not _fits(staged, one)
    ]
    return tuple(sorted(found, key=lambda one: (one.file, one.line)))


def comments_in(staged: Staged) -> tuple[RequirementMention, ...]:
    """Return the requirements that comments name and no edge of a symbol of their file leads to, in order of files."""
    found = [
        RequirementMention(file.path, one.line, one.id)
        for file in staged.files.values()
        for one in _named(file, staged)
        if _fits(staged, one) and (file.path, one.id) not in staged.implemented
    ]
    return tuple(sorted(found, key=lambda one: (one.file, one.line)))


def rule_of(staged: Staged) -> Rule:
    """Return the rule over what is staged."""
    return msgspec.structs.replace(staged_symbol.RULE, run=lambda context: list(_findings(staged, context)))


def _findings(staged: Staged, _: RuleContext) -> Iterator[Finding]:
    covered = set()
    hints_left = _MAX_HINTS
    for file in staged.files.values():
        named = _named(file, staged)
        if named:  # what names the wrong thing is reported as that, once
            covered.add(file.path)
        for one in named:
            if not _fits(staged, one):
                yield _unfit(staged, file, one, may_guess=hints_left > 0)
                hints_left -= 1
    with_findings = set()
    for symbol in staged.symbols:
        with_findings.add(symbol.file)
        if not symbol.implements and symbol.file not in covered:
            yield _lacking(symbol)
    for file in staged.files.values():
        if file.is_wanted and file.path not in covered | with_findings:
            hint = "Write a comment `kb: implements ID` into it, or list its symbols in a manifest."
            yield Finding(file.path, "The file names no requirement.", hint, file.path, names_id=False)


def _lacking(symbol: StagedSymbol) -> Finding:
    where = f", or write a comment `kb: implements ID` into {symbol.file}" if symbol.file else ""
    hint = f"State below it which requirement it implements{where}."
    if symbol.source:
        hint = f"State in {symbol.source} which requirement it implements{where}."
    return Finding(symbol.id, f"{symbol.id} implements no requirement.", hint, symbol.source or symbol.file)


def _unfit(staged: Staged, file: StagedFile, one: NamedId, *, may_guess: bool) -> Finding:
    shown = one.id[:_SHOWN]
    kind = staged.types.get(one.id)
    said = f"The comment names {in_quotes(shown)}"
    if kind is not None:
        targets = " or ".join(staged.schema.edges[IMPLEMENTS].to_types)
        return Finding(
            file.path,
            f"{said}, which is a {kind}, not a {targets}.",
            "Name a requirement.",
            file.path,
            values=(one.id,),
            line=one.line,
            names_id=False,
        )
    near = staged.nearest(one.id) if may_guess else ""
    hint = f"Did you mean {in_quotes(near)}?" if near else "Create the requirement first, or correct the comment."
    message = f"{said}, and there is no such requirement."
    return Finding(file.path, message, hint, file.path, values=(one.id,), line=one.line, names_id=False)


def _fits(staged: Staged, one: NamedId) -> bool:
    kind = staged.types.get(one.id)
    return kind is not None and kind in staged.schema.edges[IMPLEMENTS].to_types


def _named(file: StagedFile, staged: Staged) -> list[NamedId]:
    """Return the ids that the comments of a file name: of both ways to read an id, the one that there is."""
    found = []
    for line, item in items_in(file.text):
        may_be = spellings(item)
        known = next((one for one in may_be if one in staged.types), may_be[-1] if may_be else "")
        found.append(NamedId(staged.renamed.get(known, known), line))
    return found
