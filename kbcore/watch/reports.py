"""Take in the reports of test runs whenever one of them has changed, until it is stopped.

All reports are taken in together each time, as the command without ``--watch`` does, so that a test which two reports
have keeps the worse of its outcomes. Notices are hints: what counts is whether a file looks otherwise than when it was
taken in last, and that it has stopped changing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kbcore.clock import Clock
from kbcore.errors import Damaged, InvalidReport, KBError, LimitExceeded, NotARepository
from kbcore.process import interrupting
from kbcore.results.report_files import ReportFile
from kbcore.results.taking import ResultsAnswer
from kbcore.watch.notices import NoNotices, NotedPaths
from kbcore.watch.pauses import Retry

T = TypeVar("T")

_IDLE_S: Final = 0.5
_SETTLED_S: Final = 0.4
"""A report is taken in when it has not changed for so long: it may be written in parts."""
_LOOK_S: Final = 5.0
"""The time after which the files are looked at although nothing was noticed."""

Marks = dict[str, tuple[int, int, int]]
"""By path, what changes whenever a file does: inode, time of the last change of it in nanoseconds, and bytes."""


class ReportsFollowed(msgspec.Struct, frozen=True):
    """From now on these reports are followed."""

    at: str
    files: tuple[str, ...]


class ReportsTaken(msgspec.Struct, frozen=True):
    """Changed reports were taken in."""

    at: str
    answer: ResultsAnswer


class ReportsRefused(msgspec.Struct, frozen=True):
    """Reports could not be found or taken in. Reported once for as long as it lasts.

    They are tried again when one of them changes, when they can be found again, or when that may help by itself.
    """

    at: str
    error: KBError


ReportEvent = ReportsFollowed | ReportsTaken | ReportsRefused
Folders = tuple[list[Path], list[Path]]
"""Folders that are watched with all below them, and folders whose entries are watched."""
_ENDS: Final = (Damaged, NotARepository)
"""The errors that end the watcher: no change of a file corrects them."""
_OF_REPORTS: Final = (InvalidReport, LimitExceeded)
"""The errors that last until a report changes; all others are over some time, and it is tried again."""


class ReportWatcher:
    """Follows reports. ``run`` ends when ``stop`` was called, from a handler of signals or another thread."""

    def __init__(
        self,
        clock: Clock,
        find: Callable[[], list[ReportFile]],
        folders: Callable[[], Folders],
        take: Callable[[Sequence[ReportFile]], ResultsAnswer],
        tell: Callable[[ReportEvent], None],
        *,
        listen: type[NotedPaths] = NotedPaths,
    ) -> None:
        """``find`` returns the reports that are there, ``folders`` where others may come, ``take`` takes them in.

        The first two may fail while settings are being saved.
        """
        self._clock = clock
        self._find = find
        self._folders = folders
        self._take = take
        self._tell = tell
        self._listen = listen
        self._notices: NotedPaths | None = None
        self._taken: Marks | None = None
        self._seen: Marks = {}
        self._seen_s = 0.0
        self._retry = Retry()
        self._retry_at_s: float | None = None
        self._refused_by: type[KBError] | None = None
        """The kind of the error that was reported last and is not over."""
        self._is_stopped = False
        self._is_polling = False

    def stop(self) -> None:
        """End ``run`` once its present step is done."""
        self._is_stopped = True
        if self._notices is not None:
            self._notices.wake()

    def run(self) -> None:
        """Follow the reports.

        Raises: at the beginning, any error; later the errors of a damaged store, and ``NotARepository``.
        """
        self._tell(ReportsFollowed(self._clock.now(), tuple(one.shown for one in self._find())))
        folders = self._folders()
        while not self._is_stopped:
            with self._listen(*folders, is_polling=self._is_polling) as notices:
                self._notices = notices
                try:
                    self._follow(notices, folders)
                except NoNotices:
                    self._is_polling = True
                finally:
                    self._notices = None
            folders = self._step(self._folders) or folders

    def _follow(self, notices: NotedPaths, folders: Folders) -> None:
        """Take in what changes, until other folders are to be watched. Raises: ``NoNotices``."""
        watched = {str(one) for listed in folders for one in listed}
        look_at_s = 0.0
        while not self._is_stopped:
            now_s = self._clock.monotonic_s()
            if now_s >= look_at_s:
                self._step(partial(self._look, now_s))
                if (self._step(self._folders) or folders) != folders:
                    return
                look_at_s = now_s + (_SETTLED_S if self._is_due else _LOOK_S)
            changed = notices.take(min(_IDLE_S, max(0.0, look_at_s - now_s)))
            if changed:
                look_at_s = 0.0
            # A folder that is watched may be another one now. One that is polled is seen by its path.
            if notices.has_ended or (not self._is_polling and not watched.isdisjoint(changed)):
                return

    def _step(self, step: Callable[[], T]) -> T | None:
        """Return what a step returns, None where an error prevents it for a while, which is reported."""
        try:
            return step()
        except _ENDS:
            raise
        except KBError as error:  # as while a file of settings is being saved
            self._refuse(error)
            return None

    @property
    def _is_due(self) -> bool:
        """Return whether something is to be taken in as soon as it has stopped changing, or tried again."""
        return self._seen != self._taken or self._retry_at_s is not None

    def _look(self, now_s: float) -> None:
        """Look at the reports, and take them in where they changed and have stopped doing so. Raises: as ``find``."""
        files = self._find()
        if self._retry_at_s is None:
            self._refused_by = None
        marks = _marks(files)
        if marks != self._seen:
            self._seen, self._seen_s = marks, now_s
        is_first = self._taken is None
        is_settled = now_s - self._seen_s >= _SETTLED_S or is_first
        is_due = marks != self._taken or (self._retry_at_s is not None and now_s >= self._retry_at_s)
        if not (is_due and is_settled):
            return
        self._retry_at_s = None
        self._taken = marks
        if not marks:
            return
        interrupting.begin_answer()
        try:
            answer = self._take([one for one in files if one.path in marks])
        except _ENDS:
            raise
        except KBError as error:
            if not isinstance(error, _OF_REPORTS):
                self._retry_at_s = now_s + self._retry.take_s()
            self._refuse(error)
            return
        self._retry.end()
        if is_first or answer.recorded.outcome.applied:
            self._tell(ReportsTaken(self._clock.now(), answer))

    def _refuse(self, error: KBError) -> None:
        """Report an error, unless it is of the kind that was reported last and is not over."""
        if type(error) is not self._refused_by:
            self._refused_by = type(error)
            self._tell(ReportsRefused(self._clock.now(), error))


def _marks(files: Sequence[ReportFile]) -> Marks:
    found: Marks = {}
    for one in files:
        with contextlib.suppress(OSError):  # it went since it was found
            about = os.stat(one.path)  # noqa: PTH116 - as it is followed
            found[one.path] = about.st_ino, about.st_ctime_ns, about.st_size
    return found
