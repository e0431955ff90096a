"""The branch as the explorer reads it: opened for each request, at its head with what the files say, or at a point.

What is costly to find of a state is kept until that state, or a setting, is another one.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from kbcore import limits
from kbcore.checks import run_checks
from kbcore.errors import KBError, NotFound
from kbcore.limits import MAX_READERS
from kbcore.pages.branch_report import GROUPS
from kbcore.pages.overview import Overview, read_overview
from kbcore.process.interrupting import CurrentWork, Stopped, TimeOver, done_for
from kbcore.query import coverage
from kbcore.query.conflicts import ContestedValue, find_conflicts
from kbcore.query.coverage import By, Counts, CoverageGroup
from kbcore.rules import CheckReport
from kbcore.store import branches
from kbcore.store.branch_store import BranchStore
from kbcore.store.history.moment import meant
from kbcore.store.history.when import point_in
from kbcore.store.pool import Machine, StorePool
from kbcore.store.settings_files import RULES
from kbcore.store.workspace import Workspace, open_workspace
from kbcore.store.write_request import Author
from kbcore.sync.code_owners import code_owners
from kbcore.sync.overlay import FileState, WorktreeFiles, as_of
from kbcore.sync.searching import make_searchable
from kbcore.text.code_owners import CodeOwners
from kbcore.view.scratch_copy import scratch_copy
from kbcore.view.view import View
from kbcore.watch.changed_paths import listen

T = TypeVar("T")

_KEPT_COPIES: Final = 2
"""Copies of earlier states that are kept for the next request."""
_KEPT_ANSWERS: Final = 20
_KEPT_S: Final = 60.0
"""Rules also look at files that no extractor reads: after so long they are run again."""


class ReadTarget(msgspec.Struct, frozen=True):
    """The explorer's target: a folder of the repository, the branch that is named (None: that of HEAD), by whom."""

    start: Path
    branch: str | None
    machine: Machine
    author: Author
    git_places: Mapping[str, Any] = {}


class Branch(msgspec.Struct, frozen=True):
    """The branch of one request."""

    workspace: Workspace
    store: BranchStore
    choice: branches.Choice

    @property
    def name(self) -> str:
        """Return its name."""
        return self.choice.branch


class BranchState(msgspec.Struct, frozen=True):
    """A state of a branch: a view of it, and how it relates to the files. ``head`` is the seq of the last record.

    ``recorded`` is a view of the head, for what reads history; of the head itself it is the same one.
    """

    branch: Branch
    view: View
    recorded: View
    files: FileState

    @property
    def seq(self) -> int:
        """Return the seq of the state."""
        return self.view.recorded_seq

    @property
    def head(self) -> int:
        """Return the seq of the last record of the branch."""
        return self.recorded.recorded_seq

    @property
    def at(self) -> int | None:
        """Return the seq for a statement on ``recorded``, None for the head."""
        return self.seq if self.files.is_past else None


class Summary(msgspec.Struct, frozen=True):
    """The data for the overview of a state, and for the pages that it leads to."""

    overview: Overview
    check: CheckReport
    conflicts: tuple[ContestedValue, ...]


