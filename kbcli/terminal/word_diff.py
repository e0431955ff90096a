"""Two texts side by side, with the words marked that differ. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kbcore.text.wording import shortened

Mark = Callable[[str], str]

_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|\s+|[^\w\s]")
"""What is compared: words, signs, and single letters of scripts that write no spaces."""
_MAX_WORDS: Final = 2_000
"""Longer texts are compared as a whole: marking them takes time that grows with the square."""
_LEAST_ALIKE: Final = 0.3
"""Texts that are less alike than this have nothing in common worth showing."""
_KEPT_CHARS: Final = 40
"""So much of what is the same is left before and after what differs, when a text is long."""


def marked(before: str, after: str, removed: Mark, added: Mark) -> tuple[str, str]:
    """Return both texts with what differs marked; texts that have nothing in common are not marked.

    Long stretches that are the same are shortened to what stands beside a difference.
    """
    import difflib

    old, new = _WORD.findall(before), _WORD.findall(after)
    if len(old) + len(new) > _MAX_WORDS:
        return _cut(before), _cut(after)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        return before, after
    codes = matcher.get_opcodes()
    return (
        "".join(_side(((tag, old[a:b]) for tag, a, b, _, _ in codes), removed, len(codes))),
        "".join(_side(((tag, new[a:b]) for tag, _, _, a, b in codes), added, len(codes))),
    )


def _side(stretches: Iterator[tuple[str, Sequence[str]]], mark: Mark, count: int) -> Iterator[str]:
    for place, (tag, words) in enumerate(stretches):
        text = "".join(words)
        if tag == "equal":
            yield _around(text, is_first=place == 0, is_last=place == count - 1)
        elif text:
            yield mark(text)


def _around(text: str, *, is_first: bool, is_last: bool) -> str:
    """Return what is the same, as far as it stands beside a difference."""
    if len(text) <= 3 * _KEPT_CHARS:
        return text
    start = "" if is_first else text[:_KEPT_CHARS].rpartition(" ")[0] + " "
    end = "" if is_last else " " + text[-_KEPT_CHARS:].partition(" ")[2]
    return f"{start}…{end}"


def _cut(text: str) -> str:
    return shortened(text, 5 * _KEPT_CHARS)
