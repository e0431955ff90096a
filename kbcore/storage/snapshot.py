"""The state at one seq as a file of canonical lines; format in ``docs/journal-format.md``.

Invariant: equal state at the same record gives equal bytes, and no damaged byte is ever read as a fact.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from kbcore.errors import FormatTooNew, HistoryPruned, KBError, SnapshotCorrupt
from kbcore.errors.remedies import shell
from kbcore.storage import byte_diagnosis, files, frame, layout, scan
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, SnapshotRef

FORMAT: Final = 1

_FACT_STARTS: Final = len(b'{"crc":"00000000","fact":')
_FACT_ENDS: Final = -len(b"}\n")
_MAX_HEADER_BYTES: Final = 1024


class _Formatted(msgspec.Struct, frozen=True):
    format: int


class Header(msgspec.Struct, frozen=True):
    """The first line: which record of which history this is the state after."""

    kb: str
    format: int
    lineage: str
    seq: int
    hash: str


def write(fs: Fs, directory: Path, of: Head, facts: Iterable[bytes], *, generation: int = 0) -> SnapshotRef:
    """Write, sync and read back the snapshot of the state at a head, and give it its name.

    The name is durable once the caller has synced the directory.

    Args:
        fs: the file system.
        directory: the branch's directory; the caller holds its lock.
        of: the head whose state it is.
        facts: the state as canonical JSON values, one line each without the newline, in canonical order.
        generation: of its name, where a redaction writes it.

    Raises:
        StorageFull, ReadOnlyStore, StorageError: no snapshot was published.
        SnapshotCorrupt: what was read back is not what was written.
        ValueError: a fact is not one line of JSON; a bug in the caller.
    """
    path = directory / layout.snapshot_name(of.seq, generation)
    unfinished = layout.tmp_path(path)
    header = _encode_header(of.lineage, of.seq, of.hash)
    try:
        with (
            files.explained(unfinished, "write"),
            files.opened(fs, unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd,
        ):
            length, digest = _write_lines(fs, fd, header, facts)
            fs.fsync(fd)
        for _ in _read(fs, unfinished, header, digest):
            continue
    except BaseException:
        # Its space may be what is missing; nothing refers to it.
        files.remove_quietly(fs, unfinished)
        raise
    with files.explained(path, "publish"):
        fs.replace(unfinished, path)
    return SnapshotRef(path.name, of.seq, of.hash, length, digest)


def read(fs: Fs, directory: Path, of: Head, ref: SnapshotRef) -> Iterator[bytes]:
    """Yield the facts of a snapshot as written. Use them once all have come: the last check is at the end.

    Raises:
        SnapshotCorrupt: it is missing, or a line is not what was written; the hint says what still holds its facts.
        FormatTooNew: a newer KB wrote it.
        HistoryPruned: it was removed by pruning; read the head again.
        StorageError: it cannot be read.
    """
    path = directory / ref.file
    if files.read_size(fs, path) is None:
        raise missing(fs, directory, of, ref)
    yield from _read(fs, path, _encode_header(of.lineage, ref.seq, ref.hash), ref.sha256, remedy=_remedy(of, ref))


def check(fs: Fs, directory: Path, of: Head, ref: SnapshotRef) -> None:
    """Read a snapshot to its end. Raises: as ``read``."""
    for _ in read(fs, directory, of, ref):
        continue


def missing(fs: Fs, directory: Path, of: Head, ref: SnapshotRef) -> KBError:
    """Return the error for a snapshot that is not there: pruned, or lost.

    Raises:
        UnknownBranch, HeadDamaged, FormatTooNew, StorageError: the head cannot be read again.
    """
    path = directory / ref.file
    error = scan.vanished(fs, directory, ref.file)
    if isinstance(error, HistoryPruned):
        return error
    return SnapshotCorrupt(f"{path} is missing, and the head names it", hint=_remedy(of, ref), data={"file": str(path)})


def resized(directory: Path, of: Head, ref: SnapshotRef, size: int) -> SnapshotCorrupt:
    """Return the error for a snapshot that has another length than when it was written."""
    path = directory / ref.file
    return SnapshotCorrupt(
        f"{path} has {size} bytes and should have {ref.length}", hint=_remedy(of, ref), data={"file": str(path)}
    )


def foreign(directory: Path, of: Head, ref: SnapshotRef) -> SnapshotCorrupt:
    """Return the error for a whole snapshot that is of no record of this history."""
    path = directory / ref.file
    return SnapshotCorrupt(f"{path} is not of this history", hint=_remedy(of, ref), data={"file": str(path)})


def reference(of: Head, facts: Iterable[bytes]) -> SnapshotRef:
    """Return how a head would refer to the snapshot of these facts, without writing it."""
    digest, length = hashlib.sha256(), 0
    for part in _parts(_encode_header(of.lineage, of.seq, of.hash), facts):
        digest.update(part)
        length += len(part)
    return SnapshotRef(layout.snapshot_name(of.seq), of.seq, of.hash, length, digest.hexdigest())


def inspect(fs: Fs, directory: Path, name: str) -> tuple[str, SnapshotRef]:
    """Prove a snapshot that no head names; return its lineage and how a head would refer to it.

    Raises:
        SnapshotCorrupt: it contradicts itself.
        FormatTooNew: a newer KB wrote it.
        StorageError: it cannot be read.
    """
    path = directory / name
    with files.explained(path, "read", reading=True), files.opened(fs, path, os.O_RDONLY) as fd:
        line = fs.pread(fd, _MAX_HEADER_BYTES, 0).partition(b"\n")[0] + b"\n"
        length = fs.fstat(fd).st_size
    try:
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _corrupt((path, ""), 1, 0, "the header is not a snapshot's", line) from error
    if header.format > FORMAT:
        raise FormatTooNew(f"{path} has format {header.format}, and this KB reads up to {FORMAT}")
    digest = hashlib.sha256()
    for _ in _read(fs, path, _encode_header(header.lineage, header.seq, header.hash), "", digest):
        continue
    return header.lineage, SnapshotRef(name, header.seq, header.hash, length, digest.hexdigest())


def _encode_header(lineage: str, seq: int, chain_hash: str) -> bytes:
    return msgspec.json.encode(Header("snapshot", FORMAT, lineage, seq, chain_hash)) + b"\n"


def _encode_fact(fact: bytes) -> bytes:
    return b'{"crc":"%08x","fact":%b}\n' % (zlib.crc32(fact), fact)


def _encode_footer(count: int, digest: str) -> bytes:
    return b'{"count":%d,"sha256":"%b"}\n' % (count, digest.encode())


def _write_lines(fs: Fs, fd: int, header: bytes, facts: Iterable[bytes]) -> tuple[int, str]:
    """Write the whole file to ``fd``; return its length and SHA-256."""
    digest, length = hashlib.sha256(), 0
    for part in _parts(header, facts):
        files.write_all(fs, fd, part)
        digest.update(part)
        length += len(part)
    return length, digest.hexdigest()


def _parts(header: bytes, facts: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the bytes of the whole file, in parts of about a chunk."""
    digest, count, held = hashlib.sha256(), 0, bytearray(header)
    for fact in facts:
        if b"\n" in fact or not fact:
            raise ValueError("a fact is one line of JSON")
        held += _encode_fact(fact)
        count += 1
        if len(held) >= files.CHUNK_BYTES:
            digest.update(held)
            yield bytes(held)
            held.clear()
    digest.update(held)
    yield bytes(held) + _encode_footer(count, digest.hexdigest())


