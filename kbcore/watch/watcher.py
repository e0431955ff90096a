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

import msgspec

from kbcore import branches
from kbcore.errors import (
    BranchMoved,
    CommitUncertain,
    Damaged,
    InvalidConfig,
    KBError,
    LimitExceeded,
    NotInitialised,
    StorageError,
    Unavailable,
    UnknownBranch,
)
from kbcore.store import Author
from kbcore.sync import pending
from kbcore.sync.answer import SyncAnswer
from kbcore.sync.run import SyncOptions, check_worktree, sync
from kbcore.watch.backlog import Backlog, Work
from kbcore.watch.checking import Checking
from kbcore.watch.events import Following, Polling, Synced, Tell
from kbcore.watch.notices import NoNotices, Notices
from kbcore.watch.places import Places, places_of
from kbcore.watch.troubles import Troubles
from kbcore.watch.witness import Witness
from kbcore.watch.worktree import alone, in_its_place
from kbcore.workspace import Workspace, check_initialised

_RETRY_S: Final = 0.2
_LONGEST_RETRY_S: Final = 5.0
_DOUBT_RETRY_S: Final = 1.0
"""From this pause on a damaged store is believed: it may be that somebody is removing it, or putting one back."""

_QUIET_SCAN_S: Final = 60.0
"""So long after the last change everything is looked at once more, in case the system did not tell of something."""

_LONGEST_QUIET_SCAN_S: Final = 600.0
"""While such looks find nothing, the time between them doubles up to this one."""

_IDLE_S: Final = 0.5
"""So often it is seen whether to stop: a signal may come in the very moment before the waiting begins."""

_PASSING = (BranchMoved, UnknownBranch, Unavailable, CommitUncertain, InvalidConfig, LimitExceeded, NotInitialised)
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
        self._quiet_scan_s = _QUIET_SCAN_S
        self._witness = Witness()
        self._has_foreign = False

    def stop(self) -> None:
        """Let ``run`` end once it has done what it is at."""
        self._is_stopped = True
        if self._notices is not None:
            self._notices.wake()

    def run(self) -> None:
        """Follow the worktree.

        Raises: ``AlreadyWatched`` when another process watches it; ``InvalidQuery`` where there is no worktree;
        ``NotARepository`` when it is removed; the errors of a damaged store.
        """
        check_worktree(self._workspace, None)
        with alone(self._workspace), in_its_place(self._workspace):
            while not self._is_stopped:
                places = self._places()
                with contextlib.suppress(_Elsewhere), self._listening(places) as notices:
                    self._follow(places, notices)

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
            if notices.is_deaf:
                raise _Elsewhere
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
            check_initialised(workspace)
            is_new = branch != self._branch
            if is_new:
                self._witness.forget()
            loss = self._witness.loss(workspace, branch)
            if loss:
                self._wait_for(work, loss)
                return
            ensured = branches.ensure(workspace, branch, follows_head=True)
            options = SyncOptions(touched=None if is_new else work.paths)
            answer = sync(workspace, branch, self._author, options)
            store = workspace.store(branch)
            self._witness.saw(store.head())
        except _PASSING as error:
            self._wait_for(work, error)
            return
        except Damaged:
            if not self._branch or self._retry_s > _DOUBT_RETRY_S:
                raise
            self._put_back(work)
            return
        self._troubles.end("syncing")
        self._retry_s = _RETRY_S
        now_s = self._clock.monotonic_s()
        self._branch, self._seq = branch, answer.outcome.seq
        is_said = is_new and not ensured.is_warning
        notices = self._witness.news(filter(None, ["" if is_said else ensured.notice, *store.notices]))
        answer = _with_warnings(answer, notices)
        self._plan_look(work, has_found=is_new or answer.outcome.applied)
        if is_new:
            self._tell(Following(self._clock.now(), answer, ensured.notice if is_said else ""))
            self._checking.begin(workspace, branch)
        elif answer.outcome.applied or answer.outcome.warnings:
            self._tell(Synced(self._clock.now(), answer, round(1000 * (now_s - work.since_s))))
            self._checking.check_changed(workspace, branch, answer.outcome)

    def _wait_for(self, work: Work, error: KBError) -> None:
        """Put work back until the trouble is over. A moment of git's is no trouble yet."""
        if not isinstance(error, BranchMoved) or self._retry_s > _RETRY_S:
            self._troubles.begin("syncing", error)
        self._put_back(work)

    def _put_back(self, work: Work) -> None:
        self._backlog.put_back(work, self._clock.monotonic_s(), self._retry_s)
        self._retry_s = min(2 * self._retry_s, _LONGEST_RETRY_S)

    @property
    def _is_behind(self) -> bool:
        """Tell whether something was put back that could not be done yet."""
        return self._retry_s > _RETRY_S

    def _plan_look(self, work: Work, *, has_found: bool) -> None:
        """Plan the next look at everything, the later the longer nothing is found."""
        if work.paths == ():
            return
        is_vain = work.paths is None and not has_found
        self._quiet_scan_s = min(2 * self._quiet_scan_s, _LONGEST_QUIET_SCAN_S) if is_vain else _QUIET_SCAN_S
        self._scan_at_s = self._clock.monotonic_s() + self._quiet_scan_s

    def _check_when_due(self) -> None:
        if not self._checking.is_due:
            return
        if self._has_foreign and not self._is_behind:
            # What others wrote may give a meaning to files that wait for it.
            self._has_foreign = False
            self._take_in(Work((), self._clock.monotonic_s()))
        if self._is_behind:
            # What keeps it from syncing would keep it from checking, or make that say what is no longer so.
            self._checking.plan()
            return
        self._workspace = self._workspace.renewed()
        self._checking.check_all(self._workspace, self._branch)


class _Elsewhere(Exception):
    """Other folders are to be watched from now on."""


def _with_warnings(answer: SyncAnswer, more: tuple[str, ...]) -> SyncAnswer:
    outcome = msgspec.structs.replace(answer.outcome, warnings=(*answer.outcome.warnings, *more))
    return msgspec.structs.replace(answer, outcome=outcome)


def _is_doubtful(path: Path) -> bool:
    """Tell whether a path is gone or holds nothing, as while it is being saved."""
    try:
        about = os.lstat(path)
    except OSError:
        return True
    return about.st_size == 0
