"""Makes one entity fit into an answer: long values are cut and marked, and any value can be had in parts.

A value that was cut is never passed off as whole: ``cut`` in the answer names it, with its length and its shown part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from kbcore.errors import InvalidQuery
from kbcore.model.graph import OBJECT_FIELDS
from kbmcp.tools.answers import Payload, length_of, text_of

_MIN_VALUE_CHARS: Final = 120
_BRACES_CHARS: Final = 60
_PART_CHARS: Final = 16_000
_ENVELOPE_CHARS: Final = 1_500
_CURSOR: Final = re.compile(r"part\.(\d{1,18})\.(\d{1,18})(?:\.([0-9a-f]{16}))?")
"""Holds a dot, as no cursor of a page does: the seq to read at, and where in the value to go on."""


def cut_entity(entity: Payload, room: int) -> tuple[Payload, list[Payload]]:
    """Return an entity that takes at most so many characters, and what was cut from it.

    The id comes first and is never cut; its length has a limit of its own. Short values stay whole; the long ones
    share what is left. Members beyond all room are left out, and named.
    """
    whole = sorted(_values(entity), key=lambda one: one[0] != "id")
    keys = sum(_key_chars(field) for field, _ in whole)
    share = max(_MIN_VALUE_CHARS, _share(sorted(length_of(value) for _, value in whole), room - keys - _BRACES_CHARS))
    left = room - _BRACES_CHARS
    kept: Payload = {}
    cuts: list[Payload] = []
    for field, value in whole:
        shown = value if field == "id" or length_of(value) <= share else cut_value(value, share)
        needed = _key_chars(field) + length_of(shown)
        if needed > left or (shown is not value and len(shown) <= 1):  # nothing of it but the mark of the cut
            cuts.append({"field": field, "characters": len(_plain(value)), "shown": 0})
            continue
        left -= needed
        if shown is not value:
            cuts.append({"field": field, "characters": len(_plain(value)), "shown": len(shown) - 1})
        _place(kept, field, shown)
    return kept, cuts


def _share(sizes: list[int], room: int) -> int:
    """Return the most that each of the values may take, smallest first, so that all of them fit."""
    for at, size in enumerate(sizes):
        if size * (len(sizes) - at) > room:
            return room // (len(sizes) - at)
        room -= size
    return sizes[-1]


def _key_chars(field: str) -> int:
    return length_of(field.partition(".")[2] or field) + 2


class PartPlace(NamedTuple):
    """The start of a part of a value, its seq, and the mark of the overlay (``View.overlay_mark``)."""

    seq: int
    offset: int
    overlay: str = ""


def part_cursor(place: PartPlace) -> str:
    """Return the cursor that continues a value at this place."""
    return f"part.{place.seq}.{place.offset}" + (f".{place.overlay}" if place.overlay else "")


def read_part_cursor(cursor: str) -> PartPlace | None:
    """Return the place of a cursor that continues a value, None for a cursor of pages.

    Raises: ``InvalidQuery`` for one that is neither.
    """
    if not cursor.startswith("part."):
        return None
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InvalidQuery("The cursor is damaged.", hint="Ask for the value again, without a cursor.")
    return PartPlace(int(found[1]), int(found[2]), found[3] or "")


def part_of(entity: Payload, field: str, offset: int) -> tuple[Payload, int]:
    """Return the part of a field's value that begins at an offset, and where the next one begins (0: at its end).

    Text is given as it is; any other value as its JSON text.
    """
    text = _plain(dict(_values(entity)).get(field, entity.get(field, "")))
    piece = text[offset : offset + _PART_CHARS]
    while length_of(piece) > _PART_CHARS + _ENVELOPE_CHARS:
        piece = piece[: len(piece) // 2]
    end = offset + len(piece)
    part = {"field": field, "offset": offset, "characters": len(text), "text": piece}
    return part, end if end < len(text) else 0


def _values(entity: Payload) -> Iterator[tuple[str, Any]]:
    """Yield every field by its full name; the members of objects by theirs."""
    for name, value in entity.items():
        if name in OBJECT_FIELDS and isinstance(value, dict):
            for member in value:
                yield f"{name}.{member}", value[member]
        else:
            yield name, value


def _place(entity: Payload, field: str, value: Any) -> None:
    prefix, dot, member = field.partition(".")
    if dot:
        entity.setdefault(prefix, {})[member] = value
    else:
        entity[field] = value


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else text_of(value)


def cut_value(value: Any, share: int) -> str:
    """Return the beginning of a value and a mark, together within a share that holds more than those."""
    text = _plain(value)[:share]
    while length_of(text) + 1 > share:
        text = text[: len(text) - max(1, (length_of(text) + 1 - share) // 6)]
    return text + "…"
