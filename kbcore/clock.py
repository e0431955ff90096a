"""The only place that asks what time it is; passed in wherever time matters.

Times leave this module as RFC 3339 text in UTC with microseconds, which sorts as text in time order.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What KB needs of time. Tests pass clocks that jump."""

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
        """Return the wall-clock time as RFC 3339 text in UTC."""
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def epoch_ns(self) -> int:
        """Return the wall-clock time in nanoseconds since 1970."""
        return time.time_ns()

    def monotonic_s(self) -> float:
        """Return the monotonic clock in seconds."""
        return time.monotonic()

    def sleep(self, wait_s: float) -> None:
        """Block this thread for that many seconds."""
        time.sleep(wait_s)
