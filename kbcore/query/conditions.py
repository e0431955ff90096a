"""Conditions on the fields of entities and edges: what they say, and the text in which they are written. Pure.

``--where`` and the ``where`` of ``kb_query`` share this language. One text is one or more conditions, of which at least
one must hold: ``priority=must OR severity=high``. Several texts must all hold.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, get_args

import msgspec

from kbcore import limits
from kbcore.errors import InvalidQuery
from kbcore.query.keys import KeyKind
from kbcore.text.escaping import in_quotes

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

_MEANT: Final[Mapping[str, Operator]] = {
    **dict.fromkeys(("==", "==="), "="),
    **dict.fromkeys(("!==", "=!", "<>"), "!="),
    **dict.fromkeys(("=~", "~=", "~~"), "~"),
    "=^": "^=",
    "=<": "<=",
    "=>": ">=",
}
"""Operators of other languages, with the one that means the same."""
_QUOTED: Final = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_SIGNS: Final = re.compile(r"[=!<>~^]++")
_BLANKS: Final = re.compile(r"\s*+")
_OR: Final = re.compile(r"(?<!\s)\s++OR(?=\s|\Z)")
_WORD_OR: Final = re.compile(r"(?<!\S)OR(?!\S)")
_BEGINS_WITH_OR: Final = re.compile(r"OR(?=\s|\Z)")
_LOOKS_LIKE_MORE: Final = re.compile(r"\s(?P<word>or|Or|and|And|AND|&&?|\|\|?)\s++[\w.-]++\s*+(?:[!<>^]?=|[<>~])")
_ENDS_IN_AND: Final = re.compile(r"(?<!\s)\s++(?P<word>AND|&&?|\|\|?)\Z")
_INSTANT: Final = dt.timedelta(microseconds=1)
_SHOWN_CHARS: Final = 200
"""The characters of a refused text that are shown."""


class Condition(msgspec.Struct, frozen=True):
    """A comparison of one field with a value.

    ``=`` is exact, for a list one of its entries; ``!=`` holds wherever ``=`` does not, also where the field is
    missing. With no value ``=`` holds where the field is missing or empty, and ``!=`` where it has a value. ``~`` and
    ``^=`` do not distinguish capital letters. The others order numbers as numbers, times as times, and text with the
    numbers in it as numbers (``REQ-2`` before ``REQ-12``).
    """

    key: str
    value: str
    operator: Operator = "="
    span: tuple[str, str] | None = None
    """The first instant of the time that the value means, and the first one after it, where it is not of UTC."""

    def as_text(self) -> str:
        """Return the condition as it is written, its value in quotes where it means something else without them."""
        plain = f"{self.key}{self.operator}{self.value}"
        quoted = json.dumps(self.value, ensure_ascii=False)
        return plain if _is_plain(self, plain) else f"{self.key}{self.operator}{quoted}"


AnyOf = tuple[Condition, ...]
"""Conditions of which at least one must hold."""

UNREAD: Final[AnyOf] = ()
"""Takes the place in a query of a text that could not be read."""


def _is_plain(condition: Condition, text: str) -> bool:
    """Tell whether a condition without quotes means the same; OR is put in quotes where it is a word of the value."""
    if _WORD_OR.search(condition.value):
        return False
    try:
        [found] = parse_where(text)
    except (InvalidQuery, ValueError):
        return False
    return (found.key, found.operator, found.value) == (condition.key, condition.operator, condition.value)


def text_of(conditions: AnyOf) -> str:
    """Return conditions of which one must hold as they are written."""
    return " OR ".join(condition.as_text() for condition in conditions)


def said_times(where: Iterable[AnyOf]) -> list[str]:
    """Return which instants times mean that are not written as UTC: in words, or of a local zone."""
    said = dict.fromkeys((one.value, *one.span) for any_of in where for one in any_of if one.span)
    return [f"{in_quotes(value)} is {_instants(begin, end)}." for value, begin, end in said]


def _instants(begin: str, end: str) -> str:
    shown = begin.replace(".000000Z", "Z")
    try:
        is_instant = dt.datetime.fromisoformat(end) - dt.datetime.fromisoformat(begin) <= _INSTANT
    except ValueError:  # the end of the last year
        is_instant = False
    return shown if is_instant else f"since {shown} and before {end.replace('.000000Z', 'Z')}"


def parse_where(text: str) -> AnyOf:
    """Return the conditions that a text such as ``status=open`` or ``size>3 OR owner!=ann`` says.

    It takes time in proportion to the length of the text.

    Raises: ``InvalidQuery`` with the operators that there are.
    """
    if len(text) > limits.MAX_TEXT_BYTES:
        message = f"A condition of {len(text)} characters was given; the limit is {limits.MAX_TEXT_BYTES}."
        raise InvalidQuery(message, hint="Ask for several values in several queries.")
    whole = text.strip()
    found: list[Condition] = []
    at = 0
    while not found or at < len(whole):
        condition, at = _parse_at(whole, at)
        found.append(condition)
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


def _parse_at(whole: str, at: int) -> tuple[Condition, int]:
    """Return the condition that begins at a place of a text, and where the one after its ``OR`` begins."""
    if _BEGINS_WITH_OR.match(whole, at):
        raise _wrong(f"{_shown(whole)} has no condition before OR.")
    key, at = _parse_key(whole, at)
    signs = _SIGNS.match(whole, at)
    operator = signs[0] if signs else ""
    if not signs or operator not in OPERATORS:
        meant = _MEANT.get(operator)
        instead = f"{whole[: signs.start()]}{meant}{whole[signs.end() :]}" if meant and signs else ""
        hint = f"Did you mean {_shown(instead)}? {GRAMMAR}" if instead else GRAMMAR
        raise InvalidQuery(f"There is no operator {in_quotes(operator)} in {_shown(whole)}.", hint=hint)
    value, at = _parse_value(whole, signs.end())
    if not value and operator not in {"=", "!="}:
        raise _wrong(f"{_shown(whole)} has no value after `{operator}`.")
    return Condition(key, value, operator), at


def _parse_key(whole: str, at: int) -> tuple[str, int]:
    """Return the key that begins at a place, and where the operator after it begins."""
    quoted = _QUOTED.match(whole, at)
    signs = _SIGNS.search(whole, quoted.end() if quoted else at)
    key = whole[at : signs.start()].strip() if signs else ""
    if not signs or not key or (quoted and key != quoted[0]) or (not quoted and _OR.search(key)):
        raise _wrong(f"{_shown(whole)} is no condition such as KEY=VALUE.")
    return (_unquoted(key, whole) if quoted else key), signs.start()


def _parse_value(whole: str, at: int) -> tuple[str, int]:
    """Return the value after an operator, and where the condition after its ``OR`` begins."""
    begin = _end(_BLANKS, whole, at)
    quoted = _QUOTED.match(whole, begin)
    mark = _OR.search(whole, quoted.end() if quoted else at)
    end = mark.start() if mark else len(whole)
    value = whole[begin:end].strip() if begin <= end else ""
    if value.startswith('"'):
        if not quoted or value != quoted[0]:
            raise _wrong(f"The quotes in {_shown(whole)} do not enclose one value.")
        value = _unquoted(value, whole)
    elif more := _LOOKS_LIKE_MORE.search(value) or _ENDS_IN_AND.search(value):
        is_or = more["word"].lower() in {"or", "|", "||"}
        instead = "write OR in capital letters" if is_or else "give each as a condition of its own"
        raise _wrong(f"{_shown(whole)} seems to contain several conditions in one: {instead}.")
    after = _end(_BLANKS, whole, mark.end()) if mark else end
    if mark and after == len(whole):
        raise _wrong(f"{_shown(whole)} has no condition after OR.")
    return value, after


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Return where a pattern that may match nothing ends."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _unquoted(text: str, whole: str) -> str:
    try:
        return str(json.loads(text, strict=False))
    except ValueError as error:
        raise _wrong(f"The text in quotes in {_shown(whole)} is not JSON.") from error


def _shown(whole: str) -> str:
    """Return a text in quotes, cut where it is long."""
    return in_quotes(whole if len(whole) <= _SHOWN_CHARS else f"{whole[:_SHOWN_CHARS]}…")


def _wrong(message: str) -> InvalidQuery:
    return InvalidQuery(message, hint=GRAMMAR)
