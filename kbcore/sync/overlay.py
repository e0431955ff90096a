"""Facts of worktree files that the records do not have: an overlay of the view that answers a question.

Nothing is written for it, and only a sync makes records of it. The difference is worked out as a sync works it out, and
kept in memory while neither the head nor the files change.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

import msgspec

from kbcore import gc_pause, limits
from kbcore.clock import moment_after
from kbcore.errors import BranchMoved, GitUnusable, InvalidConfig, NotARepository, StatementTimeout
from kbcore.git.head import MustAskGit
from kbcore.git.operations import operation_of
from kbcore.model.record import SYNC
from kbcore.model.state import Stamp
from kbcore.process import interrupting
from kbcore.storage.head import Head
from kbcore.store.history.moment import read_head
from kbcore.store.workspace import Workspace
from kbcore.sync import noop_cache
from kbcore.sync.active_extractors import as_defined, extractors_of
from kbcore.sync.checkout import settled
from kbcore.sync.scan import FileStamp
from kbcore.sync.stamps import read_stamps, stamps_file
from kbcore.sync.wanted_files import ActiveExtractor
from kbcore.view.pool import Overlay
from kbcore.view.view import View

if TYPE_CHECKING:
    from kbcore.store.apply import Reading
    from kbcore.sync.pending import PendingFiles

T = TypeVar("T")

_ACTOR: Final = ""
"""The author of unrecorded facts: not known yet."""
_LOOK_S: Final = 0.05
_AGAIN: Final = 30
"""Files that take too long are not looked at again, unless the head moves, for so many times the time they have."""
_LONGEST_PAUSE_S: Final = 60.0
_FULL_S: Final = 60.0
"""After so long every file is looked at, whatever the system has noticed."""
_GIT_S: Final = 0.05
"""The time to wait for git: it may work for as long as somebody writes the message of a commit."""


class FileState(msgspec.Struct, frozen=True):
    """The relation of an answer to the files of the worktree.

    ``current``: the records hold what the files say. ``overlay``: they do not, and the answer has what the files say.
    ``unknown``: the answer is of the records alone, for ``reason``. Otherwise ``reason`` says what the answer lacks, as
    where git leaves change files out of the worktree. ``pending_files`` counts the files of which the
    records do not hold what they say, None where it is not known. ``mark`` is the same for the same overlay. ``seq`` is
    that of the last record in the answer. ``is_retryable``: the files may be compared later.
    """

    freshness: Literal["current", "overlay", "unknown"]
    pending_files: int | None
    reason: str = ""
    mark: str = ""
    seq: int = 0
    is_retryable: bool = False
    point: str = ""
    """The way from the time or commit that was given to ``seq``."""
    is_past: bool = False
    """The answer is as of ``seq``, which is not the head or was named."""
    is_of_documents: bool = False
    """The answer is of the documents of a commit alone, as of no record."""

    def as_json(self) -> dict[str, Any]:
        """Return the members that an answer carries."""
        shown: dict[str, Any] = {
            "seq": self.seq,
            "freshness": self.freshness,
            "pending_files": self.pending_files,
        }
        return shown | ({"freshness_reason": self.reason} if self.reason else {})


CURRENT: Final = FileState("current", 0)


def records_alone(reason: str, *, is_retryable: bool = False, seq: int = 0) -> FileState:
    """Return the state of an answer that is of the records alone."""
    return FileState("unknown", None, reason, seq=seq, is_retryable=is_retryable)


def as_of(seq: int, said: str = "", *, is_of_documents: bool = False) -> FileState:
    """Return the state of an answer as of an earlier seq; ``said`` is how the point that was asked for leads to it.

    One of the documents of a commit alone is as of no seq.
    """
    reason = said if is_of_documents else f"The answer is as of seq {seq}. {said}".rstrip()
    state = records_alone(reason, seq=seq)
    return msgspec.structs.replace(state, point=said, is_past=True, is_of_documents=is_of_documents)


class ChangedPaths(Protocol):
    """Says where something has changed in a worktree since it was last asked, up to this very moment."""

    def take(self) -> set[str] | None:
        """Return the paths of files and folders, from the top of the worktree; None: it may be anywhere."""

    def close(self) -> None:
        """Stop listening."""


Listen = Callable[[Workspace, Sequence[ActiveExtractor]], ChangedPaths | None]
"""Begins to listen to a worktree; takes what extractors want there. None where the system does not say what changes."""


class _Seen(msgspec.Struct, frozen=True):
    """The files found, as of one head and one configuration."""

    store_id: str
    seq: int
    sum: str
    settings: tuple[Any, ...]
    marks: tuple[str, ...]
    """Of the extractors, with what the branch defines."""
    stamps: Mapping[str, FileStamp]
    pending: frozenset[str]
    state: FileState
    overlay: Overlay | None
    is_all_recorded: bool
    """The records held what every file said, and no file could mean something else because of others."""

    def is_of(self, store_id: str, digest: str, settings: tuple[Any, ...]) -> bool:
        return (self.store_id, self.sum) == (store_id, digest) and self.settings == settings


class _TooLong(msgspec.Struct, frozen=True):
    """With which head, settings and time the files could not be compared, and until when that is not tried again."""

    sum: str
    settings: tuple[Any, ...]
    time_s: float
    until_s: float

    def is_so(self, digest: str, settings: tuple[Any, ...], time_s: float, now_s: float) -> bool:
        is_of = (self.sum, self.settings) == (digest, settings)
        return is_of and time_s <= self.time_s and now_s < self.until_s


class _NotJudged(Exception):
    """The files cannot be compared with the records, for the reason in the message."""


class _Interrupted(Exception):
    """A statement was interrupted, so that the view it was asked of is not to be used again."""


class WorktreeFiles:
    """The files of one worktree as a process reads them, for any number of threads.

    With ``listen`` only what has changed since the last answer is looked at; without, every file is, from outside.
    """

    def __init__(self, listen: Listen | None = None) -> None:
        self._listen = listen
        self._lock = threading.Lock()
        """Held while the files are looked at: who waits for it would look at the same."""
        self._seen: _Seen | None = None
        self._changed: ChangedPaths | None = None
        self._touched: set[str] = set()
        """Paths that have changed since ``_seen``."""
        self._too_long: _TooLong | None = None
        self._full_look_s = 0.0
        """The time of the last look at every file."""

    def close(self) -> None:
        """Stop listening."""
        with self._lock:
            self._forget()

    def read(self, workspace: Workspace, branch: str, use: Callable[[View, FileState], T], *, time_s: float) -> T:
        """Return ``use(view, state)`` on a view of a branch's head and, where it is checked out, what its files say.

        It is of the head alone where the files cannot be compared with it within ``time_s`` seconds: ``state`` has the
        reason.

        Raises: ``InvalidConfig``; as ``BranchStore.read``; what ``use`` raises.
        """
        store = workspace.store(branch)
        alone = _without_files(workspace, branch)
        if alone:
            return store.read(partial(_used, use, alone))
        settings, now_s = _settings_of(workspace, branch), workspace.machine.clock.monotonic_s
        state = CURRENT

        def known(head: Head) -> str | None:
            nonlocal state
            if self._listen is None:
                state = CURRENT
                return "" if _is_at_rest(workspace, branch, head) else None
            if not self._lock.acquire(blocking=False):
                return None
            try:
                self._collect(now_s())
                seen = self._valid(head.store_id, head.hash, settings)
            finally:
                self._lock.release()
            state = seen.state if seen else CURRENT
            return seen.state.mark if seen else None

        def find(view: View) -> Overlay | None:
            nonlocal state
            try:
                with interrupting.limited(time_s), self._alone():
                    seen = self._found(workspace, view, settings, time_s)
            except interrupting.TimeOver:
                state = records_alone(_late(time_s), is_retryable=True)
                return None
            except _NotJudged as error:
                state = records_alone(str(error), is_retryable=True)
                return None
            state = seen.state
            return seen.overlay

        try:
            return store.read_overlaid(known, find, lambda view: _used(use, state, view))
        except _Interrupted:  # the view may hold a part of what the statement was to make: it is not used again
            alone = records_alone(_late(time_s), is_retryable=True)
        return store.read(partial(_used, use, alone))

    def _found(self, workspace: Workspace, view: View, settings: tuple[Any, ...], time_s: float) -> _Seen:
        """Return how the files differ from the state of a view. Raises: ``_NotJudged``, ``_Interrupted``."""
        self._collect(workspace.machine.clock.monotonic_s())
        basis = view.basis
        seen = self._valid(basis.store_id, basis.sum, settings)
        if seen is None:
            seen = self._look(workspace, view, settings, time_s)
            old = self._seen.overlay if self._seen else None
            if old and seen.overlay and old.mark == seen.overlay.mark:
                seen = msgspec.structs.replace(seen, overlay=old)  # the same changes have the same times
            self._seen = seen
        return seen

    def reading(self, workspace: Workspace, branch: str, *, time_s: float = limits.FILES_S) -> Reading:
        """Return what does as ``read`` without the state, for what reads by itself."""
        return lambda use: self.read(workspace, branch, lambda view, _: use(view), time_s=time_s)

    def read_page(
        self,
        workspace: Workspace,
        branch: str,
        use: Callable[[View], T],
        seq_of: Callable[[T], int],
        *,
        time_s: float,
    ) -> tuple[T, FileState]:
        """Do as ``read`` for an answer that may continue one as of an earlier seq, by a cursor.

        ``seq_of`` returns the seq of the answer.
        """
        state, last = CURRENT, -1

        def read(then: Callable[[View], T]) -> T:
            def on(view: View, found: FileState) -> T:
                nonlocal state, last
                state, last = found, view.seq
                return then(view)

            return self.read(workspace, branch, on, time_s=time_s)

        answer = read_head(workspace.store(branch), use, read)
        seq = seq_of(answer)
        return answer, state if seq == last else as_of(seq)

    def state(self, workspace: Workspace, branch: str, *, time_s: float) -> FileState:
        """Return how an answer would relate to the files now; no database is asked while nothing has changed.

        Raises: as ``read``.
        """
        alone = _without_files(workspace, branch)
        if alone:
            return alone
        head = workspace.store(branch).head()
        try:
            with interrupting.limited(time_s), self._alone():
                self._collect(workspace.machine.clock.monotonic_s())
                seen = self._valid(head.store_id, head.hash, _settings_of(workspace, branch))
        except interrupting.TimeOver:
            return records_alone(_late(time_s), is_retryable=True)
        return seen.state if seen else self.read(workspace, branch, lambda _, state: state, time_s=time_s)

    def _valid(self, store_id: str, digest: str, settings: tuple[Any, ...]) -> _Seen | None:
        """Return what was found, if that is still so."""
        seen = self._seen
        is_so = seen and self._changed and not self._touched and seen.is_of(store_id, digest, settings)
        return seen if is_so else None

    def _collect(self, now_s: float) -> None:
        """Note what has changed up to now. From time to time every file is looked at: not every change is noticed."""
        if self._changed is None:
            return
        changed = self._changed.take()
        if changed is None or now_s > self._full_look_s + _FULL_S:
            self._forget()
        else:
            self._touched |= changed

    def _forget(self) -> None:
        if self._changed is not None:
            self._changed.close()
        self._changed, self._seen, self._touched = None, None, set()

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        while not self._lock.acquire(timeout=_LOOK_S):
            interrupting.check()
        try:
            yield
        finally:
            self._lock.release()

    def _look(self, workspace: Workspace, view: View, settings: tuple[Any, ...], time_s: float) -> _Seen:
        """Compare the files with the state of a view. Raises: ``_NotJudged``."""
        now_s, known = workspace.machine.clock.monotonic_s, self._too_long
        if known and known.is_so(view.basis.sum, settings, time_s, now_s()):
            raise _NotJudged(_late(time_s))
        try:
            with gc_pause.paused():
                return self._compared(workspace, view, settings)
        except (interrupting.TimeOver, StatementTimeout) as error:
            self._forget()
            pause_s = min(_AGAIN * time_s, _LONGEST_PAUSE_S)
            self._too_long = _TooLong(view.basis.sum, settings, time_s, now_s() + pause_s)
            raise _Interrupted if isinstance(error, StatementTimeout) else _NotJudged(_late(time_s)) from None
        except (BranchMoved, GitUnusable, NotARepository, InvalidConfig) as error:
            self._forget()
            raise _NotJudged(error.message) from error

    def _compared(self, workspace: Workspace, view: View, settings: tuple[Any, ...]) -> _Seen:
        still = self._still(workspace, view, settings)
        if still is not None:
            return still
        checkout = settled(workspace, wait_s=_GIT_S)
        if checkout.head.branch != settings[0]:
            raise _NotJudged(f"{checkout.head.branch} was checked out meanwhile.")
        from kbcore.sync.pending import find_pending, lacking, place_of  # noqa: PLC0415 - seldom has anything changed

        machine, place = workspace.machine, place_of(workspace)
        marks = tuple(want.mark for want in as_defined(place.wants, view))
        touched = self._to_look_at(view, settings, marks)
        now_ns = machine.clock.epoch_ns()
        if touched is None:
            self._forget()
            self._full_look_s = machine.clock.monotonic_s()
            if self._listen:
                # First: what changes while the files are looked at is looked at again.
                self._changed = self._listen(workspace, place.wants)
            stamps: Mapping[str, FileStamp] = read_stamps(
                machine.fs, stamps_file(workspace.folders.cache_dir, place.root)
            )
        else:
            place = msgspec.structs.replace(place, touched=tuple(sorted(touched)))
            stamps = self._seen.stamps if self._seen else {}
        pending = find_pending(view, place, stamps, now_ns)
        stamp = Stamp(view.seq + 1, moment_after(view.basis.at, machine.clock.now()).at, _ACTOR, SYNC)
        state, overlay = CURRENT, None
        files = {*(one.path for one in pending.changed), *pending.gone}
        is_all_recorded = not files and not pending.again
        if not is_all_recorded:
            from kbcore.sync.planned import FilePlan  # noqa: PLC0415 - seldom is there a difference

            plan = FilePlan(place, workspace.schema, pending, now_ns, claims=workspace.store(settings[0]).claims)
            last = plan.on(view, stamp).last
            changes = last.changes
            same = plan.unchanged(view, stamp, changes)
            files -= same
            if len(changes.sources) > len(same) or changes.nodes or changes.links:
                files |= {change.key for change in changes.sources}
                mark = _mark_of(view, pending)
                state = FileState("overlay", len(files - same), mark=mark)
                overlay = Overlay(mark, stamp, changes, last.ops)
        if reason := lacking(view, place):
            state = msgspec.structs.replace(state, reason=reason)
        try:
            checkout.guard()
        except MustAskGit as unknown:
            unknown.ask()
            raise _NotJudged("git changed its refs while the files were read.") from unknown
        if self._changed and any(map(os.path.islink, (place.root / one for one in pending.scan.files))):
            # The target of a link may change without a notice.
            self._changed.close()
            self._changed = None
        self._touched = set()
        basis = view.basis
        kept = {**stamps, **pending.scan.stamps} if touched is not None else pending.scan.stamps
        known = (basis.store_id, basis.seq, basis.sum, settings, marks)
        return _Seen(*known, kept, frozenset(files), state, overlay, is_all_recorded)

    def _still(self, workspace: Workspace, view: View, settings: tuple[Any, ...]) -> _Seen | None:
        """Return what was found at an earlier head, where neither files nor what is recorded of them changed since.

        Most records of clients are about no file: then nothing is read for them.
        """
        seen, basis = self._seen, view.basis
        if seen is None or not seen.is_all_recorded or seen.settings != settings:
            return None
        marks = tuple(want.mark for want in as_defined(extractors_of(workspace), view))
        if self._to_look_at(view, settings, marks) != set():
            return None
        return msgspec.structs.replace(seen, seq=basis.seq, sum=basis.sum)

    def _to_look_at(self, view: View, settings: tuple[Any, ...], marks: tuple[str, ...]) -> set[str] | None:
        """Return the only paths at which files may differ from the records; None: it may be anywhere."""
        seen = self._seen
        if seen is None or self._changed is None:
            return None
        if (seen.store_id, seen.settings, seen.marks) != (view.basis.store_id, settings, marks) or view.seq < seen.seq:
            return None
        since = view.sources_since(seen.seq)
        return None if since is None else {*seen.pending, *self._touched, *since}


def _mark_of(view: View, pending: PendingFiles) -> str:
    """Return what is the same for the same files over the same head."""
    looks = [
        (one.path, one.hash, one.wanted.mark, one.facts.problems if one.facts and not one.hash else ())
        for one in sorted((*pending.changed, *pending.again), key=lambda one: one.path)
    ]
    parts = (view.basis.store_id, view.basis.sum, looks, pending.gone)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]


def _is_at_rest(workspace: Workspace, branch: str, head: Head) -> bool:
    with contextlib.suppress(InvalidConfig):  # what cannot be read by these settings is said by who compares
        return noop_cache.is_unchanged(workspace, branch, head)
    return False


def _late(time_s: float) -> str:
    return f"Comparing the files with the records takes longer than {time_s:g} s."


def _settings_of(workspace: Workspace, branch: str) -> tuple[Any, ...]:
    """Return all that decides which files are read, and how, but what the branch defines."""
    return branch, workspace.repo.worktree, workspace.config, workspace.schema


def _used(use: Callable[[View, FileState], T], state: FileState, view: View) -> T:
    return use(view, msgspec.structs.replace(state, seq=view.recorded_seq))


def _without_files(workspace: Workspace, branch: str) -> FileState | None:
    """Return why the files are not compared with a branch's records; None where they are."""
    if not workspace.repo.has_worktree:
        return records_alone("A bare repository has no files.")
    current = workspace.head_branch()
    if current != branch:
        return records_alone(f"{current} is checked out: its files do not belong to {branch}.")
    operation = operation_of(workspace.repo)
    return records_alone(f"A {operation} of git is not finished.", is_retryable=True) if operation else None
