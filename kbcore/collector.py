"""Python's collector of reference cycles: paused where much is built that holds none. It walks all of it otherwise."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Let no collection run inside the block; what is in nobody's hands is freed as ever."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
