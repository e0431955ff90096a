"""Makes the answers of KIP fit into one result: a page that is too long is asked for again with fewer rows.

What is left out is named in ``note``, with the call for the rest; no part is shown as the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kbcore.errors.remedies import kb
from kbcore.kip import syntax as s
from kbcore.kip.errors import RESOURCE, refused
from kbcore.kip.run import Piece, Reading, Response
from kbmcp.tools.answers import PAGE_CHARS, cut_deep, leading, length_of

_ROOM: Final = PAGE_CHARS - 200
_NOTE_CHARS: Final = 500
"""The most characters of the note and the cursor."""
_LEAST: Final = 800
"""With less, an answer that does not fit is left out."""
_KEPT: Final = 75
"""The characters that are reserved for each later command: enough to say that its answer is left out."""


class Fitting:
    """The room of one result, which the answers of its commands share in their order."""

    def __init__(self) -> None:
        self._left = _ROOM

    def __call__(self, piece: Piece, to_come: int) -> Response:
        """Return an answer that fits, and take its part of the room. Raises: ``KipRefused`` for an ``EXPORT``."""
        response = _fitted(piece, self._left - _KEPT * to_come)
        self._left -= length_of(response) + 1
        return response


def _fitted(piece: Piece, room: int) -> Response:
    if length_of(piece.response) <= room:
        return piece.response
    if room < _LEAST:
        note = (
            "There is no room left; send it separately."
            if isinstance(piece.tree, Reading)
            else "Written; no room for more."
        )
        return {"result": "…", "note": note}
    if isinstance(piece.tree, s.ExportCommand):
        return _smaller_capsule(piece, room)
    rows = _rows_of(piece)
    if rows is None or piece.again is None:
        note = "Long parts of this answer are cut, and marked so; the command was run completely."
        return _cut(piece.response, room, note)
    count = leading(rows, room - _NOTE_CHARS)
    while count:
        smaller = piece.again(count).response
        if length_of(smaller) + _NOTE_CHARS <= room:
            return smaller | {"note": _fewer(count, len(rows))}
        count //= 2
    note = "One row is too long for an answer and is cut: FIND the single attributes that you need, such as ?x.name."
    return _cut(piece.again(1).response, room, note)


def _fewer(count: int, rows: int) -> str:
    shown = f"Only {count} of {rows} rows fit into one answer."
    return f"{shown} Repeat the command with CURSOR and this next_cursor for what comes next."


def _rows_of(piece: Piece) -> Sequence[Any] | None:
    """Return the rows of an answer, whatever their shape; None where it has none."""
    result = piece.response["result"]
    if isinstance(piece.tree, s.FindCommand) and len(piece.tree.find) > 1:
        has_rows = any(isinstance(one, s.Path) for one in piece.tree.find)
        return [*zip(*result, strict=True)] if has_rows else None
    return result if isinstance(result, list) and hasattr(piece.tree, "limit") else None


def _cut(response: Response, room: int, note: str) -> Response:
    kept = {name: part for name, part in response.items() if name != "result"}
    shown = cut_deep(response["result"], room - _NOTE_CHARS - length_of(kept))
    return {"result": shown, **kept, "note": note}


def _smaller_capsule(piece: Piece, room: int) -> Response:
    """Return the capsule of as many elements as fit; a part of one would be of no use."""
    size, result = length_of(piece.response), piece.response["result"]
    count = (result["concepts"] + result["propositions"]) * room // size
    while count and piece.again:
        smaller = piece.again(count).response
        if length_of(smaller) + _NOTE_CHARS <= room:
            more = "Repeat the command with CURSOR and this next_cursor for the next capsule."
            return smaller | {"note": f"The capsule has as many elements as fit into one answer. {more}"}
        count //= 2
    message = f"The capsule has {size} characters; one answer takes {room}."
    hint = f"Export less at a time with LIMIT, or {kb('kip', lead='run')} with this command, which writes all of it."
    raise refused(RESOURCE, message, at=piece.tree.at, hint=hint)
