"""Steps that end: a statement or a program that is waited for has a time, and belongs to work that can be stopped.

One thread of the process interrupts the steps whose time is over or whose work was stopped. It does so again and again
until they end: an interruption that comes before a step has really begun has no effect.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Final, TypeVar

from kbcore import limits
from kbcore.clock import SystemClock
from kbcore.errors import KBError, StatementTimeout
from kbcore.errors.remedies import kb

E = TypeVar("E", bound=KBError)

_AGAIN_S: Final = 0.05

_now_s: Final = SystemClock().monotonic_s


class Stopped(BaseException):
    """The work was asked to end, and nothing more is done for it. Not an error: no caller waits for an answer."""


class TimeOver(Exception):
    """The time of a block is over (``limited``)."""


class CurrentWork:
    """The work of one command or request, in any number of threads."""

    def __init__(self) -> None:
        self.is_stopped = False
        self.is_committed = False
        """The present part has begun to write its changeset: the rest of it, which says so, is not stopped."""
        self.has_begun = False
        """A part was begun, which may write."""
        self.only_reads = False
        """Whoever began it knows that it writes nothing."""
        self.has_written = False
        """A changeset of any part was written, or its writing was begun."""
        self.has_changed = False
        """Something was written since the present answer was begun, a changeset or files: an error has to say so."""

    @property
    def must_end(self) -> bool:
        """Tell whether what runs is to end now."""
        return self.is_stopped and not self.is_committed

    @property
    def is_known_unwritten(self) -> bool:
        """Tell whether it is sure that nothing was written: it only reads, or was about to write a changeset."""
        return not self.may_have_written and (self.has_begun or self.only_reads)

    @property
    def may_have_written(self) -> bool:
        """Tell whether anything was written, in this answer or in one before it."""
        return self.has_written or self.has_changed

    def stop(self) -> None:
        """Interrupt what runs, and let nothing more begin. Not for signal handlers: it waits for a lock."""
        self.is_stopped = True
        _ALARM.look()


class RunningStep:
    """Something that runs now and can be interrupted."""

    __slots__ = ("_is_optional", "_work", "end_s", "interrupt", "is_interrupted", "time_s")

    def __init__(
        self, interrupt: Callable[[], object], time_s: float, work: CurrentWork | None, *, is_optional: bool = False
    ) -> None:
        self.interrupt = interrupt
        self.time_s = time_s
        self.end_s = _now_s() + time_s
        self.is_interrupted = False
        self._work = work
        self._is_optional = is_optional

    def is_due(self, now_s: float) -> bool:
        """Tell whether it is to end."""
        return self.end_s <= now_s or self.is_stopped

    @property
    def is_stopped(self) -> bool:
        """Tell whether it is to end because the work was asked to end."""
        return _must_end(self._work, is_optional=self._is_optional)

    def reason(self) -> BaseException:
        """Return what to raise for a statement that was interrupted."""
        if self.is_stopped:
            return Stopped()
        late = f"The database had no answer within {self.time_s:g} s"
        if self._work is None or not self._work.has_changed:
            return StatementTimeout(f"{late}.")
        return _after_write(StatementTimeout(f"{late}."))


class _Alarm:
    """The steps that run in this process, and the thread that interrupts them. It is started by the first step."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin again in a process that was forked: the thread is not there."""
        self._lock = threading.Condition(threading.Lock())
        self._steps: set[RunningStep] = set()
        self._wakes_s = math.inf
        self._thread: threading.Thread | None = None

    def begin(self, step: RunningStep) -> None:
        """Note a step. The thread is only woken where it would sleep for longer than the step may take."""
        with self._lock:
            self._steps.add(step)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="kb-alarm", daemon=True)
                self._thread.start()
            if step.end_s < self._wakes_s:
                self._wakes_s = step.end_s
                self._lock.notify()

    def end(self, step: RunningStep) -> None:
        """Forget a step: it is not interrupted from here on."""
        with self._lock:
            self._steps.discard(step)

    def look(self) -> None:
        """Interrupt at once what is due by now."""
        with self._lock:
            self._wakes_s = 0.0
            self._lock.notify()

    def _run(self) -> None:
        with self._lock:
            while True:
                wait_s = self._interrupt_due(_now_s())
                self._lock.wait(wait_s)

    def _interrupt_due(self, now_s: float) -> float | None:
        """Interrupt what is due, and return how long nothing else will be; keeps hold of no step while it waits."""
        due = [step for step in self._steps if step.is_due(now_s)]
        for step in due:
            step.is_interrupted = True
            step.interrupt()
        ends_s = [now_s + _AGAIN_S] if due else [step.end_s for step in self._steps]
        self._wakes_s = min(ends_s, default=math.inf)
        return None if self._wakes_s == math.inf else self._wakes_s - now_s


_ALARM: Final = _Alarm()
os.register_at_fork(after_in_child=_ALARM.reset)

