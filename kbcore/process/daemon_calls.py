"""Calls in threads that nobody waits for when the process ends.

The threads of asyncio are waited for: there a call that does not return would keep the process from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_daemon(call: Callable[[], T], name: str) -> T:
    """Return what a call returns, made in a thread of its own with this name; one that is cancelled goes on alone.

    Raises: what the call raises.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[tuple[T, None] | tuple[None, BaseException]] = loop.create_future()
    context = contextvars.copy_context()

    def work() -> None:
        outcome: tuple[T, None] | tuple[None, BaseException]
        try:
            outcome = context.run(call), None
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            outcome = None, error

        def give() -> None:
            if not ended.done():
                ended.set_result(outcome)

        with contextlib.suppress(RuntimeError):  # nobody waits any more: the loop is closed
            loop.call_soon_threadsafe(give)

    threading.Thread(target=work, name=name, daemon=True).start()
    result, error = await ended
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # there is one where there is no error