def _read(
    fs: Fs, path: Path, header: bytes, sha256: str, digest: hashlib._Hash | None = None, *, remedy: str = ""
) -> Iterator[bytes]:
    """Yield the facts; ``sha256`` of the whole file is compared unless empty, ``digest`` is fed the file.

    Raises:
        SnapshotCorrupt: with ``remedy`` as its hint, after what usually does this.
    """
    total = digest or hashlib.sha256()
    number, end = 0, 0
    with files.explained(path, "read", reading=True), files.opened(fs, path, os.O_RDONLY) as fd:
        size = fs.fstat(fd).st_size
        for offset, line in files.read_lines(fs, fd, 0, size, frame.MAX_LINE_BYTES):
            number += 1
            end = offset + len(line)
            if number == 1:
                if line != header:
                    if _is_newer(fs, fd, line, sha256):
                        raise FormatTooNew(f"{path} has a newer format, and this KB reads up to {FORMAT}")
                    raise _corrupt((path, remedy), 1, 0, "the header is not the one that belongs here", line)
            elif end < size:
                fact = line[_FACT_STARTS:_FACT_ENDS]
                if line != _encode_fact(fact):
                    raise _corrupt((path, remedy), number, offset, "the line does not match its checksum", line)
                yield fact
            elif line != _encode_footer(number - 2, total.hexdigest()):
                raise _corrupt((path, remedy), number, offset, "the footer does not match the lines above it", line)
            total.update(line)
    if number < 2 or end < size:  # noqa: PLR2004 - a header and a footer
        raise _corrupt((path, remedy), number + 1, end, "the file ends too early", b"")
    if sha256 and total.hexdigest() != sha256:
        raise _corrupt((path, remedy), number, offset, "this is not the snapshot that the head names", line)


def _is_newer(fs: Fs, fd: int, line: bytes, sha256: str) -> bool:
    """Tell whether a newer KB wrote this snapshot: its header says so, and it is the very file that the head names."""
    try:
        if msgspec.json.decode(line, type=_Formatted).format <= FORMAT:
            return False
    except (msgspec.DecodeError, UnicodeError):
        return False
    digest, offset = hashlib.sha256(), 0
    while part := fs.pread(fd, files.CHUNK_BYTES, offset):
        digest.update(part)
        offset += len(part)
    return digest.hexdigest() == sha256


def _corrupt(about: tuple[Path, str], line: int, offset: int, what: str, found: bytes) -> SnapshotCorrupt:
    path, remedy = about
    cause = f"{byte_diagnosis.diagnose_bytes(found)} " if found else ""
    return SnapshotCorrupt(
        f"{path}, line {line}, byte {offset}: {what}",
        hint=f"{cause}{remedy or SnapshotCorrupt.default_hint}",
        data={"file": str(path), "line": line, "offset": offset},
    )


def _gone(of: Head) -> str:
    return "are missing" if of.holes else "were pruned"


def _remedy(of: Head, ref: SnapshotRef) -> str:
    """Return what still holds the facts of a snapshot that is damaged, and what makes it whole again."""
    repair = f"{shell('doctor', '--rebuild-snapshots', '--branch', of.branch)}"
    older = [other for other in of.snapshots if of.whole_from - 1 <= other.seq < ref.seq]
    if of.pruned is None and (not of.holes or ref.seq < of.holes[0].first):
        return f"Nothing is lost: the journal has every fact. Run {repair}: it rebuilds the snapshot."
    if older:
        return f"{older[-1].file} and the journal after it lead to its facts. Run {repair}: it rebuilds the snapshot."
    return (
        f"It replaces the records before {of.whole_from}, which {_gone(of)}. Put the file back from a backup, or run "
        f"{repair}: it looks for the same facts in the other branches and in the cached view."
    )
