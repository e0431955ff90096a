"""Keep a branch's store in step with the files of its worktree, until told to stop.

Correctness never rests on notices: a changed path is looked at as a sync looks at it, and everything is looked at when
the watcher begins, when git has changed what is checked out, when much changed at once, and after a while of quiet.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kbcore import branches
from kbcore.errors import (
    AlreadyWatched,
    BranchMoved,
    CommitUncertain,
    InvalidConfig,
    KBError,
    LimitExceeded,
    LockTimeout,
    StorageError,
    Unavailable,
    UnknownBranch,
)
from kbcore.storage import files, lock
from kbcore.store import Author
from kbcore.sync import pending, stamps
from kbcore.sync.run import SyncOptions, check_worktree, sync
from kbcore.watch.backlog import Backlog, Work
from kbcore.watch.checking import Checking
from kbcore.watch.events import Following, Polling, Synced, Tell
from kbcore.watch.notices import NoNotices, Notices
from kbcore.watch.places import Places, places_of
from kbcore.watch.troubles import Troubles
from kbcore.workspace import CACHE, Workspace

_RETRY_S: Final = 0.2
_LONGEST_RETRY_S: Final = 5.0
_QUIET_SCAN_S: Final = 60.0
"""So long after the last change everything is looked at once more, in case the system did not tell of something."""

_IDLE_S: Final = 0.5
"""So often it is seen whether to stop: a signal may come in the very moment before the waiting begins."""

_PASSING = (BranchMoved, UnknownBranch, Unavailable, CommitUncertain, InvalidConfig, LimitExceeded)
"""What passes, or can be mended: git in the middle of something, a full disk, settings that are being edited."""


class Watcher:
    """One worktree's watcher. ``run`` ends when ``stop`` was called, from a handler of signals or another thread."""

    def __init__(self, workspace: Workspace, author: Author, tell: Tell, *, listen: type[Notices] = Notices) -> None:
        self._workspace = workspace
        self._clock = workspace.machine.clock
        self._author = author
        self._tell = tell
        self._listen = listen
        self._backlog = Backlog()
        self._troubles = Troubles(self._clock, tell)
        self._checking = Checking(self._clock, tell, self._troubles)
        self._notices: Notices | None = None
        self._is_stopped = False
        self._is_polling = False
        self._branch = ""
        self._seq = -1
        self._retry_s = _RETRY_S
        self._scan_at_s: float | None = None
        self._has_foreign = False

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
        for folder in (cache.parent, cache):
            if not files.is_directory(fs, folder):
                with files.explained(folder, "make"), contextlib.suppress(FileExistsError):
                    fs.mkdir(folder)
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
        with self._listen(places.deep, places.flat, is_polling=self._is_polling) as notices:
            self._notices = notices
            if self._is_stopped:
                notices.wake()
            self._miss_nothing()
            try:
                yield notices
            except NoNotices as error:
                if self._is_polling:
                    root = self._workspace.repo.worktree
                    raise StorageError(f"The files of {root} cannot be watched: {error}.") from error
                self._is_polling = True
                self._tell(Polling(self._clock.now(), str(error)))
            finally:
                self._notices = None

    def _miss_nothing(self) -> None:
        """Look at everything that may have changed while nobody listened."""
        self._backlog.add_all(self._clock.monotonic_s())
        if self._branch:
            self._checking.plan()
            self._look_at_store()

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
            self._sort(places, notices.take(self._pause_s()))
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
        waits += [max(0.0, at_s - now_s) for at_s in (self._scan_at_s, self._checking.due_s) if at_s is not None]
        return min(waits)

    def _sort(self, places: Places, changed: set[str]) -> None:
        """Note what these paths mean. Raises ``_Elsewhere`` when what is watched may be another folder by now."""
        now_s = self._clock.monotonic_s()
        is_elsewhere = False
        for text in changed:
            path = Path(text)
            meaning = places.meaning(path)
            if meaning in {"file", "folder", "layout"}:
                self._backlog.add([path.relative_to(places.root).as_posix()], now_s)
            if meaning in {"layout", "settings"}:
                self._backlog.hurry()
                self._backlog.add_all(now_s)
            if meaning == "settings":
                self._checking.plan(is_asked=True)
            elif meaning == "checkout":
                self._backlog.hurry()
                if self._workspace.head().branch != self._branch:
                    self._backlog.add_all(now_s)
            elif meaning == "store":
                self._look_at_store()
            # Where files are looked at, a folder is told of whenever something in it comes or goes.
            is_elsewhere |= not self._is_polling and (meaning == "layout" or places.is_listened(path))
        if self._scan_at_s is not None and now_s >= self._scan_at_s:
            self._scan_at_s = None
            self._backlog.add_all(now_s)
        if is_elsewhere:
            raise _Elsewhere

    def _look_at_store(self) -> None:
        """See whether somebody else has written to the branch: its violations may be others now."""
        with contextlib.suppress(KBError):  # the next sync or check says what is wrong
            if self._workspace.store(self._branch).head().seq != self._seq:
                self._has_foreign = True
                self._checking.plan(0.0)

    def _take_in(self, work: Work) -> None:
        """Sync what is due; what cannot be done now is put back."""
        workspace = self._workspace = self._workspace.renewed()
        try:
            branch = workspace.head().branch
            is_new = branch != self._branch
            ensured = branches.ensure(workspace, branch, follows_head=True)
            options = SyncOptions(touched=None if is_new else work.paths)
            answer = sync(workspace, branch, self._author, options)
        except _PASSING as error:
            self._wait_for(work, error)
            return
        self._troubles.end("syncing")
        self._retry_s = _RETRY_S
        now_s = self._clock.monotonic_s()
        if work.paths is None or work.paths:
            self._scan_at_s = None if work.paths is None else now_s + _QUIET_SCAN_S
        self._branch, self._seq = branch, answer.outcome.seq
        if is_new:
            self._tell(Following(self._clock.now(), answer, ensured.notice))
            self._checking.begin(workspace, branch)
        elif answer.outcome.applied or answer.outcome.warnings:
            self._tell(Synced(self._clock.now(), answer, round(1000 * (now_s - work.since_s))))
            self._checking.check_changed(workspace, branch, answer.outcome)

    def _wait_for(self, work: Work, error: KBError) -> None:
        """Put work back until the trouble is over. A moment of git's is no trouble yet."""
        if not isinstance(error, BranchMoved) or self._retry_s > _RETRY_S:
            self._troubles.begin("syncing", error)
        self._backlog.put_back(work, self._clock.monotonic_s(), self._retry_s)
        self._retry_s = min(2 * self._retry_s, _LONGEST_RETRY_S)

    def _check_when_due(self) -> None:
        if not self._checking.is_due:
            return
        if self._troubles.has("syncing"):
            # What keeps it from syncing would keep it from checking, or make that say what is no longer so.
            self._checking.plan()
            return
        if self._has_foreign:
            # What others wrote may give a meaning to files that wait for it.
            self._has_foreign = False
            self._take_in(Work((), self._clock.monotonic_s()))
        self._workspace = self._workspace.renewed()
        self._checking.check_all(self._workspace, self._branch)


class _Elsewhere(Exception):
    """Other folders are to be watched from now on."""


def _is_doubtful(path: Path) -> bool:
    """Tell whether a path is gone or holds nothing, as while it is being saved."""
    try:
        about = os.lstat(path)
    except OSError:
        return True
    return about.st_size == 0
