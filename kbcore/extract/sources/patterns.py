"""Patterns that take parts out of a text, and templates that put parts together. Pure.

A pattern is text with placeholders: ``{name}`` is one or more characters, as few as possible, ``{name:d}`` digits,
``{name:w}`` a word of letters, digits and ``_ . -``. A template has ``{name}``, with ``|slug``, ``|lower``, ``|upper``
or a width such as ``|04`` after the name. ``{{`` and ``}}`` are braces.

What is between two placeholders without a kind, or two stars of a glob, is taken where it fits first: a later place is
no better. Only placeholders with a kind, and what is before these, are tried at several places. Texts are cut to
``MAX_MATCHED_CHARS``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

import msgspec

from kbcore import limits

MAX_MATCHED_CHARS: Final = 300
"""The beginning of a text that a pattern is compared with."""
MAX_PLACEHOLDERS: Final = 3
"""Placeholders of one pattern: of three with a kind, the cost grows with the cube of the length of a text."""
MAX_SPANNING: Final = 2
"""``**`` of a glob with placeholders."""
MAX_PATTERN_CHARS: Final = limits.MAX_GLOB_CHARS

_TOKEN: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]|[^{}]+")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KINDS: Final[Mapping[str, str]] = {"": ".+?", "d": "[0-9]+", "w": r"[A-Za-z0-9](?:[\w.-]*\w)?"}
_IN_PATH: Final[Mapping[str, str]] = {"": "[^/]+?", "d": "[0-9]+", "w": r"[A-Za-z0-9](?:[\w.-]*\w)?"}
_NO_WORD: Final = re.compile(r"[^a-z0-9]+")
_GLOB_TOKEN: Final = re.compile(r"\*\*/|\*\*|\*|\?|\{([^{}]*)\}|[^*?{}]+|[{}]")


class PatternUnusable(ValueError):
    """A pattern or a template that cannot be used; the message says why, without a subject."""


def slug(text: str) -> str:
    """Return a text as a part of an id: small letters and digits, with a hyphen for everything else."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return _NO_WORD.sub("-", plain).strip("-")


_FILTERS: Final[Mapping[str, Callable[[str], str]]] = {"slug": slug, "lower": str.lower, "upper": str.upper}


class _Slot(msgspec.Struct, frozen=True):
    """One placeholder: its name, and the kind of text or the filter after it."""

    name: str
    suffix: str


def _parts(text: str, *, separator: str) -> Iterator[str | _Slot]:
    """Yield the literal texts and placeholders. Raises: ``PatternUnusable``."""
    if len(text) > MAX_PATTERN_CHARS:
        message = f"it has {len(text)} characters; the limit is {MAX_PATTERN_CHARS}"
        raise PatternUnusable(message)
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in {"{{", "}}"}:
            yield token[0]
        elif token in {"{", "}"}:
            message = f"a brace is not closed: `{token}`; a brace as text is written twice"
            raise PatternUnusable(message)
        elif found[1] is None:
            yield token
        else:
            name, _, suffix = found[1].partition(separator)
            if not name:
                message = "a placeholder has no name: `{}`"
                raise PatternUnusable(message)
            yield _Slot(name, suffix)


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    names = list[str]()
    pieces = [
        _Piece(re.escape(part), "")
        if isinstance(part, str)
        else _Piece(_group(part, names, _KINDS), part.suffix or "*")
        for part in _parts(text, separator=":")
    ]
    return re.compile(_expression(pieces), re.DOTALL)


class _Piece(msgspec.Struct, frozen=True):
    """A part of an expression: ``kind`` is "" for text, ``*`` for what takes as little as possible of anything."""

    text: str
    kind: str


def _expression(pieces: Sequence[_Piece]) -> str:
    """Return the expression of pieces. What begins with ``*`` and is followed by another one is not tried again."""
    out, held = "", ""
    for piece in pieces:
        if piece.kind:
            out += f"(?>{held})" if held and piece.kind == "*" else held
            held = piece.text if piece.kind == "*" else ""
            out += "" if held else piece.text
        elif held:
            held += piece.text
        else:
            out += piece.text
    return out + held


def _group(slot: _Slot, names: list[str], kinds: Mapping[str, str]) -> str:
    if slot.suffix not in kinds:
        message = f"`{{{slot.name}:{slot.suffix}}}` has an unknown kind; there are `:d` for digits and `:w` for a word"
        raise PatternUnusable(message)
    if not _NAME.fullmatch(slot.name):
        message = f"`{slot.name}` cannot be the name of a placeholder: letters, digits and _ are possible"
        raise PatternUnusable(message)
    if slot.name in names and slot.name != "_":
        message = f"the placeholder `{slot.name}` is there twice"
        raise PatternUnusable(message)
    if len(names) == MAX_PLACEHOLDERS:
        message = f"it has more than {MAX_PLACEHOLDERS} placeholders"
        raise PatternUnusable(message)
    names.append(slot.name)
    return f"({'' if slot.name == '_' else f'?P<{slot.name}>'}{kinds[slot.suffix]})"


