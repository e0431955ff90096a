"""Does something in the very moment in which KB replaces a file or locks a store, as another process may."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from kbcore.storage.fs import LOCK_EXCLUSIVE

_SAVING: list[tuple[str, Callable[[], object]]] = []


def _save(event: str, args: tuple[Any, ...]) -> None:
    if event == "os.rename" and _SAVING and str(args[1]).endswith(_SAVING[0][0]):
        _SAVING.pop()[1]()


_LOCKING: list[tuple[Path, Callable[[int], object]]] = []


def _lock(event: str, args: tuple[Any, ...]) -> None:
    if event == "fcntl.flock" and _LOCKING and Path(f"/proc/self/fd/{args[0]}").resolve() == _LOCKING[0][0]:
        _LOCKING[0][1](args[1])


@cache
def _see_events() -> None:
    """See what this process does from now on: to its end, and each file that it opens takes longer."""
    sys.addaudithook(_save)
    sys.addaudithook(_lock)


@contextmanager
def saving_while_written(path: str, save: Callable[[], object]) -> Iterator[None]:
    """Call ``save`` once, when a file whose path ends so is about to be replaced."""
    _see_events()
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

    _see_events()
    _LOCKING[:] = [(lock.resolve(), at)]
    try:
        yield
        assert not _LOCKING
    finally:
        _LOCKING.clear()


@contextmanager
def seeing_calls(lock: Path, called: CodeType) -> Iterator[list[bool]]:
    """Yield a list that gets, for each call of a function in this thread, whether a lock file is locked by then."""
    calls: list[bool] = []
    is_held = False

    def at(operation: int) -> None:
        nonlocal is_held
        is_held = bool(operation & LOCK_EXCLUSIVE)

    def see(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is called:
            calls.append(is_held)

    _see_events()
    _LOCKING[:] = [(lock.resolve(), at)]
    before = sys.getprofile()
    sys.setprofile(see)
    try:
        yield calls
    finally:
        sys.setprofile(before)
        _LOCKING.clear()
