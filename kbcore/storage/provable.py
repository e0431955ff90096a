"""The records of a damaged journal that checksums and the chain still prove, and the segments that they make.

Invariant: nothing is written to a file that has another name elsewhere; a segment is replaced by a new file only
when that holds every record that is proven of it, and the head that names missing records is not published here.
"""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from kbcore.errors import HeadDamaged
from kbcore.storage import damage, files, frame, head, layout
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, Sealed, Segment, Tip
from kbcore.storage.places import Position

_RECORD_STARTS: Final = b'{"v":1,"seq":'
_MARK: Final = b"\xef\xbb\xbf"


class RecordLine(msgspec.Struct, frozen=True, gc=False):
    """The line of one record, sound by itself.

    ``length`` is that of the line as it was written, ``found`` that of the bytes in the file; ``is_plain`` if the two
    are the same bytes.
    """

    seq: int
    prev: str
    sum: str
    path: Path
    offset: int
    length: int
    found: int
    is_plain: bool


Run = list[RecordLine]
"""Records that follow each other, the oldest first; at least one."""


class Proven(msgspec.Struct, frozen=True):
    """The proven part of a journal: runs between which records are missing, and the damaged files of the head."""

    of: Head
    directory: Path
    runs: tuple[Run, ...]
    damaged: frozenset[str]

    @property
    def is_whole(self) -> bool:
        """True if no record is missing that the head does not know to be missing."""
        return missing(self.of, self.runs) == {(hole.first, hole.last) for hole in self.of.holes}

    @property
    def is_as_written(self) -> bool:
        """True if no record is missing, and each line has the bytes that were written, in whatever segment."""
        return not missing(self.of, self.runs) and all(line.is_plain for run in self.runs for line in run)


class TrustedHashes(msgspec.Struct, frozen=True):
    """Hashes of records, by seq, that are known besides those of the head to prove."""

    ends: dict[int, str] = {}
    """No other record is in the place of one of these."""
    hints: dict[int, str] = {}
    """Each proves the record that has it. Where none is found that has it, it refuses no other."""


class SalvagedHead(msgspec.Struct, frozen=True):
    """The head after a salvage, without the record that documents it, and the files that have to be written first."""

    head: Head
    written: dict[str, Run]


def known_from(of: Head, *, is_sound: bool = True) -> TrustedHashes:
    """Return the hashes that a head still proves when one that ends later takes its place.

    ``is_sound`` is False for a head that was made from the journal: only its end is sure then.
    """
    hints = {one.seq: one.hash for one in of.epochs} | {one.seq: one.hash for one in of.snapshots}
    hints |= {of.origin.seq: of.origin.hash} if of.origin else {}
    return TrustedHashes({of.seq: of.hash}, hints if is_sound else {})


def prove(
    fs: Fs,
    directory: Path,
    of: Head,
    others: Iterable[Path] = (),
    known: TrustedHashes = TrustedHashes(),  # noqa: B008 - frozen
) -> Proven:
    """Find every record that the journal of a head still proves. Takes no lock and writes nothing.

    Args:
        fs: the file system.
        directory: the branch's directory.
        of: its head.
        others: directories of stores with a common history; their files are read only where records are missing, and
            a record counts only if the chain leads back to it from a known hash.
        known: hashes that are known besides those that the head names.

    Raises:
        JournalCorrupt: sound records end elsewhere than the head or a known end says: files of different times were
            mixed.
        StorageError: a file cannot be read.
    """
    own = _own_lines(fs, directory, of)
    pins = _pins(of) | known.ends
    for seq in sorted({*known.ends, of.seq}):
        last = own.get(seq, [])
        if last and not any(line.sum == pins[seq] for line in last):
            foreign = last[0]
            place = Position(seq, foreign.sum, foreign.path.name, foreign.offset + foreign.length)
            raise damage.mixed(directory, of, place)
    runs = _runs(of, own, directory, pins, known.hints)
    # What an earlier salvage has put on record as missing is not looked for: no segment has a place for it.
    lacking = missing(of, runs) - {(hole.first, hole.last) for hole in of.holes}
    if lacking:
        gone = {seq for first, last in lacking for seq in range(first, last + 1)}
        for other in others:
            for line in _lines_of_store(fs, other):
                if line.seq in gone:
                    own.setdefault(line.seq, []).append(line)
        runs = _runs(of, own, directory, pins, known.hints)
    damaged = frozenset(part.file for part in of.segments if not _is_intact(fs, directory, of, part, runs))
    return Proven(of, directory, tuple(runs), damaged)


