"""The thread that publishes the views of stores after calls were answered."""

from __future__ import annotations

import sys
import threading
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from kbcore.process import interrupting
from kbcore.process.interrupting import CurrentWork, Stopped
from kbcore.process.system_limits import exhausted

if TYPE_CHECKING:
    from kbcore.store.branch_store import BranchStore

PUBLISH_AFTER_S: Final = 0.2
"""The delay before a view that is due is published: the answer of the call that found this is sent first."""
PUBLISHER_WAIT_S: Final = 30.0
"""The time to wait for another process that publishes."""
PUBLISHER_ENDS_S: Final = 0.3
"""The time that the shutdown waits for a stopped publication, which removes its unfinished file."""


class StorePublisher:
    """Publishes the views of stores in a thread of its own, one after the other. It ends when there is none to publish.

    No call waits for it, and where the system makes no thread, the next call that finds a view due tries again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._due: dict[BranchStore, None] = {}
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._work = CurrentWork()

    def add(self, store: BranchStore) -> None:
        """Have the view of a store published, unless that is to be done already. Does not wait."""
        with self._lock:
            if self._stopping.is_set():
                return
            self._due[store] = None
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="kb-mcp publisher", daemon=True)
                with suppress(RuntimeError, MemoryError):
                    thread.start()
                    self._thread = thread

    def stop(self) -> None:
        """Publish no more, and interrupt what is being published."""
        with self._lock:
            self._stopping.set()
            thread = self._thread
        self._work.stop()
        if thread is not None:
            thread.join(PUBLISHER_ENDS_S)

    def _run(self) -> None:
        with interrupting.done_for(self._work):
            while (store := self._next()) is not None:
                try:
                    store.publish_from_new_view(PUBLISHER_WAIT_S)
                except Stopped:
                    continue
                except Exception as error:  # noqa: BLE001 - no call waits for it: reported in full on standard error
                    if exhausted(error, may_be_written=False) is None:
                        traceback.print_exc(file=sys.stderr)

    def _next(self) -> BranchStore | None:
        """Return the next store, after a pause; None where there is none, and this thread is to end."""
        self._stopping.wait(PUBLISH_AFTER_S)
        with self._lock:
            if self._due and not self._stopping.is_set():
                store = next(iter(self._due))
                del self._due[store]
                return store
            self._thread = None
            return None
