"""Whose turn it is on each branch: one call at a time, in this process. A branch that nobody waits for is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec


class _Turn(msgspec.Struct):
    """One branch's turn, and how many calls have it or wait for it."""

    lock: threading.Lock = msgspec.field(default_factory=threading.Lock)
    calls: int = 0


class Turns:
    """The turns of all branches, by the directory of their store."""

    def __init__(self) -> None:
        self._gate = threading.Lock()
        self._turns: dict[Path, _Turn] = {}

    @contextmanager
    def taken(self, directory: Path) -> Iterator[None]:
        """Wait until no other call is at this branch, and keep it so for the length of the block."""
        with self._gate:
            turn = self._turns.setdefault(directory, _Turn())
            turn.calls += 1
        try:
            with turn.lock:
                yield
        finally:
            with self._gate:
                turn.calls -= 1
                if not turn.calls:
                    del self._turns[directory]
