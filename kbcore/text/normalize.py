"""Text as terms have it, next to the text itself: in small letters without accents, each with its position. Pure.

What a reader sees as one letter may be several characters: nothing that is marked or cut begins or ends within one.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from kbcore.text.terms import fold

_JOINER: Final = "\u200d"
_OF_FLAGS: Final = "".join(map(chr, range(0x1F1E6, 0x1F200)))
"""Two of these are a flag."""
_HALF_WIDTH_MARKS: Final = "\uff9e\uff9f"
"""The marks of half-width Japanese, which are letters to Unicode."""
_MOST_CHARS: Final = 32
"""A letter of more characters is cut: they are made up."""


def composed(text: str) -> str:
    """Return text with each accent in the letter that it is on, as far as there is such a letter."""
    return unicodedata.normalize("NFC", text)


class NormalizedText:
    """A composed text, and the same as terms have it: ``text``."""

    def __init__(self, whole: str) -> None:
        self._ends: list[int] | None = None
        if whole.isascii():
            self.text = whole.lower()
            return
        folded = [fold(one) for one in whole]
        self.text = "".join(folded)
        if len(self.text) != len(whole) or any(len(one) != 1 for one in folded):
            self._ends = list(accumulate(map(len, folded)))

    def place(self, at: int) -> int:
        """Return where in the whole text a character of the folded one is."""
        return at if self._ends is None else bisect_right(self._ends, at)

    def spans(self, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
        """Yield where in the whole text what a pattern matches in the folded one begins and ends."""
        for match in pattern.finditer(self.text):
            yield self.place(match.start()), self.place(match.end() - 1) + 1


def letter_begin(text: str, at: int) -> int:
    """Return where the letter begins within which a place in a text is; the place itself where it is between two."""
    if text.isascii():
        return at
    return next((place for place in range(at, max(at - _MOST_CHARS, 0), -1) if not _is_within(text, place)), at)


def letter_end(text: str, at: int) -> int:
    """Return where the letter ends within which a place in a text is; the place itself where it is between two."""
    if text.isascii():
        return at
    return next((place for place in range(at, min(at + _MOST_CHARS, len(text)) + 1) if not _is_within(text, place)), at)


def is_edge(text: str, at: int) -> bool:
    """Tell whether a word, or a part of a name such as ``createPlan``, may begin or end at a place in a text."""
    if not 0 < at < len(text) or not (text[at - 1].isalnum() and text[at].isalnum()):
        return True
    is_last_capital = text[at - 1].isupper() and text[at + 1 : at + 2].islower()
    return text[at].isupper() and (text[at - 1].islower() or is_last_capital)


def is_added(one: str) -> bool:
    """Tell whether a character is shown on the one before, or belongs to it: a mark, or the colour of a skin."""
    if one.isascii():
        return False
    return unicodedata.category(one)[0] == "M" or "\U0001f3fb" <= one <= "\U0001f3ff" or one in _HALF_WIDTH_MARKS


def _is_within(text: str, at: int) -> bool:
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    if _JOINER in (before, after) or is_added(after):
        return True
    return before in _OF_FLAGS and after in _OF_FLAGS and _flags_before(text, at) % 2 == 1


def _flags_before(text: str, at: int) -> int:
    return at - len(text[:at].rstrip(_OF_FLAGS))