class Reader:
    """Reads the branch for all requests of a process, from any number of threads."""

    def __init__(self, target: ReadTarget) -> None:
        self.target = target
        self.threads = ThreadPoolExecutor(MAX_READERS, "kb-ui")
        """In which pages are read: each thread keeps its view."""
        self.work = CurrentWork()
        """All that is read, so that it can be interrupted."""
        self.work.only_reads = True
        self._pool = StorePool()
        self.files = WorktreeFiles(listen)
        self._copies = _Copies()
        self._gates: defaultdict[str, threading.RLock] = defaultdict(threading.RLock)
        """By the kind of an answer; held while one is found: who waits for it would find the same."""
        self._lock = threading.Lock()
        """Held while an answer is noted."""
        self._answers: list[tuple[tuple[Any, ...], float, Any]] = []
        """Kept answers about states, each with its key, which has no hash, and when; the last ones."""

    def close(self) -> None:
        """Wait for the threads, and close what is open."""
        self.threads.shutdown(cancel_futures=True)
        self._copies.close()
        self.files.close()
        self._pool.close()

    def warm(self) -> None:
        """Let a thread find the summary of the head and make its text index, so that no request need.

        The request that then needs them shows a failure.
        """

        def find() -> None:
            for use in (self.summary, _make_searchable):
                with suppress(KBError, Stopped, TimeOver), done_for(self.work):
                    self.read("", use)

        self.threads.submit(find)

    def branch(self) -> Branch:
        """Return the branch as it is found now. Raises: as ``open_workspace`` and ``branches.open_to_read``."""
        workspace = open_workspace(self.target.start, self.target.machine, self._pool, **self.target.git_places)
        store, choice, _ = branches.open_to_read(workspace, self.target.branch)
        return Branch(workspace, store, choice)

    def read(self, at: str, use: Callable[[BranchState], T]) -> T:
        """Return ``use(state)`` of the head with what the files say, or of the point that ``at`` means.

        Raises: as ``branch``; as ``point_in`` and ``meant``; what ``use`` raises. Remedies name the branch.
        """
        branch = self.branch()
        try:
            if not at:
                return self.files.read(
                    branch.workspace,
                    branch.name,
                    lambda view, files: use(BranchState(branch, view, view, files)),
                    time_s=limits.FILES_S,
                )
            point = point_in(branch.workspace, branch.name, at, is_local=True)

            def past(view: View) -> T:
                found = meant(view, point)
                files = as_of(found.seq, found.said)
                return self._copies.use(view, found.seq, lambda copy: use(BranchState(branch, copy, view, files)))

            return branch.store.read(past)
        except KBError as error:
            error.locate_remedies(lambda text: branch.workspace.located(text, self.target.branch))
            raise

    def mark(self) -> dict[str, Any]:
        """Return what differs when a page of the head would: the branch, its last record, and the changed files."""
        branch = self.branch()
        head = branch.store.head()
        files = self.files.state(branch.workspace, branch.name, time_s=limits.FILES_S)
        return {"branch": branch.name, "seq": head.seq, "hash": head.hash, "files": files.mark}

    def summary(self, state: BranchState) -> Summary:
        """Return the summary of a state, which is found once. Raises: as ``run_checks``."""
        return self._once(("summary", *_key_of(state)), state, lambda: _read_summary(state, self.counts(state)))

    def counts(self, state: BranchState) -> Counts:
        """Return the numbers of the requirements of a state, which are found once."""
        return self._once(("counts", *_key_of(state)), state, lambda: coverage.count(state.view.rows, None))

    def groups(self, state: BranchState) -> Mapping[By, list[CoverageGroup]]:
        """Return the requirements of a state in groups, which are found once."""
        rows = state.view.rows
        return self._once(
            ("groups", *_key_of(state)),
            state,
            lambda: coverage.count_groups(rows, None, GROUPS, of_files=owners_of(state)),
        )

    def choices(self, state: BranchState) -> tuple[list[str], list[str]]:
        """Return the tags and the priorities of the requirements of a state, which are found once."""
        return self._once(("choices", *_key_of(state)), state, lambda: coverage.read_choices(state.view.rows, None))

    def report_on(self, state: BranchState, id_: str) -> CheckReport | None:
        """Return what rules find in an entity: those of the project too where they were run; None for the past."""
        if state.files.is_past:
            return None
        workspace = state.branch.workspace
        known: Summary | None = self._kept(("summary", *_key_of(state)), state)
        if known is not None:
            return known.check
        return run_checks(workspace, state.view, branch=state.branch.name, ids=[id_], is_own=True)

    def _once(self, key: tuple[Any, ...], state: BranchState, find: Callable[[], T]) -> T:
        """Return what is kept under a key, or what ``find`` returns, which is then kept. Raises: what that raises."""
        known: T | None = self._kept(key, state)
        if known is not None:
            return known
        with self._gates[key[0]]:
            known = self._kept(key, state)
            if known is not None:
                return known
            found = find()
            with self._lock:
                others = [one for one in self._answers if one[0] != key]
                self._answers = [*others, (key, _now_s(state), found)][-_KEPT_ANSWERS:]
        return found

    def _kept(self, key: tuple[Any, ...], state: BranchState) -> Any:
        """Return what is kept under a key; None where that is nothing, or is too old."""
        now_s = _now_s(state)
        return next((one for known, made_s, one in self._answers if known == key and now_s < made_s + _KEPT_S), None)


def _now_s(state: BranchState) -> float:
    return state.branch.workspace.machine.clock.monotonic_s()


def owners_of(state: BranchState) -> CodeOwners:
    """Return the owners of the files of the branch. Raises: ``InvalidConfig``, ``GitUnusable``."""
    return code_owners(state.branch.workspace, state.branch.name)


def _key_of(state: BranchState) -> tuple[Any, ...]:
    """Return all that decides what is found of a state, but for the files that rules look at."""
    workspace, view = state.branch.workspace, state.view
    return (
        (state.branch.name, view.basis.store_id, view.basis.sum, view.seq, view.overlay_mark, state.files.is_past),
        (workspace.config, workspace.schema, workspace.texts_in(RULES), workspace.baseline_text),
        owners_of(state).mark,
    )


def _read_summary(state: BranchState, counts: Counts) -> Summary:
    workspace, view = state.branch.workspace, state.view
    # The rules of a project may read files, which are not those of an earlier state.
    check = run_checks(workspace, view, branch=state.branch.name, is_own=state.files.is_past)
    conflicts = tuple(find_conflicts(view))
    return Summary(read_overview(view, counts, check, conflicts), check, conflicts)


def _make_searchable(state: BranchState) -> None:
    branch = state.branch
    make_searchable(branch.workspace, branch.store, branch.name, state.recorded)


class _Copies:
    """Copies of earlier states, the last ones that were asked for. One request at a time uses a copy."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str, int], tuple[View, ExitStack]] = {}

    def use(self, view: View, seq: int, use: Callable[[View], T]) -> T:
        """Return ``use(copy)`` of a copy of a view as of a seq. Raises: as ``scratch_copy``; what ``use`` raises."""
        key = (view.recorded.store_id, view.recorded.sum, seq)
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                while len(self._kept) >= _KEPT_COPIES:
                    self._kept.pop(next(iter(self._kept)))[1].close()
                stack = ExitStack()
                found = stack.enter_context(scratch_copy(view, seq)), stack
            self._kept[key] = found
            return use(found[0])

    def close(self) -> None:
        """Remove the copies."""
        with self._lock:
            for _, stack in self._kept.values():
                stack.close()
            self._kept.clear()


def not_there(what: str) -> NotFound:
    """Return the error for a page that does not exist."""
    return NotFound(f"There is no page {what}.", hint="Choose one from the top of the page.")
