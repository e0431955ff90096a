"""The line that shows why a search found an entity: a part of its text, the hits marked, the first one visible."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from kbcli.terminal.cells import shortened, width_of
from kbcore.text.escaping import escape_controls

if TYPE_CHECKING:
    from kbcli.terminal.output import Output

_LEAST_ROOM: Final = 12
_MARK: Final = re.compile("[«»]")


def snippet_line(output: Output, field: str, text: str) -> str:
    """Return a snippet in one line, its first hit visible: by its style, between marks where there is none.

    ``text`` has every hit between ``«`` and ``»``, and these nowhere else.
    """
    has_style = output.styled("x", "bold") != "x"
    lead = f"    {field}: "
    pieces = [(escape_controls(piece), place % 2 == 1) for place, piece in enumerate(_MARK.split(text))]
    if not has_style:
        pieces = [(f"«{piece}»" if is_hit else piece, is_hit) for piece, is_hit in pieces]
    room = None if output.width is None else max(output.width - width_of(lead), _LEAST_ROOM)
    if room is not None:
        pieces = _cut(pieces, room)
    return output.styled(lead, "dim") + "".join(
        output.styled(text, "bold" if is_hit else "dim") for text, is_hit in pieces if text
    )


def _cut(pieces: list[tuple[str, bool]], room: int) -> list[tuple[str, bool]]:
    """Return the pieces of a snippet in so many columns; the text before the first hit is cut first."""
    before = "".join(text for text, _ in itertools.takewhile(lambda one: not one[1], pieces))
    rest = list(itertools.dropwhile(lambda one: not one[1], pieces))
    if width_of(before) > room // 2 and rest:
        words = before[-(room // 3) :].partition(" ")
        before = f"… {words[2]}"
    kept: list[tuple[str, bool]] = []
    for text, is_hit in [(before, False), *rest]:
        kept.append((shortened(text, room), is_hit))
        room -= width_of(text)
        if room <= 0:
            break
    return kept
