"""Keep a branch's store in step with the files of its worktree, until told to stop.

Correctness never rests on notices: a changed path is looked at as a sync looks at it, and everything is looked at when
the watcher begins, when git has changed what is checked out, when much changed at once, and after a while of quiet.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from kbcore import branches
from kbcore.checks import run_checks
from kbcore.errors import AlreadyWatched, BranchMoved, InvalidConfig, KBError, LockTimeout, NotFound, Unavailable
from kbcore.rules import Violation
from kbcore.storage import files, lock
from kbcore.store import Author
from kbcore.sync import pending, stamps
from kbcore.sync.answer import SyncAnswer
from kbcore.sync.run import SyncOptions, check_worktree, sync
from kbcore.watch.affected import affected_by
from kbcore.watch.backlog import Backlog, Work
from kbcore.watch.events import Checked, Following, Polling, Synced, Tell, Waiting
from kbcore.watch.notices import NoNotices, Notices
from kbcore.watch.places import Places, places_of
from kbcore.watch.violations import Ledger
from kbcore.workspace import CACHE, Workspace

_RETRY_S: Final = 0.2
_LONGEST_RETRY_S: Final = 5.0
_QUIET_SCAN_S: Final = 60.0
"""So long after the last change everything is looked at once more, in case the system did not tell of something."""

_IDLE_S: Final = 3600.0
_CHECK_QUIET_S: Final = 0.3
_CHECK_SHARE: Final = 10
"""Checks of everything take at most one part in so many of the time."""

_EXPECTED = (BranchMoved, Unavailable, InvalidConfig)
"""What passes: git in the middle of something, a disk that is full, settings that are being edited."""


class Watcher:
    """One worktree's watcher. ``run`` ends when ``stop`` was called, from a handler of signals or another thread."""

    def __init__(self, workspace: Workspace, author: Author, tell: Tell) -> None:
        self._workspace = workspace
        self._clock = workspace.machine.clock
        self._author = author
        self._tell = tell
        self._backlog = Backlog()
        self._ledger = Ledger()
        self._notices: Notices | None = None
        self._is_stopped = False
        self._is_polling = False
        self._branch = ""
        self._seq = -1
        self._trouble = ""
        self._retry_s = _RETRY_S
        self._scan_at_s: float | None = None
        self._check_at_s: float | None = None
        self._checks_until_s = 0.0

    def stop(self) -> None:
        """Let ``run`` end once it has done what it is at."""
        self._is_stopped = True
        if self._notices is not None:
            self._notices.wake()

    def run(self) -> None:
        """Follow the worktree.

        Raises: ``AlreadyWatched`` when another process watches it; ``InvalidQuery`` where there is no worktree; the
        errors of a damaged store.
        """
        check_worktree(self._workspace, None)
        with self._alone():
            while not self._is_stopped:
                places = self._places()
                with contextlib.suppress(_Elsewhere), self._listening(places) as notices:
                    self._follow(places, notices)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Hold the lock of this worktree's watcher."""
        fs, cache = self._workspace.machine.fs, self._workspace.kb_dir / CACHE
        if not files.is_directory(fs, cache):
            with files.explained(cache, "make"):
                fs.mkdir(cache)
        path = stamps.path_of(cache, self._workspace.repo.worktree).with_suffix(".watch")
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(lock.held(fs, self._clock, path, wait_s=0, command="kb watch"))
            except LockTimeout as held:
                holder = lock.read_holder(fs, path) or "another process"
                message = f"{self._workspace.repo.worktree} is watched already, by {holder}."
                raise AlreadyWatched(message, data=held.data) from held
            yield

    @contextlib.contextmanager
    def _listening(self, places: Places) -> Iterator[Notices]:
        """Give the notices of these places; where the system gives none, files are looked at every second."""
        with Notices(places.deep, places.flat, is_polling=self._is_polling) as notices:
            self._notices = notices
            if self._is_stopped:
                notices.wake()
            self._backlog.add_all(self._clock.monotonic_s())
            try:
                yield notices
            except NoNotices as error:
                if self._is_polling:
                    raise
                self._is_polling = True
                self._tell(Polling(self._clock.now(), str(error)))
            finally:
                self._notices = None

    def _places(self) -> Places:
        """Return where changes matter now; with settings that cannot be used, where they could be mended."""
        workspace = self._workspace = self._workspace.renewed()
        branch = workspace.head().branch
        try:
            globs = [glob for want in pending.wanted(workspace) for glob, _ in want.globs]
        except InvalidConfig:
            globs = []  # the sync that comes next says what is wrong
        return places_of(workspace, globs, branch)

    def _follow(self, places: Places, notices: Notices) -> None:
        """Take in what changes in these places. Raises ``_Elsewhere`` when others are to be watched."""
        while not self._is_stopped:
            changed = notices.take(self._pause_s())
            self._sort(places, changed)
            work = self._backlog.due(self._clock.monotonic_s(), lambda name: _is_doubtful(places.root / name))
            if work:
                self._take_in(work)
                if work.paths is None and self._places() != places:
                    raise _Elsewhere
            self._check_when_due()

    def _pause_s(self) -> float:
        """Return how long there is nothing to do unless something changes."""
        now_s = self._clock.monotonic_s()
        wait_s = self._backlog.wait_s(now_s)
        waits = [_IDLE_S] if wait_s is None else [wait_s]
        waits += [max(0.0, at_s - now_s) for at_s in (self._scan_at_s, self._check_at_s) if at_s is not None]
        return min(waits)

    def _sort(self, places: Places, changed: set[str]) -> None:
        """Note what these paths mean."""
        now_s = self._clock.monotonic_s()
        for text in changed:
            path = Path(text)
            meaning = places.meaning(path)
            if meaning in {"file", "folder"}:
                self._backlog.add([path.relative_to(places.root).as_posix()], now_s)
            elif meaning in {"layout", "settings"}:
                self._backlog.hurry()
                self._backlog.add_all(now_s)
            elif meaning == "checkout":
                self._backlog.hurry()
                if self._workspace.head().branch != self._branch:
                    self._backlog.add_all(now_s)
            elif meaning == "store":
                self._look_at_store(now_s)
        if self._scan_at_s is not None and now_s >= self._scan_at_s:
            self._scan_at_s = None
            self._backlog.add_all(now_s)

    def _look_at_store(self, now_s: float) -> None:
        """See whether somebody else has written to the branch: its violations may be others now."""
        with contextlib.suppress(KBError):  # the next sync or check says what is wrong
            if self._workspace.store(self._branch).head().seq != self._seq:
                self._check_at_s = max(now_s, self._checks_until_s)

    def _take_in(self, work: Work) -> None:
        """Sync what is due; what cannot be done now is put back."""
        try:
            branch = self._workspace.head().branch
            is_new = branch != self._branch
            ensured = branches.ensure(self._workspace, branch, follows_head=True)
            options = SyncOptions(touched=None if is_new else work.paths)
            answer = sync(self._workspace, branch, self._author, options)
        except _EXPECTED as error:
            self._wait_for(work, error)
            return
        self._trouble, self._retry_s = "", _RETRY_S
        now_s = self._clock.monotonic_s()
        self._scan_at_s = None if work.paths is None else now_s + _QUIET_SCAN_S
        self._branch, self._seq = branch, answer.outcome.seq
        if is_new:
            self._ledger.clear()
            self._tell(Following(self._clock.now(), answer, ensured.notice))
            self._check_all(is_first=True)
        elif answer.outcome.applied or answer.outcome.warnings:
            self._tell(Synced(self._clock.now(), answer, round(1000 * (now_s - work.since_s))))
            self._check_changed(answer)

    def _wait_for(self, work: Work, error: KBError) -> None:
        """Put work back until the trouble is over, and tell of it once. A moment of git's is no trouble yet."""
        is_git = isinstance(error, BranchMoved)
        if error.message != self._trouble and not (is_git and self._retry_s == _RETRY_S):
            self._trouble = error.message
            self._tell(Waiting(self._clock.now(), error))
        self._backlog.put_back(work, self._clock.monotonic_s(), self._retry_s)
        self._retry_s = min(2 * self._retry_s, _LONGEST_RETRY_S)

    def _check_changed(self, answer: SyncAnswer) -> None:
        """Look at once at what a sync touched, and at everything when it is quiet and its turn has come."""
        self._check_at_s = max(self._clock.monotonic_s() + _CHECK_QUIET_S, self._checks_until_s)
        store = self._workspace.store(self._branch)
        ids, known = store.read(lambda view: affected_by(view, answer.outcome))
        report = store.read(lambda view: run_checks(self._workspace, view, ids=known)) if known else None
        self._report(report.violations if report else (), ids)

    def _check_when_due(self) -> None:
        if self._check_at_s is not None and self._clock.monotonic_s() >= self._check_at_s:
            self._check_all()

    def _check_all(self, *, is_first: bool = False) -> None:
        """Run every rule over the branch, no more often than ``_CHECK_SHARE`` allows."""
        self._check_at_s = None
        begun_s = self._clock.monotonic_s()
        try:
            store = self._workspace.store(self._branch)
            self._seq, report = store.read(lambda view: (view.seq, run_checks(self._workspace, view)))
        except (*_EXPECTED, NotFound) as error:
            self._tell(Waiting(self._clock.now(), error))
            return
        end_s = self._clock.monotonic_s()
        self._checks_until_s = end_s + _CHECK_SHARE * (end_s - begun_s)
        self._report(report.violations, None, is_first=is_first)

    def _report(self, found: Iterable[Violation], ids: frozenset[str] | None, *, is_first: bool = False) -> None:
        """Tell which violations came and went."""
        turn = self._ledger.update(found, ids)
        if turn.new or turn.mended or is_first:
            standing = self._ledger.standing
            at, seq = self._clock.now(), self._seq
            self._tell(Checked(at, self._branch, seq, turn.new, turn.mended, standing, is_first))


class _Elsewhere(Exception):
    """Other folders are to be watched from now on."""


def _is_doubtful(path: Path) -> bool:
    """Tell whether a path is gone or holds nothing, as while it is being saved."""
    try:
        about = os.lstat(path)
    except OSError:
        return True
    return about.st_size == 0
