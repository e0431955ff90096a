"""How a command that goes on until it is interrupted ends: in good order, also where nobody reads what it says."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any, Final, ParamSpec

P = ParamSpec("P")

_UNREAD_S: Final = 1.0
"""What nobody takes for so long is given up, once it is to end."""


class Ending:
    """Lets SIGINT and SIGTERM end a block in good order; a second signal, also the other one, ends it at once.

    Whoever reads what the block says may have stopped, so that it can say no more: a while after the signal, what
    nobody takes goes nowhere.
    """

    def __init__(self) -> None:
        self._turns = 0
        """Odd while something is being said."""

    def watching(self, say: Callable[P, None]) -> Callable[P, None]:
        """Return what says the same, and can be given up."""

        def said(*given: P.args, **named: P.kwargs) -> None:
            self._turns += 1
            try:
                say(*given, **named)
            finally:
                self._turns += 1

        return said

    @contextlib.contextmanager
    def by_signals(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call ``stop`` at the first signal that comes in the block."""
        turn = 0

        def end(_: int, __: Any) -> None:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, before[number])
            stop()
            signal.setitimer(signal.ITIMER_REAL, _UNREAD_S, _UNREAD_S)

        def look(_: int, __: Any) -> None:
            nonlocal turn
            if turn == self._turns and turn % 2:
                _say_no_more()
            turn = self._turns

        handlers = {signal.SIGINT: end, signal.SIGTERM: end, signal.SIGALRM: look}
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)


def _say_no_more() -> None:
    """Let a write that waits for its reader, and all that come after it, go nowhere."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)
