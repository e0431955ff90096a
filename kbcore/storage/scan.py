"""Reading the journal: from a position to the head, each record verified. Takes no lock and writes nothing.

Invariant: what is yielded is acknowledged history in order; nothing is skipped, nothing beyond the head read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from kbcore.errors import HistoryPruned, JournalTruncated, KBError
from kbcore.storage import damage, files, frame, head
from kbcore.storage.frame import Flaw
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, Segment
from kbcore.storage.places import BrokenWalk, Position, RecordPosition

ATTEMPTS: Final = 3
"""Attempts of a reader when a file that its head names was pruned meanwhile."""

T = TypeVar("T")


def scan(
    fs: Fs, directory: Path, to: Head, *, after: Position | None = None, until: int | None = None
) -> Iterator[RecordPosition]:
    """Yield the records after a position, up to the head exactly, each verified against the one before.

    Args:
        fs: the file system.
        directory: the branch's directory.
        to: the head to read up to.
        after: where to begin; by default at the first record that is still there.
        until: stop after this seq; then only the records up to it are vouched for, so that the good part of a
            damaged journal can be read.

    Raises:
        JournalCorrupt: a record is not what was written; everything yielded before it is good.
        JournalTruncated: acknowledged bytes are missing.
        HistoryPruned: ``after`` lies in history that is gone, or a file was pruned while this was reading.
        FormatTooNew: a record was written by a newer KB.
        StorageError: a file cannot be read.
    """
    place = to.start if after is None else after
    end_seq = to.seq if until is None else min(until, to.seq)
    if until is None:
        check_length(fs, directory, to)
    if place.seq > to.seq:
        raise JournalTruncated(
            f"{directory}: the journal ends at seq {to.seq}, but record {place.seq} had been read from it",
            data={"file": str(directory / to.head.file), "expected": place.seq, "actual": to.seq},
        )
    for segment in _segments_from(directory, to, place):
        if segment.file != place.file:
            start = segment.start
            if start.seq > end_seq:  # records are missing before this segment, and the end is before them or among them
                break
            place = start
        if place.seq >= end_seq:
            break
        for entry in _scan_segment(fs, directory, to, segment, place, whole=until is None):
            place = entry.end
            yield entry
            if place.seq == until:
                return
    if until is None and (place.seq, place.hash) != (to.seq, to.hash):
        raise damage.mixed(directory, to, place)


def up_to_end_of(of: Head, segment: Segment) -> Head:
    """Return a head that ends with this segment, so that one damaged file does not hide the next."""
    if segment.sealed is None:
        return of
    end = segment.sealed
    tip = msgspec.structs.replace(of.head, seq=end.last_seq, hash=end.hash, file=segment.file, length=end.length)
    # The segment after it stays: it says whether records are missing between the two.
    return msgspec.structs.replace(of, segments=of.segments[: of.segments.index(segment) + 2], head=tip)


def read_one(fs: Fs, directory: Path, to: Head, after: Position) -> RecordPosition:
    """Read and verify the one record after a position.

    Raises:
        JournalCorrupt, JournalTruncated, HistoryPruned, FormatTooNew, StorageError: as ``scan``.
        ValueError: there is no record after it.
    """
    for entry in scan(fs, directory, to, after=after, until=after.seq + 1):
        return entry
    raise ValueError(f"record {after.seq + 1} is beyond the head")


def reading(fs: Fs, directory: Path, use: Callable[[Head], T]) -> T:
    """Read the head and return ``use(head)``; start over when pruning took a file away meanwhile.

    Raises:
        HistoryPruned: what ``use`` asks for is gone for good.
        UnknownBranch, HeadDamaged, FormatTooNew, StorageError: from the head; and what ``use`` raises.
    """
    for _ in range(ATTEMPTS - 1):
        current = head.read(fs, directory)
        try:
            return use(current)
        except HistoryPruned:
            if head.read(fs, directory).segments == current.segments:
                raise
    return use(head.read(fs, directory))


def check_length(fs: Fs, directory: Path, to: Head) -> None:
    """Look whether the active segment still has every acknowledged byte. One system call.

    Raises:
        JournalTruncated: it is shorter than the head says, or gone.
        HistoryPruned: the head is outdated, and its segment was pruned.
        StorageError: it cannot be looked at.
    """
    size = files.read_size(fs, files.below(directory, to.head.file))
    if size is None:
        raise vanished(fs, directory, to.head.file)
    if size < to.head.length:
        part = next(part for part in to.segments if part.file == to.head.file)
        raise damage.truncated(directory, part, to.head.length, size)


def walk(fs: Fs, fd: int, start: Position, limit: int) -> Iterator[RecordPosition | BrokenWalk]:
    """Yield the records between a position and byte ``limit`` of one open file; a ``Broken`` may be the last.

    A file that ends before ``limit`` ends the walk: with a ``Broken`` if it ends within a line. Raises
    ``OSError`` as the calls do.
    """
    seq, prev, file = start.seq, start.hash, start.file
    for offset, line in files.read_lines(fs, fd, start.offset, limit, frame.MAX_LINE_BYTES):
        found = frame.decode(line, seq + 1, prev)
        if isinstance(found, Flaw):
            yield BrokenWalk(Position(seq, prev, file, offset), found, len(line))
            return
        yield RecordPosition(found, file, offset, len(line))
        seq, prev = found.seq, found.sum


def vanished(fs: Fs, directory: Path, file: str) -> KBError:
    """Return the error for a file that a head names and that is not there: pruned, or lost.

    Raises:
        UnknownBranch, HeadDamaged, FormatTooNew, StorageError: the head cannot be read again.
    """
    now = head.read(fs, directory)
    if file not in now.files:
        return HistoryPruned(f"{directory / file} was pruned; history begins at record {now.first_seq}")
    return damage.missing(directory, file)


def _segments_from(directory: Path, to: Head, place: Position) -> tuple[Segment, ...]:
    for index, segment in enumerate(to.segments):
        if segment.file == place.file:
            return to.segments[index:]
    # The reader's file is gone, but it may have stopped exactly where the remaining history begins.
    if (place.seq, place.hash) == (to.first_seq - 1, to.segments[0].base_hash):
        return to.segments
    raise HistoryPruned(f"{directory / place.file} was pruned; history begins at record {to.first_seq}")


def _scan_segment(
    fs: Fs, directory: Path, to: Head, segment: Segment, place: Position, *, whole: bool
) -> Iterator[RecordPosition]:
    sealed = segment.sealed
    limit = to.head.length if sealed is None else sealed.length
    path = directory / segment.file
    with files.explained(path, "read", reading=True):
        try:
            fd = fs.open(path, os.O_RDONLY)
        except FileNotFoundError as error:
            raise vanished(fs, directory, segment.file) from error
        try:
            size = fs.fstat(fd).st_size
            if whole and sealed is not None and size > limit and not to.ends_at_hole(segment):
                raise damage.grown(directory, segment, limit, size)
            for item in walk(fs, fd, place, limit):
                if isinstance(item, BrokenWalk):
                    if item.at.offset + item.length == size < limit:
                        break
                    raise damage.corrupt(directory, segment, item)
                place = item.end
                yield item
        finally:
            files.close(fs, fd)
    if place.offset < limit:
        raise damage.truncated(directory, segment, limit, size)
    if sealed is not None and (place.seq, place.hash) != (sealed.last_seq, sealed.hash):
        raise damage.mixed(directory, to, place)
