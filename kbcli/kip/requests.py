"""A request of KIP from the command line: the commands of a text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kbcore.errors import KipRefused
from kbcore.kip.errors import RESOURCE, placed, refused
from kbcore.kip.parsing import spans
from kbcore.kip.request import CommandText, KipRequest
from kbcore.limits import MAX_CHANGESET_BYTES, MAX_KIP_COMMANDS

_MOST_BLANKS: Final = 8 * MAX_CHANGESET_BYTES
"""A stand-in for the places of all commands of a text."""


def request_of(text: str, parameters: Mapping[str, Any], *, dry_run: bool) -> KipRequest:
    """Return the request for a text of one command or of several, which run one after the other.

    Raises: ``KipRefused`` where the text does not fall into commands.
    """
    pieces = pieces_of(text)
    if len(pieces) > MAX_KIP_COMMANDS:
        message = f"There are {len(pieces)} commands; the limit is {MAX_KIP_COMMANDS}."
        raise refused(RESOURCE, message, hint="Split them into several files.")
    commands = tuple(CommandText(piece, parameters, lead) for piece, lead in pieces or [(text, 0)])
    return KipRequest(commands, is_batch=len(commands) > 1, dry_run=dry_run)


def pieces_of(text: str) -> list[tuple[str, int]]:
    """Return the commands of a text, each after as many blanks as give it the line and column that it has there.

    How many blanks that are comes with it. Raises: ``KipRefused``.
    """
    pieces = []
    blanks = 0
    for begin, end in spans(text, most_bytes=MAX_CHANGESET_BYTES):
        lines = text.count("\n", 0, begin) + text.count("\r", 0, begin) - text.count("\r\n", 0, begin)
        column = begin - 1 - max(text.rfind("\n", 0, begin), text.rfind("\r", 0, begin))
        blanks += lines + column
        if blanks > _MOST_BLANKS:
            message = "The commands are so far to the right, or so far down, that their places take too much memory."
            hint = "Put each command on a line of its own, or split them into several files."
            raise placed(refused(RESOURCE, message, at=begin, hint=hint), text)
        pieces.append(("\n" * lines + " " * column + text[begin:end].rstrip(), lines + column))
    return pieces


def is_whole(text: str) -> bool:
    """Return whether a text is complete commands; False where more text could complete it.

    Raises: ``KipRefused`` for a fault that no further text can correct.
    """
    try:
        spans(text, most_bytes=MAX_CHANGESET_BYTES)
    except KipRefused as error:
        if error.data.get("offset") == len(text):
            return False
        raise
    return True
