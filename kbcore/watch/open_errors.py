"""Errors that keep the watcher from working, reported once for as long as they last."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from kbcore.clock import Clock
from kbcore.errors import InvalidConfig, KBError
from kbcore.watch.events import Resumed, Tell, Waiting

Doing = Literal["syncing", "checking"]


class OpenErrors:
    """The last error of each thing that a watcher does."""

    def __init__(self, clock: Clock, tell: Tell, is_saving_settings: Callable[[], bool]) -> None:
        self._clock = clock
        self._is_saving_settings = is_saving_settings
        self._tell = tell
        self._open: dict[Doing, tuple[Any, ...]] = {}
        """The identity of the error, without its message."""

    def begin(self, doing: Doing, error: KBError) -> None:
        """Note an error, and report it unless that was done, or settings are just being saved."""
        if isinstance(error, InvalidConfig) and self._is_saving_settings():
            return
        places = [(one.path, one.code, one.place) for one in error.details]
        identity = (error.code, places, error.data)
        is_known = identity in self._open.values()
        self._open[doing] = identity
        if not is_known:
            self._tell(Waiting(self._clock.now(), error))

    def end(self, doing: Doing) -> None:
        """Note that this works again; that is reported once no error is open."""
        if self._open.pop(doing, None) and not self._open:
            self._tell(Resumed(self._clock.now()))