def missing(of: Head, runs: Iterable[Run]) -> set[tuple[int, int]]:
    """Return first and last seq of each stretch of records that no run has."""
    found, following = set[tuple[int, int]](), of.first_seq
    for run in runs:
        if run[0].seq > following:
            found.add((following, run[0].seq - 1))
        following = run[-1].seq + 1
    if following <= of.seq:
        found.add((following, of.seq))
    return found


def plan(of: Head, proven: Proven) -> SalvagedHead:
    """Return the segments that the proven records make: what is whole stays, what is not becomes new files. Pure."""
    segments: list[Segment] = []
    written: dict[str, Run] = {}
    lines = {line.seq: line for run in proven.runs for line in run}
    for part in of.segments:
        last = part.sealed.last_seq if part.sealed else of.seq
        present = [lines[seq] for seq in range(part.first_seq, last + 1) if seq in lines]
        if part.file not in proven.damaged:
            segments.append(part)
            continue
        pieces = _pieces(present)
        if len(pieces) == 1 and len(present) == last - part.first_seq + 1:
            written[part.file] = pieces[0]  # all of it is proven: the same bytes in a new file
            segments.append(part)
            if part.sealed is None:
                length = sum(line.length for line in pieces[0])
                of = msgspec.structs.replace(of, head=msgspec.structs.replace(of.head, length=length))
            continue
        if not segments and (not pieces or pieces[0][0].seq != part.first_seq):
            # A history begins with its first segment, even if nothing is left in it.
            end = Sealed(0, part.first_seq - 1, part.base_hash)
            segments.append(Segment(part.file, part.first_seq, part.base_hash, end))
            written[part.file] = []
        for piece in pieces:
            name = layout.segment_name(piece[0].seq, layout.generation_of(part.file))
            length = sum(line.length for line in piece)
            end = Sealed(length, piece[-1].seq, piece[-1].sum)
            segments.append(Segment(name, piece[0].seq, piece[0].prev, end))
            if not _is_in_place(piece, part, proven.directory):
                written[name] = piece
    return SalvagedHead(_with_segments(of, segments, written), written)


