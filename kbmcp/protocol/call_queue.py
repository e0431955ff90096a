"""Whose turn it is: of all calls that come, whoever came first; at each branch one that writes and some that read.

Calls that write go in the order in which they came. A call that only reads waits for no other that reads, up to
``MAX_READERS`` of them, where those that have read for long are not counted, and ``MAX_VIEWS`` in all. It waits only
for a moment for those that came before it and write: mostly it then finds what they wrote, and a slow one does not keep
it waiting. A line in which nobody stands is forgotten. One thread lets in those who may come in because time has
passed; it ends when nobody waits for that.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from kbcore.clock import SystemClock
from kbcore.limits import MAX_READERS, MAX_VIEWS, SLOW_READ_S

ARRIVALS: Final = None
"""The line of the calls that have come, of which nobody knows yet what branch they concern."""
AFTER_WRITES_S: Final = 1.0
"""So long a call that reads waits for those that came before it and write."""

_monotonic_s: Final = SystemClock().monotonic_s


class QueuedCall(msgspec.Struct, eq=False):
    """A place in the line of a branch, by the directory of its store, or at the door."""

    line: Path | None
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
        self._gate = threading.Condition(threading.Lock())
        self._lines: dict[Path | None, dict[QueuedCall, None]] = {}
        """Who stands in each, the first one first."""
        self._due_s: dict[Path | None, float] = {}
        """When somebody may come in who cannot yet, though nobody leaves: of the lines in which somebody waits so."""
        self._wakes_s = math.inf
        self._timer: threading.Thread | None = None

    def enqueue(self, line: Path | None, tell: Callable[[], object], *, reads: bool = False) -> QueuedCall:
        """Stand last in a line, to read only or for whatever there is to do.

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

    def look(self, line: Path | None) -> None:
        """Let in who may come in because time has passed, as the timer does."""
        with self._gate:
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

    def _give_turns(self, name: Path | None, but_tell_not: QueuedCall | None = None) -> None:
        """Let in whoever may come in now."""
        line = self._lines[name]
        now_s = self._now_s()
        readers = [place.since_s for place in line if place.reads and place.has_turn]
        slow_s = [since_s + SLOW_READ_S for since_s in readers if since_s + SLOW_READ_S > now_s]
        left = min(MAX_READERS - len(slow_s), MAX_VIEWS - len(readers))
        views_left = MAX_VIEWS - len(readers)
        due_s = math.inf
        is_written = False
        for place in line:
            if not place.has_turn and place.reads:
                is_patient = is_written and place.patient_until_s > now_s
                place.has_turn = left > 0 and not is_patient
                left -= place.has_turn
                views_left -= place.has_turn
                slow_s += [now_s + SLOW_READ_S] if place.has_turn else []
                if is_patient:
                    due_s = min(due_s, place.patient_until_s)
                elif not place.has_turn and views_left > 0:
                    due_s = min(due_s, *slow_s)
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

    def _note_due(self, name: Path | None, due_s: float) -> None:
        """Have the timer give the turns in a line again at this time; infinity where only leaving changes anything."""
        if due_s == math.inf:
            self._due_s.pop(name, None)
            return
        self._due_s[name] = due_s
        if self._timer is None or not self._timer.is_alive():
            self._start_timer()
        elif due_s < self._wakes_s:
            self._gate.notify()

    def _start_timer(self) -> None:
        timer = threading.Thread(target=self._give_due_turns, name="kb-mcp turns", daemon=True)
        self._wakes_s = -math.inf
        # Without a thread, those who wait come in when somebody leaves.
        with suppress(RuntimeError, MemoryError):
            timer.start()
            self._timer = timer

    def _give_due_turns(self) -> None:
        with self._gate:
            while self._due_s:
                now_s = self._now_s()
                for name in [name for name, due_s in self._due_s.items() if due_s <= now_s]:
                    self._give_turns(name)
                self._wakes_s = min(self._due_s.values(), default=math.inf)
                if self._due_s:
                    self._gate.wait(max(0.0, self._wakes_s - now_s))
            self._timer = None

    def standing(self, line: Path | None) -> int:
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

    def __init__(self, turns: CallQueue) -> None:
        self._turns = turns
        self._loop = asyncio.get_running_loop()
        self._stand(ARRIVALS)

    async def reached(self) -> None:
        """Wait until the turn has come where the call stands."""
        if not self._turns.has_come(self._place):
            await self._has_come.wait()

    def move(self, directory: Path, *, reads: bool = False) -> bool:
        """Go from the door to the line of a branch, in any thread, and tell whether the turn there has come.

        The next call is let in at the door only then: calls stand at a branch in the order in which they came.
        """
        before = self._place
        self._stand(directory, reads=reads)
        self._turns.leave(before)
        return self._turns.has_come(self._place)

    def leave(self) -> None:
        """Give the place back."""
        self._turns.leave(self._place)

    def _stand(self, line: Path | None, *, reads: bool = False) -> None:
        has_come = self._has_come = asyncio.Event()
        self._place = self._turns.enqueue(line, lambda: self._loop.call_soon_threadsafe(has_come.set), reads=reads)
