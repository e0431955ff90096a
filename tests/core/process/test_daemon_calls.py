"""Calls that nobody waits for when the process ends."""

from __future__ import annotations

import asyncio
import contextvars
import threading

import pytest

from kbcore.process.daemon_calls import in_daemon


def test_a_call_gives_its_result_or_what_it_raises_in_a_thread_of_its_name() -> None:
    variable = contextvars.ContextVar("variable", default="")

    def raising() -> None:
        raise SystemExit(3)

    async def main() -> None:
        variable.set("of the caller")
        assert await in_daemon(lambda: threading.current_thread().name, "own name") == "own name"
        assert await in_daemon(variable.get, "call") == "of the caller"
        assert await in_daemon(lambda: None, "call") is None
        with pytest.raises(SystemExit):
            await in_daemon(raising, "call")

    asyncio.run(main())


def test_a_call_that_does_not_return_keeps_no_loop_from_ending() -> None:
    goes_on, has_ended = threading.Event(), threading.Event()

    def call() -> None:
        goes_on.wait()
        has_ended.set()

    async def main() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(in_daemon(call, "call"), 0.01)

    asyncio.run(main())
    assert not has_ended.is_set()
    goes_on.set()
    assert has_ended.wait(60), "what nobody waits for ends without an error"
