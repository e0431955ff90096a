"""The nearest known name to a mistyped one: what "did you mean" says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from kbcore.text.escaping import in_quotes
from kbcore.text.wording import one_of

_SHOWN: Final = 3
_LEAST_ALIKE: Final = 0.6
_LEAST_CHARS: Final = 2
"""A word that is shorter is the beginning of too much."""
_STEM_CHARS: Final = 3
"""A name that is shorter is the beginning of too much."""
_MARGIN: Final = 0.1
"""A word that is less similar than the nearest by more than this is not named."""

_PLAIN: Final = re.compile(r"[\w.$/-]+")
"""A name that needs no quotes to be distinguished from the sentence around it."""


def near_ones(
    word: str, known: Iterable[str], limit: int = _SHOWN, *, least_alike: float = _LEAST_ALIKE, stems: bool = True
) -> tuple[str, ...]:
    """Return the known names that are most like the word, the nearest first; none when none is alike.

    Names that begin with the word come before all others; with ``stems``, where none is alike, the longest counts with
    which the word begins, as ``req`` for ``requirements``.
    """
    import difflib  # noqa: PLC0415 - only failures pay for it

    folded: dict[str, str] = {}
    for name in known:
        folded.setdefault(name.casefold(), name)
    text = word.casefold()
    begun = [name for name in folded if len(text) >= _LEAST_CHARS and name.startswith(text)]
    if begun:
        return tuple(folded[name] for name in sorted(begun, key=len)[:limit])
    found = difflib.get_close_matches(text, folded, n=limit, cutoff=least_alike)
    if not found:
        begins = [name for name in folded if stems and len(name) >= _STEM_CHARS and text.startswith(name)]
        return tuple(folded[name] for name in sorted(begins, key=len, reverse=True)[:1])
    alike = [difflib.SequenceMatcher(None, name, text).ratio() for name in found]
    return tuple(folded[name] for name, one in zip(found, alike, strict=True) if one >= alike[0] - _MARGIN)


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known name that is most like the word, or the empty text when none is alike."""
    return next(iter(near_ones(word, known, 1)), "")


def is_it(names: Sequence[str]) -> str:
    """Return the question whether one of these names was meant, or the empty text without any."""
    if not names:
        return ""
    return f"Did you mean {one_of([in_quotes(name) for name in names])}?"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint sentence with the nearest names, or with the names there are when none is near."""
    names = list(known)
    near = near_ones(word, names)
    if near:
        return is_it(near)
    shown = [name if _PLAIN.fullmatch(name) else in_quotes(name) for name in sorted(names)[:40]]
    return f"Known: {', '.join(shown)}." if names else ""
