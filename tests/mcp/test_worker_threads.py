"""Work for the event loop in threads: it comes back whole, and is waited for when its task is cancelled."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from contextlib import suppress
from contextvars import ContextVar

import anyio
import pytest

from kbmcp.protocol.call_queue import FairLock
from kbmcp.protocol.worker_threads import WorkerThreads

WAIT_S = 20.0


def nothing() -> None:
    """Stop nothing."""


def test_work_has_the_context_of_its_task_and_its_error_is_raised_there():
    named: ContextVar[str] = ContextVar("named", default="")

    async def talk():
        threads = WorkerThreads(2)
        named.set("task")
        assert await threads.run(lambda: (named.get(), threading.get_ident()), nothing) != ("", threading.get_ident())
        assert await threads.run(named.get, nothing) == "task"
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda: 1 // 0, nothing)
        assert await threads.run(lambda: 1, nothing) == 1

    asyncio.run(talk())


def test_one_thread_does_all_work_that_comes_one_after_the_other():
    async def talk():
        threads = WorkerThreads(8)
        return {await threads.run(threading.get_ident, nothing) for _ in range(200)}

    assert len(asyncio.run(talk())) == 1


def test_an_idle_thread_keeps_nothing_of_what_it_has_done():
    class Held:
        """Held by the frame of the work, and so by its error."""

    gone = []

    def work():
        held = Held()
        gone.append(weakref.ref(held))
        raise ZeroDivisionError

    async def talk():
        threads = WorkerThreads(1)
        for _ in range(2):  # the work that a thread begins with, and what follows
            with suppress(ZeroDivisionError):
                await threads.run(work, nothing)
        await threads.run(nothing, nothing)  # the thread has left the work before
        gc.collect()
        assert [one() for one in gone] == [None, None]

    asyncio.run(talk())


def test_a_cancelled_task_stops_its_work_and_ends_after_it():
    stopped, course = threading.Event(), []

    def work():
        assert stopped.wait(WAIT_S)
        course.append("ended")

    def stop():
        course.append("stopped")
        stopped.set()

    async def talk():
        threads = WorkerThreads(1)
        with anyio.move_on_after(0.05) as scope:
            await threads.run(work, stop)
        assert scope.cancelled_caught
        assert course == ["stopped", "ended"]
        assert await threads.run(lambda: 1, nothing) == 1

    asyncio.run(talk())


def test_work_beyond_the_limit_waits_in_order_and_is_never_begun_once_its_task_is_cancelled():
    goes_on, done = threading.Event(), []

    async def talk():
        threads = WorkerThreads(1)
        first = asyncio.create_task(threads.run(lambda: goes_on.wait(WAIT_S), nothing))
        await asyncio.sleep(0)
        others = [asyncio.create_task(threads.run(lambda at=at: done.append(at), nothing)) for at in range(4)]
        await asyncio.sleep(0)
        others[1].cancel()
        await asyncio.wait([others[1]], timeout=WAIT_S)
        assert others[1].cancelled()
        goes_on.set()
        await asyncio.wait([first, *others], timeout=WAIT_S)

    asyncio.run(talk())
    assert done == [0, 2, 3]


def test_a_lock_that_comes_to_a_cancelled_task_goes_on_to_the_next():
    async def talk():
        lock, came = FairLock(), []

        async def come(name):
            await lock.acquire()
            came.append(name)
            await asyncio.to_thread(lock.release)

        await lock.acquire()
        tasks = [asyncio.create_task(come(name)) for name in "abc"]
        await asyncio.sleep(0)
        lock.release()
        tasks[0].cancel()
        await asyncio.wait(tasks, timeout=WAIT_S)
        assert came == ["b", "c"]
        assert not lock.locked()

    asyncio.run(talk())
