"""The only place that reads the time; passed in wherever time matters.

Times leave this module as RFC 3339 text in UTC with microseconds, which sorts as text in time order.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from kbcore.errors import ClockUnusable

_BEHIND: Final = timedelta(days=1)


class Clock(Protocol):
    """The time functions that KB needs. Tests pass clocks that jump."""

    def now(self) -> str:
        """Return the wall-clock time as RFC 3339 text, e.g. ``2026-11-20T09:30:00.000000Z``."""
        ...

    def epoch_ns(self) -> int:
        """Return the wall-clock time in nanoseconds since 1970, to compare with times of files."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds from an arbitrary start that never go back."""
        ...

    def sleep(self, wait_s: float) -> None:
        """Wait for that many seconds."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> str:
        """Return the wall-clock time as RFC 3339 text in UTC. Raises: ``ClockUnusable``."""
        with _usable():
            return text_of(datetime.now(UTC))

    def epoch_ns(self) -> int:
        """Return the wall-clock time in nanoseconds since 1970. Raises: ``ClockUnusable``."""
        with _usable():
            return time.time_ns()

    def monotonic_s(self) -> float:
        """Return the monotonic clock in seconds."""
        return time.monotonic()

    def sleep(self, wait_s: float) -> None:
        """Block this thread for that many seconds."""
        time.sleep(wait_s)


def check() -> None:
    """Refuse a clock that Python cannot tell, before a program begins: its own library cannot be imported then.

    Raises: ``ClockUnusable``.
    """
    SystemClock().epoch_ns()


class Moment(NamedTuple):
    """The time of a record, and the wall clock where it was behind the last record, else "".

    ``wall`` is equal to ``at`` where the record has its own time although the last record's is later: that one, and
    each earlier record with a later time, was written by a clock that was ahead.
    """

    at: str
    wall: str


def moment_after(last: str, wall: str) -> Moment:
    """Return the time of a record that is written at ``wall``, after one with the time ``last``.

    It never goes back, unless the clock is more than a day behind: then it is the last time that is not believed.
    """
    if wall >= last:
        return Moment(wall, "")
    return Moment(wall if _parsed(last) - _parsed(wall) > _BEHIND else last, wall)


class Flagged(NamedTuple):
    """A record whose time is not that of its writing, and what the wall clock said where that is known, else ""."""

    seq: int
    at: str
    wall: str
    is_ahead: bool


def flagged(records: Iterable[tuple[int, str, str]]) -> list[Flagged]:
    """Return the flagged ones of records, given in order by seq, ``at`` and ``clock``."""
    found, soonest = list[Flagged](), ""
    for seq, at, wall in reversed(list(records)):
        is_ahead = bool(soonest) and at > soonest
        if is_ahead or (wall and wall != at):
            found.append(Flagged(seq, at, wall if wall != at else "", is_ahead))
        if wall == at and (not soonest or at < soonest):
            soonest = at
    return found[::-1]


def to_local(time: datetime) -> datetime:
    """Return an instant as the clocks on the wall show it in the zone of this machine, without a zone.

    Raises: ``OverflowError`` and ``ValueError`` beyond the years that Python knows.
    """
    return time.astimezone().replace(tzinfo=None)


def from_local(time: datetime) -> datetime:
    """Return the instant in UTC at which the clocks on the wall show a time in the zone of this machine.

    It is the first one where they show it twice. Raises: as ``to_local``.
    """
    return time.astimezone(UTC)


def text_of(time: datetime) -> str:
    """Return a time in UTC as the text that the journal has; the year has four digits also before 1000."""
    return f"{time.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def is_before(at: str, epoch_s: int) -> bool:
    """Tell whether a time of a record is before one in seconds since 1970."""
    return _parsed(at).timestamp() < epoch_s


@lru_cache(maxsize=256)  # the clauses of one record have the same
def epoch_ms(at: str) -> int:
    """Return a time of a record in milliseconds since 1970."""
    return (_parsed(at) - datetime.fromtimestamp(0, UTC)) // timedelta(milliseconds=1)


def days_before(at: str, days: int) -> str:
    """Return the time so many days before one, as such a text; the first that can be written where that is earlier."""
    time = _parsed(at)
    first = time.replace(year=1, month=1, day=1, hour=0, minute=0, second=0, microsecond=0)
    return text_of(time - timedelta(days=days) if days <= (time - first).days else first)


@contextlib.contextmanager
def _usable() -> Iterator[None]:
    try:
        yield
    except (ValueError, OverflowError) as error:
        message = "The clock of this machine is at a time that cannot be used: KB can use the years 1678 to 2261"
        raise ClockUnusable(f"{message}, and a record can have those from 0001 to 9999.") from error


def _parsed(time: str) -> datetime:
    return datetime.fromisoformat(time)
