"""The width of a text in columns of a terminal, and the places where it may be cut: never inside a visible letter.

The tables of Unicode are loaded only for text beyond Latin, Greek and Cyrillic letters and the usual signs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

ELLIPSIS: Final = "…"
_PLAIN: Final = re.compile("[ -\u02ff\u0370-\u0482\u2010-\u2027\u2190-\u2193]*")
"""Text of which every character takes one column, once control characters are out."""
_JOINER: Final = "\u200d"
_EMOJI_SHAPE: Final = "\ufe0f"
_WIDE: Final = 2


def width_of(text: str) -> int:
    """Return how many columns a terminal needs for text without control characters."""
    if text.isascii() or _PLAIN.fullmatch(text):
        return len(text)
    return sum(width for _, width in letters(text))


def letters(text: str) -> Iterator[tuple[str, int]]:
    """Yield what a reader sees as one letter, with its width: an accent, a joined emoji or a flag is not split."""
    from rich.cells import get_character_cell_size

    held, held_width = "", 0
    for one in text:
        width = get_character_cell_size(one, "latest")
        is_joined = held.endswith(_JOINER) and width == _WIDE
        is_flag = _is_of_flag(one) and len(held) == 1 and _is_of_flag(held)
        if held and not (width == 0 or is_joined or is_flag):
            yield held, held_width
            held, held_width = "", 0
        held += one
        becomes_wide = is_flag or (one == _EMOJI_SHAPE and held_width == 1)
        held_width = _WIDE if becomes_wide else max(held_width, width)
    if held:
        yield held, held_width


def _is_of_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def padded(text: str, width: int) -> str:
    """Return text filled up with spaces to so many columns."""
    return text + " " * (width - width_of(text))


def shortened(text: str, width: int, *, keeps_end: bool = False) -> str:
    """Return text in at most so many columns; an ellipsis replaces what was cut off, at its end or its beginning."""
    if len(text) * _WIDE <= width or width_of(text) <= width:
        return text
    if keeps_end:
        parts = list(letters(text))[::-1]
        return ELLIPSIS + "".join(_fitting(parts, width - 1)[::-1])
    return "".join(_fitting(letters(text), width - 1)).rstrip() + ELLIPSIS


def _fitting(parts: Iterator[tuple[str, int]] | list[tuple[str, int]], room: int) -> list[str]:
    kept = []
    for part, width in parts:
        room -= width
        if room < 0:
            break
        kept.append(part)
    return kept


def wrapped(text: str, width: int | None) -> list[str]:
    """Return text in lines of at most so many columns, broken between words that fit; without a limit in one line."""
    if width is None or width_of(text) <= width:
        return [text]
    lines, line, used = [], "", 0
    for word in text.split(" "):
        needed = width_of(word)
        if line and used + 1 + needed <= width:
            line, used = f"{line} {word}", used + 1 + needed
            continue
        if line:
            lines.append(line)
        *whole, line = _broken(word, width)
        lines += whole
        used = width_of(line)
    return [*lines, line]


def _broken(word: str, width: int) -> list[str]:
    """Return a word in pieces that fit; a letter that is wider than the room is a piece all the same."""
    pieces, piece, used = [], "", 0
    for part, needed in letters(word) if width_of(word) > width else [(word, 0)]:
        if piece and used + needed > width:
            pieces.append(piece)
            piece, used = "", 0
        piece, used = piece + part, used + needed
    return [*pieces, piece]
