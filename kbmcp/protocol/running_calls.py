"""The work of a server: calls that are under way, and publishing views, which no call waits for. All can be stopped."""

from __future__ import annotations

import sys
import threading
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import anyio

from kbcore import interrupting
from kbcore.interrupting import CurrentWork, Stopped
from kbcore.process_limits import exhausted

if TYPE_CHECKING:
    from kbcore.store.branch_store import BranchStore

PUBLISH_AFTER_S: Final = 0.2
"""So long after a view became due it is published: the answer of the call that found this is sent first."""
PUBLISHER_WAIT_S: Final = 30.0
"""So long another process that publishes is waited for."""
PUBLISHER_ENDS_S: Final = 0.3
"""So long the end of the server waits for a publication that was stopped, which removes its unfinished file."""


class Works:
    """The work of the calls of one server."""

    def __init__(self) -> None:
        self._under_way: set[CurrentWork] = set()
        self._is_stopped = False

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[CurrentWork]:
        """Let what the block does in threads be one work, which is stopped when the block is cancelled.

        A thread is never abandoned: the block ends when its thread has. Gives the work. What the block raises, it
        raises as it is, and not in a group.
        """
        work = CurrentWork()
        fault: Exception | None = None
        self._under_way.add(work)
        if self._is_stopped:
            work.stop()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_stop_when_cancelled, work)
                try:
                    with interrupting.done_for(work):
                        yield work
                except Exception as error:  # noqa: BLE001 - raised below, outside of the task group
                    fault = error
                tasks.cancel_scope.cancel()
            if fault is not None:
                raise fault
        finally:
            self._under_way.discard(work)

    def stop(self) -> None:
        """Stop what is under way and what begins from now on."""
        self._is_stopped = True
        for work in self._under_way:
            work.stop()


async def _stop_when_cancelled(work: CurrentWork) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        work.stop()


class Publisher:
    """Publishes the views of stores in a thread of its own, one after the other. It ends when there is none to publish.

    No call waits for it, and where the system makes no thread, the next call that finds a view due tries again.
    """

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._due: dict[BranchStore, None] = {}
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._work = CurrentWork()

    def add(self, store: BranchStore) -> None:
        """Have the view of a store published, unless that is to be done already. Does not wait."""
        with self._gate:
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
        with self._gate:
            self._stopping.set()
            thread = self._thread
        self._work.stop()
        if thread is not None:
            thread.join(PUBLISHER_ENDS_S)

    def _run(self) -> None:
        with interrupting.done_for(self._work):
            while (store := self._next()) is not None:
                try:
                    store.publish_beside(PUBLISHER_WAIT_S)
                except Stopped:
                    continue
                except Exception as error:  # noqa: BLE001 - no call waits for it: reported in full on standard error
                    if exhausted(error, may_be_written=False) is None:
                        traceback.print_exc(file=sys.stderr)

    def _next(self) -> BranchStore | None:
        """Return the next store, after a pause; None where there is none, and this thread is to end."""
        self._stopping.wait(PUBLISH_AFTER_S)
        with self._gate:
            if self._due and not self._stopping.is_set():
                store = next(iter(self._due))
                del self._due[store]
                return store
            self._thread = None
            return None
