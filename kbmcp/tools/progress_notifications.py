"""Tells a client that asked for it how far its call has come.

The work only takes note of how far it is; what is sent is the latest note, a few times a second at most, each one
further than the one before, and none after the answer. A client that does not read holds up no work.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import anyio

from kbcore import progress
from kbmcp.tools.call import Report

EVERY_S: Final = 0.5
"""How long a call takes before its client hears of it, and how often it does then."""


@asynccontextmanager
async def told_to(report: Report | None) -> AsyncIterator[None]:
    """Let a client hear of the work that is begun inside the block, which raises nothing but its cancellation."""
    if report is None:
        yield
        return
    course = _Course()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(course.tell, report)
        with progress.listener(course.note):
            yield
        tasks.cancel_scope.cancel()


class _Course:
    """How far one call has come: the steps of its work, one after the other, as one count that only grows."""

    def __init__(self) -> None:
        self._step = ("", 0)
        self._before = 0
        """What was done in the steps before this one."""
        self._latest: tuple[int, int, str] | None = None

    def note(self, done: int, total: int, what: str) -> None:
        """Take note of how far a step has come; one that begins anew is another step. Runs in the work's thread."""
        if self._latest and (what != self._step[0] or done < self._step[1]):
            self._before = self._latest[0]
        self._step = (what, done)
        self._latest = (self._before + done, self._before + total, f"{what}: {done} of {total}")

    async def tell(self, report: Report) -> None:
        """Report the latest note again and again, until cancelled."""
        sent = -1
        while True:
            await anyio.sleep(EVERY_S)
            if self._latest and self._latest[0] > sent:
                sent, total, words = self._latest
                await report(sent, total, words)
