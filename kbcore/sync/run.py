"""Run a sync: scan, work out the difference, commit it as one changeset. Starts over when HEAD moves meanwhile."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from kbcore import collector, limits
from kbcore.answers import Outcome
from kbcore.errors import BranchMoved, InvalidQuery
from kbcore.extract.facts import Facts
from kbcore.model import CLIENT
from kbcore.needs import NOTHING
from kbcore.record import SYNC
from kbcore.state import Changes, Stamp, State
from kbcore.store import Author, BranchStore, Draft, Request
from kbcore.sync import rest
from kbcore.sync.answer import SyncAnswer, counted_notes, divided, remains
from kbcore.sync.checkout import Checkout, moved, settled
from kbcore.sync.claims import Reading
from kbcore.sync.difference import Difference, contested_elsewhere, difference, reads, unfit_elsewhere
from kbcore.sync.entities import Past
from kbcore.sync.paths import is_named
from kbcore.sync.pending import Pending, find, look, place_of
from kbcore.sync.scan import FileStamp, Found, read_facts
from kbcore.sync.stamps import path_of, read_stamps, write_stamps
from kbcore.view.past import gone_with_files, statuses_by_sync
from kbcore.view.view import View
from kbcore.view.working import plan_on
from kbcore.workspace import CACHE, Workspace

__all__ = ["SyncAnswer", "SyncOptions", "check_worktree", "sync"]

ATTEMPTS: Final = 3


class SyncOptions(msgspec.Struct, frozen=True):
    """``paths`` limits the sync to files and folders (from the root); ``rebuild`` reads every file again.

    ``touched`` limits nothing: it is what the caller knows, that only files at or below these paths can have changed
    since the last sync of this worktree. Whatever they change in the meaning of others is taken in as well.
    """

    paths: tuple[str, ...] = ()
    dry_run: bool = False
    rebuild: bool = False
    touched: tuple[str, ...] | None = None


def check_worktree(workspace: Workspace, branch: str | None) -> None:
    """Refuse to write one branch's files into another branch's store; None is whatever is checked out.

    Raises: ``InvalidQuery``.
    """
    if not workspace.repo.has_worktree:
        raise InvalidQuery("A bare repository has no files to sync.", hint="Run it in one of its worktrees.")
    current = workspace.head().branch
    if branch and branch != current:
        raise InvalidQuery(
            f"Sync reads the files of {current}, which is checked out; it does not write them to {branch}.",
            hint=f"Check out {branch}, or run it in a worktree of {branch}, without --branch and KB_BRANCH.",
        )


def sync(workspace: Workspace, branch: str, author: Author, options: SyncOptions) -> SyncAnswer:
    """Bring a branch's store to what the files of the worktree say.

    Raises: ``InvalidQuery`` when there are no files at all, or a named path is unknown; ``BranchMoved`` when another
    branch is checked out, or git keeps changing what is; ``InvalidConfig``; what committing raises.
    """
    check_worktree(workspace, None)
    for attempt in range(ATTEMPTS):
        checkout = settled(workspace)
        if checkout.head.branch != branch:
            raise moved(branch, checkout.head.branch)
        try:
            with collector.paused():
                return _Attempt(checkout, options).run(author)
        except BranchMoved:
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


class _Attempt:
    """One attempt of a sync, on what was checked out when it began."""

    def __init__(self, checkout: Checkout, options: SyncOptions) -> None:
        self.workspace = checkout.workspace
        self.checkout = checkout
        self.branch = checkout.head.branch
        self.options = options
        self.store: BranchStore = self.workspace.store(self.branch)
        self.place = msgspec.structs.replace(
            place_of(self.workspace), named=options.paths, rebuild=options.rebuild, touched=options.touched
        )
        self.whole: dict[str, Found] = {}
        self.readings: Sequence[Reading] = ()
        self.last = Difference((), Changes(), (), ())
        self.loaded = NOTHING

    def run(self, author: Author) -> SyncAnswer:
        fs, head = self.workspace.machine.fs, self.store.head()
        stamps_path = path_of(self.workspace.kb_dir / CACHE, self.place.root)
        options = self.options
        stamps = {} if options.rebuild or options.touched is not None else read_stamps(fs, stamps_path)
        self.pending = self.store.read(lambda view: self._look(view, stamps))
        outcome = self._outcome(author)
        if not options.dry_run and self.place.below is None and self.pending.scan.stamps != stamps:
            write_stamps(fs, stamps_path, self.pending.scan.stamps)
        answer = self._answer(outcome)
        is_whole = self.place.below is None and not options.dry_run
        if is_whole and answer.is_quiet and self.pending.seq == head.seq:
            rest.note(self.workspace, self.branch, head, self.pending.scan, self.place.wants)
        return answer

    def _look(self, view: View, stamps: Mapping[str, FileStamp]) -> Pending:
        return look(view, self.place, stamps, self.workspace.machine.clock.epoch_ns())

    def _outcome(self, author: Author) -> Outcome:
        """Commit the difference. The branch is locked only when there is something to write."""
        pending, is_dry = self.pending, self.options.dry_run
        if not (pending.changed or pending.gone):
            if pending.again:
                planned = self._commit(author, dry_run=True)
                if is_dry:
                    return planned
            if not (self.last.ops and self.last.changes):
                return Outcome.unchanged_at(self.branch, self.pending.seq, dry_run=is_dry)
        return self._commit(author, dry_run=is_dry)

    def _commit(self, author: Author, *, dry_run: bool) -> Outcome:
        request = Request(
            digest=hashlib.sha256(self.branch.encode()).hexdigest(),
            message="sync",
            dry_run=dry_run,
            limit_bytes=limits.MAX_RECORD_BYTES,
            lock_wait_s=self.workspace.config.lock_wait_s,
        )
        author = msgspec.structs.replace(author, source=SYNC)
        return self.store.commit(author, request, self._plan, guard=self.checkout.guard, branch=self.branch)

    def _plan(self, view: View, stamp: Stamp) -> Draft:
        """Work out the difference on the state that the commit will stand on."""
        if view.seq != self.pending.seq:
            # Another sync may have taken in files that this scan was too early to see.
            self.pending = self._look(view, self.pending.scan.stamps)
            self.whole.clear()
        self._compare(view, stamp, (*self.pending.changed, *self.pending.again))
        found = self.last
        return Draft(found.ops, found.changes, self.loaded, warnings=found.warnings)

    def _compare(self, view: View, stamp: Stamp, files: Sequence[Found]) -> None:
        """Find the difference that these files make; with them, such as state an edge that is another one for it."""
        gone, schema = self.pending.gone, self.workspace.schema
        self.readings = [self._reading(found) for found in files]
        read = {reading.path for reading in self.readings}
        stated = {entity.id for reading in self.readings for entity in reading.facts.entities}
        ids = _ids_of_paths(view, self.readings, gone)

        def plan(state: State) -> Difference:
            past = _past(view, state, stated)
            return difference(self.readings, gone, state, schema, stamp, ids_of_path=ids, past=past)

        self.last, state = plan_on(view, reads(self.readings, gone, view.stated_by([*read, *gone])), plan)
        self.loaded = state.loaded
        others = unfit_elsewhere(self.last, state, schema, read) | contested_elsewhere(self.last, read)
        more = self._as_taken_in(view, others | _moved_elsewhere(view, self.last, {*read, *gone}))
        if more:
            self._compare(view, stamp, (*files, *more))

    def _as_taken_in(self, view: View, paths: Collection[str]) -> list[Found]:
        """Return those of these files that may be read: named ones, and others as far as they did not change."""
        known = {one.path: (one.hash, one.extractor) for one in view.sources(sorted(paths))}
        files, named = self.pending.scan.files, self.options.paths
        if self.place.below is not None and paths - files.keys():
            files |= find(self.place, paths - files.keys(), self.workspace.machine.clock.epoch_ns())
        there = (files[path] for path in sorted(paths) if path in files)
        return [
            found
            for found in there
            if is_named(found.path, named) or known.get(found.path) == (found.hash, found.wanted.mark)
        ]

    def _reading(self, found: Found) -> Reading:
        whole = self.whole.get(found.path) or read_facts(self.place.root, found)
        self.whole[found.path] = whole
        return Reading(found.path, whole.hash, found.wanted.mark, whole.facts or Facts())

    def _answer(self, outcome: Outcome) -> SyncAnswer:
        pending, named = self.pending, self.options.paths
        read = {one.path for one in self.readings}
        # Who knows what changed asks often, and was told of the rest when it changed.
        paths = None if self.place.touched is None else read
        left = self.store.read(lambda view: remains(view, paths))
        found = self.last.problems
        known = [one for one in left.problems if one[0] not in read and one[0] not in pending.gone]
        scan = pending.scan
        problems, elsewhere = divided([*scan.blind.items(), *scan.notes.items(), *found, *known], named)
        unread = {one.path for one in self.readings if not one.facts.is_complete}
        unread |= {path for path, problem in found if problem.severity == "error"}
        stale = {path for path in left.stale if path not in read and path not in pending.gone}
        unresolved = tuple(one for one in left.unresolved if is_named(one[2], named))
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
        )


def _past(view: View, state: State, stated: Collection[str]) -> Past:
    """Return what history knows of the entities that files state, or stated."""
    former = gone_with_files(view, stated - state.nodes.keys())
    doubtful = {node.id for node in (*state.nodes.values(), *former.values()) if "status" not in node.owners}
    return Past(former, statuses_by_sync(view, doubtful))


def _moved_elsewhere(view: View, found: Difference, read: Collection[str]) -> set[str]:
    """Return the files, not read now, that link to an entity which goes, or which another file states from now on.

    They may have named it by the path of its document, and mean another one then.
    """
    moved = [
        change.key
        for change in found.changes.nodes
        if change.before and (change.after is None or change.after.path != change.before.path)
    ]
    sources = {statement.src for link in view.touching(moved) for statement in link.statements}
    return sources - {CLIENT, *read}


def _ids_of_paths(view: View, readings: Sequence[Reading], gone: Collection[str]) -> dict[str, list[str]]:
    """Return the entities of documents that links name by path, and that are there and not read now."""
    known = {*(reading.path for reading in readings), *gone}
    targets = sorted({link.target for one in readings for link in one.facts.links if link.is_path} - known)
    ids: dict[str, list[str]] = {}
    if targets:
        sql = "select path, id from node where path in (select unnest(?::varchar[])) order by id"
        for path, key in view.rows(sql, [targets]):
            ids.setdefault(path, []).append(key)
    return ids
