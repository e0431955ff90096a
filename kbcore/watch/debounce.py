"""Changes that are still to be looked at, and the time when each is due. Pure: time is passed in.

Nothing that was noticed is forgotten before it was synced. A burst is looked at when it is over, many changes at once
are a reason to look at everything, and a file that is gone or empty is believed only after a moment: most are being
saved. Settings that are gone or empty keep everything waiting for that moment: without them files mean something else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

QUIET_S: Final = 0.01
"""The pause after which a burst is over."""

LONGEST_S: Final = 0.25
"""A burst that does not end is looked at all the same."""

DOUBT_S: Final = 0.15
"""The time a file may be gone or empty while it is saved."""

FLOOD: Final = 500
"""From so many paths on, everything is looked at: that costs less, and finds what was not reported."""

FLOOD_QUIET_S: Final = 0.1
FLOOD_LONGEST_S: Final = 2.0

STREAM_S: Final = 0.2
"""A burst that comes so soon after the last was done is part of a stream, and waited for twice as long as that one."""

_WIDEST: Final = 16
"""Up to so many times as long as usual."""
STREAM_LONGEST_S: Final = 2.0


class PendingWork(msgspec.Struct, frozen=True):
    """The task of a look: these paths, or everything when ``paths`` is None. ``since_s`` is when the first was noticed.

    Of paths that are gone or empty only those that are ``believed`` have been so for long enough. What is in
    ``doubt`` may be looked at as well, and stays to be looked at later.
    """

    paths: tuple[str, ...] | None
    since_s: float
    believed: tuple[str, ...] = ()
    doubt: tuple[str, ...] = ()


class Debouncer:
    """The paths that were noticed, each with the time of its first notice. Times are of one monotonic clock."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}
        self._doubted: dict[str, float] = {}
        """The time a path was first seen gone or empty; it may have been noticed earlier for other reasons."""
        self._held: dict[str, float] = {}
        """The time when a look at a path found it gone or empty; only a notice makes it due earlier."""
        self._settings: set[str] = set()
        self._whole_since: float | None = None
        self._last_s = 0.0
        self._is_done = False
        """Nothing was noticed since something was taken out."""
        self._idle_s: float | None = None
        """Since when there is nothing to do."""
        self._width = 1
        """The factor on the usual time until a burst ends."""
        self._not_before_s = 0.0

    def add(self, paths: Iterable[str], now_s: float, *, are_settings: bool = False) -> None:
        """Note paths that may have changed; for ``are_settings`` everything is looked at."""
        for path in paths:
            self._note_stream(now_s)
            self._since.setdefault(path, now_s)
            self._held.pop(path, None)
            self._last_s = now_s
            if are_settings:
                self._settings.add(path)

    def hold(self, paths: Iterable[str], since_s: float, now_s: float) -> None:
        """Take paths back that were looked at and are gone or empty, until that may be believed."""
        for path in paths:
            if path not in self._since:
                self._since[path] = since_s
                self._held[path] = now_s

    def add_all(self, now_s: float) -> None:
        """Note that anything may have changed."""
        if self._whole_since is None:
            self._whole_since = now_s

    def put_back(self, work: PendingWork, now_s: float, pause_s: float) -> None:
        """Take work back that could not be done, to be tried again after a pause.

        What was to look at no file of its own, but at what waits for others, is done by a look at everything.
        """
        if not work.paths:
            self._whole_since = min(work.since_s, now_s if self._whole_since is None else self._whole_since)
        for path in work.paths or ():
            self._since[path] = min(work.since_s, self._since.get(path, work.since_s))
        self._not_before_s = now_s + pause_s

    @property
    def has_settings(self) -> bool:
        """Return whether settings are still to be looked at, and may be in the middle of being saved."""
        return bool(self._settings)

    def end_pause(self) -> None:
        """End a pause: its reason may be gone."""
        self._not_before_s = 0.0

    def is_settling(self, now_s: float) -> bool:
        """Return whether something was noticed that is looked at as soon as its burst is over."""
        if now_s < self._not_before_s:
            return False
        return self._whole_since is not None or (bool(self._since) and now_s - self._last_s < self._quiet_s())

    def wait_s(self, now_s: float) -> float | None:
        """Return how long to wait for more notices before something may be due; None: there is nothing to do."""
        if not self._since and self._whole_since is None:
            self._idle_s = now_s if self._idle_s is None else self._idle_s
            return None
        if self._not_before_s > now_s:
            return self._not_before_s - now_s
        left = self._last_s + self._quiet_s() - now_s
        # What is left when a burst is over are files in doubt.
        return left if left > 0 else QUIET_S

    def due(self, now_s: float, is_doubtful: Callable[[str], bool]) -> PendingWork | None:
        """Take out what is due now. ``is_doubtful`` returns whether a path is gone or empty."""
        if now_s < self._not_before_s or (not self._since and self._whole_since is None):
            return None
        first_s = min(self._since.values(), default=now_s)
        if self._since and now_s - self._last_s < self._quiet_s() and now_s - first_s < self._longest_s():
            return None
        is_flood = len(self._since) >= FLOOD
        ready, believed = self._ready(now_s, is_doubtful, is_flood=is_flood)
        if not self._settings <= ready:
            return None
        if is_flood or self._whole_since is not None or self._settings:
            since_s = first_s if self._whole_since is None else min(first_s, self._whole_since)
            # What is being saved now would look deleted.
            if len(ready) < len(self._since) and now_s - since_s < FLOOD_LONGEST_S:
                return None
            self._whole_since = None
            self._take_out(list(self._since))
            return PendingWork(None, since_s, believed)
        since_s = min((self._since[path] for path in ready), default=now_s)
        self._take_out(ready)
        return PendingWork(tuple(sorted(ready)), since_s, believed, tuple(sorted(self._since))) if ready else None

    def _note_stream(self, now_s: float) -> None:
        """See at the first notice of a burst whether it follows the last one closely."""
        if self._is_done:
            is_stream = self._idle_s is None or now_s - self._idle_s < STREAM_S
            self._width = min(2 * self._width, _WIDEST) if is_stream else 1
        self._is_done, self._idle_s = False, None

    def _take_out(self, paths: Iterable[str]) -> None:
        self._is_done = True
        for path in paths:
            del self._since[path]
            self._doubted.pop(path, None)
            self._held.pop(path, None)
            self._settings.discard(path)

    def _ready(
        self, now_s: float, is_doubtful: Callable[[str], bool], *, is_flood: bool
    ) -> tuple[set[str], tuple[str, ...]]:
        """Return the paths that need not be doubted, and those of them that were gone or empty for long enough."""
        ready, believed = set(), []
        for path in self._since:
            doubted_s = self._held.get(path)
            if doubted_s is None and (not is_flood or path in self._settings) and is_doubtful(path):
                doubted_s = self._doubted.setdefault(path, now_s)
            if doubted_s is None:
                ready.add(path)
            elif now_s - doubted_s >= DOUBT_S:
                ready.add(path)
                believed.append(path)
        return ready, tuple(sorted(believed))

    def _quiet_s(self) -> float:
        usual_s = FLOOD_QUIET_S if len(self._since) >= FLOOD else QUIET_S
        return max(usual_s, self._width * QUIET_S)

    def _longest_s(self) -> float:
        usual_s = FLOOD_LONGEST_S if len(self._since) >= FLOOD else LONGEST_S
        return max(usual_s, min(self._width * LONGEST_S, STREAM_LONGEST_S))
