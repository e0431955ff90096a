"""Ends what waits for ever in this process, so that a test fails instead of its run."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_LIMIT_S: Final = 60.0


class Hung(BaseException):
    """Something waited for what never comes."""


@contextmanager
def in_time() -> Iterator[None]:
    """Raise ``Hung`` in what takes longer than an input may."""

    def end(*_: object) -> None:
        raise Hung

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, _LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
