"""A progress line for long work, on the last line of a terminal: drawn after a second, cleared at the end.

A thread of its own draws, so that the work only takes note of how far it is. Nothing else is written while it draws.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from kbcli.terminal.cells import shortened
from kbcore.clock import Clock

WAIT_S: Final = 1.0
"""Shorter work gets no line; a pause of that length ends a stretch of work."""
_EVERY_S: Final = 0.1
_CLEAR: Final = "\r\x1b[K"
_BAR_CHARS: Final = 14
_MANY: Final = 100
"""From so many on, it is worth saying how many there are in a second, and how long the rest takes."""
_MINUTE_S: Final = 60
_HOUR_S: Final = 60 * _MINUTE_S


class ProgressStep(NamedTuple):
    """One step of the work: how much is done, of how much, of what, and its duration."""

    done: int
    total: int
    what: str
    took_s: float


def line(step: ProgressStep, width: int) -> str:
    """Return a step as a line of less than so many columns."""
    share = min(1.0, step.done / step.total)
    filled = round(share * _BAR_CHARS)
    drawn = f"[{'=' * filled}{'>' * (filled < _BAR_CHARS)}{'.' * (_BAR_CHARS - filled - 1)}] {share:4.0%}"
    said = f"{drawn}  {step.done:,} of {step.total:,} {step.what}"
    if step.total >= _MANY and step.done and step.took_s >= WAIT_S:
        rate = step.done / step.took_s
        said += f", {rate:,.0f}/s, {_lasting((step.total - step.done) / rate)} left"
    return shortened(said, width - 1)


def _lasting(time_s: float) -> str:
    """Return a duration for people, as ``40 s`` or ``2 min``."""
    if time_s < _MINUTE_S:
        return f"{time_s:.0f} s"
    return f"{time_s / _MINUTE_S:.0f} min" if time_s < _HOUR_S else f"{time_s / _HOUR_S:.1f} h"


class Bar:
    """The line on the terminal. ``is_wanted`` is asked before each drawing: options may come late."""

    def __init__(
        self, write: Callable[[str], None], clock: Clock, width: Callable[[], int], is_wanted: Callable[[], bool]
    ) -> None:
        self._write = write
        self._clock = clock
        self._width = width
        self._is_wanted = is_wanted
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._stopped = threading.Event()
        self._title = ""
        self._latest: tuple[int, int, str] | None = None
        self._since_s = self._step_since_s = self._heard_s = float("-inf")
        self._is_shown = False

    def note(self, done: int, total: int, what: str) -> None:
        """Take note of how far a step has come."""
        with self._lock:
            now_s = self._clock.monotonic_s()
            if not self._title and now_s - self._heard_s > WAIT_S:
                self._since_s = now_s
            if self._latest is None or self._latest[1:] != (total, what):
                self._step_since_s = now_s
            self._latest, self._heard_s = (done, total, what), now_s
            self._begin()

    @contextmanager
    def named(self, what: str) -> Iterator[None]:
        """Call the work inside the block by a name, which is shown as long as nothing is counted."""
        with self._lock:
            before = self._title, self._since_s
            self._title, self._since_s = what, self._clock.monotonic_s()
            self._begin()
        try:
            yield
        finally:
            with self._lock:
                self.clear()
                self._title, self._since_s = before

    def clear(self) -> None:
        """Make room for other text; the work is shown again when it continues."""
        with self._lock:
            self._latest = None
            self._erase()

    def close(self) -> None:
        """Draw no more."""
        self._stopped.set()
        self.clear()
        if self._thread:
            self._thread.join()

    def _begin(self) -> None:
        if self._thread is None and not self._stopped.is_set():
            self._thread = threading.Thread(target=self._draw_on, name="kb-progress", daemon=True)
            self._thread.start()

    def _draw_on(self) -> None:
        while not self._stopped.wait(_EVERY_S):
            with self._lock:
                self.draw()

    def draw(self) -> None:
        """Draw the line as it is now, if there is something to show; else take it away."""
        now_s = self._clock.monotonic_s()
        done, total, what = self._latest or (0, 0, "")
        is_due = not self._stopped.is_set() and now_s - self._since_s >= WAIT_S and self._is_wanted()
        if is_due and done < total:
            self._show(line(ProgressStep(done, total, what, now_s - self._step_since_s), self._width()))
        elif is_due and self._title:
            self._show(shortened(f"{self._title} … {_lasting(now_s - self._since_s)}", self._width() - 1))
        else:
            self._erase()

    def _show(self, text: str) -> None:
        self._write(f"{_CLEAR}{text}")
        self._is_shown = True

    def _erase(self) -> None:
        if self._is_shown:
            self._write(_CLEAR)
            self._is_shown = False
