"""New files for a journal with other payloads: each line again, with a chain that no old payload is part of.

Invariant: no file that counts is written to. The head that is returned counts nothing until the caller has appended the
record that documents the redaction, which publishes it: before that the old store is whole, afterwards the new one is.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from kbcore import progress
from kbcore.errors import JournalCorrupt, KBError
from kbcore.storage import files, frame, head, layout, recovery, scan
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, Sealed, Segment
from kbcore.storage.journal import Writer
from kbcore.storage.places import RecordPosition
from kbcore.storage.recovery import RecoveryReport

Payload = Callable[[int, bytes, Mapping[int, tuple[str, str]]], bytes]
"""Returns the new payload of a record, for its seq, its payload, and the old and new ``sum`` of those before it."""


class Chained(msgspec.Struct, frozen=True):
    """A head with new files, which is not published, and the old and the new ``sum`` of each record in them."""

    head: Head
    sums: dict[int, tuple[str, str]]

    def new_hash(self, seq: int, hash_: str) -> str:
        """Return the ``sum`` of a record now, which was ``hash_``; the same where it is before the first new one."""
        return self.sums[seq][1] if seq in self.sums else hash_


def write_again(fs: Fs, directory: Path, of: Head, first: int, payload: Payload) -> Chained:
    """Write the segments from the one with record ``first`` on again, and return the head that names them.

    The last segment is always written again: the record that documents it all is appended there. Snapshots are those of
    the old head. The caller holds the lock; the names of the new files, and the last of them, are durable only when
    ``publishing`` is done.

    Raises:
        JournalCorrupt, JournalTruncated, FormatTooNew: the old journal is damaged.
        StorageFull, ReadOnlyStore, StorageError: the old head counts; what was written is removed by the next attempt.
    """
    generation, sums = of.generation + 1, dict[int, tuple[str, str]]()
    parts = [part for part in of.segments if part.sealed is None or part.sealed.last_seq >= first]
    kept = of.segments[: len(of.segments) - len(parts)]
    made: list[Segment] = []
    for part in parts:
        before = made[-1].sealed if made else None
        follows = before is not None and before.last_seq + 1 == part.first_seq
        base = before.hash if before is not None and follows else part.base_hash
        name = layout.segment_name(part.first_seq, generation)
        last = part.sealed.last_seq if part.sealed else of.seq
        entries = scan.scan(fs, directory, scan.up_to_end_of(of, part), after=part.start)
        tracked = progress.track(entries, last - part.first_seq + 1, "records rewritten")
        lines = _lines(tracked, base, payload, sums)
        length = _write(fs, directory / name, lines, syncs=part.sealed is not None)
        made.append(Segment(name, part.first_seq, base, Sealed(length, last, sums[last][1] if last in sums else base)))
    end = made[-1].sealed
    if end is None:  # each of them was made with one
        raise JournalCorrupt(f"{directory} has no last file")
    tip = msgspec.structs.replace(of.head, hash=end.hash, file=made[-1].file, length=end.length)
    made[-1] = msgspec.structs.replace(made[-1], sealed=None)
    chained = Chained(msgspec.structs.replace(of, segments=(*kept, *made), head=tip), sums)
    return msgspec.structs.replace(chained, head=_with_hashes(chained))


@contextlib.contextmanager
def publishing(fs: Fs, directory: Path, of: Head, new: Head, left: list[str]) -> Iterator[Writer]:
    """Yield the writer of a store whose files were written again: its first record makes the new head count.

    Then what that replaces is removed; what cannot be removed is added to ``left`` and left to the next writer. Where
    the record is not appended, the new files are removed.

    Raises: as ``Writer.append``.
    """
    path = directory / new.head.file
    try:
        with files.explained(directory, "sync"):
            fs.fsync_dir(directory)  # the names of all new files, before the head that names them
        with files.explained(path, "open"):
            fd = fs.open(path, os.O_RDWR | os.O_APPEND)
        try:
            writer = Writer(fs, directory, fd, new, RecoveryReport())
            yield writer
        finally:
            files.close(fs, fd)
    except BaseException:
        remove_unfinished(fs, directory, of)
        raise
    try:
        recovery.remove_superseded(fs, directory, writer.head)
    except KBError as error:
        left.append(error.message)


def remove_unfinished(fs: Fs, directory: Path, of: Head) -> None:
    """Remove the new files of a redaction that did not come to count; none where its head may be in place."""
    with contextlib.suppress(KBError, OSError):
        if head.read(fs, directory) == of:
            for name in fs.listdir(directory):
                if layout.generation_of(name.removesuffix(layout.TMP_SUFFIX)) > of.generation:
                    files.remove_quietly(fs, directory / name)


def _lines(
    entries: Iterable[RecordPosition], base: str, payload: Payload, sums: dict[int, tuple[str, str]]
) -> Iterator[bytes]:
    prev = base
    for entry in entries:
        old = entry.frame
        framed, line = frame.encode(old.seq, prev, payload(old.seq, old.rec, sums))
        sums[old.seq] = old.sum, framed.sum
        prev = framed.sum
        yield line


def _write(fs: Fs, path: Path, lines: Iterable[bytes], *, syncs: bool) -> int:
    """Write a new file, and return its length."""
    held, length = bytearray(), 0
    with files.explained(path, "write"), files.opened(fs, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd:
        for line in lines:
            held += line
            length += len(line)
            if len(held) >= files.CHUNK_BYTES:
                files.write_all(fs, fd, bytes(held))
                held.clear()
        if held:
            files.write_all(fs, fd, bytes(held))
        if syncs:
            fs.fsync(fd)
    return length


def _with_hashes(chained: Chained) -> Head:
    """Return the head with the new hashes in the place of all old ones, but for those of its snapshots."""
    of = chained.head
    origin = of.origin
    if origin is not None:
        origin = msgspec.structs.replace(origin, hash=chained.new_hash(origin.seq, origin.hash))
    epochs = tuple(msgspec.structs.replace(one, hash=chained.new_hash(one.seq, one.hash)) for one in of.epochs)
    features = tuple(sorted({*of.features_required, head.REDACTED}))
    return msgspec.structs.replace(of, origin=origin, epochs=epochs, features_required=features)
