"""One typo: a letter too many, one too few, another one, or two neighbours that changed places. Pure.

A syllable of Hangul is one character of two or three letters, and a typo is in one of these: words are compared both
as the characters and as the letters that they are made of.
"""

from __future__ import annotations

import unicodedata
from typing import Final

_LEAST_LETTERS: Final = 4
"""A word of fewer has too many neighbours."""


def is_long_enough(word: str) -> bool:
    """Tell whether a word is long enough for a typo in it to be distinguished from another word."""
    return len(_typed(word)) >= _LEAST_LETTERS


def is_a_typo(one: str, other: str) -> bool:
    """Tell whether one typo makes one of two words the other; the same word is none."""
    return _is_one_away(one, other) or (not one.isascii() and _is_one_away(_typed(one), _typed(other)))


def _typed(word: str) -> str:
    return word if word.isascii() else unicodedata.normalize("NFD", word)


def _is_one_away(one: str, other: str) -> bool:
    if len(one) > len(other):
        one, other = other, one
    if len(other) - len(one) > 1 or one == other:
        return False
    at = next((at for at, letter in enumerate(one) if letter != other[at]), len(one))
    if len(one) < len(other):
        return one[at:] == other[at + 1 :]
    is_swap = one[at : at + 2] == other[at : at + 2][::-1]
    return one[at + 1 :] == other[at + 1 :] or (is_swap and one[at + 2 :] == other[at + 2 :])
