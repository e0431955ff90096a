"""Errors that keep the watcher from working, reported once for as long as they last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from kbcore.clock import Clock
from kbcore.errors import InvalidConfig, KBError
from kbcore.watch.events import Resumed, Tell, Waiting

Doing = Literal["syncing", "checking"]


class Troubles:
    """The last trouble with each thing that a watcher does."""

    def __init__(self, clock: Clock, tell: Tell, is_saving_settings: Callable[[], bool]) -> None:
        self._clock = clock
        self._is_saving_settings = is_saving_settings
        self._tell = tell
        self._standing: dict[Doing, tuple[Any, ...]] = {}
        """The identity of the error, without its message."""

    def begin(self, doing: Doing, error: KBError) -> None:
        """Note what stands in the way, and tell of it unless that was done, or settings are just being saved."""
        if isinstance(error, InvalidConfig) and self._is_saving_settings():
            return
        places = [(one.path, one.code, one.place) for one in error.details]
        trouble = (error.code, places, error.data)
        is_known = trouble in self._standing.values()
        self._standing[doing] = trouble
        if not is_known:
            self._tell(Waiting(self._clock.now(), error))

    def end(self, doing: Doing) -> None:
        """Note that nothing stands in the way of this any more; that is reported once nothing stands in any way."""
        if self._standing.pop(doing, None) and not self._standing:
            self._tell(Resumed(self._clock.now()))
