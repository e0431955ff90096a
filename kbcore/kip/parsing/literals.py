"""Texts, numbers, JSON values and maps, each of which a placeholder may replace: tokens to values of the tree."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

from kbcore import limits
from kbcore.kip.errors import RESOURCE, refused
from kbcore.kip.grammar import KEYWORDS
from kbcore.kip.parsing.faults import NO_VALUES
from kbcore.kip.parsing.lexer import Tokens
from kbcore.kip.syntax import Count, JsonValue, MapMember, Object, Text, ValuePlaceholder, Variable
from kbcore.text.escaping import in_quotes

_LARGEST: Final = 2**63 - 1
_MOST_DIGITS: Final = 20
_WHOLE: Final = re.compile(r"-?[0-9]+")
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_CONSTANTS: Final = {"true": True, "false": False, "null": None}
SCALARS: Final = ("a text in quotes", "a number", "`true`", "`false`", "`null`", "a placeholder (:name)")
VALUES: Final = (*SCALARS, "`{`", "`[`")
QUOTES: Final = 'Put it in double quotes: "…", or pass it as a parameter and write `:name`.'
_NO_PATH: Final = "A value is expected here; paths are used in FIND, FILTER, ORDER BY and UPDATE."
TWICE: Final = "Leave one of the two out: each key is written once."


def string(t: Tokens) -> str:
    """Return what the current token, a string, says, and pass over it. Raises: ``KipRefused``."""
    word = t.word
    said: str = word[1:-1] if t.kind == "plain" else json.loads(word)
    if t.kind == "string" and ("\0" in said or _HALF_PAIR.search(said)):
        what = "a NUL" if "\0" in said else "half of a surrogate pair"
        raise t.wrong(f"The text contains {what} as an escape.", hint="Write whole characters, and no NUL.")
    if len(word) > limits.MAX_TEXT_BYTES // 4 and len(said.encode()) > limits.MAX_TEXT_BYTES:
        message = f"The text is longer than {limits.MAX_TEXT_BYTES} bytes."
        raise t.placed(refused(RESOURCE, message, at=t.at, hint="Keep long text in a document and point at it."))
    t.advance()
    return said


def text(t: Tokens, what: str = "a text in quotes") -> Text:
    """Return a text or the placeholder for one. ``what`` names it in errors. Raises: ``KipRefused``."""
    at = t.at
    if t.kind in {"plain", "string"}:
        return Text(string(t), at)
    if t.kind == "parameter":
        return Text("", at, placeholder(t))
    raise t.unexpected(what, "a placeholder (:name)", hint=QUOTES if t.kind == "name" or t.kind in KEYWORDS else "")


def placeholder(t: Tokens) -> str:
    """Return the name of the current token, a placeholder, and pass over it."""
    name = t.word[1:]
    t.advance()
    return name


def variable(t: Tokens, what: str = "a variable (?x)", *also: str, hint: str = "") -> Variable:
    """Return a variable without a path; ``also`` is allowed in its place. Raises: ``KipRefused``."""
    if t.kind != "path":
        raise t.unexpected(what, *also, hint=hint)
    at, word = t.at, t.word
    if "." in word:
        start = word.partition(".")[0]
        raise t.wrong(
            f"A path is written where a variable is expected: `{word}`.", hint=hint or f"Write {start} alone."
        )
    t.advance()
    return Variable(word[1:], at)


def number(t: Tokens) -> int | float:
    """Return the current token, a number, and pass over it. Raises: ``KipRefused``."""
    word = t.word
    value: int | float = math.inf
    if not _WHOLE.fullmatch(word):
        value = float(word)
    elif len(word) <= _MOST_DIGITS:
        value = int(word)
    if not math.isfinite(value) or (isinstance(value, int) and abs(value) > _LARGEST):
        raise t.wrong("The number does not fit into 64 bits.", hint="Write a smaller number, or send it as text.")
    t.advance()
    return value


def count(t: Tokens, what: str = "a whole number", least: int = 0) -> Count:
    """Return a whole number of at least ``least``, or the placeholder for one. Raises: ``KipRefused``."""
    at, word = t.at, t.word
    if t.kind == "parameter":
        return Count(0, at, placeholder(t))
    if t.kind != "number":
        raise t.unexpected(what, "a placeholder (:name)")
    if not word.isdigit() or (len(word) < _MOST_DIGITS and int(word) < least):
        raise t.wrong(f"{in_quotes(word[:40])} is not {what}.", hint=f"Write a whole number, {least} or more.")
    return Count(int(number(t)), at)


def is_word(t: Tokens) -> bool:
    """Return whether the current token is a word, keyword or not, as bare keys are."""
    return t.kind == "name" or t.kind in KEYWORDS


def key(t: Tokens) -> str:
    """Return the key of a member and pass over it and its colon. Raises: ``KipRefused``."""
    if t.kind in {"plain", "string"}:
        name = string(t)
    elif is_word(t):
        name = t.word
        t.advance()
    else:
        raise t.unexpected("a key", "`}`")
    t.colon()
    return name


def value(t: Tokens) -> JsonValue:
    """Return a JSON value with the places of the placeholders in it. Raises: ``KipRefused``."""
    at = t.at
    holes: list[ValuePlaceholder] = []
    said = _json(t, holes, ())
    return JsonValue(said, at, tuple(holes))


def scalar(t: Tokens, *also: str, hint: str = "") -> JsonValue:
    """Return a value that is no list and no object; ``also`` is allowed in its place. Raises: ``KipRefused``."""
    if t.kind in {"{", "["} or (t.kind not in _CONSTANTS and is_word(t)):
        raise t.unexpected(*also, *SCALARS, hint=hint)
    at = t.at
    holes: list[ValuePlaceholder] = []
    said = _json(t, holes, (), (*also, *SCALARS))
    return JsonValue(said, at, tuple(holes))


def _json(
    t: Tokens, holes: list[ValuePlaceholder], path: tuple[str | int, ...], expected: tuple[str, ...] = VALUES
) -> Any:
    kind = t.kind
    if kind in {"plain", "string"}:
        return string(t)
    if kind == "number":
        return number(t)
    if kind in _CONSTANTS:
        t.advance()
        return _CONSTANTS[kind]
    if kind == "parameter":
        at = t.at
        holes.append(ValuePlaceholder(path, placeholder(t), at))
        return None
    if kind == "[":
        return _array(t, holes, path)
    if kind == "{":
        return _object(t, holes, path)
    hint = QUOTES if is_word(t) and t.word.lower() not in NO_VALUES else ""
    raise t.unexpected(*expected, hint=_NO_PATH if kind == "path" else hint)


def _array(t: Tokens, holes: list[ValuePlaceholder], path: tuple[str | int, ...]) -> list[Any]:
    t.enter("[")
    items: list[Any] = []
    while t.kind != "]":
        items.append(_json(t, holes, (*path, len(items)), VALUES if items else (*VALUES, "`]`")))
        if not t.accept(","):
            break
    t.leave("]")
    return items


def _object(t: Tokens, holes: list[ValuePlaceholder], path: tuple[str | int, ...]) -> dict[str, Any]:
    return {name: _json(t, holes, (*path, name)) for name, _ in _keys(t)}


def mapping(t: Tokens) -> Object:
    """Return the map after SET ATTRIBUTES or WITH METADATA, or its placeholder. Raises: ``KipRefused``."""
    at = t.at
    if t.kind == "parameter":
        return Object((), at, placeholder(t))
    if t.kind != "{":
        raise t.unexpected("`{`", "a placeholder (:name)")
    return Object(tuple([MapMember(name, value(t), place) for name, place in _keys(t)]), at)


def _keys(t: Tokens) -> Iterator[tuple[str, int]]:
    """Yield the key of each member of an object, and its place; its value is read by who takes it."""
    known = set[str]()
    t.enter("{")
    while t.kind != "}":
        at = t.at
        name = key(t)
        if name in known:
            raise t.wrong(f"The key {in_quotes(name[:100])} is here twice.", hint=TWICE, at=at)
        known.add(name)
        yield name, at
        if not t.accept(","):
            break
    t.leave("}")
