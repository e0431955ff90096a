"""Run a sync: scan, work out the difference, commit it as one changeset. Starts over when HEAD moves meanwhile."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from kbcore import gc_pause, limits
from kbcore.errors import BranchMoved, InvalidQuery, KBError, Problem
from kbcore.errors.remedies import by_front_end, kb
from kbcore.extract.changes import FOLDER, is_change_file
from kbcore.git import blobs
from kbcore.git.file_dates import DocumentDates
from kbcore.model.record import SYNC
from kbcore.model.schema import Schema
from kbcore.model.state import Changes, Draft, Stamp
from kbcore.process import interrupting
from kbcore.process.system_limits import exhausted, give_back_memory
from kbcore.store.answers import Outcome
from kbcore.store.branch_store import BranchStore
from kbcore.store.workspace import Workspace, head_moved
from kbcore.store.write_request import Author, Request
from kbcore.sync import noop_cache
from kbcore.sync.active_extractors import AT_ITS_FILE, MISSING_CONFIG, SETTINGS
from kbcore.sync.answer import SyncAnswer, counted_notes, divided
from kbcore.sync.begun_renames import forget_begun
from kbcore.sync.checkout import Checkout, settled
from kbcore.sync.comparison import NONE, Compared, has_loose_edges
from kbcore.sync.file_dates import dates_of, document_folders
from kbcore.sync.file_status import NOTHING_KNOWN, FileStatus, file_status
from kbcore.sync.first_sync import plan_first
from kbcore.sync.paths import is_named
from kbcore.sync.pending import find_pending, place_of
from kbcore.sync.planned import FilePlan, unchanged_files
from kbcore.sync.scan import FileStamp, FoundFile
from kbcore.sync.stamps import read_stamps, stamps_file, write_stamps
from kbcore.sync.workers import Workers
from kbcore.text.problems import FileProblem
from kbcore.text.wording import some_of
from kbcore.view.database import scratch_folder
from kbcore.view.view import View

__all__ = ["SyncAnswer", "SyncOptions", "check_worktree", "sync"]

ATTEMPTS: Final = 3
IN_WORKTREE: Final = (
    f"{by_front_end('Run it', 'Start the server')} in one of its worktrees; `git worktree add PATH BRANCH` makes one."
)
_NAMED: Final = 5
"""The most files that a fault names."""
_NOT_ASKED: Final = (
    "The files are recorded. What is wrong in the files that were not read, and which links are unresolved, could not "
    f"be determined; {kb('sync')} tries again."
)


class SyncOptions(msgspec.Struct, frozen=True):
    """``paths`` limits the sync to files and folders (from the root); ``rebuild`` reads every file again.

    ``touched`` limits nothing: it is what the caller knows, that only files at or below these paths can have changed
    since the last sync of this worktree. Whatever they change in the meaning of others is synced as well.
    ``believed`` is for who sees files while they are saved: one that is gone or empty counts only at or below these.
    """

    paths: tuple[str, ...] = ()
    dry_run: bool = False
    rebuild: bool = False
    touched: tuple[str, ...] | None = None
    believed: tuple[str, ...] | None = None
    workers: int | None = None
    """The processes that read many files; None: as many as the machine has room for."""
    least_files: int = limits.MIN_PARALLEL_FILES
    """The number of files from which on they do."""


def check_worktree(workspace: Workspace, branch: str | None) -> None:
    """Refuse to write one branch's files into another branch's store; None is whatever is checked out.

    Raises: ``InvalidQuery``.
    """
    if not workspace.repo.has_worktree:
        raise InvalidQuery("A bare repository has no files to sync.", hint=IN_WORKTREE)
    current = workspace.head().branch
    if branch and branch != current:
        raise InvalidQuery(
            f"Sync reads the files of {current}, which is checked out; it does not write them to {branch}.",
            hint=f"Check out {branch}, or run it in a worktree of {branch}, without naming a branch.",
        )


def sync(workspace: Workspace, branch: str, author: Author, options: SyncOptions) -> SyncAnswer:
    """Bring a branch's store to what the files of the worktree say.

    Raises: ``InvalidQuery`` when there are no files at all, or a named path is unknown; ``BranchMoved`` when another
    branch is checked out, or git keeps changing what is; ``NotARepository`` when the worktree is gone;
    ``InvalidConfig``; what committing raises.
    """
    check_worktree(workspace, None)
    interrupting.begin_part()
    for attempt in range(ATTEMPTS):
        checkout = settled(workspace)
        if checkout.head.branch != branch:
            raise head_moved(branch, checkout.head.branch)
        try:
            with (
                gc_pause.paused(),
                Workers(options.workers, options.least_files) as workers,
                contextlib.ExitStack() as folders,
            ):
                return _Attempt(checkout, options, workers, folders).run(author)
        except BranchMoved:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


class _CommittedFiles:
    """The change files of the commit that is checked out, once they are asked for."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._paths: set[str] | None = None

    def of(self, paths: Collection[str]) -> set[str]:
        """Return those of these change files that HEAD has; the name of one says what it holds."""
        workspace, commit = self._checkout.workspace, self._checkout.head.commit
        if not paths or not commit:
            return set()
        if self._paths is None:
            self._paths = blobs.paths_below(workspace.repo, workspace.machine.env, commit, FOLDER)
        return {*paths} & self._paths


