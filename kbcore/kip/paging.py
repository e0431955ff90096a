"""The cursors of commands that answer in pages: given with one page, taken back with the next. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from kbcore.errors import InvalidQuery
from kbcore.kip.errors import SYNTAX, refused
from kbcore.kip.printer import write
from kbcore.kip.syntax import DescribeTypes, ExportCommand, FindCommand, SearchCommand, Text
from kbcore.text import cursor as cursors
from kbcore.view.view import View

START_OVER: Final = "Ask for the first page again, without CURSOR."


def mark_of(store_id: str, command: FindCommand | ExportCommand | DescribeTypes | SearchCommand) -> str:
    """Return what the cursors of a command are bound to: the store of the branch, and the command without its page."""
    bare = msgspec.structs.replace(command, limit=None, cursor=None)
    return cursors.request_mark((store_id, write(bare)))


def head_words(view: View) -> str:
    """Return where a branch is, for a sentence: its last record, and whether a view has changes besides the records."""
    is_more = view.seq > view.recorded_seq
    return f"{view.recorded_seq}, with changes that are in no record" if is_more else f"{view.recorded_seq}"


def cursor_in(given: Text, mark: str, overlay: str = "") -> cursors.Cursor:
    """Return the cursor that a command brings; ``overlay`` is the mark of what is answered from besides the records.

    Raises: ``KipRefused`` (KIP_1001) for one that is not its own, or comes from a page with other changes besides them.
    """
    try:
        cursor = cursors.decode(given.value, mark)
    except InvalidQuery as error:
        hint = "Repeat the command of the first page with its next_cursor, on the same branch; only LIMIT may differ."
        raise refused(SYNTAX, error.message, at=given.at, hint=hint) from error
    check_same(given, partial(cursors.check_overlay, cursor, overlay))
    return cursor


def check_same(given: Text, check: Callable[[], None]) -> None:
    """Make a check of ``text.cursor`` for the cursor that a command brings. Raises: ``KipRefused`` (KIP_1001)."""
    try:
        check()
    except InvalidQuery as error:
        raise refused(SYNTAX, error.message, at=given.at, hint=START_OVER) from error
