"""Progress of long work, reported to a listener; mostly there is none, and then it costs nothing.

Work reports and goes on: a listener only notes it, and never waits, asks or refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, TypeVar

T = TypeVar("T")

Report = Callable[[int, int, str], None]
"""Takes how much is done, of how much, and of what, in the plural: ``(2000, 9000, "records read")``."""

_EVERY: Final = 256
_listener: ContextVar[Report | None] = ContextVar("kbcore.progress", default=None)


@contextmanager
def listener(report: Report) -> Iterator[None]:
    """Call ``report`` for the work that begins inside the block: in this thread, and in those that get its context."""
    token = _listener.set(report)
    try:
        yield
    finally:
        _listener.reset(token)


def track(items: Iterable[T], total: int, what: str, *, every: int = _EVERY) -> Iterable[T]:
    """Return the items, and report as they are taken: at the first, at each ``every``-th, and at the end."""
    report = _listener.get()
    return items if report is None else _reported(items, total, what, every, report)


def _reported(items: Iterable[T], total: int, what: str, every: int, report: Report) -> Iterator[T]:
    for done, item in enumerate(items):
        if done % every == 0:
            report(done, total, what)
        yield item
    report(total, total, what)
