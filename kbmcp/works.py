"""The calls that are under way, each of which can be stopped: by its client, or all of them when the server ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from kbcore import interrupting
from kbcore.interrupting import Work


class Works:
    """The work of the calls of one server."""

    def __init__(self) -> None:
        self._under_way: set[Work] = set()
        self._is_stopped = False

    @asynccontextmanager
    async def begun(self) -> AsyncIterator[Work]:
        """Let what the block does in threads be one work, which is stopped when the block is cancelled.

        A thread is never abandoned: the block ends when its thread has. Gives the work.
        """
        work = Work()
        self._under_way.add(work)
        if self._is_stopped:
            work.stop()
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_stop_when_cancelled, work)
                with interrupting.done_for(work):
                    yield work
                tasks.cancel_scope.cancel()
        finally:
            self._under_way.discard(work)

    def stop(self) -> None:
        """Stop what is under way and what begins from now on."""
        self._is_stopped = True
        for work in self._under_way:
            work.stop()


async def _stop_when_cancelled(work: Work) -> None:
    try:
        await anyio.sleep_forever()
    finally:
        work.stop()
