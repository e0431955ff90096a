"""Keep a branch's store in step with the files of its worktree, until it is stopped.

Correctness never rests on notices: a changed path is looked at as a sync looks at it, and everything is looked at when
the watcher begins, when git has changed what is checked out, when much changed at once, and after a while of quiet.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from kbcore.errors import (
    GitUnusable,
    InvalidConfig,
    KBError,
    StorageError,
)
from kbcore.process import interrupting
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author
from kbcore.sync.active_extractors import extractors_of
from kbcore.sync.run import check_worktree
from kbcore.watch.checking import Checking
from kbcore.watch.debounce import Debouncer, PendingWork
from kbcore.watch.events import Following, Listening, Polling, Synced, Tell
from kbcore.watch.notices import NoNotices, NotedPaths
from kbcore.watch.open_errors import OpenErrors
from kbcore.watch.pauses import QuietLook
from kbcore.watch.places import Places, places_of
from kbcore.watch.settings import Settings, is_doubtful
from kbcore.watch.sync_step import SyncStep
from kbcore.watch.worktree import explaining_removal, is_removed, watch_lock

_IDLE_S: Final = 0.5
"""The interval of looks whether to stop: a signal may come just before the wait begins."""


class Watcher:
    """One worktree's watcher. ``run`` ends when ``stop`` was called, from a handler of signals or another thread."""

    def __init__(
        self,
        workspace: Workspace,
        author: Author,
        tell: Tell,
        *,
        rest: Callable[[], None] = lambda: None,
        listen: type[NotedPaths] = NotedPaths,
    ) -> None:
        """``rest`` is called between one thing that is done and the next, and twice a second while there is nothing."""
        self._rest = rest
        self._workspace = workspace
        self._clock = workspace.machine.clock
        self._tell = tell
        self._listen = listen
        self._debouncer = Debouncer()
        self._settings = Settings(self._clock, self._debouncer)
        open_errors = OpenErrors(self._clock, tell, self._settings.are_being_saved)
        self._sync_step = SyncStep(author, self._debouncer, self._settings, open_errors)
        self._checking = Checking(self._clock, tell, open_errors)
        self._notices: NotedPaths | None = None
        self._is_stopped = False
        self._is_polling = False
        self._refusal = ""
        self._quiet_look = QuietLook()
        self._found: Places | None = None
        self._has_foreign = False

    def stop(self) -> None:
        """End ``run`` once its present step is done."""
        self._is_stopped = True
        if self._notices is not None:
            self._notices.wake()

    def run(self) -> None:
        """Follow the worktree.

        Raises: ``AlreadyWatched`` when another process watches it; ``InvalidQuery`` where there is no worktree;
        ``NotARepository`` when it is removed; the errors of a damaged store.
        """
        check_worktree(self._workspace, None)
        with watch_lock(self._workspace), explaining_removal(self._workspace):
            while not self._is_stopped:
                places = self._places()
                with contextlib.suppress(_ListenAgain), self._listening(places) as notices:
                    self._follow(places, notices)

    @contextlib.contextmanager
    def _listening(self, places: Places) -> Iterator[NotedPaths]:
        """Give the notices of these places; where the system gives none, files are looked at every second.

        That is reported when it begins, and when it is over.
        """
        with self._listen(places.deep, places.flat, is_polling=self._is_polling) as notices:
            self._notices = notices
            if self._is_stopped:
                notices.wake()
            self._look_at_everything()
            if self._refusal and not (self._is_polling or notices.refusal):
                self._refusal = ""
                self._tell(Listening(self._clock.now()))
            try:
                yield notices
            except NoNotices as error:
                if self._is_polling:
                    root = self._workspace.repo.worktree
                    raise StorageError(f"The files of {root} cannot be watched: {error}.") from error
                self._is_polling = True
                if str(error) != self._refusal:
                    self._refusal = str(error)
                    self._tell(Polling(self._clock.now(), self._refusal))
            finally:
                self._notices = None

    def _look_at_everything(self) -> None:
        """Look at everything that may have changed without a notice."""
        self._debouncer.add_all(self._clock.monotonic_s())
        if self._sync_step.branch:
            self._checking.plan()
            self._look_at_store()

    def _places(self) -> Places:
        """Return where changes matter now; where that cannot be found out, those that did before.

        Raises: at the beginning, any error; ``GitUnusable`` when the worktree was removed.
        """
        workspace = self._workspace = self._workspace.renewed()
        try:
            branch = workspace.head().branch
            try:
                globs = [glob for want in extractors_of(workspace) for glob, _ in want.globs]
            except InvalidConfig:
                globs = []  # they can be fixed; the next sync reports what is wrong
            self._found = places_of(workspace, globs, branch)
        except (GitUnusable, InvalidConfig):
            if self._found is None or is_removed(workspace):
                raise
        return self._found

    def _follow(self, places: Places, notices: NotedPaths) -> None:
        """Take in what changes in these places. Raises ``_ListenAgain`` when others are to be watched."""
        while not self._is_stopped:
            self._sort(places, notices.take(self._pause_s()))
            if notices.has_ended:
                raise _ListenAgain
            work = self._debouncer.due(self._clock.monotonic_s(), lambda name: is_doubtful(places.root / name))
            if work:
                self._take_in(work)
                if work.paths is None and self._places() != places:
                    raise _ListenAgain
            self._check_when_due(lambda: self._has_news(places, notices))
            self._rest()

    def _pause_s(self) -> float:
        """Return how long there is nothing to do unless something changes."""
        now_s = self._clock.monotonic_s()
        wait_s = self._debouncer.wait_s(now_s)
        waits = [_IDLE_S] if wait_s is None else [wait_s]
        check_s = None if self._debouncer.is_settling(now_s) else self._checking.due_s
        waits += [max(0.0, at_s - now_s) for at_s in (self._quiet_look.at_s, check_s) if at_s is not None]
        return min(waits)

    def _has_news(self, places: Places, notices: NotedPaths) -> bool:
        """Return whether there is something to do that no check should keep waiting. Raises ``_ListenAgain``."""
        self._sort(places, notices.take(0.0))
        return self._is_stopped or self._debouncer.is_settling(self._clock.monotonic_s())

    def _sort(self, places: Places, changed: set[str]) -> None:
        """Note what these paths mean. Raises ``_ListenAgain`` when what is watched may be another folder by now."""
        now_s = self._clock.monotonic_s()
        is_elsewhere = False
        for text in changed:
            path = Path(text)
            meaning = places.meaning(path)
            if meaning in {"file", "folder", "layout"}:
                self._debouncer.add([path.relative_to(places.root).as_posix()], now_s)
            if meaning == "layout":
                self._debouncer.end_pause()
                self._debouncer.add_all(now_s)
            if meaning == "settings":
                self._debouncer.end_pause()
                self._debouncer.add([text], now_s, are_settings=True)
                self._checking.plan(is_asked=True)
            elif meaning == "checkout":
                self._debouncer.end_pause()
                if self._has_moved():
                    self._debouncer.add_all(now_s)
            elif meaning == "store":
                self._look_at_store()
            # Where files are looked at, that goes on in whatever has the place of a folder.
            is_elsewhere |= not self._is_polling and (meaning == "layout" or places.is_listened(path))
        if self._quiet_look.is_due(now_s):
            self._debouncer.add_all(now_s)
            # Rules ask for files without notices, such as source code.
            self._checking.plan()
            # What the system had not enough of may be there again.
            is_elsewhere |= self._is_polling
            self._is_polling = False
        if is_elsewhere:
            raise _ListenAgain

    def _has_moved(self) -> bool:
        """Return whether another branch is checked out than the one that is followed, as far as can be seen."""
        try:
            return self._workspace.head().branch != self._sync_step.branch
        except GitUnusable:  # the sync that comes next says what is wrong
            return True

    def _look_at_store(self) -> None:
        """Look whether another process has written to the branch: its violations may be others now."""
        try:
            is_foreign = self._workspace.store(self._sync_step.branch).head().seq != self._sync_step.seq
        except KBError:  # the sync that comes next says what is wrong
            is_foreign = True
        if is_foreign:
            self._has_foreign = True
            self._checking.plan(0.0)

    def _take_in(self, work: PendingWork, why: str = "") -> None:
        """Sync what is due, report it and note what to check; what cannot be done now waits."""
        interrupting.begin_answer()
        workspace = self._workspace = self._workspace.renewed()
        taken = self._sync_step.sync_due(workspace, work, why)
        if taken is None:
            return
        now_s, answer = self._clock.monotonic_s(), taken.answer
        if work.paths != ():
            is_in_vain = work.paths is None and not (taken.is_new or answer.outcome.applied)
            self._quiet_look.plan(now_s, is_in_vain=is_in_vain)
        if taken.is_new:
            self._tell(Following(self._clock.now(), answer, taken.notice))
            self._checking.begin()
        elif answer.outcome.applied or answer.outcome.warnings:
            self._tell(Synced(self._clock.now(), answer, round(1000 * (now_s - work.since_s))))
            self._checking.note_change()

    def _check_when_due(self, has_news: Callable[[], bool]) -> None:
        if not self._checking.is_due or (self._checking.may_wait and has_news()):
            return
        if self._has_foreign and not self._sync_step.is_pending:
            # What others wrote may give a meaning to files that wait for it, or take back what files state.
            self._has_foreign = False
            foreign = self._sync_step.foreign(self._workspace)
            self._take_in(PendingWork(foreign.paths, self._clock.monotonic_s()), foreign.why)
        if self._sync_step.is_pending or self._debouncer.has_settings or self._settings.are_being_saved():
            # What keeps it from syncing would keep it from checking, or make that say what is no longer so.
            self._checking.put_off()
            return
        self._workspace = self._workspace.renewed()
        interrupting.begin_answer()
        self._checking.check(self._workspace, self._sync_step.branch, has_news)


class _ListenAgain(Exception):
    """Other folders are to be watched from now on."""
