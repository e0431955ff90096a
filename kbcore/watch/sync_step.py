"""One sync of a watcher: of what is due, on the branch that is checked out, and the events of it.

What cannot be done now is put back and tried again; a store that lost what was seen of it is not written to.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from kbcore.errors import (
    BranchMoved,
    CommitUncertain,
    Damaged,
    GitUnusable,
    InvalidConfig,
    KBError,
    LimitExceeded,
    NotInitialised,
    StoreWentBack,
    Unavailable,
    UnknownBranch,
)
from kbcore.git.operations import is_stepping
from kbcore.model.record import SYNC, ForgetSource, ReadSource
from kbcore.store import branches
from kbcore.store.branch_store import BranchStore
from kbcore.store.branches import lost
from kbcore.store.workspace import Workspace, check_initialised
from kbcore.store.write_request import Author
from kbcore.sync.answer import SyncAnswer
from kbcore.sync.run import SyncOptions, sync
from kbcore.text.wording import some_of
from kbcore.view.view import View
from kbcore.watch.debounce import Debouncer, PendingWork
from kbcore.watch.open_errors import OpenErrors
from kbcore.watch.pauses import Retry
from kbcore.watch.settings import Settings
from kbcore.watch.worktree import is_removed

_DOUBT_RETRY_S: Final = 1.0
"""From this pause on a damaged store is believed: it may be that it is being removed, or restored."""

_STEP_S: Final = 0.2
"""The interval of looks whether a rebase has ended or stopped."""

_PASSING = (
    BranchMoved,
    UnknownBranch,
    Unavailable,
    CommitUncertain,
    GitUnusable,
    InvalidConfig,
    LimitExceeded,
    NotInitialised,
)
"""Errors that pass, or can be fixed: a running git operation, a full disk, settings that are being edited."""

_MOMENTARY = (BranchMoved, StoreWentBack)
"""Errors of a moment: between two steps of git, or of a process that replaces a store."""

_MOST_FOREIGN: Final = 20
"""Of so many records at most each is looked into; beyond, everything is looked at."""

_MOST_NAMED: Final = 3


class StepResult(msgspec.Struct, frozen=True):
    """The result of a sync. ``is_new``: it is the first on its branch, of which ``notice`` says where it came from."""

    answer: SyncAnswer
    is_new: bool
    notice: str


class SyncStep:
    """The syncs of one watcher, all by one author."""

    def __init__(self, author: Author, debouncer: Debouncer, settings: Settings, open_errors: OpenErrors) -> None:
        self._author = author
        self._debouncer = debouncer
        self._settings = settings
        self._open_errors = open_errors
        self._reported: set[str] = set()
        self._retry = Retry()
        self.branch = ""
        """The branch that is followed; "" at the beginning."""
        self.seq = -1
        """The end of its store when it was last synced."""

    @property
    def is_pending(self) -> bool:
        """Return whether something was put back that could not be done yet."""
        return self._retry.is_pending

    def foreign(self, workspace: Workspace) -> Foreign:
        """Return what others have written since the last sync; where that cannot be read, the next sync says why."""
        try:
            return _foreign_since(workspace.store(self.branch), self.seq)
        except KBError:
            return Foreign(None)

    def sync_due(self, workspace: Workspace, work: PendingWork, why: str = "") -> StepResult | None:
        """Sync what is due; None when that cannot be done now, and the work was put back.

        ``why`` is said with what comes of it, if anything does.

        Raises: ``NotARepository``, ``GitUnusable`` when the worktree was removed; the errors of a damaged store.
        """
        try:
            branch = workspace.head().branch
            check_initialised(workspace)
            is_new = branch != self.branch
            if is_new:
                self._settings.forget()
            if not self._may_begin(workspace, work, branch):
                return None
            ensured = branches.ensure(workspace, branch, follows_head=True)
            answer = sync(workspace, branch, self._author, _options(work, is_new=is_new))
            store = workspace.store(branch)
            self._settings.note_used(workspace)
        except _PASSING as error:
            self._wait_for(workspace, work, error)
            return None
        except Damaged:
            if not self.branch or self._retry.next_s > _DOUBT_RETRY_S:
                raise
            self._put_back(workspace, work)
            return None
        self._open_errors.end("syncing")
        self._retry.end()
        self.branch, self.seq = branch, answer.outcome.seq
        self._debouncer.hold(answer.doubted, work.since_s, workspace.machine.clock.monotonic_s())
        is_said = is_new and not ensured.is_warning
        notices = self._not_reported(filter(None, ["" if is_said else ensured.notice, *store.warnings, *store.notices]))
        if why and answer.outcome.applied:
            notices = (*notices, why)
        return StepResult(_with_warnings(answer, notices), is_new, ensured.notice if is_said else "")

    def _may_begin(self, workspace: Workspace, work: PendingWork, branch: str) -> bool:
        """Return whether nothing was lost, git takes no steps of a rebase and no settings are being saved.

        Else the work is put back. The steps are no states of the branch: what they take away would go, and come back.
        """
        try:
            lost.refuse(workspace, branch)
        except StoreWentBack as error:
            self._wait_for(workspace, work, error)
            return False
        clock = workspace.machine.clock
        if is_stepping(workspace.repo, clock.epoch_ns()):
            self._debouncer.put_back(work, clock.monotonic_s(), _STEP_S)
            return False
        self._settings.forget(work.believed)
        if self._settings.are_being_saved():
            self._debouncer.put_back(work, clock.monotonic_s(), 0.0)
            return False
        return True

    def _not_reported(self, notices: Iterable[str]) -> tuple[str, ...]:
        """Return those of these notices that were not reported yet, each once."""
        fresh = tuple(one for one in dict.fromkeys(notices) if one not in self._reported)
        self._reported.update(fresh)
        return fresh

    def _wait_for(self, workspace: Workspace, work: PendingWork, error: KBError) -> None:
        """Put work back until the trouble is over. What may be so for a moment alone is no trouble yet.

        Raises: the error itself when it comes of a worktree that was removed.
        """
        if isinstance(error, GitUnusable) and is_removed(workspace):
            raise error
        if not isinstance(error, _MOMENTARY) or self._retry.is_pending:
            self._open_errors.begin("syncing", error)
        self._put_back(workspace, work)

    def _put_back(self, workspace: Workspace, work: PendingWork) -> None:
        self._debouncer.put_back(work, workspace.machine.clock.monotonic_s(), self._retry.take_s())


def _options(work: PendingWork, *, is_new: bool) -> SyncOptions:
    """Return what a sync has to look at; of a branch that is new to the watcher everything, and as it is."""
    if is_new:
        return SyncOptions()
    touched = None if work.paths is None else (*work.paths, *work.doubt)
    return SyncOptions(touched=touched, believed=work.believed)


def _with_warnings(answer: SyncAnswer, more: tuple[str, ...]) -> SyncAnswer:
    outcome = msgspec.structs.replace(answer.outcome, warnings=(*answer.outcome.warnings, *more))
    return msgspec.structs.replace(answer, outcome=outcome)


class Foreign(msgspec.Struct, frozen=True):
    """The files whose facts others changed, None when they may be any, and in words by which record.

    A record that changes what a file states leaves the file as it is. So it is read again at once, with the reason.
    """

    paths: tuple[str, ...] | None
    why: str = ""


def _foreign_since(store: BranchStore, seq: int) -> Foreign:
    """Return what records after a seq, that no sync wrote, did to what files state.

    Raises: what reading a store raises.
    """
    return store.read(lambda view: _foreign_in(store, view, seq))


def _foreign_in(store: BranchStore, view: View, seq: int) -> Foreign:
    sql = "select seq, actor, message from record where seq > ? and source <> ? order by seq"
    rows = view.rows(sql, [seq, SYNC])
    if len(rows) > _MOST_FOREIGN:
        return Foreign(None)
    said, paths = [], dict[str, None]()
    for number, actor, message in rows:
        record = store.record_at(view, number)
        if record is None:
            return Foreign(None)
        touched = [op.path for op in record.ops if isinstance(op, ReadSource | ForgetSource)]
        if touched:
            paths |= dict.fromkeys(touched)
            said.append(f"seq {number} ({message + ', ' if message else ''}by {actor})")
    if not paths:
        return Foreign(())
    named = some_of([*paths], _MOST_NAMED)
    why = f"{', '.join(said)} changed what {named} states; its present content applies again. Edit it to change that."
    return Foreign(tuple(paths), why)
