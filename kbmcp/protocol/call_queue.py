"""Whose turn it is: of all calls that come, whoever came first; at each branch one that writes and some that read.

Calls that write go in the order in which they came. A call that only reads waits for no other that reads, as far as
``limits.readers_left`` allows, which is also the rule of the pool of views. It waits only for a moment for those that
came before it and write: mostly it then finds what they wrote, and a slow one does not keep it waiting. A line without
calls is forgotten. The event loop lets in those who may come in because time has passed.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from kbcore.clock import SystemClock
from kbcore.limits import MAX_VIEWS, SLOW_READ_S, readers_left

AFTER_WRITES_S: Final = 1.0
"""So long a call that reads waits for those that came before it and write."""

_monotonic_s: Final = SystemClock().monotonic_s


class QueuedCall(msgspec.Struct, eq=False):
    """A place in the line of a branch, by the directory of its store."""

    line: Path
    tell: Callable[[], object]
    reads: bool = False
    patient_until_s: float = math.inf
    """Until then a reader waits for the writers before it."""
    has_turn: bool = False
    since_s: float = 0.0
    """When it got the turn."""


class CallQueue:
    """The lines of one process."""

    def __init__(self, now_s: Callable[[], float] = _monotonic_s) -> None:
        self._now_s = now_s
        self._gate = threading.Lock()
        self._lines: dict[Path, dict[QueuedCall, None]] = {}
        """The calls in each, the first one first."""
        self._due_s: dict[Path, float] = {}
        """When the loop looks at a line again, in which somebody may come in then though nobody leaves."""
        self._loop: asyncio.AbstractEventLoop | None = None
        """That of the calls; without one, those who wait come in when somebody leaves."""
        self.arrivals = asyncio.Lock()
        """Held by the first of the calls that have come and are not in the line of a branch yet."""

    def enqueue(self, line: Path, tell: Callable[[], object], *, reads: bool = False) -> QueuedCall:
        """Come last in a line, to read only or for whatever there is to do.

        ``tell`` is called when the turn has come, by the thread of whoever left, and must not wait; it is not called
        when it comes at once (see ``has_come``).
        """
        place = QueuedCall(line, tell, reads, self._now_s() + AFTER_WRITES_S)
        with self._gate:
            self._lines.setdefault(line, {})[place] = None
            self._give_turns(line, but_tell_not=place)
        return place

    def has_come(self, place: QueuedCall) -> bool:
        """Tell whether the turn of a place that was not left has come."""
        with self._gate:
            return place.has_turn

    def look(self, line: Path) -> None:
        """Let in who may come in because time has passed."""
        with self._gate:
            self._due_s.pop(line, None)
            if line in self._lines:
                self._give_turns(line)

    def leave(self, place: QueuedCall) -> None:
        """Leave a line, whether or not the turn has come; does nothing when it was left already."""
        with self._gate:
            line = self._lines.get(place.line, {})
            if place not in line:
                return
            del line[place]
            if line:
                self._give_turns(place.line)
            else:
                del self._lines[place.line]
                self._due_s.pop(place.line, None)

    def _give_turns(self, name: Path, but_tell_not: QueuedCall | None = None) -> None:
        """Let in whoever may come in now."""
        line = self._lines[name]
        now_s = self._now_s()
        since_s = [place.since_s for place in line if place.reads and place.has_turn]
        due_s = math.inf
        is_written = False
        for place in line:
            if not place.has_turn and place.reads:
                is_patient = is_written and place.patient_until_s > now_s
                place.has_turn = not is_patient and readers_left(since_s, now_s) > 0
                if is_patient:
                    due_s = min(due_s, place.patient_until_s)
                elif place.has_turn:
                    since_s.append(now_s)
                elif len(since_s) < MAX_VIEWS:
                    due_s = min(due_s, *(one_s + SLOW_READ_S for one_s in since_s if one_s > now_s - SLOW_READ_S))
            elif not place.has_turn:
                place.has_turn = not is_written
            else:
                is_written |= not place.reads
                continue
            is_written |= not place.reads
            if place.has_turn:
                place.since_s = now_s
                if place is not but_tell_not:
                    place.tell()
        self._note_due(name, due_s)

    def _note_due(self, name: Path, due_s: float) -> None:
        """Have the loop look at a line at this time; infinity where only leaving changes anything."""
        if self._loop is None or due_s >= self._due_s.get(name, math.inf):
            return
        self._due_s[name] = due_s
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._look_at, name, due_s)

    def _look_at(self, name: Path, due_s: float) -> None:
        asyncio.get_running_loop().call_later(due_s - self._now_s(), self.look, name)

    def standing(self, line: Path) -> int:
        """Return how many have the turn in a line or wait for it."""
        with self._gate:
            return len(self._lines.get(line, ()))

    @contextmanager
    def taken(self, directory: Path, *, reads: bool = False) -> Iterator[None]:
        """Wait in this thread for the turn at a branch, and keep it for the length of the block."""
        has_come = threading.Event()
        place = self.enqueue(directory, has_come.set, reads=reads)
        try:
            if not self.has_come(place):
                has_come.wait()
            yield
        finally:
            self.leave(place)

    @asynccontextmanager
    async def arrival(self) -> AsyncIterator[Ticket]:
        """Give a call its place when all that came before it are in the line of a branch; take it back at the end.

        It is the last of them before the loop does anything else.
        """
        self._loop = asyncio.get_running_loop()
        await self.arrivals.acquire()
        ticket = Ticket(self, self._loop)
        try:
            yield ticket
        finally:
            ticket.leave()


class Ticket:
    """The place of one call: the first of those that have come, and then in the line of its branch.

    No thread waits for it.
    """

    def __init__(self, queue: CallQueue, loop: asyncio.AbstractEventLoop) -> None:
        self._queue = queue
        self._loop = loop
        self._has_come = asyncio.Event()
        self._place: QueuedCall | None = None
        self._holds_arrivals = True

    def move(self, directory: Path, *, reads: bool = False) -> bool:
        """Enter the line of a branch, in any thread, and tell whether the turn there has come.

        The next call is looked at only then: calls are in the line of a branch in the order in which they came.
        """
        tell = self._has_come.set
        place = self._queue.enqueue(directory, lambda: self._loop.call_soon_threadsafe(tell), reads=reads)
        self._place = place
        self._loop.call_soon_threadsafe(self._release_arrivals)
        return self._queue.has_come(place)

    async def reached(self) -> None:
        """Wait until the turn at the branch has come."""
        if self._place and not self._queue.has_come(self._place):
            await self._has_come.wait()

    def leave(self) -> None:
        """Give the place back."""
        self._release_arrivals()
        if self._place:
            self._queue.leave(self._place)

    def _release_arrivals(self) -> None:
        if self._holds_arrivals:
            self._holds_arrivals = False
            self._queue.arrivals.release()
