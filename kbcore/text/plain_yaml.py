"""The YAML that nearly all front matter is, read line by line: one ``key: value`` a line, and lists of plain words.

It returns what ``yaml_text`` returns for the same text, in half the time and without its library. It reads
only what cannot mean anything else, and returns None for all other text: nothing is refused or corrected here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.text.tree import TextTree, is_small

_NEVER: Final = r"\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff"
"""No text of YAML, or what breaks lines only there; tabs as well, for simplicity."""

_FIRST: Final = r"[\w/.(+$~]"
"""Characters that may begin a text without quotes: none with a meaning in YAML there."""

_KEY: Final = r"[A-Za-z_][A-Za-z0-9_.-]{0,99}"
_REST: Final = rf"[^{_NEVER}:#]*+"
_PLAIN: Final = rf"{_FIRST}{_REST}(?:(?::(?=[^ \n])|(?<! )\#){_REST})*+"
_QUOTED: Final = rf"\"[^{_NEVER}\"]*\"|'[^{_NEVER}']*'"
_FLOW: Final = rf"\[[^{_NEVER}#\"]*\]|\{{[^{_NEVER}#\"]*\}}"
_LINE: Final = re.compile(
    rf"(?:({_KEY}):|( *-))(?: +(?:({_PLAIN})|({_QUOTED})|({_FLOW})))? *(?:\n|\Z)"
    rf"|( *(?:#[^{_NEVER}]*)?\n)|(.)",
    re.DOTALL,
)
"""A line with a key or a list item and what follows it, or a blank line or comment, or else the first character."""

_IN_FLOW: Final = rf"[^{_NEVER} ,:?\[\]{{}}]++"
_WORD: Final = re.compile(rf"{_FIRST}(?:{_IN_FLOW})?(?: ++{_IN_FLOW})*+")
_WORDS: Final = re.compile(rf"\[ *{_WORD.pattern}(?: *, *{_WORD.pattern})* *\]")
"""A list of words, as most tags are."""
_decode = msgspec.json.Decoder().decode


def read(text: str, first_line: int) -> TextTree | None:
    """Return the mapping in a YAML text that begins on ``first_line``, or None when it is not of the plain kind."""
    if not is_small(text):
        return None
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    places: dict[int, Any] = {id(values): lines}
    last, dashes = "", ""
    for line, (key, dash, plain, quoted, flow, blank, other) in enumerate(_LINE.findall(text), first_line):
        if blank:
            continue
        value = plain.rstrip(" ") if plain else _value(quoted, flow, line, places)
        if other or key in values or (value is None and (flow or dash)):
            return None
        if key:
            values[key], lines[key] = value, line
            last, dashes = (key if value is None else ""), ""
            continue
        if not last or dash != (dashes or dash):
            return None
        if not dashes:
            dashes, values[last] = dash, []
            places[id(values[last])] = []
        values[last].append(value)
        places[id(values[last])].append(line)
    return TextTree(values, places, [], is_small=True) if values else None


def _value(quoted: str, flow: str, line: int, places: dict[int, Any]) -> Any:
    """Return the content of quotes or brackets; None for neither, and for brackets that are not plain."""
    return _flow(flow, line, places) if flow else quoted[1:-1] if quoted else None


def _flow(text: str, line: int, places: dict[int, Any]) -> Any:
    """Return the content of brackets on one line; None unless it is JSON as soon as its words are put in quotes."""
    if _WORDS.fullmatch(text):
        words = [word.strip(" ") for word in text[1:-1].split(",")]
        places[id(words)] = [line] * len(words)
        return words
    keys = text.count(":")
    if keys != text.count(": ") or text.count("[") + text.count("{") >= limits.MAX_DEPTH:
        return None
    try:
        value: Any = _decode(_WORD.sub(_in_quotes, text))
    except msgspec.DecodeError:
        return None
    return value if _note(value, line, places) == keys else None


def _in_quotes(word: re.Match[str]) -> str:
    return f'"{word[0]}"'


def _note(value: list[Any] | dict[str, Any], line: int, places: dict[int, Any]) -> int:
    """Note the line of every member, however deep, and return the number of keys."""
    keys = 0
    if isinstance(value, dict):
        places[id(value)] = dict.fromkeys(value, line)
        members: Iterable[Any] = value.values()
        keys = len(value)
    else:
        places[id(value)] = [line] * len(value)
        members = value
    for member in members:
        if type(member) is not str:
            keys += _note(member, line, places)
    return keys
