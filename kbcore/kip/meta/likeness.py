"""Likeness of words to a name and its description, a typo tolerated. Pure.

For what is in no index: the definitions of a schema, which are few.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kbcore.text.typos import is_a_typo, is_long_enough
from kbcore.text.word_forms import STOP_WORDS, are_forms

SAME: Final = 1.0
"""The very name was asked for."""
_IN_NAME, _BEGINS, _TYPO, _IN_TEXT, _PARTIAL = 0.95, 0.8, 0.7, 0.4, 0.5
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+|[^\W_]")
_PLAIN: Final = re.compile(r"[^\W_]+")


def words_of(text: str) -> list[str]:
    """Return the words of a text, also those that a name is made of: ``UserStory`` and ``user_story`` hold two."""
    found = [word.casefold() for word in _WORD.findall(text)]
    return [*dict.fromkeys([*found, *(word.casefold() for word in _PLAIN.findall(text))])]


def asked_words(term: str) -> list[str]:
    """Return the words of a search term, each once; words that say nothing are left out where there are others."""
    found = [*dict.fromkeys(word.casefold() for word in _PLAIN.findall(term))]
    return [word for word in found if word not in STOP_WORDS] or found


def likeness(term: str, name: str, text: str, *, is_partial: bool = False) -> float:
    """Return from 0 (not at all) to 1 how well a term fits a name with a description.

    Every word of it must; with ``is_partial`` it is enough that one fits the name, for half of what that counts.
    """
    if term.strip().casefold() == name.casefold():
        return SAME
    asked, named, said = asked_words(term), words_of(name), words_of(text)
    fits = [_fit(word, named, said) for word in asked]
    if fits and all(fits):
        return sum(fits) / len(fits)
    return _PARTIAL * sum(fits) / len(fits) if is_partial and max(fits, default=0) > _IN_TEXT else 0.0


def _fit(word: str, named: Sequence[str], said: Sequence[str]) -> float:
    if word in named:
        return _IN_NAME
    if any(one.startswith(word) or are_forms(one, word) for one in named):
        return _BEGINS
    if any(is_near(word, one) for one in named):
        return _TYPO
    return _IN_TEXT if any(one == word or are_forms(one, word) for one in said) else 0.0


def is_near(word: str, other: str) -> bool:
    """Return whether two words differ by at most one typo; short words never do."""
    return word == other or (is_long_enough(word) and is_a_typo(word, other))
