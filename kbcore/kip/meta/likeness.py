"""How well a few words fit a name and its description, a typo tolerated. Pure.

For what is in no index: the definitions of a schema, which are few.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kbcore.query.text.typos import is_a_typo, is_long_enough

SAME: Final = 1.0
"""The very name was asked for."""
_IN_NAME, _BEGINS, _TYPO, _IN_TEXT = 0.95, 0.8, 0.7, 0.4
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W_]")
_PLAIN: Final = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text, also those that a name is made of: ``UserStory`` and ``user_story`` hold two."""
    found = [word.casefold() for word in _WORD.findall(text)]
    return [*dict.fromkeys([*found, *(word.casefold() for word in _PLAIN.findall(text))])]


def asked_words(term: str) -> list[str]:
    """Return the words of a search term, each once."""
    return [*dict.fromkeys(word.casefold() for word in _PLAIN.findall(term))]


def likeness(term: str, name: str, text: str) -> float:
    """Return from 0 (not at all) to 1 how well a term fits a name with a description; every word of it must."""
    if term.strip().casefold() == name.casefold():
        return SAME
    asked, named, said = asked_words(term), words_of(name), words_of(text)
    fits = [_fit(word, named, said) for word in asked]
    return sum(fits) / len(fits) if fits and all(fits) else 0.0


def _fit(word: str, named: Sequence[str], said: Sequence[str]) -> float:
    if word in named:
        return _IN_NAME
    if any(one.startswith(word) for one in named):
        return _BEGINS
    if any(is_near(word, one) for one in named):
        return _TYPO
    return _IN_TEXT if word in said else 0.0


def is_near(word: str, other: str) -> bool:
    """Tell whether two words are at most one typo apart; short words never are."""
    return word == other or (is_long_enough(word) and is_a_typo(word, other))
