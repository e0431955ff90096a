"""Compaction: write the snapshot at the head, seal the active segment, and on request give up old history.

Invariant: head, hash, answers and known changeset ids are the same before, during and after; the one step
that counts is the replacement of the head file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from kbcore import limits
from kbcore.clock import Clock
from kbcore.errors import CommitUncertain, InvalidQuery, KBError, LimitExceeded
from kbcore.errors.remedies import kb
from kbcore.limits import LOCK_WAIT_S
from kbcore.storage import files, head, journal, layout, snapshot
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, Pruned, Sealed, Segment, SnapshotRef, Tip
from kbcore.storage.recovery import RecoveryReport


class Compacted(msgspec.Struct, frozen=True):
    """The result of one compaction."""

    head: Head
    snapshot: SnapshotRef | None
    """The snapshot at the head, new or already there; None in an empty store."""
    sealed: str
    """Name of the segment that was sealed; empty if the active one was empty."""
    pruned: tuple[str, ...]
    """Files of history that was given up."""
    removed: tuple[str, ...]
    """Leftovers of earlier crashes that nothing referred to."""
    stuck: tuple[str, ...]
    """Files, pruned or left over, that could not be removed now."""
    unlisted: tuple[str, ...]
    """Journal files with records that the head does not name; KB does not delete those."""
    recovery: RecoveryReport


def compact(
    fs: Fs,
    directory: Path,
    clock: Clock,
    fold: Callable[[Head], Iterable[bytes]],
    *,
    prune_before: int | None = None,
    wait_s: float = LOCK_WAIT_S,
    command: str = "kb compact",
) -> Compacted:
    """Compact a branch under its lock; doing it again changes nothing.

    Args:
        fs: the file system.
        directory: the branch's directory.
        clock: for waiting, and for the note of pruned history.
        fold: gives the state at a head as canonical lines, for the snapshot.
        prune_before: give up the segments that end before this seq; by default all history is kept.
        wait_s: how long to wait for the lock, in seconds.
        command: what to call this process in other processes' messages.

    Raises:
        InvalidQuery: ``prune_before`` is beyond the head, or more than what it names would be given up with it.
        LimitExceeded: the head file would come near its limit; pruning makes room.
        other errors of ``journal.writing``: nothing was changed.
        StorageFull, ReadOnlyStore, StorageError: the layout is the old one.
        SnapshotCorrupt: so too; the snapshot that would replace the pruned history is damaged.
        CommitUncertain: the layout is the old or the new one; the answers are the same either way.
    """
    with journal.writing(fs, directory, clock, wait_s=wait_s, command=command) as writer:
        old = writer.head
        if prune_before is not None:
            check_seq(old, prune_before)
            _check_given_up(directory, old, prune_before)
        whole = _sealed(fs, directory, old, fold)
        new = _kept(directory, whole) if prune_before is None else _pruned(whole, prune_before, clock.now())
        if new.pruned != old.pruned:
            # From now on it is all that there is of what came before: a damaged one would be the loss of that.
            snapshot.check(fs, directory, whole, new.snapshots[0])
        if new != old:
            _publish(fs, directory, new)
        removed, stuck, unlisted = _clean(fs, directory, new)
    return Compacted(
        head=new,
        snapshot=new.snapshots[-1] if new.snapshots else None,
        sealed=old.active.file if new.active != old.active else "",
        pruned=tuple(sorted(whole.files - new.files)),
        removed=tuple(name for name in removed if name not in whole.files),
        stuck=tuple(stuck),
        unlisted=tuple(unlisted),
        recovery=writer.recovery,
    )


def _sealed(fs: Fs, directory: Path, old: Head, fold: Callable[[Head], Iterable[bytes]]) -> Head:
    """Write the snapshot and the next segment; return the head that names them, not yet published."""
    new, snapshots = _with_seal(old), old.snapshots
    if _lacks_snapshot(old):
        snapshots = (*snapshots, snapshot.write(fs, directory, old, fold(old)))
    if new.active != old.active:
        # A leftover of an earlier crash has this name too; ``writing`` has made sure that it is empty.
        files.make_empty(fs, directory / new.active.file)
    if (snapshots, new.segments) != (old.snapshots, old.segments):
        # Both names, before the head that names them.
        with files.explained(directory, "sync"):
            fs.fsync_dir(directory)
    return msgspec.structs.replace(new, snapshots=snapshots)


def _with_seal(old: Head) -> Head:
    """Return the head with its active segment sealed, unless that is empty."""
    tip = old.head
    if not tip.length:
        return old
    following = Segment(layout.segment_name(tip.seq + 1), tip.seq + 1, tip.hash)
    closed = msgspec.structs.replace(old.active, sealed=Sealed(tip.length, tip.seq, tip.hash))
    return msgspec.structs.replace(
        old,
        segments=(*old.segments[:-1], closed, following),
        head=Tip(tip.seq, tip.hash, following.file, 0, tip.at),
    )


def _lacks_snapshot(of: Head) -> bool:
    return of.seq > 0 and (not of.snapshots or of.snapshots[-1].seq < of.seq)


def check_seq(of: Head, before: int) -> None:
    """Refuse to prune before a seq beyond the next one. Raises: ``InvalidQuery``."""
    if not 1 <= before <= of.seq + 1:
        raise InvalidQuery(
            f"cannot prune before seq {before}: the head is {of.seq}", hint=f"Give a seq from 1 to {of.seq + 1}."
        )


def _prune_command(directory: Path, of: Head, before: int | str) -> str:
    """Return the command that gives up the history of this store before a seq."""
    return kb("compact", "--prune-before", before, "--branch", layout.branch_of(directory, of.branch))


def _check_given_up(directory: Path, old: Head, before: int) -> None:
    """Refuse to give up more than was asked for: the history that is left begins at a snapshot, and one may be missing.

    Nothing was written yet: the head is the one that the compaction would make.
    """
    whole = _with_seal(old)
    seqs = tuple(ref.seq for ref in old.snapshots) + ((old.seq,) if _lacks_snapshot(old) else ())
    wanted = _lost_up_to(whole, seqs, before)
    if wanted < before:
        return
    more = wanted + 1
    while (last := _lost_up_to(whole, seqs, more)) >= more:
        more = last + 1
    firsts = [part.first_seq for part in whole.segments[1:] if part.first_seq < before]
    less = max((seq for seq in firsts if _lost_up_to(whole, seqs, seq) < seq), default=0)
    raise InvalidQuery(
        f"cannot prune before seq {before} alone: no snapshot is left from which the records {before} to {wanted} "
        "could be replayed. Nothing was changed.",
        hint=f"{_prune_command(directory, old, more)} gives them up as well, with the seq {more}"
        + (f", and less with the seq {less}." if less else "; no less can be given up."),
    )


def _lost_up_to(of: Head, snapshots: Iterable[int], before: int) -> int:
    """Return the last seq whose history would be lost by pruning, or one below ``before`` when no more is lost."""
    new = msgspec.structs.replace(of, segments=_left(of, before))
    first = new.first_seq
    begins = _begins(new, snapshots, first)
    is_lost = begins > _begins(of, snapshots, first) or bool(of.holes and not new.holes)
    # Between ``before`` and ``first`` every record is missing, or whole segments end before ``before``.
    return begins if is_lost and begins >= max(before, first) else before - 1


def _begins(of: Head, snapshots: Iterable[int], seq: int) -> int:
    """Return the first seq that can be read in the part of the journal that record ``seq`` is in."""
    first, last = next(part for part in of.parts if part[0] <= seq <= part[1] + 1)
    if first == 1:
        return 0
    return min((one for one in snapshots if first - 1 <= one <= last), default=last)


def _kept(directory: Path, of: Head) -> Head:
    """Return the head that names all history, as long as it stays small enough to be read on every request."""
    if len(head.encode(of)) > limits.MAX_HEAD_BYTES // 2:
        raise LimitExceeded(
            f"{directory} has been compacted too often: its head file names {len(of.files)} files",
            hint=f"Give up old history with {_prune_command(directory, of, 'SEQ')}.",
        )
    return of


def _pruned(of: Head, before: int, at: str) -> Head:
    """Return the head without the segments that end before a seq, and without snapshots that need them."""
    kept = _left(of, before)
    if kept == of.segments:
        return of
    first = kept[0]
    # What is missing may have been given up with the rest: an older KB can read the store again.
    features = of.features_required if msgspec.structs.replace(of, segments=kept).holes else _without_holes(of)
    return msgspec.structs.replace(
        of,
        features_required=features,
        segments=kept,
        snapshots=tuple(ref for ref in of.snapshots if ref.seq >= first.first_seq - 1),
        pruned=Pruned(first.first_seq, first.base_hash, at),
    )


def _left(of: Head, before: int) -> tuple[Segment, ...]:
    """Return the segments that do not end before a seq."""
    return tuple(part for part in of.segments if part.sealed is None or part.sealed.last_seq >= before)


def _without_holes(of: Head) -> tuple[str, ...]:
    return tuple(name for name in of.features_required if name != head.HOLES)


def _publish(fs: Fs, directory: Path, new: Head) -> None:
    path = directory / layout.HEAD
    files.write_synced(fs, layout.tmp_path(path), head.encode(new))
    try:
        files.publish(fs, path)
    except KBError as error:
        again = kb("compact", "--branch", layout.branch_of(directory, new.branch), lead="Run")
        raise CommitUncertain(
            f"the compaction of {directory} may or may not have taken effect: {error.message}",
            hint=f"{again} again; the answers are the same either way.",
            data=error.data,
        ) from error


def _clean(fs: Fs, directory: Path, of: Head) -> tuple[list[str], list[str], list[str]]:
    """Remove what nothing refers to; return the names removed, stuck, and left because they hold records.

    The compaction has taken effect already: what cannot be removed is reported, and tried again next time.
    """
    removed: list[str] = []
    stuck: list[str] = []
    unlisted: list[str] = []
    try:
        names = sorted(set(fs.listdir(directory)) - of.files)
    except OSError:
        return [], [str(directory)], []
    for name in names:
        try:
            if _has_records(fs, directory / name, of):
                unlisted.append(name)
            elif layout.kind_of(name) in {"segment", "snapshot", "unfinished"}:
                fs.unlink(directory / name)
                removed.append(name)
        except OSError:
            stuck.append(name)
    # Not synced: should a removed name come back after a power failure, the next compaction removes it again.
    return removed, stuck, unlisted


def _has_records(fs: Fs, path: Path, of: Head) -> bool:
    """Say whether a journal file that the head does not name may hold records that were not pruned."""
    first_seq = layout.segment_first_seq(path.name)
    if layout.generation_of(path.name) > of.generation:
        return False  # a redaction was interrupted, and this is a copy
    return first_seq is not None and first_seq >= of.first_seq and fs.lstat(path).st_size > 0
