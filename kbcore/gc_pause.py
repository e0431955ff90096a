"""Python's collector of reference cycles: paused while many objects without cycles are made, which it would visit."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from typing import Final

_SELDOM: Final = 100_000
"""Objects that must have come to be, more than went, before a collection: all that imports make are fewer."""


def raise_threshold() -> None:
    """Let collections be seldom from here on, in a process that makes few cycles."""
    gc.set_threshold(_SELDOM, *gc.get_threshold()[1:])


def skip_last() -> None:
    """Let the collection at the end of this process visit nothing: the system takes back all its memory at once.

    With DuckDB loaded nothing changes: it reports to standard error each of its objects that is left then.
    """
    if "duckdb" not in sys.modules:
        gc.freeze()


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Let no collection run inside the block; objects without references are freed as ever."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
