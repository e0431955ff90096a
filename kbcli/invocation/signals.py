"""The end of a command after a signal, with a clean shutdown where possible.

``Signals`` is for every command: it ends within two seconds in any case. ``Deadline`` is for one that runs until it is
interrupted: its statements and readings are interrupted, and it ends when its present step is done.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final, ParamSpec

from kbcore.process import interrupting
from kbcore.process.interrupting import CurrentWork

P = ParamSpec("P")

ENDING: Final = (signal.SIGINT, signal.SIGTERM)
GRACE_S: Final = 1.6
"""The time that a clean shutdown may take after a signal. Then the process ends itself."""

_AGAIN_S: Final = 0.02
_IMPORTING: Final = "<frozen importlib._bootstrap"
"""Begins the name of the files whose functions are in the stack while a module is imported."""

_UNREAD_S: Final = 1.0
"""Output that is not read for so long is dropped, once the process is to end."""


class Signals:
    """Ends this process at SIGINT and SIGTERM. A second signal ends it at once.

    Python runs handlers of signals between two instructions of the main thread, and so not while that waits for a
    database. The system notes each signal in a pipe as well: a thread that reads it interrupts the statements and
    programs that are waited for, and ends the process when the rest takes too long.
    """

    def __init__(self) -> None:
        self.work = CurrentWork()
        self.number = 0
        """The signal that arrived, 0 for none."""
        self._goes_on = False

    @property
    def status(self) -> int:
        """Return the status of a process that a signal ended."""
        return 128 + (self.number or signal.SIGINT)

    @contextlib.contextmanager
    def obeyed(self) -> Iterator[None]:
        """Obey signals in the block: its statements are interrupted, and ``KeyboardInterrupt`` is raised in it.

        It is not raised any more once something was written: what is left to do is to say so. It is not raised while
        a module is imported either, but as soon as that is done: a module written in C may abort the process when its
        initialization fails. Signals reach the main thread only; in any other the block runs as it is.
        """
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        reads_fd, writes_fd = os.pipe()
        os.set_blocking(writes_fd, False)
        listener = threading.Thread(target=self._listen, args=(reads_fd,), name="kb-signals", daemon=True)
        try:
            listener.start()
        except RuntimeError:  # the system makes no thread
            os.close(reads_fd)
            os.close(writes_fd)
            raise
        before = {number: signal.signal(number, self._raise) for number in (*ENDING, signal.SIGALRM)}
        woken_fd = signal.set_wakeup_fd(writes_fd, warn_on_full_buffer=False)
        try:
            with interrupting.done_for(self.work):
                yield
        finally:
            signal.set_wakeup_fd(woken_fd)
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(writes_fd)
            listener.join()

    def leave_alone(self) -> None:
        """Leave signals to a program with handlers of its own, which runs in the rest of the block."""
        signal.set_wakeup_fd(-1)

    def go_on_after_sigint(self) -> None:
        """Let SIGINT end only what runs: for a prompt, which calls ``renew`` before each command."""
        self._goes_on = True

    def renew(self) -> None:
        """Forget that the last command of a prompt was interrupted."""
        work = self.work
        work.is_stopped = work.is_committed = work.has_begun = False
        work.has_written = work.has_changed = work.only_reads = False

    def _raise(self, number: int, frame: FrameType | None) -> None:
        if number != signal.SIGALRM:
            self.number = number
        if self.work.is_committed:
            return
        if _is_importing(frame):
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
            return
        raise KeyboardInterrupt

    def _listen(self, reads_fd: int) -> None:
        with contextlib.closing(_Pipe(reads_fd)) as pipe:
            number = pipe.next(None)
            while self._goes_on and number == signal.SIGINT:
                self.work.stop()
                number = pipe.next(None)
            if number:
                self.work.stop()
                if pipe.next(GRACE_S) is not None:
                    os._exit(128 + number)


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether a module is being imported by what runs in this frame."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTING):
            return True
        frame = frame.f_back
    return False


class _Pipe:
    """The numbers of signals, as the system notes them."""

    def __init__(self, reads_fd: int) -> None:
        self._reads_fd = reads_fd

    def next(self, wait_s: float | None) -> int | None:
        """Return the next signal that ends a process: 0 when the time is over, None when the listener has ended.

        Another signal begins the time again: the timer of ``Deadline`` does so until its block is over.
        """
        while select.select((self._reads_fd,), (), (), wait_s)[0]:
            [*noted] = os.read(self._reads_fd, 1)
            if not noted:
                return None
            if noted[0] in ENDING:
                return noted[0]
        return 0

    def close(self) -> None:
        """Close the end that is read."""
        os.close(self._reads_fd)


class Deadline:
    """Lets SIGINT and SIGTERM end a block in good order; a second signal, also the other one, ends it at once.

    The reader of the output may have stopped, so that writes block: a while after the signal, unread output is
    dropped.
    """

    def __init__(self) -> None:
        self._changes = 0
        """The beginnings and ends of what was said: odd while something is being said."""

    def watching(self, say: Callable[P, None]) -> Callable[P, None]:
        """Return what says the same, and can be given up."""

        def said(*given: P.args, **named: P.kwargs) -> None:
            self._changes += 1
            try:
                say(*given, **named)
            finally:
                self._changes += 1

        return said

    @contextlib.contextmanager
    def by_signals(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call ``stop`` at the first signal that comes in the block."""
        count_before = 0

        def end(_: int, __: Any) -> None:
            for number in ENDING:
                signal.signal(number, before[number])
            stop()
            signal.setitimer(signal.ITIMER_REAL, _UNREAD_S, _UNREAD_S)

        def look(_: int, __: Any) -> None:
            nonlocal count_before
            if count_before == self._changes and count_before % 2:
                _say_no_more()
            count_before = self._changes

        handlers: dict[signal.Signals, Any] = {**dict.fromkeys(ENDING, end), signal.SIGALRM: look}
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
