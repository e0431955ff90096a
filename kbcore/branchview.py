"""The one view that a process keeps of a branch: opened, caught up, published, and thrown away when in doubt.

The journal decides: a view that does not lead to the head is built anew, and what it had seen is reported.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from kbcore import progress, replay
from kbcore.errors import Damaged, HistoryPruned, StatementTimeout, ViewDamaged
from kbcore.interrupting import Stopped
from kbcore.state import Changes
from kbcore.storage import journal
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.journal import Position
from kbcore.view.basis import Basis
from kbcore.view.fold import Entry
from kbcore.view.past import pruned
from kbcore.view.view import View
from kbcore.viewcache import ViewCache, is_ahead, is_usable

T = TypeVar("T")


class BranchView:
    """A branch as this process sees it. The caller reads the head, and says for which one it asks."""

    def __init__(self, fs: Fs, directory: Path, cache: ViewCache) -> None:
        self._fs = fs
        self._directory = directory
        self._cache = cache
        self._view: View | None = None
        self._turn = threading.RLock()
        self._is_asked = False
        self.lost_id = ""
        """The id of the store that is missing, "" where none is: a view of it is kept when another replaces it."""

    @property
    def notices(self) -> list[str]:
        """What a person should hear of: the view knew of records that the journal does not have."""
        return self._cache.notices

    def close(self) -> None:
        """Let go of the view, unless a request is using it: it is then kept."""
        if not self._turn.acquire(blocking=False):
            return
        try:
            if not self._is_asked:
                self._drop()
        finally:
            self._turn.release()

    def ask(self, head: Head, use: Callable[[View], T]) -> T:
        """Return ``use(view)`` on a view of this head, or of a later one that others have published meanwhile.

        If need be the view is built anew. One thread at a time.

        Raises: what reading the journal raises.
        """
        with self._turn:
            was_asked, self._is_asked = self._is_asked, True
            try:
                return use(self._at(head))
            except ViewDamaged:
                self._drop()
                self._cache.discard()
                return use(self._at(head))
            except (StatementTimeout, Stopped):
                # Whatever the statement was about to make is not there, or only in part.
                self._drop()
                raise
            finally:
                self._is_asked = was_asked

    def adopt(self, entry: Entry, changes: Changes, head: Head) -> None:
        """Take in a record that this process has just committed, unless another thread has read it already."""
        with self._turn:
            if self._view is not None and self._view.seq == entry.seq - 1:
                self._view.adopt(entry, changes, basis_of(head))

    def publish_when_due(self) -> None:
        """Write the view into the cache if its tail has grown long enough; never while the branch is locked.

        What was answered stands, whatever becomes of the cache: a view that cannot be read any more, or whose writing
        takes too long or is stopped, is thrown away.
        """
        with self._turn:
            if self._view is None:
                return
            try:
                if self._cache.is_due(self._view):
                    self._cache.publish(self._view)
            except (ViewDamaged, StatementTimeout, Stopped):
                self._drop()
            except BaseException:
                # Between two bases it would show some rows twice.
                self._drop()
                raise

    def until(self, head: Head, seq: int) -> View:
        """Return another view, in memory, that is folded up to a seq and no further.

        Raises: ``HistoryPruned``; what reading the journal up to there raises.
        """
        start = replay.start(self._fs, self._directory, head)
        if seq < start.seq:
            raise pruned(seq, start.seq)
        entries = replay.entries(self._fs, self._directory, head, until=seq, skip=start.seq) if seq > start.seq else ()
        basis = msgspec.structs.replace(basis_of(head), seq=min(seq, head.seq))
        return self._cache.build_in_memory(start, entries, basis)

    def _at(self, head: Head) -> View:
        view, head = self._fitting(head)
        self._view = view = view or self._build(head)
        try:
            self._catch_up(view, head)
        except (Damaged, HistoryPruned) as error:
            if isinstance(error, HistoryPruned) and view.basis.store_id == head.store_id:
                self._drop()
                raise
            self._view = view = self._built_instead(view, head)
        except BaseException:
            # What was taken in by half would be taken in twice.
            self._drop()
            raise
        return view

    def _fitting(self, head: Head) -> tuple[View | None, Head]:
        """Return a view that can become one of this head, if there is any, and the head that it is to become one of.

        A view that is ahead of the head may come from a writer who was faster than this reader: only one that is
        ahead of the head of this moment knows of records that were lost.
        """
        for is_published in (False, True):
            view = self._cache.opened() if is_published else self._view
            if view is None:
                continue
            if is_ahead(view.basis, head):
                head = journal.read_head(self._fs, self._directory)
            if is_usable(view.basis, head):
                return view, head
            view.close()
            self._view = None
            if is_ahead(view.basis, head):
                self._cache.note(view.basis, head)
            if is_published and (is_ahead(view.basis, head) or view.basis.store_id == self.lost_id):
                self._cache.set_aside(view.basis)
        return None, head

    def _drop(self) -> None:
        if self._view is not None:
            self._view.close()
            self._view = None

    def _catch_up(self, view: View, head: Head) -> None:
        basis = view.basis
        if basis.seq == head.seq and basis.sum == head.hash:
            journal.check_length(self._fs, self._directory, head)
            return
        after = Position(basis.seq, basis.sum, basis.file, basis.end_bytes)
        entries = replay.entries(self._fs, self._directory, head, after=after)
        view.extend(_counted(entries, head.seq - basis.seq), basis_of(head))

    def _built_instead(self, view: View, head: Head) -> View:
        """Return a new view where the old one does not lead to this head, because it saw another history.

        Raises: ``JournalCorrupt``, ``JournalTruncated`` when it is the journal that is wrong.
        """
        self._drop()
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


def _counted(entries: Iterable[Entry], total: int) -> Iterable[Entry]:
    return progress.counted(entries, total, "records read")


def basis_of(head: Head) -> Basis:
    """Return what a view that is folded up to this head stands on."""
    tip = head.head
    return Basis(
        head.store_id, head.lineage, tip.seq, tip.hash, tip.at, tip.file, tip.length, replay.history_from(head)
    )
