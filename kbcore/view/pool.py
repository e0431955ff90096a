"""The views that a process keeps of a branch: each thread that reads has one of its own, and the idle ones are kept."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from kbcore.clock import Clock, SystemClock
from kbcore.errors import KBError, StatementTimeout, ViewDamaged
from kbcore.limits import readers_left
from kbcore.model.record import Operation
from kbcore.model.state import Changes, EncodedChanges, Stamp
from kbcore.process import interrupting
from kbcore.process.interrupting import Stopped
from kbcore.process.system_limits import exhausted
from kbcore.storage import bug_reports
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.view.base import write_first
from kbcore.view.cache_files import CacheFiles
from kbcore.view.opening import LOOK_S, ViewOpener, basis_of, is_usable
from kbcore.view.publishing import Publisher, is_due, may_be_due
from kbcore.view.record_rows import FoldedRecord
from kbcore.view.view import View

if TYPE_CHECKING:
    from kbcore.view.claim_index import ClaimIndex
    from kbcore.view.claim_index_cache import BranchClaims

T = TypeVar("T")

_MAX_IDLE: Final = 2
"""Views of one branch that are kept while no thread reads: the others are closed when they are given back."""

_now_s: Final = SystemClock().monotonic_s


class Overlay(msgspec.Struct, frozen=True):
    """Changes that are in no record, as the next record would make them; ``mark`` is the same for the same changes."""

    mark: str
    stamp: Stamp
    changes: Changes
    ops: tuple[Operation, ...] = ()


class _Claims:
    """The index of the shared changes of a branch, which is opened when it is first asked for: few views need it."""

    def __init__(self, fs: Fs, directory: Path, files: CacheFiles) -> None:
        self._place = (fs, directory, files)
        self._opened: BranchClaims | None = None

    def __call__(self) -> ClaimIndex:
        """Return the index with all records up to the head. Raises: what reading the journal raises."""
        from kbcore.view.claim_index_cache import BranchClaims  # noqa: PLC0415 - most branches have none

        if self._opened is None:
            self._opened = BranchClaims(*self._place)
        return self._opened.read(lambda index, _: index)


class _ThreadView:
    """The view that one thread reads from, and how often it has asked for one inside of what it asked."""

    def __init__(self, view: View | None, generation: int, mark: str = "") -> None:
        self.view = view
        self.mark = mark
        """That of the overlay that the view holds, "" for none."""
        self.generation = generation
        self.depth = 0
        self.since_s = _now_s()

    def drop(self) -> None:
        """Close the view."""
        view, self.view, self.mark = self.view, None, ""
        if view is not None:
            view.close()


class ViewPool:
    """The views of one branch. The caller reads the head, and says for which one it asks.

    Each thread has a view of its own while it asks, so that a slow statement keeps no other thread waiting, and an
    interruption meets one statement. The view that was given back last is used first: one thread always has the same.
    """

    def __init__(self, fs: Fs, directory: Path, files: CacheFiles) -> None:
        self._files = files
        self._opener = ViewOpener(fs, directory, files)
        self._claims = _Claims(fs, directory, files)
        self._publisher = Publisher(self._opener, files)
        self._lock = threading.Condition()
        self._idle: list[View] = []
        self._overlaid: list[View] = []
        """The same of views with the overlay that has ``_mark``: none of them becomes a view of another head."""
        self._mark = ""
        self._used: dict[int, _ThreadView] = {}
        """By the number of the thread."""
        self._generation = 0
        """Goes up when a base was published or all was closed: a view used since before that is closed, not kept."""

    @property
    def notices(self) -> list[str]:
        """A warning for the user: the view knew of records that the journal does not have."""
        return self._files.notices

    def note_lost(self, store_id: str) -> None:
        """Note the id of the store that is missing, "" where none is: a view of it is kept when another replaces it."""
        self._opener.lost_id = store_id

    def close(self) -> int:
        """Close the views: those that requests are using, when they are given back.

        Returns the number of the generation that begins now.
        """
        with self._lock:
            self._generation += 1
            generation = self._generation
            idle = [*self._idle, *self._overlaid]
            self._idle, self._overlaid = [], []
        for view in idle:
            view.close()
        return generation

    def ask(self, head: Head, use: Callable[[View], T], *, is_writing: bool = False) -> T:
        """Return ``use(view)`` on a view of this head, or of a later one that others have published meanwhile.

        If need be the view is built. What a thread asks while it is answered is answered from the same view. With
        ``is_writing``, which others may be waiting for, it waits for no reader.

        Raises: what reading the journal raises.
        """

        def find(used: _ThreadView) -> View:
            view = self._at(used, head)
            return view if is_writing or used.mark else self._on_newer_base(used, view, head)

        return self._answer(find, use, waits=not is_writing)

    def ask_overlaid(
        self, head: Head, mark: str, find: Callable[[View], Overlay | None], use: Callable[[View], T]
    ) -> T:
        """Do as ``ask`` on a view of this head with an overlay.

        ``find`` says which one, None for none, of a view of the head. It is not asked where a view has the one with
        this mark already, which has to be another one for each head; "" is the mark of none.
        """

        def overlaid(used: _ThreadView) -> View:
            if used.view is not None and used.mark:
                return used.view
            view = self._on_newer_base(used, self._at(used, head), head)
            found = find(view)
            if found is not None:
                try:
                    view.overlay(found.stamp, found.changes, found.mark, found.ops)
                except BaseException:
                    used.drop()  # it may hold a part of the changes
                    raise
                used.mark = found.mark
                self.keep_overlay(found.mark)
            return view

        return self._answer(overlaid, use, mark=mark)

    def _answer(
        self, find: Callable[[_ThreadView], View], use: Callable[[View], T], *, waits: bool = True, mark: str = ""
    ) -> T:
        """Return ``use(view)`` on the view that ``find`` finds for this thread; on another one where it is damaged."""
        with self._thread_view(waits=waits, mark=mark) as used:

            def found() -> View:
                view = find(used)
                view.claims = self._claims
                return view

            try:
                return use(found())
            except ViewDamaged:
                used.drop()
                self._files.drop(self._files.path)
                return use(found())
            except BaseException as error:
                # Whatever a statement that was interrupted was about to make is not there, or only in part. What a bug
                # left is not known.
                if isinstance(error, StatementTimeout) or not isinstance(error, KBError):
                    used.drop()
                raise

    def _at(self, used: _ThreadView, head: Head) -> View:
        if used.view is None or not used.mark:  # else the thread asks inside of what it asks of a view with an overlay
            known, used.view = used.view, None
            used.view = self._opener.at(known, head)
        return used.view

    def _on_newer_base(self, used: _ThreadView, view: View, head: Head) -> View:
        """Return a view on a base that was published meanwhile, instead of one that has a long tail to fold."""
        if used.depth > 1 or not is_due(view) or not self._opener.is_base_replaced():
            return view
        newer = self._opener.newer(view, head)
        if newer is None:
            return view
        used.drop()
        used.view = newer
        return newer

    def keep_overlay(self, mark: str) -> None:
        """Close the idle views with an overlay, but those with this mark: no other one is asked for again."""
        if mark == self._mark:
            return
        with self._lock:
            self._mark = mark
            old, self._overlaid = self._overlaid, []
        for view in old:
            view.close()

    def is_ready(self, head: Head) -> bool:
        """Tell whether a view is there that becomes one of this head in the time of a commit."""
        with self._lock:
            view = self._idle[-1] if self._idle else None
            return view is not None and is_usable(view.basis, head) and view.is_ready(head.seq)

    def until(self, head: Head, seq: int) -> View:
        """Return another view, in memory, that is folded up to a seq and no further; raises as ``ViewOpener.until``."""
        return self._opener.until(head, seq)

    @contextlib.contextmanager
    def _thread_view(self, *, waits: bool = True, mark: str = "") -> Iterator[_ThreadView]:
        """Give this thread a view that no other thread uses, or a place for one that is yet to be opened.

        It is one with the overlay that has this mark, if there is one.
        """
        thread = threading.get_ident()
        with self._lock:
            used = self._used.get(thread)
            while waits and used is None and self._is_full():
                interrupting.check()
                self._lock.wait(LOOK_S)
            if used is None:
                used = self._used[thread] = self._taken(mark)
        used.depth += 1
        try:
            yield used
        finally:
            used.depth -= 1
            if not used.depth:
                self._give_back(thread, used)

    def _taken(self, mark: str) -> _ThreadView:
        if mark and mark == self._mark and self._overlaid:
            return _ThreadView(self._overlaid.pop(), self._generation, mark)
        return _ThreadView(self._idle.pop() if self._idle else None, self._generation)

    def _is_full(self) -> bool:
        return readers_left((used.since_s for used in self._used.values()), _now_s()) <= 0

    def _give_back(self, thread: int, used: _ThreadView) -> None:
        with self._lock:
            del self._used[thread]
            kept = self._overlaid if used.mark else self._idle
            is_asked_for = used.generation == self._generation and used.mark in {"", self._mark}
            if used.view is not None and is_asked_for and len(kept) < _MAX_IDLE:
                kept.append(used.view)
                used.view = None
            self._lock.notify()
        used.drop()

    def adopt(self, entry: FoldedRecord, changes: Changes, before: Head, head: Head) -> None:
        """Take in a record that this process has just committed, into a view of the head ``before`` it.

        A view of another store that ended at the same seq is no such view: one store may have replaced another.
        Whatever fails here, the record is durable: the view is closed, and the next one folds the journal.
        """

        def fits(view: View) -> bool:
            basis = view.basis
            return (basis.store_id, basis.seq, basis.sum) == (before.store_id, before.seq, before.hash)

        with self._lock:
            view = next(filter(fits, reversed(self._idle)), None)
            if view is None:
                return
            self._idle.pop(self._idle.index(view))
            generation = self._generation
        is_kept = False
        with self._ignoring_errors("a view takes in a record that was committed"):
            try:
                view.adopt(entry, changes, basis_of(head))
                with self._lock:
                    is_kept = generation == self._generation
                    self._idle += [view] if is_kept else []
            finally:
                if not is_kept:  # it may hold the record in part
                    view.close()

    def publish_rows(self, entry: FoldedRecord, encoded: EncodedChanges, head: Head) -> None:
        """Publish a base with the rows of the first record of a branch, which this process has just committed.

        Never while the branch is locked. Whatever fails here, the record is durable: the next view folds the journal.
        """
        doing = "the rows of a record are published"
        with self._ignoring_errors(doing), interrupting.maintenance():
            self._files.publish(
                self._files.path,
                lambda path: write_first(str(path), self._files.room, entry, encoded, basis_of(head)),
                lambda _: None,
            )
        self.close()

    def is_publishing_due(self) -> bool:
        """Tell whether the tail of the view that was given back last has grown long enough to be published."""
        with self._lock:
            if not self._idle or not may_be_due(self._idle[-1]):
                return False
        return self._with_idle("it is looked whether a view is to be published", lambda _: True)

    def publish_when_due(self, head: Head | None = None) -> None:
        """Write the view into the cache if its tail has grown long enough; never while the branch is locked.

        No answer depends on the cache: a view that cannot be read any more, or whose writing
        takes too long, needs more memory than there is, or is stopped, is closed. Where a thread publishes no
        other one does. With ``head``, a view that does not lead to it is not published.
        """

        def publish(used: _ThreadView) -> bool:
            view = used.view
            if view is None or (head is not None and not is_usable(view.basis, head)):
                return False
            before = view.base_seq
            newer = self._publisher.publish(view)
            if newer is not None:
                used.drop()
                used.view = newer
            if newer is not None or view.base_seq != before:
                used.generation = self.close()  # the others have an older base
            return False

        with interrupting.optional():
            self._with_idle("a view is published", publish)

    def _with_idle(self, doing: str, use_due: Callable[[_ThreadView], bool]) -> bool:
        """Return what is done with the view that was given back last, where its tail is to be published; else False."""
        with self._lock:
            if not self._idle or self._is_full() or self._publisher.is_busy:
                return False
        # While it waits for a view it can be stopped as well.
        with contextlib.suppress(Stopped), self._ignoring_errors(doing), self._thread_view() as used:
            if used.view is None or used.depth > 1:
                return False
            try:
                return is_due(used.view) and use_due(used)
            except BaseException:
                # Between two bases it would show some rows twice.
                used.drop()
                raise
        return False

    def publish_from_new_view(self, clock: Clock, wait_s: float) -> None:
        """Publish a view that is opened for this, while other threads use the views that they have.

        Waits up to ``wait_s`` for another process that publishes: its base will do. What cannot be published is left
        to the next reader, as in ``publish_when_due``.
        """
        with contextlib.suppress(Stopped), self._ignoring_errors("a view is published"), interrupting.optional():
            view = self._publisher.publish(None, clock, wait_s)
            if view is not None:
                self.close()
                with self._lock:
                    self._idle.append(view)

    @contextlib.contextmanager
    def _ignoring_errors(self, doing: str) -> Iterator[None]:
        """Let no error of the block change an answer that there is already; report a bug in a file and a notice."""
        try:
            yield
        except (KBError, ViewDamaged):
            return  # the next one who reads begins with another view, and gets the error of the store
        except Exception as error:  # noqa: BLE001 - reported, unless the system refused memory or threads
            if exhausted(error, may_be_written=False) is None:
                saved = bug_reports.write_report(error, doing, self._files.directory.parent)
                self._files.notices.append(
                    f"KB failed in a way that it should not ({type(error).__name__}: {doing}). What was answered is "
                    f"right. {bug_reports.place_of(saved)}"
                )
