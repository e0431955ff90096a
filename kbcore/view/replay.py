"""Replay the journal: from its beginning, or from the snapshot after pruned or missing records.

The journal alone is read, never the view, so this is what snapshots, new views and proofs are made from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore import progress
from kbcore.errors import HistoryPruned, SnapshotCorrupt
from kbcore.model import canonical, record
from kbcore.model.canonical import KnownChangeset, Replayed
from kbcore.model.record import Record
from kbcore.model.state import Changes, State
from kbcore.storage import journal, snapshot
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, SnapshotRef
from kbcore.storage.journal import Position
from kbcore.view.record_rows import FoldedRecord, FoldStart, fold

Records = Callable[[Sequence[int], Sequence[str]], list[tuple[Any, ...]]]
"""Returns columns of the log's rows of records: ``PastRows.records``."""
_PLACE: Final = ("seq", "file", "offset_bytes", "sum")


def history_from(head: Head) -> int:
    """Return the seq from which on history is whole: 0, or that of the oldest usable snapshot."""
    ref = _first_snapshot(head)
    return ref.seq if ref else 0


def listed_from(head: Head) -> int:
    """Return the first record that a view of this head lists although later ones are missing, 0 where none is."""
    return head.first_seq if head.holes else 0


def start(fs: Fs, directory: Path, head: Head) -> FoldStart:
    """Return what a replay begins with: nothing, or the oldest snapshot after pruned or missing records.

    Raises: ``SnapshotCorrupt`` when that snapshot is missing or damaged; ``HistoryPruned`` when it was pruned
    meanwhile; ``FormatTooNew``, ``StorageError``.
    """
    begun = _start_at(fs, directory, head, _first_snapshot(head))
    if head.holes:
        return msgspec.structs.replace(begun, earlier=_listed(fs, directory, head, until=begun.seq))
    return begun


def _listed(fs: Fs, directory: Path, head: Head, *, until: int) -> Iterator[tuple[FoldedRecord, Changes | None]]:
    """Yield the records up to a seq, each with what it changed, None where a record before it is missing or pruned.

    No snapshot is read for it: a damaged one would keep the whole branch from being read.
    """
    first, last = head.parts[0]
    state = State()
    for entry in entries(fs, directory, head, until=until):
        yield entry, fold(state, entry) if first == 1 and entry.seq <= last else None


def start_before(fs: Fs, directory: Path, head: Head, seq: int) -> FoldStart:
    """Return what a replay up to one seq begins with; before missing records that is not what leads to the head.

    Raises: ``HistoryPruned`` when no replay leads to that seq; as ``start``.
    """
    begins = history_from(head)
    if seq >= begins or not head.holes:
        begun = start(fs, directory, head)
        if seq < begun.seq:
            raise pruned(seq, begun.seq)
        return begun
    for first, last in head.parts:
        if first - 1 <= seq <= last:
            refs = [ref for ref in head.snapshots if first - 1 <= ref.seq <= seq]
            if first == 1 or refs:
                return _start_at(fs, directory, head, None if first == 1 else refs[0])
    raise pruned(seq, begins)


def _start_at(fs: Fs, directory: Path, head: Head, ref: SnapshotRef | None) -> FoldStart:
    if ref is None:
        return FoldStart(0, head.lineage, State(), [])
    folded = canonical.read(snapshot.read(fs, directory, head, ref))
    return FoldStart(ref.seq, ref.hash, folded.state, folded.known)


def entries(
    fs: Fs, directory: Path, head: Head, *, after: Position | None = None, until: int | None = None, skip: int = 0
) -> Iterator[FoldedRecord]:
    """Yield the decoded records after a position, up to the head or to ``until``, without those up to ``skip``.

    Segments that end before ``skip`` are not read.

    Raises: as ``journal.scan``; ``FormatTooNew`` for a record that this program does not know.
    """
    if after is None and skip:
        after = max((part.start for part in head.segments if part.first_seq <= skip + 1), key=lambda at: at.seq)
    for found in journal.scan(fs, directory, head, after=after, until=until):
        if found.frame.seq > skip:
            decoded = record.decode(found.frame.rec, seq=found.frame.seq)
            yield FoldedRecord(found.frame.seq, found.frame.sum, decoded, found.file, found.offset, found.length)


def record_at(fs: Fs, directory: Path, records: Records, seq: int) -> Record | None:
    """Return the record at a seq of the journal; ``records`` says where it is. None when its line was pruned.

    Raises: what reading the journal raises.
    """
    rows = {at: (file, offset_bytes, sum_) for at, file, offset_bytes, sum_ in records([seq - 1, seq], _PLACE)}
    file, offset_bytes, _ = rows.get(seq, ("", 0, ""))
    if not file:
        return None
    head = journal.read_head(fs, directory)
    bases = {part.file: part.base_hash for part in head.segments if part.first_seq == seq}
    previous = bases.get(file) or (rows[seq - 1][2] if seq - 1 in rows else head.lineage)
    line = journal.read_one(fs, directory, head, Position(seq - 1, previous, file, offset_bytes))
    return record.decode(line.frame.rec, seq=seq)


def known_of(entry: FoldedRecord) -> KnownChangeset:
    """Return what stays known of a record for ever."""
    return KnownChangeset(entry.record.changeset_id, entry.seq, entry.record.digest)


def folded(fs: Fs, directory: Path, head: Head, *, until: int | None = None) -> Replayed:
    """Return all that the journal comes to at the head, or at an earlier seq.

    Raises: ``HistoryPruned`` for a seq whose history was pruned; what ``start`` and ``entries`` raise.
    """
    begun = start(fs, directory, head)
    if until is not None and until < begun.seq:
        raise pruned(until, begun.seq)
    known = list(begun.known)
    if until is None or until > begun.seq:
        last = head.seq if until is None else until
        found = entries(fs, directory, head, until=until, skip=begun.seq)
        for entry in progress.track(found, last - begun.seq, "records replayed"):
            fold(begun.state, entry)
            known.append(known_of(entry))
    return Replayed(begun.state, known)


def _first_snapshot(head: Head) -> SnapshotRef | None:
    """Return the snapshot of what pruned or missing records led to, None when no record is missing."""
    if head.pruned is None and not head.holes:
        return None
    for ref in head.snapshots:
        if ref.seq >= head.whole_from - 1:
            return ref
    raise SnapshotCorrupt(
        f"Without a gap, the journal begins at record {head.whole_from}, and no snapshot holds what came before.",
        hint="Restore the store from a backup. " + SnapshotCorrupt.default_hint,
    )


def pruned(seq: int, history_from: int) -> HistoryPruned:
    """Return the error for a seq before the first at which the state is known."""
    return HistoryPruned.before(history_from + 1, f"seq {seq}")
