"""Threads that work for the event loop, which itself waits for no database, disk or lock.

A thread is never abandoned: when a task is cancelled that waits for one, the work is asked to stop, and the task ends
when the thread is done with it.
"""

from __future__ import annotations

import asyncio
import queue
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, Final, TypeVar

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

T = TypeVar("T")

_IDLE_S: Final = 10.0
"""The time after which a thread without work ends."""
_NO_MEMORY_PAUSE_S: Final = 0.05


class _Job:
    """The work that one task waits for, with its result or error, and the event of its end."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self._act = act
        self._context = copy_context()
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self._context.run(self._act)
        except BaseException as error:  # noqa: BLE001 - raised in the task
            self.error = error

    def report(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            retried_without_memory(lambda: self._loop.call_soon_threadsafe(self.ended.set))


class WorkerThreads:
    """At most so many threads. Further work waits, first in, first out."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._count = 0
        self._waiting: dict[_Job, None] = {}
        self._idle: dict[queue.SimpleQueue[_Job], None] = {}
        """The threads without work, each as the queue that it waits at; the one that worked last works next."""

    async def run(self, act: Callable[[], T], stop: Callable[[], object]) -> T:
        """Return ``act()`` of a thread, which has the context of this task; ``stop`` is called on a cancellation.

        Raises: what ``act`` raises; ``RuntimeError``, ``MemoryError`` when the system makes no thread.
        """
        await checkpoint_if_cancelled()
        job = _Job(act)
        self._begin(job)
        try:
            await job.ended.wait()
        except BaseException:
            stop()
            if not self._withdraw(job):
                with anyio.CancelScope(shield=True):
                    await job.ended.wait()
            raise
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def _begin(self, job: _Job) -> None:
        with self._lock:
            if self._idle:
                self._idle.popitem()[0].put(job)
                return
            if self._count >= self._most:
                self._waiting[job] = None
                return
            self._count += 1
        # A thread keeps its arguments until it ends: the job is none of them.
        inbox: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        inbox.put(job)
        try:
            threading.Thread(target=self._work, args=(inbox,), name="kb-mcp worker", daemon=True).start()
        except BaseException:
            with self._lock:
                self._count -= 1
            raise

    def _withdraw(self, job: _Job) -> bool:
        """Take back work that waits; False where a thread has it."""
        with self._lock:
            return self._waiting.pop(job, self) is None

    def _work(self, inbox: queue.SimpleQueue[_Job]) -> None:
        job: _Job | None = inbox.get()
        while job is not None:
            job.run()
            with self._lock:
                following = next(iter(self._waiting), None)
                if following is None:
                    self._idle[inbox] = None
                else:
                    del self._waiting[following]
            job.report()  # last: what the task does next finds this thread without work
            job = following  # an idle thread keeps nothing of what it has done
            job = job or self._next(inbox)

    def _next(self, inbox: queue.SimpleQueue[_Job]) -> _Job | None:
        """Return the next work of a thread that waits; None when it is to end."""
        with suppress(queue.Empty):
            return inbox.get(timeout=_IDLE_S)
        with self._lock:
            if inbox in self._idle:
                del self._idle[inbox]
                self._count -= 1
                return None
        return inbox.get()


def retried_without_memory(do: Callable[[], T]) -> T:
    """Return ``do()``; where there is no memory for it, try again until other calls have given some back."""
    while True:
        try:
            return do()
        except MemoryError:
            select.select((), (), (), _NO_MEMORY_PAUSE_S)
