"""Whose turn it is: of all calls that come, and then of those at one branch, whoever came first.

Who stands in a line is told once nobody stands before them, and whoever leaves lets the next one in. A line in which
nobody stands is forgotten.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

DOOR: Final = None
"""The line of the calls that have come, of which nobody knows yet what branch they concern."""


class Place(msgspec.Struct, frozen=True, eq=False):
    """A place in the line of a branch, by the directory of its store, or at the door."""

    line: Path | None
    tell: Callable[[], object]


class Turns:
    """The lines of one process."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._lines: dict[Path | None, dict[Place, None]] = {}
        """Who stands in each, the first one first."""

    def stand(self, line: Path | None, tell: Callable[[], object]) -> Place:
        """Stand last in a line.

        ``tell`` is called when the turn has come, by the thread of whoever left, and must not wait; it is not called
        when nobody stands there (see ``is_first``).
        """
        place = Place(line, tell)
        with self._gate:
            self._lines.setdefault(line, {})[place] = None
        return place

    def is_first(self, place: Place) -> bool:
        """Tell whether the turn of a place that was not left has come."""
        with self._gate:
            return next(iter(self._lines[place.line])) is place

    def leave(self, place: Place) -> None:
        """Leave a line, whether or not the turn has come; does nothing when it was left already."""
        with self._gate:
            line = self._lines.get(place.line, {})
            if place not in line:
                return
            was_first = next(iter(line)) is place
            del line[place]
            if not line:
                del self._lines[place.line]
            elif was_first:
                next(iter(line)).tell()

    def standing(self, line: Path | None) -> int:
        """Return how many have the turn in a line or wait for it."""
        with self._gate:
            return len(self._lines.get(line, ()))

    @contextmanager
    def taken(self, directory: Path) -> Iterator[None]:
        """Wait in this thread for the turn at a branch, and keep it for the length of the block."""
        has_come = threading.Event()
        place = self.stand(directory, has_come.set)
        try:
            if not self.is_first(place):
                has_come.wait()
            yield
        finally:
            self.leave(place)

    @contextmanager
    def ticket(self) -> Iterator[Ticket]:
        """Give a call its place among all that have come, before the loop does anything else, and take it back."""
        ticket = Ticket(self)
        try:
            yield ticket
        finally:
            ticket.leave()


class Ticket:
    """The place of one call, first at the door and then at its branch. No thread waits for it."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._loop = asyncio.get_running_loop()
        self._stand(DOOR)

    async def reached(self) -> None:
        """Wait until the turn has come where the call stands."""
        if not self._turns.is_first(self._place):
            await self._has_come.wait()

    def move(self, directory: Path) -> bool:
        """Go from the door to the line of a branch, in any thread, and tell whether the turn there has come.

        The next call is let in at the door only then: calls stand at a branch in the order in which they came.
        """
        before = self._place
        self._stand(directory)
        self._turns.leave(before)
        return self._turns.is_first(self._place)

    def leave(self) -> None:
        """Give the place back."""
        self._turns.leave(self._place)

    def _stand(self, line: Path | None) -> None:
        has_come = self._has_come = asyncio.Event()
        self._place = self._turns.stand(line, lambda: self._loop.call_soon_threadsafe(has_come.set))
