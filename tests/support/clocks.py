"""Clocks for tests: one whose waiting takes no time, and during which something may happen."""

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
