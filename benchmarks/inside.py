"""Measuring in a process that keeps a store open: the store, the memory that it took, and its times passed on."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import PEAK_UNIT_BYTES, Sample, Series

if TYPE_CHECKING:
    from kbcore.store.workspace import Workspace


def opened(root: str) -> Workspace:
    """Return the workspace of a repository, as a user's program opens it."""
    from kbcore.clock import SystemClock
    from kbcore.storage.fs import RealFs
    from kbcore.store.pool import Machine, StorePool
    from kbcore.store.workspace import open_workspace

    return open_workspace(Path(root), Machine(RealFs(), SystemClock(), os.environ), StorePool())


def own_peak_bytes() -> int:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * PEAK_UNIT_BYTES


def samples_of(kinds: Iterable[Iterable[tuple[float, float | None]]]) -> list[Series]:
    """Return a series for each kind of work from the seconds of its runs, by the clock and of the processor."""
    return [Series(tuple(Sample(*one) for one in runs)) for runs in kinds]


def series_of(kinds: Iterable[Iterable[float]]) -> list[Series]:
    """Return a series for each kind of work from the seconds of its runs, as another process printed them."""
    return [Series(tuple(map(Sample, walls_s))) for walls_s in kinds]
