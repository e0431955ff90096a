"""A new head file from the journal itself, when the old one is lost: what ``kb doctor --rebuild-head`` does.

Invariant: a full copy of the store comes first; only the head file is written; what cannot be proven is said.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from kbcore.clock import Clock
from kbcore.errors import HeadDamaged, JournalCorrupt, SnapshotCorrupt, UnknownBranch
from kbcore.limits import LOCK_WAIT_S, MAX_HEAD_BYTES
from kbcore.storage import damage, files, frame, head, layout, lock, quarantine, recovery, scan, snapshot
from kbcore.storage.fs import Fs
from kbcore.storage.head import Epoch, Head, Pruned, Sealed, Segment, SnapshotRef, Tip
from kbcore.storage.places import BrokenWalk, Position


class Rebuilt(msgspec.Struct, frozen=True):
    """A rebuilt head, where the copy of the store before it is, and what cannot be known any more."""

    head: Head
    copy: str
    unproven: tuple[str, ...]
    """A sentence each."""


class Witness(msgspec.Struct, frozen=True):
    """A state of a store that was seen: its id, and the hash of the record at ``seq``. ``who`` is named in messages.

    ``lineage`` is "" where the same history may be that of another store.
    """

    store_id: str
    seq: int
    hash: str
    who: str = "the cached view"
    lineage: str = ""
    epochs: tuple[Epoch, ...] = ()


class _Found(msgspec.Struct):
    """The records that a directory proves by itself."""

    store_id: str = ""
    lineage: str = ""
    snapshots: list[SnapshotRef] = []
    segments: list[Segment] = []
    tip: Position = Position(0, "", "", 0)
    at: str = ""
    wanted: set[int] = set()
    """The records that a snapshot may be of, or that a witness saw."""
    hashes: dict[int, str] = {}
    """Their chain hashes, those of them that the journal has."""
    doubts: list[str] = []
    epochs: tuple[Epoch, ...] = ()
    """Those that had ended, by the head that was there or by a witness."""


def rebuild_head(
    fs: Fs,
    directory: Path,
    clock: Clock,
    *,
    branch: str,
    wait_s: float = LOCK_WAIT_S,
    command: str = "kb doctor",
    witness: Witness | None = None,
    features: tuple[str, ...] = (),
) -> Rebuilt:
    """Prove the records that are there, copy the store to quarantine, and write a head for them.

    Args:
        fs: the file system.
        directory: the branch's directory.
        clock: for waiting, and for the name of the copy.
        branch: the branch's real name, in case no readable head states it.
        wait_s: how long to wait for the lock, in seconds.
        command: what to call this process in other processes' messages.
        witness: knows the store id where no head states it, if the journal has the record that it saw.
        features: what a reader must know besides what the old head says, from ``head.KNOWN_FEATURES``.

    Raises:
        UnknownBranch: there is no such directory.
        JournalCorrupt: a record is damaged and good ones follow it, or records in the middle are missing.
        HeadDamaged: there is no journal, or history begins in the middle and no snapshot holds what came before.
        FormatTooNew: a newer KB wrote a part of this.
        LockTimeout, LockUnsupported, StorageFull, ReadOnlyStore, StorageError: the head is as it was.
    """
    if not files.is_directory(fs, directory):
        raise UnknownBranch(f"there is no store in {directory}", data={"file": str(directory)})
    with lock.held(fs, clock, directory / layout.LOCK, wait_s=wait_s, command=command):
        now = clock.now()
        found = _Found()
        old = _read_old(fs, directory, found)
        if old is not None:
            recovery.remove_superseded(fs, directory, old)  # before a copy is made of it
        with files.explained(directory, "list", reading=True):
            names = sorted(fs.listdir(directory))
        candidates = _read_snapshots(fs, directory, names, found)
        found.wanted = {ref.seq for _, ref in candidates} | ({witness.seq} if witness else set())
        _read_segments(fs, directory, names, found, (old, candidates))
        _choose_snapshots(directory, candidates, found)
        found.store_id, found.epochs = (old.store_id, old.epochs) if old else _store_id(found, witness)
        new = _new_head(found, old, branch, now, features)
        copy = quarantine.keep_all(fs, directory, now)
        _make_durable(fs, directory, new)
        head.publish(fs, directory, new)
    return Rebuilt(new, str(copy), tuple(found.doubts))


def _read_old(fs: Fs, directory: Path, found: _Found) -> Head | None:
    """Return what the old head says, proven or not; note in ``found`` what that leaves open."""
    try:
        return head.read(fs, directory)
    except HeadDamaged:
        data = files.read_file(fs, directory / layout.HEAD, MAX_HEAD_BYTES)
    old = head.decode_unproven(data or b"")
    if old is not None:
        found.doubts.append("Store id, branch and origin come from the damaged head and are not proven.")
    return old


def _read_snapshots(fs: Fs, directory: Path, names: Iterable[str], found: _Found) -> list[tuple[str, SnapshotRef]]:
    """Return (lineage, reference) of each snapshot that is sound by itself."""
    sound: list[tuple[str, SnapshotRef]] = []
    for name in _newest(names, layout.snapshot_seq):
        try:
            sound.append(snapshot.inspect(fs, directory, name))
        except SnapshotCorrupt as error:
            found.doubts.append(f"A snapshot is damaged and was left out: {error.message}.")
    return sound


def _read_segments(
    fs: Fs,
    directory: Path,
    names: Iterable[str],
    found: _Found,
    known: tuple[Head | None, list[tuple[str, SnapshotRef]]],
) -> None:
    """Walk every segment in order into ``found``, each record against the one before."""
    starts = _newest(names, layout.segment_first_seq)
    sizes = {name: files.read_size(fs, directory / name) for name in starts}
    if not sizes:
        raise HeadDamaged(f"{directory} has no journal file", hint="Restore the store from a backup.")
    with_records = [name for name in sizes if sizes[name]] or [next(iter(sizes))]
    first, first_seq = with_records[0], starts[with_records[0]]
    base = _base_hash(fs, directory / first, first_seq, known)
    found.hashes = {first_seq - 1: base}
    found.tip = Position(first_seq - 1, base, first, 0)
    for name, size in sizes.items():
        if not size and starts[name] != found.tip.seq + 1:
            continue
        if starts[name] != found.tip.seq + 1:
            raise JournalCorrupt(
                f"{directory / name} begins at record {starts[name]}, not at {found.tip.seq + 1}",
                hint=f"A journal file is missing or comes from another time. {JournalCorrupt.default_hint}",
                data={"file": str(directory / name), "expected": found.tip.seq + 1, "actual": starts[name]},
            )
        if found.segments:
            end = found.tip
            sealed = Sealed(end.offset, end.seq, end.hash)
            found.segments[-1] = msgspec.structs.replace(found.segments[-1], sealed=sealed)
        found.segments.append(Segment(name, starts[name], found.tip.hash))
        is_whole = _walk_segment(fs, directory, found, is_last=name == with_records[-1])
        if not is_whole:
            return


def _newest(names: Iterable[str], seq_of: Callable[[str], int | None]) -> dict[str, int]:
    """Return the files of a kind by name, each with its seq; of those with one seq, that of the last redaction."""
    found: dict[int, str] = {}
    for name in sorted(names, key=layout.generation_of):
        seq = seq_of(name)
        if seq:
            found[seq] = name
    return {found[seq]: seq for seq in sorted(found)}


def _base_hash(fs: Fs, path: Path, first_seq: int, known: tuple[Head | None, list[tuple[str, SnapshotRef]]]) -> str:
    """Return the hash that the first record must follow, from whatever states it."""
    old, candidates = known
    with files.explained(path, "read", reading=True), files.opened(fs, path, os.O_RDONLY) as fd:
        size = fs.fstat(fd).st_size
        line = next((line for _, line in files.read_lines(fs, fd, 0, size, frame.MAX_LINE_BYTES)), b"")
    record = frame.peek(line)
    if record is not None:
        return record.prev
    stated = [ref.hash for _, ref in candidates if ref.seq == first_seq - 1]
    if first_seq == 1:
        stated = [lineage for lineage, _ in candidates] + ([old.lineage] if old else [head.new_lineage()])
    if not stated:
        raise HeadDamaged(
            f"{path} has no record, and no snapshot says what came before record {first_seq}",
            hint="Restore the store from a backup.",
        )
    return stated[0]


def _walk_segment(fs: Fs, directory: Path, found: _Found, *, is_last: bool) -> bool:
    """Walk the newest of ``found.segments``; return whether it is records to its end."""
    segment = found.segments[-1]
    path = directory / segment.file
    found.tip = segment.start
    with files.explained(path, "read", reading=True), files.opened(fs, path, os.O_RDONLY) as fd:
        size = fs.fstat(fd).st_size
        for item in scan.walk(fs, fd, found.tip, size):
            if isinstance(item, BrokenWalk):
                bad = fs.pread(fd, min(item.length, frame.MAX_LINE_BYTES), item.at.offset)
                lines = files.read_lines(fs, fd, item.at.offset + item.length, size, frame.MAX_LINE_BYTES)
                is_kept = _was_record(bad) or any(frame.peek(line) or _was_record(line) for _, line in lines)
                if item.flaw.too_new or not is_last or is_kept:
                    raise damage.corrupt(directory, segment, item)
                found.doubts.append(
                    f"{size - item.at.offset} bytes at the end of {segment.file} are no record "
                    f"({item.flaw.what}): an unfinished write, or a damaged last record. "
                    "The next write moves them to quarantine."
                )
                return False
            found.tip = item.end
            found.at = frame.time_of(item.frame.rec)
            if item.frame.seq in found.wanted:
                found.hashes[item.frame.seq] = item.frame.sum
    return True


def _was_record(line: bytes) -> bool:
    """Tell whether a line is a record whose line end was converted, or that got a byte-order mark: nothing is lost."""
    plain = line.removeprefix(b"\xef\xbb\xbf").removesuffix(b"\r\n").removesuffix(b"\n") + b"\n"
    return plain != line and line.endswith(b"\n") and frame.peek(plain) is not None


def _choose_snapshots(directory: Path, candidates: list[tuple[str, SnapshotRef]], found: _Found) -> None:
    """Keep the snapshots that are on the chain; without the beginning of history there must be one."""
    first_seq, base = found.segments[0].first_seq, found.segments[0].base_hash
    if first_seq == 1:
        found.lineage = base
    for lineage, ref in sorted(candidates, key=lambda pair: pair[1].seq):
        if ref.seq > found.tip.seq:
            lost = f"the records from {found.tip.seq + 1} on are lost."
            found.doubts.append(f"{ref.file} was made at record {ref.seq}: {lost}")
        elif found.hashes.get(ref.seq) != ref.hash or lineage != (found.lineage or lineage):
            found.doubts.append(f"{ref.file} belongs to another history and was left out.")
        else:
            found.lineage = lineage
            found.snapshots.append(ref)
    if not found.lineage:
        raise HeadDamaged(
            f"{directory}: history begins at record {first_seq}, and no snapshot holds what came before",
            hint="Restore the store from a backup.",
        )


def _store_id(found: _Found, witness: Witness | None) -> tuple[str, tuple[Epoch, ...]]:
    """Return the id of a store whose head does not say it, and the epochs that it had ended.

    The witness says it, if it saw this store; else the id is a new one.
    """
    origin = "which branch this one was copied from is not known any more."
    if witness is not None and _is_of(witness, found):
        found.doubts.append(f"The store id comes from {witness.who}, which saw record {witness.seq}; {origin}")
        return witness.store_id, witness.epochs
    found.doubts.append(f"The store id is new; {origin}")
    return head.new_store_id(), ()


def _is_of(witness: Witness, found: _Found) -> bool:
    """Tell whether a witness saw this journal, or one with the same beginning that went further."""
    if witness.seq > found.tip.seq:
        return witness.lineage == found.lineage
    return found.hashes.get(witness.seq) == witness.hash


def _new_head(found: _Found, old: Head | None, branch: str, now: str, features: tuple[str, ...]) -> Head:
    tip, first = found.tip, found.segments[0]
    if old is not None and old.seq > tip.seq:
        found.doubts.append(f"The old head named record {old.seq}: the records from {tip.seq + 1} are lost.")
    if first.first_seq > 1 and (old is None or old.first_seq < first.first_seq):
        found.doubts.append(
            f"The records before {first.first_seq} are not there: a snapshot replaces them, and the states before it "
            "cannot be queried any more."
        )
    found.doubts.append(
        f"Whether anything was acknowledged after record {tip.seq} cannot be known: only the head file knew."
    )
    # An epoch that ended later ends with the last record that is left.
    epochs = tuple(
        one if one.seq <= tip.seq else msgspec.structs.replace(one, seq=tip.seq, hash=tip.hash) for one in found.epochs
    )
    redacted = head.redaction_of((part.file for part in found.segments), old, tip.seq)
    known = {*([head.EPOCHS] if epochs else []), *([head.REDACTED] if redacted else [])}
    return Head(
        format=head.FORMAT,
        features_required=tuple(sorted({*features, *known, *(old.features_required if old else ())})),
        store_id=found.store_id,
        lineage=found.lineage,
        branch=old.branch if old else branch,
        origin=old.origin if old else None,
        pruned=None if first.first_seq == 1 else Pruned(first.first_seq, first.base_hash, now),
        snapshots=tuple(found.snapshots),
        segments=tuple(found.segments),
        head=Tip(tip.seq, tip.hash, found.segments[-1].file, tip.offset, found.at or now),
        epochs=epochs,
        redacted=redacted,
    )


def _make_durable(fs: Fs, directory: Path, new: Head) -> None:
    """Sync what the new head will vouch for; the last segment is rewritten: it may hold unsynced records."""
    for name in sorted(new.files):
        path = directory / name
        with files.explained(path, "sync"), files.opened(fs, path, os.O_RDWR) as fd:
            if name == new.head.file:
                recovery.rewrite(fs, fd, 0, new.head.length)
            fs.fsync(fd)
