"""Conditions on the fields of entities and edges: what they say, and the text in which they are written. Pure.

``--where`` and the ``where`` of ``kb_query`` share this language. One text is one or more conditions, of which at least
one must hold: ``priority=must OR severity=high``. Several texts must all hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from kbcore.errors import InvalidQuery
from kbcore.query.keys import KeyKind
from kbcore.visible import in_quotes

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "~", "^="]

OPERATORS: Final[tuple[Operator, ...]] = get_args(Operator)
_ORDERING: Final[tuple[Operator, ...]] = ("=", "!=", "<", "<=", ">", ">=")
_WORDING: Final[tuple[Operator, ...]] = ("=", "!=", "~", "^=")
ALLOWED: Final[Mapping[KeyKind, tuple[Operator, ...]]] = {
    "text": OPERATORS,
    "member": OPERATORS,
    "number": _ORDERING,
    "time": _ORDERING,
    "list": _WORDING,
    "stated_by": _WORDING,
    "flag": ("=", "!="),
}
"""The operators that a key takes, by its kind."""

LISTED: Final = ", ".join(f"`{operator}`" for operator in OPERATORS)
GRAMMAR: Final = (
    f"Write KEY, an operator and a value. Operators: {LISTED} (`~` contains, `^=` begins with). "
    "OR between two conditions means one or the other. A value that begins with an operator or holds OR is put in "
    'quotes: `title="this OR that"`.'
)

_QUOTED: Final = r'"(?:[^"\\]|\\.)*"'
_HEAD: Final = re.compile(rf"\s*(?P<key>{_QUOTED}|[^=!<>~^]*?)\s*(?P<operator>[=!<>~^]+)\s*", re.DOTALL)
_OR: Final = re.compile(r"\s+OR\s+")
_QUOTED_VALUE: Final = re.compile(rf"(?P<value>{_QUOTED})(?:\s*\Z|\s+OR\s+(?=\S))", re.DOTALL)
_LOOKS_LIKE_MORE: Final = re.compile(r"\s(?P<word>or|Or|and|And|AND|&&?|\|\|?)\s+[\w.-]+\s*(?:[!<>^]?=|[<>~])")


class Condition(msgspec.Struct, frozen=True):
    """A comparison of one field with a value.

    ``=`` is exact, for a list one of its entries; ``!=`` holds wherever ``=`` does not, also where the field is
    missing. ``~`` and ``^=`` do not distinguish capital letters. The others order numbers as numbers, times as times,
    and text with the numbers in it as numbers (``REQ-2`` before ``REQ-12``).
    """

    key: str
    value: str
    operator: Operator = "="

    def as_text(self) -> str:
        """Return the condition as it is written."""
        return f"{self.key}{self.operator}{self.value}"


AnyOf = tuple[Condition, ...]
"""Conditions of which at least one must hold."""

UNREAD: Final[AnyOf] = ()
"""Stands in a query for a text that could not be read."""


def text_of(conditions: AnyOf) -> str:
    """Return conditions of which one must hold as they are written."""
    return " OR ".join(condition.as_text() for condition in conditions)


def parse_where(text: str) -> AnyOf:
    """Return the conditions that a text such as ``status=open`` or ``size>3 OR owner!=ann`` says.

    Raises: ``InvalidQuery`` with the operators that there are.
    """
    found, rest = [], text
    while True:
        condition, rest = _parse_first(rest, text)
        found.append(condition)
        if not rest:
            return tuple(found)


def conditions_of(key: str, value: Any) -> AnyOf:
    """Return the conditions that a member of an object says: equal to its value, or to one of a list.

    Raises: ``InvalidQuery`` for a value that no field can be compared with.
    """
    values = value if isinstance(value, list) and value else [value]
    if not all(isinstance(one, str | int | float) for one in values):
        hint = 'For example {"priority": "must"} or {"priority": ["must", "should"]}.'
        raise InvalidQuery("`where` compares with text, a number or a truth value.", hint=hint)
    return tuple(Condition(key, one if isinstance(one, str) else json.dumps(one)) for one in values)


def _parse_first(text: str, whole: str) -> tuple[Condition, str]:
    """Return the first condition of a text, and the text after the ``OR`` behind it, "" for none."""
    head = _HEAD.match(text)
    if not head or not head["key"] or _OR.search(head["key"]):
        raise InvalidQuery(f"{in_quotes(whole)} is no condition such as KEY=VALUE.", hint=GRAMMAR)
    operator = head["operator"]
    if operator not in OPERATORS:
        raise InvalidQuery(f"There is no operator {in_quotes(operator)} in {in_quotes(whole)}.", hint=GRAMMAR)
    value, rest = _parse_value(text[head.end() :], whole)
    if not value and operator not in {"=", "!="}:
        raise InvalidQuery(f"{in_quotes(whole)} has no value behind `{operator}`.", hint=GRAMMAR)
    key = _unquoted(head["key"], whole) if head["key"].startswith('"') else head["key"]
    return Condition(key, value, operator), rest


def _parse_value(text: str, whole: str) -> tuple[str, str]:
    if text.startswith('"'):
        found = _QUOTED_VALUE.match(text)
        if not found:
            raise InvalidQuery(f"The quotes in {in_quotes(whole)} do not enclose one value.", hint=GRAMMAR)
        return _unquoted(found["value"], whole), text[found.end() :]
    mark = _OR.search(text)
    value, rest = (text[: mark.start()], text[mark.end() :]) if mark else (text, "")
    if more := _LOOKS_LIKE_MORE.search(value):
        instead = "OR in capital letters" if more["word"].lower() in {"or", "|", "||"} else "a `where` for each"
        message = f"{in_quotes(whole)} seems to hold several conditions in one: write {instead}."
        raise InvalidQuery(message, hint=GRAMMAR)
    if mark and not rest.strip():
        raise InvalidQuery(f"{in_quotes(whole)} has no condition behind OR.", hint=GRAMMAR)
    return value.strip(), rest


def _unquoted(text: str, whole: str) -> str:
    try:
        return str(json.loads(text, strict=False))
    except ValueError as error:
        raise InvalidQuery(f"The text in quotes in {in_quotes(whole)} is not JSON.", hint=GRAMMAR) from error
