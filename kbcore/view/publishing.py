"""The writing of views into the cache: when one is worth it, and by one process and one thread at a time.

A published view bounds what the next process has to fold; no answer depends on it.
"""

from __future__ import annotations

import threading
from typing import Final

from kbcore.clock import Clock, SystemClock
from kbcore.process import interrupting
from kbcore.storage import journal, lock
from kbcore.storage.head import Head
from kbcore.view.cache_files import CacheFiles
from kbcore.view.opening import LOOK_S, ViewOpener
from kbcore.view.view import View

_TAIL_ROWS: Final = 2000
_TAIL_SHARE: Final = 100
"""A tail is worth publishing from 2,000 rows on, and from a hundredth of a large base on: that bounds both what a
fresh process folds and what publishing costs per change."""
_LONGEST_TAIL: Final = 3
"""A tail so many times as long is published although another process has begun to."""
_CLOCK: Final = SystemClock()


def may_be_due(view: View) -> bool:
    """Tell whether a look at the base is needed to know whether the tail of a view is to be published."""
    return view.tail_rows >= _TAIL_ROWS


def is_due(view: View, times: int = 1) -> bool:
    """Tell whether the tail of a view has grown long enough to be published, or so many times as long."""
    return view.tail_rows >= times * _TAIL_ROWS and view.tail_rows >= times * (view.base_rows() // _TAIL_SHARE)


class Publisher:
    """Publishes the views of one branch."""

    def __init__(self, opener: ViewOpener, files: CacheFiles) -> None:
        self._opener = opener
        self._files = files
        self._busy = threading.Lock()

    @property
    def is_busy(self) -> bool:
        """Tell whether a thread of this process is publishing."""
        return self._busy.locked()

    def publish(self, view: View | None, clock: Clock = _CLOCK, wait_s: float = 0.0) -> View | None:
        """Publish a view, or, without one, another view that is opened for this at the head, where its tail is long.

        Another process that publishes is waited for, up to ``wait_s``: its base will do. A view that is given is then
        published only where its tail is very long, because that process may have been stopped.

        Returns: another view to use from now on, None where there is none; a given view may have a new base.
        """
        if not self._busy.acquire(blocking=False):
            return None
        try:
            with lock.QueueLock(self._files.fs, self._files.directory) as queue:
                if not _has_lock(queue, clock, wait_s) and view is not None and not is_due(view, _LONGEST_TAIL):
                    return None
                return self._publish(view)
        finally:
            self._busy.release()

    def _publish(self, view: View | None) -> View | None:
        def find(head: Head) -> View | None:
            if view is not None:
                return self._opener.newer(view, head)
            return self._opener.at(None, head) if self._files.is_writable() else None

        other = journal.reading(self._opener.fs, self._opener.directory, find)
        try:
            long = other or view
            if long is not None and is_due(long):
                with interrupting.maintenance():
                    self._files.publish(
                        self._files.path, lambda path: long.write_base(str(path)), lambda path: long.rebase(str(path))
                    )
        except BaseException:
            if other is not None:
                other.close()
            raise
        return other


def _has_lock(queue: lock.QueueLock, clock: Clock, wait_s: float) -> bool:
    """Tell whether no other process publishes, as far as can be known, once it is waited for."""
    end_s = clock.monotonic_s() + wait_s
    while not queue.take() and queue.is_possible:
        if clock.monotonic_s() >= end_s:
            return False
        interrupting.check()
        clock.sleep(LOOK_S)
    return True