_work: ContextVar[CurrentWork | None] = ContextVar("kbcore.process.interrupting.work", default=None)
_is_optional: ContextVar[bool] = ContextVar("kbcore.process.interrupting.is_optional", default=False)
_statement_s: ContextVar[float] = ContextVar("kbcore.process.interrupting.statement_s", default=limits.STATEMENT_S)
_ends_s: ContextVar[float] = ContextVar("kbcore.process.interrupting.ends_s", default=math.inf)


@contextlib.contextmanager
def done_for(work: CurrentWork) -> Iterator[None]:
    """Let the steps that begin in the block belong to this work: in this thread, and in those it hands its context."""
    token = _work.set(work)
    try:
        yield
    finally:
        _work.reset(token)


@contextlib.contextmanager
def maintenance() -> Iterator[None]:
    """Let the statements of the block take as long as those may that build and look after a store."""
    token = _statement_s.set(limits.MAINTENANCE_STATEMENT_S)
    try:
        yield
    finally:
        _statement_s.reset(token)


@contextlib.contextmanager
def limited(time_s: float) -> Iterator[None]:
    """Give the block so many seconds: then ``check`` raises ``TimeOver``, and a statement ``StatementTimeout``."""
    token = _ends_s.set(min(_ends_s.get(), _now_s() + time_s))
    try:
        yield
    finally:
        _ends_s.reset(token)


def check() -> None:
    """Raise ``Stopped`` when the work that this is done for was asked to end, ``TimeOver`` when its time is over."""
    if _must_end(_work.get(), is_optional=_is_optional.get()):
        raise Stopped
    if _ends_s.get() < _now_s():
        raise TimeOver


@contextlib.contextmanager
def optional() -> Iterator[None]:
    """Let the block end when its work is stopped, also after a commit: what no answer waits for."""
    token = _is_optional.set(True)
    try:
        yield
    finally:
        _is_optional.reset(token)


def begin_answer() -> None:
    """Begin a part of a work that is answered by itself: its errors say nothing of what earlier parts have written.

    Raises: ``Stopped`` when the work was stopped before.
    """
    work = _work.get()
    if work is not None:
        work.has_changed = False
    begin_part()


def begin_part() -> None:
    """Begin the next part of a work, which may write one changeset: until it does, it can be stopped.

    Raises: ``Stopped`` when the work was stopped before.
    """
    work = _work.get()
    if work is not None:
        work.is_committed = False
        work.has_begun = True
    check()


def note_commit() -> None:
    """Note that something is being written: from here on the part ends by itself, and is not stopped half-way."""
    work = _work.get()
    if work is not None:
        work.is_committed = work.has_written = work.has_changed = True


def note_change() -> None:
    """Note that something else than a changeset is being written. The part can still be stopped."""
    work = _work.get()
    if work is not None:
        work.has_changed = True


def is_writing() -> bool:
    """Tell whether the present part of the work has begun to write, and so may have."""
    work = _work.get()
    return work is not None and work.is_committed


def may_have_written() -> bool:
    """Tell whether the work that this is done for has written anything, or has begun to."""
    work = _work.get()
    return work is not None and work.may_have_written


def with_write_state(error: E) -> E:
    """Return an error of what only reads, which says so where something was written before it in the same answer."""
    work = _work.get()
    return _after_write(error) if work is not None and work.has_changed and error.applied == "no" else error


def _after_write(error: E) -> E:
    error.applied = "unknown"
    error.add("This was after something had been written.")
    error.remedy = f"{kb('status')} and {kb('log')} show what was written. {error.remedy}"
    return error


def _must_end(work: CurrentWork | None, *, is_optional: bool) -> bool:
    return work is not None and (work.is_stopped if is_optional else work.must_end)


class step:  # noqa: N801 - it is used as a function: a context manager of few instructions
    """Interrupt the block when its time is over, by default that of a statement, or when its work is stopped.

    What it then raises is for the caller to find out: ``Step.is_interrupted`` and ``Step.reason``. With ``is_cleanup``
    the block undoes what was begun, and goes on although the work was stopped.

    Raises: ``Stopped`` when the work was stopped before.
    """

    __slots__ = ("_step",)

    def __init__(
        self, interrupt: Callable[[], object], time_s: float | None = None, *, is_cleanup: bool = False
    ) -> None:
        work = None if is_cleanup else _work.get()
        is_optional = _is_optional.get()
        if _must_end(work, is_optional=is_optional):
            raise Stopped
        own_s = _statement_s.get() if time_s is None else time_s
        if not is_cleanup and (ends_s := _ends_s.get()) != math.inf:
            own_s = min(own_s, max(0.0, ends_s - _now_s()))
        self._step = RunningStep(interrupt, own_s, work, is_optional=is_optional)

    def __enter__(self) -> RunningStep:
        """Begin the step."""
        _ALARM.begin(self._step)
        return self._step

    def __exit__(self, *_: object) -> None:
        """End the step: it is not interrupted any more."""
        _ALARM.end(self._step)
