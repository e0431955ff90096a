"""Views of a head: opened on the published base, brought to the head with the journal, or built.

The journal decides: a view that does not lead to the head is built again, and what it had seen is reported.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from kbcore import progress
from kbcore.errors import Damaged, HistoryPruned, KBError, ViewDamaged
from kbcore.process import interrupting
from kbcore.storage import journal
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.journal import Position
from kbcore.view import base, replay
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.cache_files import CacheFiles
from kbcore.view.record_rows import FoldedRecord, FoldStart
from kbcore.view.view import View

LOOK_S: Final = 0.05
"""Between two looks whether what is waited for has come."""


class ViewOpener:
    """Makes the views of one branch. The caller reads the head, and owns the view that it gets."""

    def __init__(self, fs: Fs, directory: Path, files: CacheFiles) -> None:
        self.fs = fs
        self.directory = directory
        self._files = files
        self._opening = threading.RLock()
        """Held while a view is opened or built: what is found to be damaged or lost is then reported once."""
        self._base_file: tuple[int, int] | None = None
        """The published view that was opened last (``CacheFiles.identity``)."""
        self.lost_id = ""
        """The id of the store that is missing, "" where none is: a view of it is kept when another replaces it."""
        files.last_redaction = self._last_redaction

    def _last_redaction(self) -> str:
        with contextlib.suppress(KBError):
            return redaction_of(journal.read_head(self.fs, self.directory))
        return self._files.redactions.seen

    def at(self, view: View | None, head: Head) -> View:
        """Return a view of this head, or of a later one: the given one where it can become one. Else that is closed.

        Raises: what reading the journal raises; the given view is closed then.
        """
        self._files.redactions.seen = redaction_of(head)
        if view is None or not is_usable(view.basis, head):
            with self._opening_lock():
                self._files.forget_redacted()
                view, head = self._fitting(view, head)
                view = view or self._build(head)
        try:
            self.catch_up(view, head)
        except (Damaged, HistoryPruned) as error:
            view.close()
            if isinstance(error, HistoryPruned) and view.basis.store_id == head.store_id:
                raise
            with self._opening_lock():
                return self._built_instead(view.basis, head)
        except BaseException:
            # What was taken in by half would be taken in twice.
            view.close()
            raise
        return view

    def is_base_replaced(self) -> bool:
        """Tell whether another base was published since the last look."""
        known, self._base_file = self._base_file, self._files.identity()
        return known != self._base_file

    def newer(self, view: View, head: Head) -> View | None:
        """Return another view, on a newer base than that of a view and no earlier than it; None where there is none."""
        newer = base.open_published(self._files)
        if newer is None:
            return None
        is_newer = False
        try:
            if newer.base_seq > view.base_seq and is_usable(newer.basis, head):
                # Records that this view has taken in may have been damaged since: the old view has them.
                with contextlib.suppress(Damaged, HistoryPruned):
                    self.catch_up(newer, head)
                    is_newer = newer.seq >= view.seq
        finally:
            if not is_newer:
                newer.close()
        return newer if is_newer else None

    def until(self, head: Head, seq: int) -> View:
        """Return a view, in memory, that is folded up to a seq and no further.

        Raises: ``HistoryPruned``; what reading the journal up to there raises.
        """
        start = replay.start_before(self.fs, self.directory, head, seq)
        entries = replay.entries(self.fs, self.directory, head, until=seq, skip=start.seq) if seq > start.seq else ()
        basis = msgspec.structs.replace(basis_of(head), seq=min(seq, head.seq), history_from=start.seq)
        return self._built_in(":memory:", start, entries, basis)

    def catch_up(self, view: View, head: Head) -> None:
        """Have a view take in the records up to a head."""
        basis = view.basis
        if basis.seq == head.seq and basis.sum == head.hash:
            journal.check_length(self.fs, self.directory, head)
            return
        after = Position(basis.seq, basis.sum, basis.file, basis.end_bytes)
        entries = replay.entries(self.fs, self.directory, head, after=after)
        view.extend(_counted(entries, head.seq - basis.seq), basis_of(head))

    @contextlib.contextmanager
    def _opening_lock(self) -> Iterator[None]:
        """Open views in one thread at a time."""
        while not self._opening.acquire(timeout=LOOK_S):
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
                self._base_file = self._files.identity()
            view = base.open_published(self._files) if is_published else known
            if view is None:
                continue
            if is_ahead(view.basis, head):
                head = journal.read_head(self.fs, self.directory)
            if is_usable(view.basis, head):
                return view, head
            view.close()
            if is_ahead(view.basis, head):
                self._note_lost(view.basis, head)
            if is_published and (is_ahead(view.basis, head) or view.basis.store_id == self.lost_id):
                self._files.keep_lost_view(view.basis)
        return None, head

    def _note_lost(self, basis: BaseStamp, head: Head) -> None:
        """Note that a view has seen what the journal does not have."""
        self._files.notices.append(
            f"Record {basis.seq} ({basis.sum[:12]}) was read earlier and is not in the journal, which now ends at "
            f"{head.seq} ({head.hash[:12]}): the store was put back to an earlier state, or records are lost."
        )

    def _built_instead(self, basis: BaseStamp, head: Head) -> View:
        """Return a new view where one with this stamp does not lead to this head, because it saw another history.

        Raises: ``JournalCorrupt``, ``JournalTruncated`` when it is the journal that is wrong.
        """
        for _ in journal.scan(self.fs, self.directory, head):
            continue
        if basis.store_id == head.store_id:
            self._note_lost(basis, head)
        if basis.store_id in {head.store_id, self.lost_id}:
            self._files.keep_lost_view(basis)
        return self._build(head)

    def _build(self, head: Head) -> View:
        """Return a view folded from the whole journal, published if the cache can be written."""
        target = self._files.new_file() if head.seq else None
        if target is not None:
            # The file may not be written to its end, as on a full disk; what was folded is spent then.
            with contextlib.suppress(ViewDamaged):
                with self._files.filling(target):
                    view = self._folded(str(target), head)
                self._files.move_in(target, self._files.path)
                return view
        return self._folded(":memory:", head)

    def _folded(self, target: str, head: Head) -> View:
        start = replay.start(self.fs, self.directory, head)
        entries = replay.entries(self.fs, self.directory, head, skip=start.seq)
        return self._built_in(target, start, _counted(entries, head.seq - start.seq), basis_of(head))

    def _built_in(self, target: str, start: FoldStart, entries: Iterable[FoldedRecord], basis: BaseStamp) -> View:
        with interrupting.maintenance():
            return base.build(target, self._files.room, start, entries, basis)


def _counted(entries: Iterable[FoldedRecord], total: int) -> Iterable[FoldedRecord]:
    return progress.track(entries, total, "records read")


def basis_of(head: Head) -> BaseStamp:
    """Return the stamp of a view that is folded up to this head."""
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


def is_usable(basis: BaseStamp, head: Head) -> bool:
    """Tell whether a view with this stamp can become a view of this head by taking in the later records.

    The view of another store will do for the part of the history that the copy began with. Whether it saw that very
    history is found out when it takes in the next record.
    """
    begins = replay.history_from(head), replay.listed_from(head)
    is_of_history = basis.lineage == head.lineage and (basis.history_from, basis.listed_from) == begins
    if not is_of_history or basis.file not in head.files:
        return False
    if basis.store_id == head.store_id or head.epoch_of(basis.store_id):
        return not is_ahead(basis, head)
    return head.origin is not None and basis.seq <= head.origin.seq


def redaction_of(head: Head) -> str:
    """Return what names the last redaction of a store: the id that it had up to it; "" for none."""
    return head.redacted.store_id if head.redacted else ""


def is_ahead(basis: BaseStamp, head: Head) -> bool:
    """Tell whether a view of the same store, under any id that it had, has seen what its journal does not have.

    A view from before a redaction has seen what was taken out: that is no loss.
    """
    ids = [one.store_id for one in head.epochs]
    last = ids.index(head.redacted.store_id) if head.redacted and head.redacted.store_id in ids else -1
    if basis.store_id in ids[: last + 1]:
        return False
    tip = head if basis.store_id == head.store_id else head.epoch_of(basis.store_id)
    if tip is None or basis.lineage != head.lineage:
        return False
    return basis.seq > tip.seq or (basis.seq == tip.seq and basis.sum != tip.hash)
