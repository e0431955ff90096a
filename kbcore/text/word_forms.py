"""Forms of English words, and words without a meaning by themselves. Pure.

KB does not know which language a project writes. A word of another language is its own only form, or loses an ending
that English words have; it is still found as it is written, and forms count less than the word itself.
"""

from __future__ import annotations

import re
from typing import Final

_STOPPED: Final = (
    "a also am an and any are as at be because been being but by can cannot could did do does doing for from get "
    "had has have having he her here his how i if into is it its me might my nor of one or our shall she should "
    "some that the their them then there these they this those to us was we were what when where which while who "
    "whom whose why will with would you your "
)
STOP_WORDS: Final = frozenset(_STOPPED.split())
"""Not looked for, unless a text holds no other words."""

_LIGHT: Final = (
    "about after again all before down in just may must no not now off on other out over own so such than too "
    "under until up "
)
LIGHT_WORDS: Final = frozenset(_LIGHT.split())
"""Looked for, as in `log in` and `log out`, and left out where nothing holds them with the other words."""

_LEAST_CHARS: Final = 4
"""A shorter word has no form but itself."""
_LEAST_STEM_CHARS: Final = 3
_VOWEL: Final = re.compile("[aeiouy]")
_AFTER_ES: Final = ("s", "x", "z", "ch", "sh")


def stem(word: str) -> str:
    """Return what all forms of a word have in common: plurals, ``-ed``, ``-ing``, and a last ``e``."""
    if len(word) < _LEAST_CHARS or not (word.isascii() and word.isalpha()):
        return word
    found = _singular(word)
    for ending in ("ing", "ied", "ed"):
        base = found.removesuffix(ending)
        if base != found and len(base) >= _LEAST_STEM_CHARS and _VOWEL.search(base):
            found = f"{base}y" if ending == "ied" else base
            break
    if found.endswith("e") and len(found) > _LEAST_STEM_CHARS:
        found = found[:-1]
    is_doubled = len(found) > _LEAST_STEM_CHARS and found[-1] == found[-2] and found[-1] not in "aeiou"
    return found[:-1] if is_doubled else found


def common_beginning(word: str) -> str:
    """Return how every form of a word begins."""
    found = stem(word)
    return found.removesuffix("y")


def are_forms(one: str, other: str) -> bool:
    """Tell whether two different words are forms of one."""
    return one != other and stem(one) == stem(other)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > _LEAST_CHARS:
        return f"{word[:-3]}y"
    if word.endswith("es") and word[:-2].endswith(_AFTER_ES) and len(word) > _LEAST_CHARS:
        return word[:-2]
    if word.endswith("s") and word[-2] not in "siu":
        return word[:-1]
    return word
