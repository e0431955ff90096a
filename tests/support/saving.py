"""Does something in the very moment in which KB replaces a file or locks a store, as another process may."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kbcore.storage.fs import LOCK_EXCLUSIVE, LOCK_RELEASE

_SAVING: list[tuple[str, Callable[[], object]]] = []


def _save(event: str, args: tuple[Any, ...]) -> None:
    if event == "os.rename" and _SAVING and str(args[1]).endswith(_SAVING[0][0]):
        _SAVING.pop()[1]()


_LOCKING: list[tuple[Path, Callable[[int], object]]] = []


def _lock(event: str, args: tuple[Any, ...]) -> None:
    if event == "fcntl.flock" and _LOCKING and Path(f"/proc/self/fd/{args[0]}").resolve() == _LOCKING[0][0]:
        _LOCKING[0][1](args[1])


sys.addaudithook(_save)
sys.addaudithook(_lock)


@contextmanager
def saving_while_written(path: str, save: Callable[[], object]) -> Iterator[None]:
    """Call ``save`` once, when a file whose path ends so is about to be replaced."""
    _SAVING[:] = [(path, save)]
    try:
        yield
    finally:
        _SAVING.clear()


@contextmanager
def writing_before_lock(lock: Path, write: Callable[[], object]) -> Iterator[None]:
    """Call ``write`` once, when a lock file is about to be locked."""

    def at(_: int) -> None:
        _LOCKING.clear()
        write()

    _LOCKING[:] = [(lock.resolve(), at)]
    try:
        yield
        assert not _LOCKING
    finally:
        _LOCKING.clear()


@contextmanager
def timing_lock(lock: Path) -> Iterator[list[float]]:
    """Yield a list of how long a lock file was locked each time, in seconds."""
    held: list[float] = []
    since: list[float] = []

    def at(operation: int) -> None:
        if operation & LOCK_EXCLUSIVE:
            since[:] = [time.monotonic()]
        elif operation & LOCK_RELEASE and since:
            held.append(time.monotonic() - since.pop())

    _LOCKING[:] = [(lock.resolve(), at)]
    try:
        yield held
    finally:
        _LOCKING.clear()
