"""What the operating system tells of changed files, gathered by threads. The only module that knows ``watchfiles``.

A notice is a hint, never a fact: it may come late, twice or not at all. Whoever takes it looks at the file.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from watchfiles import watch

_STEP_MS: Final = 5
"""How often gathered changes are looked at, and so how late a notice is."""

_GROUP_MS: Final = 50
_START_S: Final = 30.0
_POLL_MS: Final = 1000


class NoNotices(Exception):
    """The system does not tell of changes in these folders, for the reason in the message."""


class _Begun:
    """The event that ends a listener; that it is asked for shows that the listener listens."""

    def __init__(self, stop: threading.Event, begun: threading.Event) -> None:
        self._stop = stop
        self._begun = begun

    def is_set(self) -> bool:
        self._begun.set()
        return self._stop.is_set()


class Notices:
    """The paths at which something changed since they were last taken, from any number of folders.

    ``deep`` folders are watched with all that lies below them, of ``flat`` ones the entries alone. With
    ``is_polling`` the folders are looked at every second, where the system tells nothing. A path that is one of these
    folders itself means that it may be another one now. Then, and when it ``is_deaf``, no more will come from there,
    and whoever wants to know begins anew and looks at everything.
    """

    def __init__(self, deep: Sequence[Path], flat: Sequence[Path], *, is_polling: bool = False) -> None:
        self._changed: set[str] = set()
        self._more = threading.Condition()
        self._stop = threading.Event()
        self._failure = ""
        self._is_deaf = False
        self._is_woken = False
        self._is_polling = is_polling
        # The flat ones tell when a deep folder goes or comes, so they have to be there first.
        self._threads = [
            self._listener(paths, is_deep=is_deep) for paths, is_deep in ((flat, False), (deep, True)) if paths
        ]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def is_deaf(self) -> bool:
        """Tell whether a listener has ended although nobody asked it to: what happens there is not told any more."""
        return self._is_deaf

    def take(self, wait_s: float) -> set[str]:
        """Return the paths that were noticed, waiting for one at most so many seconds; none when nothing came.

        Raises: ``NoNotices`` when no more will come.
        """
        with self._more:
            self._more.wait_for(lambda: self._changed or self._failure or self._is_deaf or self._is_woken, wait_s)
            if self._failure and not self._changed:
                raise NoNotices(self._failure)
            taken, self._changed = self._changed, set()
            return taken

    def wake(self) -> None:
        """Let ``take`` return at once from now on; may be called by any thread, and by a handler of signals."""
        with self._more:
            self._is_woken = True
            self._more.notify_all()

    def close(self) -> None:
        """End the listeners."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _listener(self, paths: Sequence[Path], *, is_deep: bool) -> threading.Thread:
        """Start a thread that listens, and return when it does."""
        begun = threading.Event()
        thread = threading.Thread(
            target=self._listen, args=(paths, begun), kwargs={"is_deep": is_deep}, name="kb-watch", daemon=True
        )
        thread.start()
        begun.wait(_START_S)
        return thread

    def _listen(self, paths: Sequence[Path], begun: threading.Event, *, is_deep: bool) -> None:
        try:
            for changes in watch(
                *paths,
                watch_filter=None,
                debounce=_GROUP_MS,
                step=_STEP_MS,
                stop_event=_Begun(self._stop, begun),
                rust_timeout=0,
                raise_interrupt=False,
                force_polling=self._is_polling or None,
                poll_delay_ms=_POLL_MS,
                recursive=is_deep,
                ignore_permission_denied=True,
            ):
                with self._more:
                    self._changed.update(path for _, path in changes)
                    self._more.notify_all()
        except (OSError, RuntimeError, ValueError) as error:
            # Later on it is something at a name that is no UTF-8, or a folder too many: only what was missed is lost.
            if not begun.is_set():
                self._failure = str(error) or type(error).__name__
        finally:
            with self._more:
                self._is_deaf |= not self._stop.is_set()
                self._more.notify_all()
            begun.set()
