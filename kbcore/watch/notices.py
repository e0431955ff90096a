"""Change notifications of the operating system, gathered by threads. The only module that imports ``watchfiles``.

On Linux a listener of our own waits without any wake-up; the library looks every few milliseconds whether there is
something. Elsewhere the library is used, with longer pauses.

A notice is a hint, never a fact: it may come late, twice or not at all. Whoever takes it looks at the file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from watchfiles import watch

from kbcore.watch import inotify
from kbcore.watch.inotify_coverage import folders_below, new_folders, readable
from kbcore.watch.polling import poll

_STEP_MS: Final = 120
"""The interval of the library's looks at gathered changes: the delay of a notice. There are two listeners."""

_GROUP_MS: Final = 50
_START_S: Final = 30.0

_REFUSED: Final = (OSError, RuntimeError, ValueError)


class NoNotices(Exception):
    """No notifications are available for these folders, for the reason in the message."""


class _Begun:
    """The event that ends a listener; that it is asked for shows that the listener listens.

    Then it is seen whether that is what it should listen to: ``is_late`` tells that something has come meanwhile.
    """

    def __init__(self, stop: threading.Event, begun: threading.Event, is_late: Callable[[], bool]) -> None:
        self._stop = stop
        self._begun = begun
        self._look = is_late
        self._is_late = False

    def is_set(self) -> bool:
        if not self._begun.is_set():
            self._is_late = self._look()
            self._begun.set()
        return self._is_late or self._stop.is_set()


class NotedPaths:
    """The paths at which something changed since they were last taken, from any number of folders.

    ``deep`` folders are watched with everything below them, of ``flat`` ones the entries alone. With
    ``is_polling`` the folders are looked at every second, where the system tells nothing. A path that is one of these
    folders itself means that it may be another one now. Then, and when it ``has_ended``, no more will come from there,
    and the caller begins again and looks at everything.
    """

    def __init__(self, deep: Sequence[Path], flat: Sequence[Path], *, is_polling: bool = False) -> None:
        self._changed: set[str] = set()
        self._more = threading.Condition()
        self._stop = threading.Event()
        self._stop_fd, self._stopping_fd = os.pipe()
        self._failure = ""
        self._is_deaf = False
        self._is_woken = False
        self._is_polling = is_polling
        self._given_up: set[threading.Event] = set()
        """Of listeners that had not begun in time: they end instead of beginning."""
        self._threads: list[threading.Thread] = []
        # The flat ones tell when a deep folder goes or comes, or may be read, so they have to be there first.
        for paths, is_deep in ((readable(flat), False), (readable(deep), True)):
            if paths:
                self._begin(paths, is_deep=is_deep)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    @property
    def has_ended(self) -> bool:
        """Return whether a listener has ended unasked: it reports no changes any more."""
        return self._is_deaf

    @property
    def refusal(self) -> str:
        """The reason why notifications are not available; "" where they are."""
        return self._failure

    def take(self, wait_s: float) -> set[str]:
        """Return the paths that were noticed, waiting for one at most so many seconds; none when nothing came.

        Raises: ``NoNotices`` when no more will come.
        """
        with self._more:
            self._more.wait_for(lambda: self._changed or self.refusal or self._is_deaf or self._is_woken, wait_s)
            if self.refusal and not self._changed:
                raise NoNotices(self.refusal)
            taken, self._changed = self._changed, set()
            return taken

    def wake(self) -> None:
        """Let ``take`` return at once from now on; may be called by any thread, and by a handler of signals."""
        with self._more:
            self._is_woken = True
            self._more.notify_all()

    def close(self) -> None:
        """End the listeners."""
        if self._stop.is_set():
            return
        self._stop.set()
        os.write(self._stopping_fd, b"\0")
        for thread in self._threads:
            thread.join()
        for fd in (self._stop_fd, self._stopping_fd):
            os.close(fd)

    def _begin(self, paths: Sequence[Path], *, is_deep: bool) -> None:
        """Start a thread that listens, and return when it does."""
        begun = threading.Event()
        thread = threading.Thread(
            target=self._listen, args=(paths, begun), kwargs={"is_deep": is_deep}, name="kb-watch", daemon=True
        )
        thread.start()
        begun.wait(_START_S)
        with self._more:
            if begun.is_set():
                self._threads.append(thread)
                return
            self._given_up.add(begun)
            self._failure = f"to listen to {len(paths)} folders takes longer than {_START_S:g} s"

    def _may_begin(self, begun: threading.Event) -> bool:
        """Note that a listener begins. One that was given up does not: it would listen to a pipe that is closed."""
        with self._more:
            if begun in self._given_up:
                return False
            begun.set()
            return True

    def _listen(self, paths: Sequence[Path], begun: threading.Event, *, is_deep: bool) -> None:
        try:
            if self._is_polling:
                for named in poll(paths, self._stop, begun, is_deep=is_deep):
                    self._note(named)
                return
            if inotify.IS_AVAILABLE:
                with inotify.Listener(paths, is_deep=is_deep) as listener:
                    if self._may_begin(begun):
                        for named in listener.changes(self._stop_fd):
                            self._note(named)
                return
            # The library follows links as well, however much is there, and one folder that may not be read
            # keeps it from listening to those that come after it: then it is given the folders one by one.
            listed, has_others = folders_below(paths) if is_deep else ([], False)
            if has_others:
                self._gather(listed, begun, is_deep=False, listed_below=paths)
            else:
                self._gather(paths, begun, is_deep=is_deep)
        except _REFUSED as error:
            # Later on it is something at a name that is no UTF-8, or a folder too many: only what was missed is lost.
            if not begun.is_set():
                self._failure = _reason(error)
        finally:
            with self._more:
                self._is_deaf |= not self._stop.is_set()
                self._more.notify_all()
            begun.set()

    def _gather(
        self, paths: Sequence[Path], begun: threading.Event, *, is_deep: bool, listed_below: Sequence[Path] = ()
    ) -> None:
        """Gather the notices of the library until the end.

        Where ``paths`` are all the folders ``listed_below`` some, one that is not among them is the end, also when it
        came before it could be reported.
        """
        known = set(paths)
        for changes in watch(
            *paths,
            watch_filter=None,
            debounce=_GROUP_MS,
            step=_STEP_MS,
            stop_event=_Begun(self._stop, begun, lambda: not known.issuperset(folders_below(listed_below)[0])),
            rust_timeout=0,
            raise_interrupt=False,
            recursive=is_deep,
            ignore_permission_denied=False,  # with it, a limit of the system is passed over as well
        ):
            named = {path for _, path in changes}
            self._note(named)
            # Whether the library listens to a folder that came later is not known: that is the end, too.
            if listed_below and readable(new_folders(named, known)):
                return

    def _note(self, named: set[str]) -> None:
        if named:
            with self._more:
                self._changed |= named
                self._more.notify_all()


def _reason(error: Exception) -> str:
    """Return the system's words, or the library's without the dump of its own values that follows them."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).partition(" about [")[0].rstrip(".") or type(error).__name__
