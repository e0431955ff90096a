"""The views that a process keeps of a branch: opened, caught up, published, and thrown away when in doubt.

The journal decides: a view that does not lead to the head is built anew, and what it had seen is reported.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kbcore import interrupting, progress
from kbcore.clock import Clock, SystemClock
from kbcore.errors import Damaged, HistoryPruned, KBError, StatementTimeout, ViewDamaged
from kbcore.interrupting import Stopped
from kbcore.limits import MAX_READERS, MAX_VIEWS, SLOW_READ_S
from kbcore.model.state import Changes, Stamp
from kbcore.process_limits import exhausted
from kbcore.storage import journal
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.journal import Position
from kbcore.view import replay
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.cache import ViewCache, is_ahead, is_usable
from kbcore.view.fold import FoldedRecord
from kbcore.view.view import View

T = TypeVar("T")

_MAX_IDLE: Final = 2
"""So many views of one branch are kept while nobody reads: the others are closed when they are given back."""
_LOOK_S: Final = 0.05

_now_s: Final = SystemClock().monotonic_s


class Overlay(msgspec.Struct, frozen=True):
    """Changes that are in no record, as the next record would make them; ``mark`` is the same for the same changes."""

    mark: str
    stamp: Stamp
    changes: Changes


class _Lent:
    """The view that one thread reads from, and how often it has asked for one inside of what it asked."""

    def __init__(self, view: View | None, generation: int, mark: str = "") -> None:
        self.view = view
        self.mark = mark
        """That of the overlay that the view holds, "" for none."""
        self.generation = generation
        self.depth = 0
        self.since_s = _now_s()

    def drop(self) -> None:
        """Throw the view away."""
        view, self.view, self.mark = self.view, None, ""
        if view is not None:
            view.close()


class BranchView:
    """A branch as this process sees it. The caller reads the head, and says for which one it asks.

    Each thread has a view of its own while it asks, so that a slow statement keeps no other thread waiting, and an
    interruption meets one statement. The view that was given back last is lent first: one thread always has the same.
    """

    def __init__(self, fs: Fs, directory: Path, cache: ViewCache) -> None:
        self._fs = fs
        self._directory = directory
        self._cache = cache
        self._gate = threading.Condition()
        self._idle: list[View] = []
        self._overlaid: list[View] = []
        """The same of views with the overlay that has ``_mark``: none of them becomes a view of another head."""
        self._mark = ""
        self._lent: dict[int, _Lent] = {}
        """By the number of the thread."""
        self._generation = 0
        """Goes up when a base was published or all was let go: a view lent before that is closed, not kept."""
        self._opening = threading.RLock()
        """Held while a view is opened or built: what is found to be damaged or lost is then reported once."""
        self._is_publishing = False
        self._base_file: tuple[int, int] | None = None
        """The published view that was opened last (``ViewCache.identity``)."""
        self.lost_id = ""
        """The id of the store that is missing, "" where none is: a view of it is kept when another replaces it."""

    @property
    def notices(self) -> list[str]:
        """What a person should hear of: the view knew of records that the journal does not have."""
        return self._cache.notices

    def close(self) -> int:
        """Let go of the views: of those that requests are using, when they are given back.

        Returns the number of the generation that begins now.
        """
        with self._gate:
            self._generation += 1
            generation = self._generation
            idle = [*self._idle, *self._overlaid]
            self._idle, self._overlaid = [], []
        for view in idle:
            view.close()
        return generation

    def ask(self, head: Head, use: Callable[[View], T], *, is_writing: bool = False) -> T:
        """Return ``use(view)`` on a view of this head, or of a later one that others have published meanwhile.

        If need be the view is built anew. What a thread asks while it is answered is answered from the same view. With
        ``is_writing``, which others may be waiting for, it waits for no reader.

        Raises: what reading the journal raises.
        """
        with self._lending(waits=not is_writing) as lent:
            try:
                view = self._at(lent, head)
                return use(view if is_writing or lent.mark else self._on_newer_base(lent, view, head))
            except ViewDamaged:
                lent.drop()
                self._cache.discard()
                return use(self._at(lent, head))
            except BaseException as error:
                # Whatever a statement that was interrupted was about to make is not there, or only in part. What a bug
                # left is not known.
                if isinstance(error, StatementTimeout) or not isinstance(error, KBError):
                    lent.drop()
                raise

    def ask_overlaid(
        self, head: Head, mark: str, find: Callable[[View], Overlay | None], use: Callable[[View], T]
    ) -> T:
        """Do as ``ask`` on a view of this head with an overlay.

        ``find`` says which one, None for none, of a view of the head. It is not asked where a view has the one with
        this mark already, which has to be another one for each head; "" is the mark of none.
        """

        def overlaid(lent: _Lent) -> View:
            if lent.view is not None and lent.mark:
                return lent.view
            view = self._on_newer_base(lent, self._at(lent, head), head)
            found = find(view)
            if found is not None:
                try:
                    view.overlay(found.stamp, found.changes, found.mark)
                except BaseException:
                    lent.drop()  # it may hold a part of the changes
                    raise
                lent.mark = found.mark
                self.keep_overlay(found.mark)
            return view

        with self._lending(mark=mark) as lent:
            try:
                return use(overlaid(lent))
            except ViewDamaged:
                lent.drop()
                self._cache.discard()
                return use(overlaid(lent))
            except BaseException as error:
                if isinstance(error, StatementTimeout) or not isinstance(error, KBError):
                    lent.drop()  # as in ``ask``
                raise

    def keep_overlay(self, mark: str) -> None:
        """Close the idle views with an overlay, but those with this mark: no other one is asked for again."""
        if mark == self._mark:
            return
        with self._gate:
            self._mark = mark
            old, self._overlaid = self._overlaid, []
        for view in old:
            view.close()

    def is_ready(self, head: Head) -> bool:
        """Tell whether a view is there that becomes one of this head in the time of a commit."""
        with self._gate:
            view = self._idle[-1] if self._idle else None
            return view is not None and is_usable(view.basis, head) and view.is_ready(head.seq)

    @contextlib.contextmanager
    def _lending(self, *, waits: bool = True, mark: str = "") -> Iterator[_Lent]:
        """Give this thread a view that nobody else uses, or the place of one that is yet to be opened.

        It is one with the overlay that has this mark, if there is one.
        """
        thread = threading.get_ident()
        with self._gate:
            lent = self._lent.get(thread)
            while waits and lent is None and self._is_full():
                interrupting.check()
                self._gate.wait(_LOOK_S)
            if lent is None:
                lent = self._lent[thread] = self._lend(mark)
        lent.depth += 1
        try:
            yield lent
        finally:
            lent.depth -= 1
            if not lent.depth:
                self._give_back(thread, lent)

    def _lend(self, mark: str) -> _Lent:
        if mark and mark == self._mark and self._overlaid:
            return _Lent(self._overlaid.pop(), self._generation, mark)
        return _Lent(self._idle.pop() if self._idle else None, self._generation)

    def _is_full(self) -> bool:
        """Tell whether the next reader has to wait: a slow one keeps a quick one waiting only when there are many."""
        slow_since_s = _now_s() - SLOW_READ_S
        quick = sum(lent.since_s > slow_since_s for lent in self._lent.values())
        return quick >= MAX_READERS or len(self._lent) >= MAX_VIEWS

    def _give_back(self, thread: int, lent: _Lent) -> None:
        with self._gate:
            del self._lent[thread]
            kept = self._overlaid if lent.mark else self._idle
            is_asked_for = lent.generation == self._generation and lent.mark in {"", self._mark}
            if lent.view is not None and is_asked_for and len(kept) < _MAX_IDLE:
                kept.append(lent.view)
                lent.view = None
            self._gate.notify()
        lent.drop()

    def adopt(self, entry: FoldedRecord, changes: Changes, before: Head, head: Head) -> None:
        """Take in a record that this process has just committed, into a view of the head ``before`` it.

        A view of another store that ended at the same seq is no such view: one store may have replaced another.
        Whatever fails here, the record is durable: the view is thrown away, and the next one folds the journal.
        """

        def fits(view: View) -> bool:
            basis = view.basis
            return (basis.store_id, basis.seq, basis.sum) == (before.store_id, before.seq, before.hash)

        with self._gate:
            view = next(filter(fits, reversed(self._idle)), None)
            if view is None:
                return
            self._idle.pop(self._idle.index(view))
            generation = self._generation
        is_kept = False
        with self._answered("a view takes in a record that was committed"):
            try:
                view.adopt(entry, changes, basis_of(head))
                with self._gate:
                    is_kept = generation == self._generation
                    self._idle += [view] if is_kept else []
            finally:
                if not is_kept:  # it may hold the record in part
                    view.close()

    def is_publishing_due(self) -> bool:
        """Tell whether the tail of the view that was given back last has grown long enough to be published."""
        return self._with_idle("it is looked whether a view is to be published", lambda _: True)

    def publish_when_due(self, head: Head | None = None) -> None:
        """Write the view into the cache if its tail has grown long enough; never while the branch is locked.

        What was answered stands, whatever becomes of the cache: a view that cannot be read any more, or whose writing
        takes too long, needs more memory than there is, or is stopped, is thrown away. Where a thread publishes no
        other one does. With ``head``, a view that does not lead to it is not published.
        """

        def publish(lent: _Lent) -> bool:
            if head is None or (lent.view is not None and is_usable(lent.view.basis, head)):
                self._publish(lent)
            return False

        with interrupting.optional():
            self._with_idle("a view is published", publish)

    def _with_idle(self, doing: str, use_due: Callable[[_Lent], bool]) -> bool:
        """Return what is done with the view that was given back last, where its tail is to be published; else False."""
        with self._gate:
            if not self._idle or self._is_full() or self._is_publishing:
                return False
        # While it waits for a view it can be stopped as well.
        with contextlib.suppress(Stopped), self._answered(doing), self._lending() as lent:
            if lent.view is None or lent.depth > 1:
                return False
            try:
                return self._cache.is_due(lent.view) and use_due(lent)
            except BaseException:
                # Between two bases it would show some rows twice.
                lent.drop()
                raise
        return False

    def publish_beside(self, clock: Clock, wait_s: float) -> None:
        """Publish a view that is opened for this, while other threads use the views that they have.

        Waits up to ``wait_s`` for another process that publishes: its base will do. What cannot be published is left
        to the next reader, as in ``publish_when_due``.
        """
        with self._gate:
            if self._is_publishing:
                return
            self._is_publishing = True
        try:
            with (
                contextlib.suppress(Stopped),
                self._answered("a view is published"),
                interrupting.optional(),
                self._cache.claimed(clock, wait_s),
            ):
                view = journal.reading(self._fs, self._directory, self._published)
                if view is not None:
                    self._replace_idle(view)
        finally:
            with self._gate:
                self._is_publishing = False

    def _published(self, head: Head) -> View | None:
        """Return another view of this head, published where that is due; None where nothing can be published."""
        if not self._cache.is_writable():
            return None
        with self._alone():
            view, head = self._fitting(None, head)
            if view is None:
                return self._build(head)
        try:
            self._catch_up(view, head)
            if self._cache.is_due(view):
                self._cache.publish(view)
        except BaseException:
            view.close()
            raise
        return view

    def _replace_idle(self, view: View) -> None:
        """Lend this view from now on, instead of those that were opened before it."""
        self.close()
        with self._gate:
            self._idle.append(view)

    @contextlib.contextmanager
    def _answered(self, doing: str) -> Iterator[None]:
        """Let no error of the block change an answer that there is already; a bug is reported apart from it."""
        try:
            yield
        except (KBError, ViewDamaged):
            return  # the next one who reads begins with another view, and hears of what is wrong with the store
        except Exception as error:  # noqa: BLE001 - reported, unless the system refused memory or threads
            if exhausted(error, may_be_written=False) is None:
                self._cache.report_bug(error, doing)

    def _publish(self, lent: _Lent) -> None:
        """Publish a view, or take the base that another process has published, and close views on an older base."""
        assert lent.view is not None  # noqa: S101 - for the type checker: the caller has looked
        before = lent.view.base_seq
        with self._gate:
            if self._is_publishing:
                return
            self._is_publishing = True
        try:
            newer = self._cache.renew(lent.view, self._catch_up_with_head)
        finally:
            with self._gate:
                self._is_publishing = False
        if newer is not None:
            lent.drop()
            lent.view = newer
        elif lent.view.base_seq == before:
            return
        lent.generation = self.close()

    def until(self, head: Head, seq: int) -> View:
        """Return another view, in memory, that is folded up to a seq and no further.

        Raises: ``HistoryPruned``; what reading the journal up to there raises.
        """
        start = replay.start_before(self._fs, self._directory, head, seq)
        entries = replay.entries(self._fs, self._directory, head, until=seq, skip=start.seq) if seq > start.seq else ()
        basis = msgspec.structs.replace(basis_of(head), seq=min(seq, head.seq), history_from=start.seq)
        return self._cache.build_in_memory(start, entries, basis)

    def _on_newer_base(self, lent: _Lent, view: View, head: Head) -> View:
        """Return a view on a base that was published meanwhile, instead of one that has a long tail to fold."""
        if lent.depth > 1 or not self._cache.is_due(view):
            return view
        with self._gate:
            known, self._base_file = self._base_file, self._cache.identity()
            if known == self._base_file:
                return view
        newer = self._cache.opened()
        if newer is None:
            return view
        is_newer = False
        try:
            if newer.base_seq > view.base_seq and is_usable(newer.basis, head):
                # Records that this reader has taken in may have been damaged since: the old view has them.
                with contextlib.suppress(Damaged, HistoryPruned):
                    self._catch_up(newer, head)
                    is_newer = newer.seq >= view.seq
        finally:
            if not is_newer:
                newer.close()
        if is_newer:
            lent.drop()
            lent.view = view = newer
        return view

    def _at(self, lent: _Lent, head: Head) -> View:
        if lent.view is not None and lent.mark:
            return lent.view  # the thread asks inside of what it asks of a view with an overlay
        if lent.view is None or not is_usable(lent.view.basis, head):
            with self._alone():
                lent.view, head = self._fitting(lent.view, head)
                lent.view = lent.view or self._build(head)
        view = lent.view
        try:
            self._catch_up(view, head)
        except (Damaged, HistoryPruned) as error:
            if isinstance(error, HistoryPruned) and view.basis.store_id == head.store_id:
                lent.drop()
                raise
            lent.drop()
            with self._alone():
                lent.view = view = self._built_instead(view, head)
        except BaseException:
            # What was taken in by half would be taken in twice.
            lent.drop()
            raise
        return view

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Open views in one thread at a time."""
        while not self._opening.acquire(timeout=_LOOK_S):
            interrupting.check()
        try:
            yield
        finally:
            self._opening.release()

    def _fitting(self, known: View | None, head: Head) -> tuple[View | None, Head]:
        """Return a view that can become one of this head, if there is any, and the head that it is to become one of.

        A view that is ahead of the head may come from a writer who was faster than this reader: only one that is
        ahead of the head of this moment knows of records that were lost.
        """
        for is_published in (False, True):
            if is_published:
                self._base_file = self._cache.identity()
            view = self._cache.opened() if is_published else known
            if view is None:
                continue
            if is_ahead(view.basis, head):
                head = journal.read_head(self._fs, self._directory)
            if is_usable(view.basis, head):
                return view, head
            view.close()
            if is_ahead(view.basis, head):
                self._cache.note(view.basis, head)
            if is_published and (is_ahead(view.basis, head) or view.basis.store_id == self.lost_id):
                self._cache.set_aside(view.basis)
        return None, head

    def _catch_up(self, view: View, head: Head) -> None:
        basis = view.basis
        if basis.seq == head.seq and basis.sum == head.hash:
            journal.check_length(self._fs, self._directory, head)
            return
        after = Position(basis.seq, basis.sum, basis.file, basis.end_bytes)
        entries = replay.entries(self._fs, self._directory, head, after=after)
        view.extend(_counted(entries, head.seq - basis.seq), basis_of(head))

    def _catch_up_with_head(self, view: View) -> None:
        journal.reading(self._fs, self._directory, lambda head: self._catch_up(view, head))

    def _built_instead(self, view: View, head: Head) -> View:
        """Return a new view where the old one does not lead to this head, because it saw another history.

        Raises: ``JournalCorrupt``, ``JournalTruncated`` when it is the journal that is wrong.
        """
        for _ in journal.scan(self._fs, self._directory, head):
            continue
        if view.basis.store_id == head.store_id:
            self._cache.note(view.basis, head)
        if view.basis.store_id in {head.store_id, self.lost_id}:
            self._cache.set_aside(view.basis)
        return self._build(head)

    def _build(self, head: Head) -> View:
        start = replay.start(self._fs, self._directory, head)
        entries = replay.entries(self._fs, self._directory, head, skip=start.seq)
        try:
            return self._cache.build(start, _counted(entries, head.seq - start.seq), basis_of(head))
        except ViewDamaged:
            # The file could not be written to its end, as on a full disk; what was folded is spent.
            start = replay.start(self._fs, self._directory, head)
            entries = replay.entries(self._fs, self._directory, head, skip=start.seq)
            return self._cache.build_in_memory(start, entries, basis_of(head))


def _counted(entries: Iterable[FoldedRecord], total: int) -> Iterable[FoldedRecord]:
    return progress.track(entries, total, "records read")


def basis_of(head: Head) -> BaseStamp:
    """Return what a view that is folded up to this head stands on."""
    tip = head.head
    return BaseStamp(
        head.store_id,
        head.lineage,
        tip.seq,
        tip.hash,
        tip.at,
        tip.file,
        tip.length,
        replay.history_from(head),
        replay.listed_from(head),
    )
