"""Clocks for tests: one whose waiting takes no time and lets something happen meanwhile, and others that are set."""

from __future__ import annotations

from collections.abc import Callable

from kbcore.clock import SystemClock


class PatientClock(SystemClock):
    """The machine's clock, ``ahead_s`` seconds ahead. ``sleep`` only counts, and calls ``during`` each time."""

    def __init__(self, *, ahead_s: float = 0.0, during: Callable[[], None] | None = None) -> None:
        self.ahead_s = ahead_s
        self.during = during
        self.waits_s: list[float] = []

    def epoch_ns(self) -> int:
        return super().epoch_ns() + int((self.ahead_s + sum(self.waits_s)) * 1e9)

    def monotonic_s(self) -> float:
        return super().monotonic_s() + sum(self.waits_s)

    def sleep(self, wait_s: float) -> None:
        self.waits_s.append(wait_s)
        if self.during:
            self.during()


class StillClock(SystemClock):
    """The machine's clock, but for what it says of the time of day: two who do the same stamp the same."""

    def now(self) -> str:
        return "2026-11-20T09:30:00.000000Z"


class SetClock(SystemClock):
    """The machine's clock, but for the time of day, which is set by hand."""

    def __init__(self) -> None:
        self.time = "2026-11-20T09:30:00.000000Z"

    def now(self) -> str:
        return self.time


class StoppedClock(SystemClock):
    """A clock whose seconds from an arbitrary start are set by hand."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s
