"""What may have changed and is still to be looked at, and when its time has come. Pure: time is passed in.

Nothing that was noticed is forgotten before it was taken in. A burst is looked at when it is over, many changes at once
are a reason to look at everything, and a file that is gone or empty is believed only after a moment: most are being
saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

QUIET_S: Final = 0.01
"""How long nothing must come before a burst counts as over."""

LONGEST_S: Final = 0.25
"""A burst that does not end is looked at all the same."""

DOUBT_S: Final = 0.15
"""How long a file may be gone or empty while it is being saved."""

FLOOD: Final = 500
"""From so many paths on, everything is looked at: that costs less, and finds what was not told."""

FLOOD_QUIET_S: Final = 0.1
FLOOD_LONGEST_S: Final = 2.0


class Work(msgspec.Struct, frozen=True):
    """What to look at: these paths, or everything when ``paths`` is None. ``since_s`` is when the first was noticed."""

    paths: tuple[str, ...] | None
    since_s: float


class Backlog:
    """The paths that were noticed, each with the time of its first notice. Times are of one monotonic clock."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._doubted: dict[str, float] = {}
        """When a path was first seen gone or empty; before that it may have been noticed for other reasons."""
        self._whole_since: float | None = None
        self._last_s = 0.0
        self._not_before_s = 0.0

    def add(self, paths: Iterable[str], now_s: float) -> None:
        """Note paths that may have changed."""
        for path in paths:
            self._since.setdefault(path, now_s)
            self._last_s = now_s

    def add_all(self, now_s: float) -> None:
        """Note that anything may have changed."""
        if self._whole_since is None:
            self._whole_since = now_s

    def put_back(self, work: Work, now_s: float, pause_s: float) -> None:
        """Take work back that could not be done, to be tried again after a pause.

        What was to look at no file of its own, but at what waits for others, is done by a look at everything.
        """
        if not work.paths:
            self._whole_since = min(work.since_s, now_s if self._whole_since is None else self._whole_since)
        for path in work.paths or ():
            self._since[path] = min(work.since_s, self._since.get(path, work.since_s))
        self._not_before_s = now_s + pause_s

    def hurry(self) -> None:
        """End a pause: what stood in the way may be gone."""
        self._not_before_s = 0.0

    def wait_s(self, now_s: float) -> float | None:
        """Return how long to wait for more notices before something may be due; None: there is nothing to do."""
        if not self._since and self._whole_since is None:
            return None
        if self._not_before_s > now_s:
            return self._not_before_s - now_s
        left = self._last_s + self._quiet_s() - now_s
        # What is left when a burst is over are files in doubt.
        return left if left > 0 else QUIET_S

    def due(self, now_s: float, is_doubtful: Callable[[str], bool]) -> Work | None:
        """Take out what is due now. ``is_doubtful`` tells of a path that it is gone, or holds nothing."""
        if now_s < self._not_before_s or (not self._since and self._whole_since is None):
            return None
        first_s = min(self._since.values(), default=now_s)
        if self._since and now_s - self._last_s < self._quiet_s() and now_s - first_s < self._longest_s():
            return None
        is_flood = len(self._since) >= FLOOD
        ready = [path for path in self._since if is_flood or self._is_believed(path, now_s, is_doubtful)]
        if is_flood or self._whole_since is not None:
            since_s = first_s if self._whole_since is None else min(first_s, self._whole_since)
            # What is being saved now would be taken for gone.
            if len(ready) < len(self._since) and now_s - since_s < FLOOD_LONGEST_S:
                return None
            self._whole_since = None
            self._take_out(list(self._since))
            return Work(None, since_s)
        since_s = min((self._since[path] for path in ready), default=now_s)
        self._take_out(ready)
        return Work(tuple(sorted(ready)), since_s) if ready else None

    def _take_out(self, paths: Iterable[str]) -> None:
        for path in paths:
            del self._since[path]
            self._doubted.pop(path, None)

    def _is_believed(self, path: str, now_s: float, is_doubtful: Callable[[str], bool]) -> bool:
        """Tell whether a path is what it looks like: there, or gone for so long that it is not being saved."""
        if not is_doubtful(path):
            return True
        return now_s - self._doubted.setdefault(path, now_s) >= DOUBT_S

    def _quiet_s(self) -> float:
        return FLOOD_QUIET_S if len(self._since) >= FLOOD else QUIET_S

    def _longest_s(self) -> float:
        return FLOOD_LONGEST_S if len(self._since) >= FLOOD else LONGEST_S