def _fault(make: Callable[[str], object], text: str) -> str:
    try:
        make(text)
    except PatternUnusable as error:
        return str(error)
    return ""


def pattern_fault(text: str) -> str:
    """Return why a text cannot be a pattern, or the empty text."""
    return _fault(_pattern, text)


def match(patterns: Sequence[str], text: str) -> dict[str, str] | None:
    """Return the parts of a text that the first fitting pattern names; None when none fits the whole text."""
    text = text[:MAX_MATCHED_CHARS]
    for pattern in patterns:
        found = _pattern(pattern).fullmatch(text)
        if found:
            return {name: value.strip() for name, value in found.groupdict().items()}
    return None


@lru_cache(maxsize=1024)
def _template(text: str) -> tuple[str | _Slot, ...]:
    parts = tuple(_parts(text, separator="|"))
    for part in parts:
        if isinstance(part, _Slot) and part.suffix and part.suffix not in _FILTERS and not _is_width(part.suffix):
            message = f"`|{part.suffix}` is unknown; there are |slug, |lower, |upper and a width such as |04"
            raise PatternUnusable(message)
    return parts


def _is_width(suffix: str) -> bool:
    return len(suffix) == 2 and suffix[0] == "0" and suffix[1].isdigit()  # noqa: PLR2004 - `0` and one digit


def template_fault(text: str) -> str:
    """Return why a text cannot be a template, or the empty text."""
    return _fault(_template, text)


def names_in(template: str) -> tuple[str, ...]:
    """Return the names that a template asks for, in order."""
    return tuple(part.name for part in _template(template) if isinstance(part, _Slot))


class Filled(msgspec.Struct, frozen=True):
    """The result of filling a template: the text, or the names that had no value."""

    text: str = ""
    missing: tuple[str, ...] = ()


def fill(template: str, value_of: Callable[[str], str | None]) -> Filled:
    """Put values into a template; ``value_of`` returns the text of a name, None where there is none."""
    out, missing = list[str](), list[str]()
    for part in _template(template):
        if isinstance(part, str):
            out.append(part)
            continue
        value = value_of(part.name)
        if not value:
            missing.append(part.name)
        elif _is_width(part.suffix):
            out.append(value.rjust(int(part.suffix[1]), "0"))
        else:
            out.append(_FILTERS[part.suffix](value) if part.suffix else value)
    return Filled("" if missing else "".join(out), tuple(missing))


def placeholders(glob: str) -> list[str]:
    """Return the text between the braces of a glob."""
    return re.findall(r"\{([^{},]*)\}", glob)


def plain_glob(glob: str) -> str:
    """Return a glob with ``*`` in place of each named placeholder."""
    return re.sub(r"\{[^{},]*\}", "*", glob)


_IN_GLOB: Final[Mapping[str, _Piece]] = {
    "**/": _Piece("(?:[^/]+/)*", "**"),
    "**": _Piece(".*", "**"),
    "*": _Piece("[^/]*?", "*"),
    "?": _Piece("[^/]", ""),
}


@lru_cache(maxsize=1024)
def _path_pattern(glob: str) -> re.Pattern[str]:
    pieces, names = list[_Piece](), list[str]()
    for found in _GLOB_TOKEN.finditer(glob.removeprefix("./")):
        sign = found[0]
        if found[1] is not None:
            name, _, kind = found[1].partition(":")
            pieces.append(_Piece(_group(_Slot(name, kind), names, _IN_PATH), kind or "*"))
        elif sign in _IN_GLOB:
            pieces.append(_IN_GLOB[sign])
        else:
            pieces.append(_Piece(re.escape(sign), ""))
    if names and sum(piece.kind == "**" for piece in pieces) > MAX_SPANNING:
        message = f"it has placeholders and more than {MAX_SPANNING} `**`"
        raise PatternUnusable(message)
    return re.compile(_expression(pieces), re.DOTALL)


def glob_fault(glob: str) -> str:
    """Return why the placeholders of a glob cannot be used, or the empty text."""
    return _fault(_path_pattern, glob)


def path_parts(globs: Sequence[str], path: str) -> dict[str, str]:
    """Return the parts of a path that the placeholders of the first fitting glob name."""
    for glob in globs:
        if "{" in glob and (found := _path_pattern(glob).fullmatch(path)):
            return {name: value for name, value in found.groupdict().items() if value}
    return {}
