"""A fair queue of calls: first in, first out for each branch, with one writer and some readers at a time.

Calls that write run in the order of their arrival. A call that only reads waits for no other reader, as far as
``limits.readers_left`` allows, which is also the rule of the pool of views. It waits for earlier writers for a limited
time only: mostly it then finds what they wrote, and a slow writer does not block it. A queue without calls is removed.
The event loop admits the calls that may run because time has passed.
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
"""The time that a call that reads waits for earlier calls that write."""

_monotonic_s: Final = SystemClock().monotonic_s


class QueuedCall(msgspec.Struct, eq=False):
    """A call in the queue of a branch, which is named by the directory of its store."""

    directory: Path
    notify: Callable[[], object]
    reads: bool = False
    waits_for_writers_until_s: float = math.inf
    """Until then a reader waits for earlier writers."""
    is_admitted: bool = False
    since_s: float = 0.0
    """The time at which it was admitted."""


class FairLock:
    """A lock of the tasks of one event loop: first in, first out. It is given back in any thread.

    The loop is woken only where another task waits for it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_taken = False
        self._waiting: dict[asyncio.Future[None], None] = {}

    def locked(self) -> bool:
        """Return whether a task has it."""
        return self._is_taken

    async def acquire(self) -> None:
        """Wait for the lock; does not let other tasks run where none has it."""
        with self._lock:
            if not self._is_taken:
                self._is_taken = True
                return
            place = asyncio.get_running_loop().create_future()
            self._waiting[place] = None
        try:
            await place
        except asyncio.CancelledError:
            with self._lock:
                has_it = place not in self._waiting
                self._waiting.pop(place, None)
            if has_it:  # it came meanwhile
                self.release()
            raise

    def release(self) -> None:
        """Give the lock to the next task that waits."""
        with self._lock:
            place = next(iter(self._waiting), None)
            if place is None:
                self._is_taken = False
                return
            del self._waiting[place]
        place.get_loop().call_soon_threadsafe(_settle, place)


def _settle(place: asyncio.Future[None]) -> None:
    if not place.done():
        place.set_result(None)


class CallQueue:
    """The queues of one process."""

    def __init__(self, now_s: Callable[[], float] = _monotonic_s) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._queues: dict[Path, dict[QueuedCall, None]] = {}
        """The calls in each, in the order of arrival."""
        self._due_s: dict[Path, float] = {}
        """The time at which the loop checks a queue again: a call may be admitted then although none has left."""
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop of the calls; without one, waiting calls are admitted only when one leaves."""
        self.arrivals = FairLock()
        """Held by the first of the calls that have arrived and are not in the queue of a branch yet."""

    def enqueue(self, directory: Path, notify: Callable[[], object], *, reads: bool = False) -> QueuedCall:
        """Add a call at the end of a queue, to read only or to read and write.

        ``notify`` is called when the call is admitted, by the thread of the call that left, and must not block. It is
        not called when the call is admitted at once (see ``is_admitted``).
        """
        place = QueuedCall(directory, notify, reads, self._now_s() + AFTER_WRITES_S)
        with self._lock:
            self._queues.setdefault(directory, {})[place] = None
            self._admit(directory, but_notify_not=place)
        return place

    def is_admitted(self, place: QueuedCall) -> bool:
        """Return whether a call that has not left is admitted."""
        with self._lock:
            return place.is_admitted

    def admit_due(self, directory: Path) -> None:
        """Admit the calls that may run because time has passed."""
        with self._lock:
            self._due_s.pop(directory, None)
            if directory in self._queues:
                self._admit(directory)

    def leave(self, place: QueuedCall) -> None:
        """Remove a call from its queue, admitted or not; does nothing when it was removed already."""
        with self._lock:
            calls = self._queues.get(place.directory, {})
            if place not in calls:
                return
            del calls[place]
            if calls:
                self._admit(place.directory)
            else:
                del self._queues[place.directory]
                self._due_s.pop(place.directory, None)

    def _admit(self, directory: Path, but_notify_not: QueuedCall | None = None) -> None:
        """Admit every call that may run now."""
        calls = self._queues[directory]
        now_s = self._now_s()
        since_s = [place.since_s for place in calls if place.reads and place.is_admitted]
        due_s = math.inf
        is_written = False
        for place in calls:
            if not place.is_admitted and place.reads:
                waits_for_writers = is_written and place.waits_for_writers_until_s > now_s
                place.is_admitted = not waits_for_writers and readers_left(since_s, now_s) > 0
                if waits_for_writers:
                    due_s = min(due_s, place.waits_for_writers_until_s)
                elif place.is_admitted:
                    since_s.append(now_s)
                elif len(since_s) < MAX_VIEWS:
                    due_s = min(due_s, *(one_s + SLOW_READ_S for one_s in since_s if one_s > now_s - SLOW_READ_S))
            elif not place.is_admitted:
                place.is_admitted = not is_written
            else:
                is_written |= not place.reads
                continue
            is_written |= not place.reads
            if place.is_admitted:
                place.since_s = now_s
                if place is not but_notify_not:
                    place.notify()
        self._note_due(directory, due_s)

    def _note_due(self, directory: Path, due_s: float) -> None:
        """Have the loop check a queue at this time; infinity where only a call that leaves changes it."""
        if self._loop is None or due_s >= self._due_s.get(directory, math.inf):
            return
        self._due_s[directory] = due_s
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._admit_at, directory, due_s)

    def _admit_at(self, directory: Path, due_s: float) -> None:
        asyncio.get_running_loop().call_later(due_s - self._now_s(), self.admit_due, directory)

    def length(self, directory: Path) -> int:
        """Return the number of calls in a queue, admitted and waiting ones."""
        with self._lock:
            return len(self._queues.get(directory, ()))

    @contextmanager
    def taken(self, directory: Path, *, reads: bool = False) -> Iterator[None]:
        """Wait in this thread until the call is admitted, and leave the queue at the end of the block."""
        admitted = threading.Event()
        place = self.enqueue(directory, admitted.set, reads=reads)
        try:
            if not self.is_admitted(place):
                admitted.wait()
            yield
        finally:
            self.leave(place)

    @asynccontextmanager
    async def arrival(self) -> AsyncIterator[Ticket]:
        """Yield the ticket of a call when all earlier calls are in the queue of a branch; take it back at the end.

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
    """The position of one call: first among the calls that have arrived, then in the queue of its branch.

    No thread waits for it.
    """

    def __init__(self, queue: CallQueue, loop: asyncio.AbstractEventLoop) -> None:
        self._queue = queue
        self._loop = loop
        self._admitted = asyncio.Event()
        self._place: QueuedCall | None = None
        self._holds_arrivals = True

    def move(self, directory: Path, *, reads: bool = False) -> bool:
        """Enter the queue of a branch, in any thread, and return whether the call is admitted.

        The next call is handled only then: calls are in the queue of a branch in the order of their arrival.
        """
        notify = self._admitted.set
        place = self._queue.enqueue(directory, lambda: self._loop.call_soon_threadsafe(notify), reads=reads)
        self._place = place
        self._release_arrivals()
        return self._queue.is_admitted(place)

    async def reached(self) -> None:
        """Wait until the call is admitted at the branch."""
        if self._place and not self._queue.is_admitted(self._place):
            await self._admitted.wait()

    def leave(self) -> None:
        """Leave the queue."""
        self._release_arrivals()
        if self._place:
            self._queue.leave(self._place)

    def _release_arrivals(self) -> None:
        if self._holds_arrivals:
            self._holds_arrivals = False
            self._queue.arrivals.release()
