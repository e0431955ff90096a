"""Work that runs in one other thread while its caller continues: DuckDB loads rows while the next ones are being made.

The pieces are done in order, and at most one is pending while another is done: that bounds their memory.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Self


class BackgroundWriter:
    """A queue of one. What a piece of work raises is raised by the next call, or at the end of the block."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="kb-background")
        self._last: Future[Any] | None = None

    def __enter__(self) -> Self:
        """Return the queue itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait until all is done. Raises what the last piece raised, unless the block has failed already."""
        try:
            if kind is None:
                self._settle()
        finally:
            self._pool.shutdown()

    def do(self, work: Callable[..., object], *args: object) -> None:
        """Begin a piece of work once the one before it is done. Raises what that one raised."""
        self._settle()
        self._last = self._pool.submit(copy_context().run, work, *args)

    def _settle(self) -> None:
        last, self._last = self._last, None
        if last is not None:
            last.result()
