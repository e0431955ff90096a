"""An engine of Prolog for one run, asked from asyncio: it works in a thread of its own, and ends with the run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, TypeVar

from kbcore.clock import SystemClock
from kbcore.logic.engine import EngineProcess, Launch, available
from kbcore.logic.engine.installation import ENGINE_VARIABLE, find
from kbcore.process.interrupting import CurrentWork, Stopped, done_for

T = TypeVar("T")

_clock: Final = SystemClock()
_GRACE_S: Final = 5.0
"""After the time of the run is over, which ends the run by itself."""


class EngineThread:
    """A started engine. ``ask`` is called by one task of asyncio at a time; ``end`` may be called at any time."""

    def __init__(self, env: Mapping[str, str], time_limit_s: float) -> None:
        """Prepare; ``env`` chooses the engine, and all that is asked is to end within the time limit from its start."""
        self._env = env
        self._time_limit_s = time_limit_s + _GRACE_S
        self._until_s = 0.0
        self._work = CurrentWork()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="kb-dml")
        self._engine: EngineProcess | None = None
        """None before it is started."""

    async def start(self) -> None:
        """Start the engine. Raises: ``PrologUnavailable``, ``EngineEnded``."""
        self._until_s = _clock.monotonic_s() + self._time_limit_s
        await self._in_thread(self._start)

    async def ask(self, request: str) -> dict[str, Any]:
        """Send a request and return the reply. Raises: ``EngineEnded``."""
        left_s = max(self._until_s - _clock.monotonic_s(), _GRACE_S)
        return await self._in_thread(partial(self._ask, request, left_s))

    async def end(self) -> None:
        """End the engine at once, whatever it does."""
        self._work.stop()
        loop = asyncio.get_running_loop()
        await asyncio.shield(loop.run_in_executor(self._threads, self._kill))
        self._threads.shutdown(wait=False)

    def _start(self) -> None:
        self._engine = EngineProcess(_launch(self._env))

    def _ask(self, request: str, limit_s: float) -> dict[str, Any]:
        if self._engine is None:
            raise RuntimeError("the engine is not started")
        return self._engine.ask(request, time_limit_s=limit_s)

    def _kill(self) -> None:
        if self._engine is not None:
            self._engine.kill()

    async def _in_thread(self, call: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, self._working, call)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            self._work.stop()
            await asyncio.shield(asyncio.gather(future, return_exceptions=True))
            raise

    def _working(self, call: Callable[[], T]) -> T:
        with done_for(self._work):
            try:
                return call()
            except Stopped as stopped:  # asyncio takes no exception that is not an Exception
                raise _Ended from stopped


def _launch(env: Mapping[str, str]) -> Launch:
    """Return how an engine is started: in WebAssembly, which has no system calls, unless the environment chooses.

    Raises:
        PrologUnavailable: there is none.
    """
    found = None if env.get(ENGINE_VARIABLE) else find("wasm", env)
    return found if isinstance(found, Launch) else available(env).required()


class _Ended(Exception):
    """The run is over, and nobody waits for the answer."""
