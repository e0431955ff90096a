"""Pauses of a watcher before it tries again, and before it looks at everything once more. Pure."""

from __future__ import annotations

from typing import Final

RETRY_S: Final = 0.2
LONGEST_RETRY_S: Final = 5.0

QUIET_SCAN_S: Final = 60.0
"""The time after the last change when everything is looked at once more, in case a notice was missing."""

LONGEST_QUIET_SCAN_S: Final = 600.0
"""While such looks find nothing, the time between them doubles up to this one."""


class Retry:
    """The pauses between tries of one thing, each twice as long as the last."""

    def __init__(self) -> None:
        self.next_s = RETRY_S
        """The length of the next pause, in seconds."""

    @property
    def is_pending(self) -> bool:
        """Return whether something is still to be tried again."""
        return self.next_s > RETRY_S

    def take_s(self) -> float:
        """Return how long to wait now."""
        pause_s, self.next_s = self.next_s, min(2 * self.next_s, LONGEST_RETRY_S)
        return pause_s

    def end(self) -> None:
        """Begin with short pauses again: it was done."""
        self.next_s = RETRY_S


class QuietLook:
    """The time to look at everything although nothing was reported: the later the longer such looks find nothing."""

    def __init__(self) -> None:
        self.at_s: float | None = None
        self._quiet_s = QUIET_SCAN_S

    def plan(self, now_s: float, *, is_in_vain: bool) -> None:
        """Plan the next one; ``is_in_vain``: everything was looked at just now, and nothing found."""
        self._quiet_s = min(2 * self._quiet_s, LONGEST_QUIET_SCAN_S) if is_in_vain else QUIET_SCAN_S
        self.at_s = now_s + self._quiet_s

    def is_due(self, now_s: float) -> bool:
        """Return whether it is time; that is reported once."""
        if self.at_s is None or now_s < self.at_s:
            return False
        self.at_s = None
        return True
