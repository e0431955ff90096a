"""Times of records and what they are worth. The order is by seq; a wrong clock is on record, and nothing depends on it.

A record flags the earlier ones with later times, by having its own although the clock was behind (``clock.Moment``).
Without these, times never go back, so that each of them means one seq, whatever comes later.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kbcore.view.view import View

_RESETS: Final = "select seq, written_at from record where clock <> '' and clock = written_at order by seq"


def last_by(view: View, time: str, *, before: bool = False) -> int | None:
    """Return the last record that was written by a time, or before it; None where there is none.

    Times of a clock that was ahead are passed over. Nothing need be asked for it: the record that flags them comes
    after them, and has an earlier time. A record of a clock that was behind counts with the time of the one before.
    """
    sql = f"select max(seq) from record where written_at {'<' if before else '<='} ?"
    last: int | None = view.rows(sql, [time])[0][0]
    return last


def settled(rows: Callable[[str, list[Any]], list[Any]]) -> Callable[[int, str], str]:
    """Return what gives the time of a record, or of what it wrote, as it is to be counted with.

    One from a clock that was ahead counts as that of the record which says so. ``rows`` asks the view.
    """
    resets: list[tuple[int, str]] = rows(_RESETS, [])

    def time(seq: int, at: str) -> str:
        return min([at, *(reset for later, reset in resets if later > seq)])

    return time
