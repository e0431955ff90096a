"""Two texts side by side, with the words marked that differ. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from kbcore.text.token_diff import Stretch, stretches
from kbcore.text.wording import shortened

Mark = Callable[[str], str]

_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|\s+|[^\w\s]")
"""The units that are compared: words, signs, and single letters of scripts that write no spaces."""
_MAX_WORDS: Final = 2_000
"""Longer texts are compared as a whole: marking them takes time that grows with the square."""
_LEAST_ALIKE: Final = 0.3
"""Texts that are less similar than this are shown without common parts."""
_KEPT_CHARS: Final = 40
"""The number of equal units that are kept before and after a difference, when a text is long."""


def marked(before: str, after: str, removed: Mark, added: Mark) -> tuple[str, str]:
    """Return both texts with what differs marked; texts that have nothing in common are not marked.

    Long equal parts are shortened to the text next to a difference.
    """
    old, new = _WORD.findall(before), _WORD.findall(after)
    if len(old) + len(new) > _MAX_WORDS:
        return _cut(before), _cut(after)
    sides = stretches(old, new, least_alike=_LEAST_ALIKE)
    return (_marked(sides[0], removed), _marked(sides[1], added)) if sides else (before, after)


def _marked(side: Sequence[Stretch], mark: Mark) -> str:
    last = len(side) - 1
    return "".join(
        _around(text, is_first=at == 0, is_last=at == last) if is_shared else mark(text) if text else ""
        for at, (text, is_shared) in enumerate(side)
    )


def _around(text: str, *, is_first: bool, is_last: bool) -> str:
    """Return the equal part, as far as it is next to a difference."""
    if len(text) <= 3 * _KEPT_CHARS:
        return text
    start = "" if is_first else text[:_KEPT_CHARS].rpartition(" ")[0] + " "
    end = "" if is_last else " " + text[-_KEPT_CHARS:].partition(" ")[2]
    return f"{start}…{end}"


def _cut(text: str) -> str:
    return shortened(text, 5 * _KEPT_CHARS)
