"""The commands that only read: tokens to FIND, DESCRIBE, SEARCH and EXPORT."""

from __future__ import annotations

from typing import Any, Final, get_args

from kbcore.kip.parsing import literals
from kbcore.kip.parsing.filters import path
from kbcore.kip.parsing.lexer import Tokens
from kbcore.kip.parsing.patterns import matcher, where
from kbcore.kip.syntax import (
    Aggregate,
    AggregateName,
    Count,
    Describe,
    DescribeDomains,
    DescribeNeighbourhood,
    DescribePrimer,
    DescribeSyntax,
    DescribeType,
    DescribeTypes,
    ExportCommand,
    FindCommand,
    JsonValue,
    Kind,
    SearchCommand,
    Sort,
    Text,
)

_AGGREGATES: Final[frozenset[Any]] = frozenset(get_args(AggregateName))
_EXPRESSIONS: Final = (*("a variable or path (?x, ?x.name)", "`COUNT`", "`SUM`", "`AVG`", "`MIN`", "`MAX`"),)
_FIND_HINT: Final = "A query is FIND(…) WHERE { … }. AT, ORDER BY, LIMIT and CURSOR follow in this order."
_KINDS: Final = ("`CONCEPT`", "`PROPOSITION`")


def find(t: Tokens) -> FindCommand:
    """Return the query that begins here. Raises: ``KipRefused``."""
    at = t.take("FIND")
    t.enter("(", hint=_FIND_HINT)
    found = [_expression(t)]
    while t.accept(","):
        found.append(_expression(t))
    t.leave(")")
    group = where(t, _FIND_HINT)
    when = _when(t) if t.accept("AT") else None
    order: list[Sort] = []
    if t.accept("ORDER"):
        t.take("BY")
        order.append(_sort(t))
        while t.accept(","):
            order.append(_sort(t))
    return FindCommand(tuple(found), group, tuple(order), limit(t), cursor(t), at, when)


def _when(t: Tokens) -> JsonValue:
    if t.kind == "number":
        seq = literals.count(t, "a seq")
        return JsonValue(seq.value, seq.at)
    if t.kind not in {"plain", "string", "parameter"}:
        hint = 'Write a seq, or a point in quotes: AT 12, AT "yesterday", AT "2026-01-31".'
        raise t.unexpected("a seq", "a time in quotes", "a placeholder (:name)", hint=hint)
    return literals.value(t)


def _expression(t: Tokens) -> Any:
    if t.kind == "path":
        return path(t)
    if t.kind not in _AGGREGATES:
        hint = "Name what to find, as in FIND(?x.name); no comma comes before the parenthesis."
        raise t.unexpected(*_EXPRESSIONS, hint=hint if t.kind == ")" else "")
    function: AggregateName = t.kind  # type: ignore[assignment] # it is one of them
    at = t.take(function)
    t.enter("(")
    is_distinct = t.accept("DISTINCT")
    if t.kind != "path":
        hint = f"Name what is taken: {function}(?x), {function}(?x.attributes.key)."
        raise t.unexpected(_EXPRESSIONS[0], hint=hint)
    of = path(t)
    t.leave(")", hint=f"{function} takes one path.")
    return Aggregate(function, of, is_distinct, at)


def _sort(t: Tokens) -> Sort:
    at = t.at
    key = _expression(t)
    is_descending = not t.accept("ASC") and t.accept("DESC")
    return Sort(key, is_descending, at)


def limit(t: Tokens) -> Count | None:
    """Return the number after LIMIT, if LIMIT is here. Raises: ``KipRefused``."""
    return literals.count(t, "a whole number of at least 1", 1) if t.accept("LIMIT") else None


def cursor(t: Tokens) -> Text | None:
    """Return the text after CURSOR, if CURSOR is here. Raises: ``KipRefused``."""
    return literals.text(t, "the cursor in quotes") if t.accept("CURSOR") else None


def describe(t: Tokens) -> Describe:
    """Return the DESCRIBE that begins here. Raises: ``KipRefused``."""
    at = t.take("DESCRIBE")
    if t.accept("PRIMER"):
        return DescribePrimer(at)
    if t.accept("DOMAINS"):
        return DescribeDomains(at)
    if t.accept("SYNTAX"):
        return DescribeSyntax(at)
    if t.accept("NEIGHBOURHOOD"):
        around = matcher(t, identifies=True)
        most = limit(t)
        budget = literals.count(t, "a number of characters", 1) if t.accept("BUDGET") else None
        return DescribeNeighbourhood(around, most, budget, at)
    also = ("`PRIMER`", "`DOMAINS`", "`SYNTAX`", "`NEIGHBOURHOOD`")
    of = _kind(t, *also, hint="Write DESCRIBE CONCEPT TYPES or DESCRIBE PROPOSITION TYPES.")
    if t.accept("TYPES"):
        return DescribeTypes(of, limit(t), cursor(t), at)
    t.take("TYPE")
    return DescribeType(of, literals.text(t, "the name of a type in quotes"), at)


def _kind(t: Tokens, *also: str, hint: str) -> Kind:
    if t.kind not in {"CONCEPT", "PROPOSITION"}:
        raise t.unexpected(*also, *_KINDS, hint=hint)
    kind: Kind = t.kind  # type: ignore[assignment] # it is one of them
    t.advance()
    return kind


def search(t: Tokens) -> SearchCommand:
    """Return the SEARCH that begins here. Raises: ``KipRefused``."""
    at = t.take("SEARCH")
    of = _kind(t, hint='Say what is looked for: SEARCH CONCEPT "…", or SEARCH PROPOSITION "…".')
    term = literals.text(t, "a search term in quotes")
    type_ = mode = None
    is_whole = False
    threshold: JsonValue | None = None
    while not is_whole and t.accept("WITH"):
        if t.accept("ATTRIBUTES"):
            is_whole = True
            continue
        hint = 'A search is narrowed by WITH TYPE "…"; WITH ATTRIBUTES after it shows what is found whole.'
        if type_ is not None:
            raise t.unexpected("`ATTRIBUTES`", hint=hint)
        t.take("TYPE", hint=hint)
        type_ = literals.text(t, "a type in quotes")
    if t.accept("MODE"):
        mode = literals.text(t, "a mode in quotes")
    if t.accept("THRESHOLD"):
        if t.kind not in {"number", "parameter"}:
            raise t.unexpected("a number", "a placeholder (:name)")
        threshold = literals.value(t)
    return SearchCommand(of, term, type_, is_whole, mode, threshold, limit(t), cursor(t), at)


def export(t: Tokens) -> ExportCommand:
    """Return the EXPORT that begins here. Raises: ``KipRefused``."""
    at = t.take("EXPORT")
    variable = literals.variable(t)
    return ExportCommand(variable, where(t), limit(t), cursor(t), at)