def write(fs: Fs, directory: Path, of: Head, planned: SalvagedHead) -> None:
    """Write the new files of a plan, durably; a file that has a name already is replaced, never written into.

    Raises:
        StorageFull, ReadOnlyStore, StorageError: the head is the old one, and a salvage can be begun again.
    """
    for name, run in planned.written.items():
        unfinished = layout.tmp_path(directory / name)
        with (
            files.explained(unfinished, "write"),
            files.opened(fs, unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd,
        ):
            for data in _read_back(fs, run):
                files.write_all(fs, fd, data)
            fs.fsync(fd)
    # New names first: what is proven has a durable place before a damaged file gives up its name.
    named = {part.file for part in of.segments}
    for names in ([*planned.written.keys() - named], [*planned.written.keys() & named]):
        for name in sorted(names):
            with files.explained(directory / name, "publish"):
                fs.replace(layout.tmp_path(directory / name), directory / name)
        with files.explained(directory, "sync"):
            fs.fsync_dir(directory)


def provisional_head(fs: Fs, directory: Path, branch: str, at: str, old: Head | None) -> Head:
    """Return a head for a journal whose head file is lost: every segment there is, up to the last sound record.

    ``old`` is what the damaged head file seems to say, proven or not.

    Raises:
        HeadDamaged: there is no sound record.
    """
    lines = {line.seq: line for line in _lines_of_store(fs, directory)}
    if not lines:
        raise HeadDamaged(
            f"{directory} has no sound record",
            hint=f"Restore the store from a backup: {layout.restore_command(directory)}.",
        )
    first, tip = lines[min(lines)], lines[max(lines)]
    lineage = old.lineage if old else lines[1].prev if 1 in lines else ""
    if not lineage:
        raise HeadDamaged(
            f"{directory} has no sound head file and no first record",
            hint=f"Restore the store from a backup: {layout.restore_command(directory)}.",
        )
    begins = 1 if old is None or old.pruned is None else old.first_seq
    base = lineage if begins == 1 else old.segments[0].base_hash if old else first.prev
    redacted = head.redaction_of({line.path.name for line in lines.values()}, old, tip.seq)
    active = Segment(layout.segment_name(begins, layout.generation_of(first.path.name)), begins, base)
    # An epoch that ended later ends with the last record that is left.
    epochs = tuple(
        one if one.seq <= tip.seq else msgspec.structs.replace(one, seq=tip.seq, hash=tip.sum)
        for one in (old.epochs if old else ())
    )
    return Head(
        format=head.FORMAT,
        features_required=(*([head.EPOCHS] if epochs else []), *([head.REDACTED] if redacted else [])),
        store_id=old.store_id if old else head.new_store_id(),
        lineage=lineage,
        branch=old.branch if old else branch,
        origin=old.origin if old else None,
        pruned=old.pruned if old else None,
        snapshots=(),
        segments=(active,),
        head=Tip(tip.seq, tip.sum, active.file, 0, at),
        epochs=epochs,
        redacted=redacted,
    )


def _own_lines(fs: Fs, directory: Path, of: Head) -> dict[int, list[RecordLine]]:
    found: dict[int, list[RecordLine]] = {}
    for line in _lines_of_store(fs, directory):
        if of.first_seq <= line.seq <= of.seq:
            found.setdefault(line.seq, []).append(line)
    doubled = {seq: lines for seq, lines in found.items() if len(lines) > 1}
    for part in of.segments:
        # A file that ends before missing records may still hold lines that came into a file of their own.
        last = part.sealed.last_seq if part.sealed else of.seq
        for seq in doubled.keys() & range(part.first_seq, last + 1):
            found[seq].sort(key=partial(_rank, part.file))
    return found


def _rank(file: str, line: RecordLine) -> tuple[bool, bool]:
    return line.path.name != file, not line.is_plain


def _lines_of_store(fs: Fs, directory: Path) -> Iterator[RecordLine]:
    """Yield each sound line of every journal file, in the order of the files."""
    with files.explained(directory, "list", reading=True):
        names = sorted(name for name in fs.listdir(directory) if layout.segment_first_seq(name) is not None)
    for name in names:
        with files.explained(directory / name, "read", reading=True):
            try:
                yield from _lines_of_file(fs, directory / name)
            except FileNotFoundError:  # pruned meanwhile
                continue


def _lines_of_file(fs: Fs, path: Path) -> Iterator[RecordLine]:
    with files.opened(fs, path, os.O_RDONLY) as fd:
        size, start = fs.fstat(fd).st_size, 0
        while start < size:
            end = start
            for offset, data in files.read_lines(fs, fd, start, size, frame.MAX_LINE_BYTES):
                yield from _sound_in(path, offset, data)
                end = offset + len(data)
            # A line that is too long ends the reading: whatever it is, it is no record.
            start = size if end >= size else _next_line(fs, fd, end, size)


def _next_line(fs: Fs, fd: int, offset: int, size: int) -> int:
    while offset < size:
        chunk = fs.pread(fd, files.CHUNK_BYTES, offset)
        at = chunk.find(b"\n")
        if at >= 0:
            return offset + at + 1
        offset += len(chunk) or size
    return size


def _sound_in(path: Path, offset: int, data: bytes) -> Iterator[RecordLine]:
    """Yield the records in one line of a file: usually one; in a damaged line, those that are whole in it."""
    sound = frame.peek(data)
    if sound is not None:
        yield RecordLine(sound.seq, sound.prev, sound.sum, path, offset, len(data), len(data), is_plain=True)
        return
    at = data.find(_RECORD_STARTS)
    while at >= 0:
        following = data.find(_RECORD_STARTS, at + 1)
        piece = data[at:following] if following >= 0 else data[at:]
        sound = _unharmed(piece)
        if sound is not None:
            length = len(frame.encode(sound.seq, sound.prev, sound.rec)[1])
            yield RecordLine(sound.seq, sound.prev, sound.sum, path, offset + at, length, len(piece), is_plain=False)
        at = following


def _unharmed(piece: bytes) -> frame.Frame | None:
    """Return the record in bytes whose line end was converted, overwritten or lost; None if more is wrong."""
    for body in (piece.removesuffix(b"\n"), piece.removesuffix(b"\r\n"), piece.removesuffix(_MARK)[:-1]):
        sound = frame.peek(body + b"\n")
        if sound is not None:
            return sound
    return None


def _pins(of: Head) -> dict[int, str]:
    """Return the hashes that the head names: those at the ends of segments and before their first records, its own."""
    ends = {part.sealed.last_seq: part.sealed.hash for part in of.segments if part.sealed}
    return {part.first_seq - 1: part.base_hash for part in of.segments} | ends | {of.seq: of.hash}


def _runs(
    of: Head, lines: Mapping[int, list[RecordLine]], own: Path, pins: Mapping[int, str], hints: Mapping[int, str]
) -> list[Run]:
    """Return the longest runs of records that are proven.

    A hash proves the record that has it and, by the chain, all records before that one. So a record of another store
    counts only where a hash of this store leads back to it: one of ``pins`` or ``hints``, or the one that a record of
    the own store names. A record that merely follows one of this store may be what another branch wrote after it.

    ``lines`` are those of the own store, at each seq, and then those of others. Own records to which no known hash
    leads count, if they follow the record before them. A pin also refuses each other record in its place.
    """
    found, is_open = _led_to(of, lines, pins, hints)
    previous = ""
    for seq in range(of.first_seq, of.seq + 1):
        if seq in is_open:
            before = pins.get(seq - 1, previous)
            fitting = (one for one in lines.get(seq, ()) if one.path.parent == own and before in {"", one.prev})
            found |= {one.seq: one for one in itertools.islice(fitting, 1)}
        previous = found[seq].sum if seq in found else ""
    for seq in range(of.seq - 1, of.first_seq - 1, -1):
        if seq not in found and seq not in pins and seq + 1 in found:
            led_to = (one for one in lines.get(seq, ()) if one.sum == found[seq + 1].prev)
            found |= {one.seq: one for one in itertools.islice(led_to, 1)}
    return _linked(of, found, own, pins)


def _led_to(
    of: Head, lines: Mapping[int, list[RecordLine]], pins: Mapping[int, str], hints: Mapping[int, str]
) -> tuple[dict[int, RecordLine], set[int]]:
    """Return the records to which the chain leads back from a known hash, and the seqs of which no hash is known."""
    found, is_open = dict[int, RecordLine](), set[int]()
    named = ""
    for seq in range(of.seq, of.first_seq - 1, -1):
        named = pins.get(seq, named)
        line = next((one for one in lines.get(seq, ()) if one.sum == (named or hints.get(seq))), None)
        if line is not None:
            found[seq] = line
        elif not named:
            is_open.add(seq)
        named = line.prev if line else ""
    return found, is_open


def _linked(of: Head, found: Mapping[int, RecordLine], own: Path, pins: Mapping[int, str]) -> list[Run]:
    """Return runs of records, without those that contradict the one before them.

    That record is one that the head names, or of the own store. With the first record of another store that
    contradicts it, all that follow from other stores are left out: they belong to another history.
    """
    runs: list[Run] = []
    previous, is_left_out = "", False
    for seq in range(of.first_seq, of.seq + 1):
        line, before = found.get(seq), pins.get(seq - 1, previous)
        is_left_out = line is not None and (before not in {"", line.prev} or (is_left_out and line.path.parent != own))
        if line is None or is_left_out:
            previous = ""
            continue
        if previous:
            runs[-1].append(line)
        else:
            runs.append([line])
        previous = line.sum
    return runs


def _is_intact(fs: Fs, directory: Path, of: Head, part: Segment, runs: Iterable[Run]) -> bool:
    """Tell whether the file of a segment holds all of its records, byte for byte in their places."""
    length, last = (part.sealed.length, part.sealed.last_seq) if part.sealed else (of.head.length, of.seq)
    path, size = directory / part.file, files.read_size(fs, directory / part.file)
    if size is None or size < length or (part.sealed is not None and size > length and not of.ends_at_hole(part)):
        return False
    at, following = 0, part.first_seq
    for line in itertools.chain.from_iterable(runs):
        if part.first_seq <= line.seq <= last:
            if (line.seq, line.path, line.offset, line.is_plain) != (following, path, at, True):
                return False
            at, following = at + line.length, following + 1
    return (at, following) == (length, last + 1)


def _pieces(lines: Iterable[RecordLine]) -> list[Run]:
    pieces: list[Run] = []
    for line in lines:
        if pieces and (pieces[-1][-1].seq + 1, pieces[-1][-1].sum) == (line.seq, line.prev):
            pieces[-1].append(line)
        else:
            pieces.append([line])
    return pieces


def _is_in_place(piece: Run, part: Segment, directory: Path) -> bool:
    """Tell whether a piece is the beginning of the damaged file, as it was written: it can stay there.

    A file of the same name in the store of another branch is not that file.
    """
    at, path = 0, directory / part.file
    for line in piece:
        if (line.path, line.offset, line.is_plain) != (path, at, True):
            return False
        at += line.length
    return piece[0].seq == part.first_seq


def _with_segments(of: Head, segments: list[Segment], written: dict[str, Run]) -> Head:
    """Return the head with these segments, the last of which takes new records."""
    last = segments[-1]
    tip = of.head
    if (
        last.sealed is not None
        and (last.sealed.last_seq, last.sealed.hash) == (tip.seq, tip.hash)
        and last.file in written
    ):
        segments = [*segments[:-1], msgspec.structs.replace(last, sealed=None)]
        tip = msgspec.structs.replace(tip, file=last.file, length=last.sealed.length)
    elif last.sealed is not None:
        following = Segment(layout.segment_name(tip.seq + 1), tip.seq + 1, tip.hash)
        segments = [*segments, following]
        written[following.file] = []
        tip = msgspec.structs.replace(tip, file=following.file, length=0)
    new = msgspec.structs.replace(of, segments=tuple(segments), head=tip)
    features = {*of.features_required, head.HOLES} if new.holes else {*of.features_required} - {head.HOLES}
    return msgspec.structs.replace(new, features_required=tuple(sorted(features)))


def _read_back(fs: Fs, run: Run) -> Iterator[bytes]:
    """Yield the lines of a run as they were written, each proven once more, in chunks."""
    held = bytearray()
    for path, lines in itertools.groupby(run, key=lambda line: line.path):
        with files.opened(fs, path, os.O_RDONLY) as fd:
            for line in lines:
                data = fs.pread(fd, line.found, line.offset)
                sound = frame.peek(data) if line.is_plain else _unharmed(data)
                if sound is None or sound.sum != line.sum:
                    raise OSError(errno.EIO, "the file changed while it was read")
                held += frame.encode(sound.seq, sound.prev, sound.rec)[1]
                if len(held) >= files.CHUNK_BYTES:
                    yield bytes(held)
                    held.clear()
    if held:
        yield bytes(held)