class _Attempt:
    """One attempt of a sync, on what was checked out when it began."""

    def __init__(
        self, checkout: Checkout, options: SyncOptions, workers: Workers, folders: contextlib.ExitStack
    ) -> None:
        self.workers = workers
        self._folders = folders
        self.workspace = checkout.workspace
        self.checkout = checkout
        self.branch = checkout.head.branch
        self.options = options
        self.store: BranchStore = self.workspace.store(self.branch)
        self.place = msgspec.structs.replace(
            place_of(self.workspace),
            named=options.paths,
            rebuild=options.rebuild,
            touched=options.touched,
            believed=options.believed,
        )
        self.found = NONE
        self._committed = _CommittedFiles(checkout)
        self._dated: tuple[frozenset[str], Mapping[str, DocumentDates]] = frozenset(), {}

    def run(self, author: Author) -> SyncAnswer:
        fs, head = self.workspace.machine.fs, self.store.head()
        stamps_path = stamps_file(self.workspace.folders.cache_dir, self.place.root)
        options = self.options
        stamps = {} if options.rebuild or options.touched is not None else read_stamps(fs, stamps_path)
        self.store.read(lambda view: self._find(view, stamps))
        outcome = self._outcome(author)
        has_store = self.workspace.answering(self.branch) == self.branch
        if not options.dry_run:
            self.store = self.workspace.made(self.branch)
        if not options.dry_run and self.place.below is None and self.pending.scan.stamps != stamps:
            write_stamps(fs, stamps_path, self.pending.scan.stamps)
        answer = self._answer(outcome)
        is_whole = self.place.below is None and not options.dry_run and has_store
        if (
            is_whole
            and answer.is_idle
            and not (self._faults() or self.workspace.cut_values())
            and self.pending.seq == head.seq
        ):
            noop_cache.note(self.checkout, head, self.pending.scan, self.place.wants, answer)
        return answer

    def _forget_begun(self, view: View) -> None:
        """Remove the note of renames that the branch has recorded, in this sync or before."""
        begun, workspace = self.place.begun, self.workspace
        if not begun or self.options.dry_run:
            return
        ids = {node.id for node in view.nodes([key for one in begun for key in (one.old, one.new)])}
        if all(one.is_recorded(ids) for one in begun):
            forget_begun(workspace.machine.fs, workspace.folders.cache_dir, self.place.root, begun)

    def _faults(self) -> list[Problem]:
        """Return what is wrong with settings and extractors; that there is no configuration is said only at first."""
        return [one for one in self.pending.faults if one.code != MISSING_CONFIG or not self.pending.seq]

    def _find(self, view: View, stamps: Mapping[str, FileStamp]) -> None:
        """Find the pending files as of the state of a view."""
        now_ns = self.workspace.machine.clock.epoch_ns()
        self.pending = find_pending(view, self.place, stamps, now_ns, workers=self.workers)
        self._hand_over(view)
        self._has_loose_edges = has_loose_edges(view)
        self.plan = FilePlan(
            self.place,
            self.workspace.schema,
            self.pending,
            now_ns,
            claims=self.store.claims,
            committed=self._committed.of,
            dates=self._dates,
            first=self._plan_first,
        )

    def _plan_first(self, files: Sequence[FoundFile], schema: Schema, stamp: Stamp) -> Compared | None:
        """Plan a first sync in parts; the files with its rows are there until this attempt ends."""
        if not self.workers.are_for(len(files)):
            return None
        dates = self._dates([one.path for one in files])
        try:
            folder = self._folders.enter_context(scratch_folder())
            found = plan_first(files, schema, stamp, self.workers, folder, dates=dates)
        except OSError:
            return None  # there is no room for such files
        give_back_memory()  # the record is written next, which takes most memory
        return found

    def _dates(self, paths: Collection[str]) -> Mapping[str, DocumentDates]:
        """Return what git knows of these files; it is asked once for the same ones, however often a plan is made."""
        asked = frozenset(paths)
        if self._dated[0] != asked:
            commit = self.checkout.head.commit or ""
            self._dated = asked, dates_of(self.workspace, commit, document_folders(self.place.wants), asked)
        return self._dated[1]

    def _hand_over(self, view: View) -> None:
        """Have change files read again that are committed now, and were not when they were recorded.

        Where others come or go, the rest that is not committed is read too: nothing is noted of it while a change goes
        with its record, and it may hold one that goes with files from now on.
        """
        pending = self.pending
        files = pending.scan.files
        unsure = {path for path, one in files.items() if one.hash and is_change_file(path)}
        if unsure:
            unsure -= self.store.claims().committed_files(view.seq)
        if not unsure:
            return
        is_moving = any(map(is_change_file, (*(one.path for one in pending.changed), *pending.gone)))
        if now := unsure if is_moving else self._committed.of(unsure):
            there = {one.path for one in (*pending.changed, *pending.again)}
            again = [files[path] for path in sorted(now - there)]
            self.pending = msgspec.structs.replace(pending, again=(*pending.again, *again))

    def _outcome(self, author: Author) -> Outcome:
        """Commit the difference. The branch is locked only when there is something to write."""
        pending, is_dry = self.pending, self.options.dry_run
        if not (pending.changed or pending.gone):
            if pending.again or self._has_loose_edges:
                planned = self._commit(author, dry_run=True)
                if is_dry:
                    return planned
            if self.found.last.is_empty:
                return Outcome.unchanged_at(self.branch, self.pending.seq, dry_run=is_dry)
        return self._commit(author, dry_run=is_dry)

    def _commit(self, author: Author, *, dry_run: bool) -> Outcome:
        request = Request(
            digest=hashlib.sha256(self.branch.encode()).hexdigest(),
            message="sync",
            dry_run=dry_run,
            limit_bytes=limits.MAX_RECORD_BYTES,
            lock_wait_s=self.workspace.config.lock_wait_s,
            plans_ahead=True,
        )
        author = msgspec.structs.replace(author, source=SYNC)
        return self.store.commit(
            author,
            request,
            self._plan,
            guard=self.checkout.guard,
            head_commit=self.workspace.head_commit(self.branch),
            branch=self.branch,
        )

    def _plan(self, view: View, stamp: Stamp) -> Draft:
        """Compute the difference from the state that the commit will be based on."""
        if view.seq != self.pending.seq:
            # Another sync may have recorded files that this scan was too early to see.
            self._find(view, self.pending.scan.stamps)
        self.found = self.plan.on(view, stamp)
        last = self.found.last
        changes = last.changes
        same = unchanged_files(changes)
        if same and len(same) == len(changes.sources) and not (changes.nodes or changes.links or last.has_changes):
            self._note_same(changes)
            return Draft((), Changes(), self.found.loaded, warnings=last.warnings, reads=self.found.reads)
        found = self.found
        return Draft(
            last.ops, last.changes, found.loaded, warnings=last.warnings, reads=found.reads, encoded=last.encoded
        )

    def _note_same(self, changes: Changes) -> None:
        """Note with the stamps that files say by these settings what is recorded of them by others."""
        stamps = self.pending.scan.stamps
        marks = {
            one.key: (one.before.extractor, one.after.extractor) for one in changes.sources if one.before and one.after
        }
        for path in marks.keys() & stamps.keys():
            stamps[path] = msgspec.structs.replace(stamps[path], same=marks[path])
        changed = tuple(one for one in self.pending.changed if one.path not in marks)
        self.pending = msgspec.structs.replace(self.pending, changed=changed)

    def _said(self, fault: Problem) -> str:
        """Return the message of a fault, with the files, new or changed, that it keeps from being read."""
        message = AT_ITS_FILE.get(fault.code, fault.message)
        paths = [one.path for one in self.pending.changed if one.wanted.fault and one.wanted.fault.path == fault.path]
        return f"{message} Not read: {some_of(sorted(paths), _NAMED)}." if paths else message

    def _answer(self, outcome: Outcome) -> SyncAnswer:
        pending, named, readings = self.pending, frozenset(self.options.paths), self.found.readings
        read = {one.path for one in readings}
        # Who knows what changed asks often, and got the answer on the rest when that changed.
        paths = None if self.place.touched is None else read

        def after(view: View) -> FileStatus:
            self._forget_begun(view)
            return file_status(view, paths)

        try:
            left = self.store.read(after)
        except Exception as error:
            reason = error if isinstance(error, KBError) else exhausted(error, may_be_written=outcome.applied)
            if reason is None or not outcome.applied:
                raise
            # It is written: that is what is to be said first.
            left = NOTHING_KNOWN
            warnings = (*outcome.warnings, f"{_NOT_ASKED} {reason.message}")
            outcome = msgspec.structs.replace(outcome, warnings=warnings)
        if self.workers.warnings:
            outcome = msgspec.structs.replace(outcome, warnings=(*outcome.warnings, *self.workers.warnings))
        found = self.found.last.problems
        known = [one for one in left.problems if one[0] not in read and one[0] not in pending.gone]
        scan = pending.scan
        settings = [
            (SETTINGS, FileProblem(0, one.code, self._said(one), one.hint, "warning")) for one in self._faults()
        ]
        cut = self.workspace.cut_values()
        settings += [(one.source, FileProblem(one.line, one.code, one.message, one.hint, "warning")) for one in cut]
        problems, elsewhere = divided([*settings, *scan.blind.items(), *scan.notes.items(), *found, *known], named)
        unread = {one.path for one in readings if not one.facts.is_complete}
        unread |= {path for path, problem in found if problem.severity == "error"}
        stale = {path for path in left.stale if path not in read and path not in pending.gone}
        unresolved = tuple(one for one in left.unresolved if is_named(one.source, named))
        waiting = self.found.unresolved_created()
        return SyncAnswer(
            outcome=outcome,
            scanned=pending.scanned,
            changed=len(pending.changed),
            removed=len(pending.gone),
            unread=sum(one.path in unread for one in pending.changed),
            bad=sum(is_named(path, named) for path in stale | unread),
            problems=problems,
            notes=counted_notes(problems, {path: one.wanted.extractor.name for path, one in scan.files.items()}),
            unresolved=unresolved,
            problems_elsewhere=elsewhere,
            unresolved_elsewhere=len(left.unresolved) - len(unresolved),
            doubted=pending.doubted,
            noted=self.found.noted(),
            not_read=scan.not_read,
            waiting_mentions=waiting.mentions,
            unresolved_created=waiting.others,
        )
