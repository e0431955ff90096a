"""The conditions of FILTER: tokens to comparisons, tests and what joins them."""

from __future__ import annotations

from typing import Any, Final, get_args

from kbcore.kip.parsing import literals
from kbcore.kip.parsing.lexer import Tokens
from kbcore.kip.syntax import (
    AllOf,
    AnyOf,
    Comparison,
    Condition,
    IsIn,
    IsNull,
    JsonValue,
    Negation,
    Now,
    Operand,
    Operator,
    Path,
    TextTest,
    TextTestName,
    ValuePlaceholder,
)

_OPERATORS: Final[frozenset[Any]] = frozenset(get_args(Operator))
_TEXT_TESTS: Final[frozenset[Any]] = frozenset(get_args(TextTestName))
_TESTS: Final = ("`CONTAINS`", "`STARTS_WITH`", "`ENDS_WITH`", "`REGEX`", "`IN`", "`IS_NULL`", "`IS_NOT_NULL`")
OPERANDS: Final = ("a path (?x.attributes.key)", *literals.SCALARS, "`NOW`")
_CONDITIONS: Final = (*OPERANDS, *_TESTS, "`!`", "`(`")
_NOW_HINT: Final = 'Write NOW(), or move it by a duration: NOW("-7d").'
_IN_HINT: Final = (
    'IN takes what to look at and a list: IN(?n.type, ["Person", "Event"]). '
    'For a list in the store: CONTAINS(?n.attributes.aliases, "Ann").'
)


def condition(t: Tokens) -> Condition:
    """Return a condition, with `||` weakest, then `&&`, then `!`. Raises: ``KipRefused``."""
    at = t.at
    parts = [_all(t)]
    while t.accept("||"):
        parts.append(_all(t))
    return AnyOf(tuple(parts), at) if len(parts) > 1 else parts[0]


def _all(t: Tokens) -> Condition:
    at = t.at
    parts = [_claim(t)]
    while t.accept("&&"):
        parts.append(_claim(t))
    return AllOf(tuple(parts), at) if len(parts) > 1 else parts[0]


def _claim(t: Tokens) -> Condition:
    if t.kind != "!":
        return _primary(t)
    at = t.at
    t.advance()
    if t.kind == "!":
        raise t.unexpected(
            *OPERANDS, *_TESTS, "`(`", hint="Two `!` in a row mean none; a second one needs parentheses: !(!(…))."
        )
    return Negation(_primary(t), at)


def _primary(t: Tokens) -> Condition:
    kind, at = t.kind, t.at
    if kind == "(":
        t.enter("(")
        inner = condition(t)
        t.leave(")")
        return inner
    if kind in _TEXT_TESTS:
        return _text_test(t)
    if kind == "IN":
        return _is_in(t)
    if kind in {"IS_NULL", "IS_NOT_NULL"}:
        t.advance()
        t.enter("(")
        tested = operand(t)
        t.leave(")")
        return IsNull(tested, kind == "IS_NOT_NULL", at)
    left = operand(t, *_CONDITIONS[len(OPERANDS) :], hint=_function_hint(t))
    if t.kind not in _OPERATORS:
        raise t.unexpected("`==`", "`!=`", "`<`", "`<=`", "`>`", "`>=`", hint=_comparison_hint(t))
    operator: Operator = t.kind  # type: ignore[assignment] # it is one of them
    t.advance()
    if operator == "<" and t.kind == ">":
        raise t.unexpected(*OPERANDS, hint="`<>` is `!=` in KIP.")
    return Comparison(operator, left, operand(t), at)


def _function_hint(t: Tokens) -> str:
    is_called = t.kind == "name" and t.kinds[t.i + 1] == "("
    return f"KIP has no function {t.word}; there are {', '.join(_TESTS)}." if is_called else ""


def _comparison_hint(t: Tokens) -> str:
    if t.kind == "IN":
        return _IN_HINT
    if t.kind in _TEXT_TESTS:
        return f"{t.kind} is written before both: {t.kind}(?n.name, …)."
    is_alone = t.kind in {")", "&&", "||"}
    return "Compare it: a condition is no value alone; write == true, or IS_NOT_NULL(…)." if is_alone else ""


def _text_test(t: Tokens) -> TextTest:
    function: TextTestName = t.kind  # type: ignore[assignment] # it is one of them
    at = t.take(function)
    t.enter("(")
    tested = operand(t)
    t.take(",", hint=f"{function} takes two: where to look, and what for.")
    pattern = operand(t)
    t.leave(")", hint=f"{function} takes two: where to look, and what for.")
    return TextTest(function, tested, pattern, at)


def _is_in(t: Tokens) -> IsIn:
    at = t.take("IN")
    t.enter("(")
    tested = operand(t)
    t.take(",", hint=_IN_HINT)
    values = _list(t)
    t.leave(")")
    return IsIn(tested, values, at)


def _list(t: Tokens) -> JsonValue:
    start = t.at
    if t.kind == "parameter":
        return JsonValue([], start, (ValuePlaceholder((), literals.placeholder(t), start),))
    t.enter("[", hint=_IN_HINT)
    items: list[Any] = []
    holes: list[ValuePlaceholder] = []
    while t.kind != "]":
        one = literals.scalar(t, *(() if items else ("`]`",)))
        holes += (ValuePlaceholder((len(items),), hole.parameter, hole.at) for hole in one.holes)
        items.append(one.json)
        if not t.accept(","):
            break
        if t.kind == "]":
            raise t.unexpected(*literals.SCALARS)
    t.leave("]")
    return JsonValue(items, start, tuple(holes))


def operand(t: Tokens, *also: str, hint: str = "") -> Operand:
    """Return a path, a scalar or NOW(). Raises: ``KipRefused``."""
    if t.kind == "path":
        return path(t)
    if t.kind == "NOW":
        return _now(t)
    return literals.scalar(t, *also, OPERANDS[0], hint=hint)


def _now(t: Tokens) -> Now:
    at = t.take("NOW")
    t.enter("(", hint=_NOW_HINT)
    offset = None if t.kind == ")" else literals.text(t, 'a duration in quotes ("-7d")')
    t.leave(")", hint=_NOW_HINT)
    return Now(offset, at)


def path(t: Tokens) -> Path:
    """Return the current token, a path, and pass over it."""
    at, (variable, *parts) = t.at, t.word[1:].split(".")
    t.advance()
    return Path(variable, tuple(parts), at)
