"""A backup of branch stores as one file: written, proven, and read; format in ``docs/journal-format.md``.

Invariant: a file that was published is complete and was read back; what is read is trusted for nothing but its bytes:
only plain members with the names that KB gives, of the sizes and digests that the manifest states, are ever used. Every
byte of the file is proven: a member by its digest, the manifest by its checksum, and all others are as KB writes them.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import msgspec

from kbcore import progress
from kbcore.errors import BackupDamaged, FormatTooNew, NotFound, StorageError
from kbcore.errors.remedies import kb
from kbcore.limits import MAX_BACKUP_FILES, MAX_MANIFEST_BYTES
from kbcore.storage import files, head, layout, scan, verify
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
MODE: Final = 0o600

_MEMBER: Final = re.compile(r"([0-9]{1,6})/([a-z0-9.-]{1,64})", re.ASCII)
_BLOCK: Final = 512
_KINDS: Final[tuple[tuple[Callable[[int], bool], str], ...]] = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
)
_END: Final = bytes(2 * _BLOCK)
_NAME_BYTES: Final = 100
_SIZE_AT: Final = 124
_SIZE_BYTES: Final = 12
_MAX_OCTAL: Final = 8 ** (_SIZE_BYTES - 1)
_BEGINNING: Final = f"0/{layout.HEAD}\0".encode()
"""The first bytes of every backup: the name of its first member."""


class ArchiveMember(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a branch; ``sha256`` is of its bytes."""

    file: str
    length: int
    sha256: str


class Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One branch: its head at the moment of the backup, and its files, ``head.json`` first."""

    branch: str
    store_id: str
    lineage: str
    seq: int
    hash: str
    at: str
    files: tuple[ArchiveMember, ...]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a backup. It is the last member, so a truncated backup has none; it ends with a checksum."""

    kb: str
    format: int
    at: str
    tool: str
    branches: tuple[Saved, ...]


class _Formatted(msgspec.Struct, frozen=True):
    kb: str
    format: int


def write(fs: Fs, path: Path, sources: Sequence[Path], *, at: str, tool: str, replaces: bool = False) -> Manifest:
    """Write a backup of these branch directories, each at one head, read it back, and give it its name.

    The stores are not locked. A head is copied in its state when its branch is reached.

    Args:
        fs: the file system.
        path: the backup.
        sources: directories of branches.
        at: the time to note.
        tool: the program to note.
        replaces: whether a file of that name may be replaced.

    Raises:
        StorageError: as ``check_target``; or a file cannot be read.
        JournalCorrupt, JournalTruncated, SnapshotCorrupt, HeadDamaged, FormatTooNew: a store is not sound.
        BackupDamaged: what was read back is not what was written.
        StorageFull, ReadOnlyStore: there is no backup; an older one of that name is as it was.
    """
    check_target(fs, path, replaces=replaces)
    unfinished = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}{layout.TMP_SUFFIX}")
    try:
        with files.explained(unfinished, "write"):
            fd = fs.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, MODE)
        try:
            manifest = _write_members(_Output(fs, fd, unfinished), sources, at=at, tool=tool)
            with files.explained(unfinished, "sync"):
                fs.fsync(fd)
        finally:
            files.close(fs, fd)
        with opened(fs, unfinished) as backup:
            backup.check()
        _publish(fs, unfinished, path, replaces=replaces)
    except BaseException:
        files.remove_quietly(fs, unfinished)
        raise
    return manifest


def check_target(fs: Fs, path: Path, *, replaces: bool) -> None:
    """Refuse a path at which no backup can be put: only a plain file is ever replaced, and that only if it may be.

    Raises: ``StorageError``.
    """
    with files.explained(path, "look at", reading=True):
        try:
            mode = fs.lstat(path).st_mode
        except FileNotFoundError:
            return
    data = {"file": str(path)}
    if not stat.S_ISREG(mode):
        kind = next((word for is_it, word in _KINDS if is_it(mode)), "something else")
        hint = "Name a file: a backup is read back after it was written, and put in its place as a whole."
        raise StorageError(f"{path} is {kind}, and a backup replaces nothing but a plain file", hint=hint, data=data)
    if not replaces:
        raise StorageError(f"{path} exists already", hint="Give another name, or use --force to replace it.", data=data)


def _publish(fs: Fs, unfinished: Path, path: Path, *, replaces: bool) -> None:
    with files.explained(path, "publish"):
        if replaces:
            check_target(fs, path, replaces=True)
            fs.replace(unfinished, path, is_private=True)
        else:
            try:
                fs.link(unfinished, path)
            except FileExistsError:
                check_target(fs, path, replaces=False)
                raise
            except OSError as error:
                if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}:
                    raise
                check_target(fs, path, replaces=False)
                fs.replace(unfinished, path, is_private=True)
            else:
                fs.unlink(unfinished)
        fs.fsync_dir(path.parent)


def _write_members(output: _Output, sources: Sequence[Path], *, at: str, tool: str) -> Manifest:
    saved = [_write_branch(output, number, source) for number, source in enumerate(sources)]
    manifest = Manifest("backup", FORMAT, at, tool, tuple(saved))
    data = head.with_sum(msgspec.json.encode(manifest))
    _write_member(output, MANIFEST, len(data), [data])
    output.write(_END)
    return manifest


def _write_branch(output: _Output, number: int, source: Path) -> Saved:
    """Copy one head of a branch; should a file be pruned meanwhile, all is copied again from a newer head."""
    fs, path = output.fs, output.path
    with files.explained(path, "write"):
        start = fs.fstat(output.fd).st_size

    def copy(of: Head) -> Saved:
        with files.explained(path, "write"):
            fs.ftruncate(output.fd, start)
        data = head.encode(of)
        lengths = [(part.file, part.sealed.length if part.sealed else of.head.length) for part in of.segments]
        lengths += [(ref.file, ref.length) for ref in of.snapshots]
        written = [_write_member(output, f"{number}/{layout.HEAD}", len(data), [data])]
        for name, length in progress.track(lengths, len(lengths), "files copied"):
            with contextlib.closing(_parts_of(fs, source, name, length)) as parts:
                written.append(_write_member(output, f"{number}/{name}", length, parts))
        return Saved(of.branch, of.store_id, of.lineage, of.seq, of.hash, of.head.at, tuple(written))

    return scan.reading(fs, source, copy)


def _parts_of(fs: Fs, source: Path, name: str, length: int) -> Generator[bytes]:
    """Yield the acknowledged bytes of a file of a store."""
    path, at = source / name, 0
    with files.explained(path, "read", reading=True):
        try:
            fd = fs.open(path, os.O_RDONLY)
        except FileNotFoundError as error:
            raise scan.vanished(fs, source, name) from error
        try:
            while at < length:
                part = fs.pread(fd, min(files.CHUNK_BYTES, length - at), at)
                if not part:
                    raise StorageError(f"cannot read {path}: it ends at byte {at}, {length - at} bytes early")
                yield part
                at += len(part)
        finally:
            files.close(fs, fd)


class _Output(NamedTuple):
    """The backup that is being written."""

    fs: Fs
    fd: int
    path: Path

    def write(self, data: bytes) -> None:
        with files.explained(self.path, "write"):
            files.write_all(self.fs, self.fd, data)


def _write_member(output: _Output, name: str, length: int, parts: Iterable[bytes]) -> ArchiveMember:
    """Write one member: a header block, its bytes, and zeros up to the next block."""
    digest = hashlib.sha256()
    output.write(_header(name, length))
    for part in parts:
        digest.update(part)
        output.write(part)
    output.write(bytes(-length % _BLOCK))
    return ArchiveMember(name.rpartition("/")[2], length, digest.hexdigest())


def _header(name: str, length: int) -> bytes:
    """Return the header block of a plain file, in the GNU format of tar: all of it follows from name and length.

    Made here and not by ``tarfile``, whose blocks may differ between versions of Python: a reader compares every byte.
    """
    size = b"%011o\0" % length if length < _MAX_OCTAL else b"\x80" + length.to_bytes(_SIZE_BYTES - 1, "big")
    before = name.encode("ascii").ljust(_NAME_BYTES, b"\0") + b"%07o\0" % MODE + 2 * (b"%07o\0" % 0) + size
    before += b"%011o\0" % 0  # the time of the last change
    after = (b"0" + bytes(_NAME_BYTES) + b"ustar  \0").ljust(_BLOCK - len(before) - 8, b"\0")
    return before + b"%06o\0 " % sum(before + b" " * 8 + after) + after


def _stated_in(block: bytes) -> tuple[str, int] | None:
    """Return name and length that a header block states; None for a block that is no header of KB."""
    field = block[_SIZE_AT : _SIZE_AT + _SIZE_BYTES]
    try:
        name = block[:_NAME_BYTES].partition(b"\0")[0].decode("ascii")
        length = int.from_bytes(field[1:], "big") if field[:1] == b"\x80" else int(field[:-1], 8)
    except ValueError:
        return None
    return (name, length) if length >= 0 and block == _header(name, length) else None


class Backup:
    """A backup that is open for reading. Made by ``opened``, which has looked at every header and the manifest."""

    def __init__(self, fs: Fs, path: Path, fd: int) -> None:
        """Read the table of members; raises ``BackupDamaged``, ``FormatTooNew``, ``StorageError``."""
        self._fs = fs
        self._fd = fd
        self.path = path
        with files.explained(path, "read", reading=True):
            self._size = fs.fstat(fd).st_size
            self._places = self._read_places()
            self.manifest = self._read_manifest()
        self._compare()

    def check(self) -> None:
        """Prove every member by its digest, and every store as `kb verify` proves the files of one.

        Raises:
            BackupDamaged: something is not what was written.
            FormatTooNew: a newer KB wrote one of the stores.
            StorageError: the file cannot be read.
        """
        for number, saved in enumerate(self.manifest.branches):
            for member in progress.track(saved.files, len(saved.files), "files proven"):
                self._check_digest(f"{number}/{member.file}", member)
            view, directory = self.store(number)
            of = head.read(view, directory)
            stated = (saved.branch, saved.store_id, saved.lineage, saved.seq, saved.hash)
            if (of.branch, of.store_id, of.lineage, of.seq, of.hash) != stated:
                raise self.damaged(f"its list differs from the head about {saved.branch!r}")
            if of.files | {layout.HEAD} != {member.file for member in saved.files}:
                raise self.damaged(f"it does not hold the files that the head of {saved.branch!r} names")
            proof = verify.prove(view, directory)
            if not proof.is_sound:
                raise self.damaged(f"{saved.branch!r} in it is not sound: {proof.damage}")

    def store(self, number: int) -> tuple[Fs, Path]:
        """Return the files of one branch, as a file system to read from and the directory in it."""
        view = BackupFs(self)
        return cast("Fs", view), view.directory(number)

    def pread(self, place: tuple[int, int], length: int, offset: int) -> bytes:
        """Return bytes of one member; none after its end."""
        start, size = place
        return self._fs.pread(self._fd, max(0, min(length, size - offset)), start + offset)

    def place(self, name: str) -> tuple[int, int] | None:
        """Return offset and size of a member, None when there is none."""
        return self._places.get(name)

    def names(self, number: str) -> list[str]:
        """Return the names of the files of one branch."""
        return [name.partition("/")[2] for name in self._places if name.startswith(f"{number}/")]

    def damaged(self, what: str) -> BackupDamaged:
        """Return the error for a backup that is not what was written."""
        return BackupDamaged(f"{self.path} is no sound backup: {what}", data={"file": str(self.path)})

    def _foreign(self) -> BackupDamaged:
        """Return the error for a file that does not begin as a backup does."""
        what = "it does not begin as one does" if self._size else "it is empty"
        message = f"{self.path} is not a backup of KB: {what}"
        return BackupDamaged(message, hint=f"Name a file that {kb('backup')} wrote.", data={"file": str(self.path)})

    def _read_places(self) -> dict[str, tuple[int, int]]:
        """Read every header, and the zeros after each member. Nothing but what KB writes there is taken."""
        found: dict[str, tuple[int, int]] = {}
        at = filled = 0
        if self._fs.pread(self._fd, len(_BEGINNING), 0) != _BEGINNING:
            raise self._foreign()
        while True:
            data = self._fs.pread(self._fd, filled + _BLOCK, at - filled)
            zeros, block = data[:filled], data[filled:]
            if len(block) < _BLOCK:
                raise self.damaged("it was cut short")
            if zeros != bytes(filled):
                raise self.damaged(f"something other than zeros follows {[*found][-1]} in it, before byte {at}")
            if block == bytes(_BLOCK):
                break
            name, size = self._read_header(block, at)
            if name in found or MANIFEST in found:
                raise self.damaged(f"it holds {name} where it should not")
            if len(found) >= MAX_BACKUP_FILES:
                raise self.damaged(f"it holds more than {MAX_BACKUP_FILES} files")
            found[name] = (at + _BLOCK, size)
            filled = -size % _BLOCK
            at += _BLOCK + size + filled
        if self._fs.pread(self._fd, 2 * len(_END), at) != _END:
            raise self.damaged("it does not end after its last file")
        if MANIFEST not in found:
            raise self.damaged("its list of files is missing")
        return found

    def _read_header(self, block: bytes, at: int) -> tuple[str, int]:
        """Return name and size of a member, from a header that is byte for byte the one that KB writes for these."""
        stated = _stated_in(block)
        if stated is None:
            raise self.damaged(f"at byte {at} there is no file header as KB writes it")
        name, size = stated
        if name != MANIFEST and not _is_a_store_file(name):
            raise self.damaged(f"at byte {at} it holds a file of a name that KB puts into no backup")
        if size > self._size - at - _BLOCK:
            raise self.damaged(f"{name} in it was cut short")
        if name == MANIFEST and size > MAX_MANIFEST_BYTES:
            raise self.damaged(f"its list of files is larger than {MAX_MANIFEST_BYTES} bytes")
        return name, size

    def _read_manifest(self) -> Manifest:
        data = head.without_sum(self.pread(self._places[MANIFEST], MAX_MANIFEST_BYTES, 0))
        if data is None:
            raise self.damaged("its list of files does not match its checksum")
        try:
            said = msgspec.json.decode(data, type=_Formatted)
            if said.kb == "backup" and said.format > FORMAT:
                message = f"{self.path} has backup format {said.format}, and this KB reads up to {FORMAT}"
                raise FormatTooNew(message, data={"file": str(self.path)})
            manifest = msgspec.json.decode(data, type=Manifest)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise self.damaged("its list of files cannot be read") from error
        if manifest.kb != "backup" or manifest.format != FORMAT:
            raise self.damaged("its list of files is not that of a backup")
        return manifest

    def _compare(self) -> None:
        """Compare the members with the list: the same names, lengths and no more."""
        listed = {
            f"{number}/{member.file}": member.length
            for number, saved in enumerate(self.manifest.branches)
            for member in saved.files
        }
        found = {name: size for name, (_, size) in self._places.items() if name != MANIFEST}
        if listed != found:
            strange = min(listed.items() ^ found.items())[0]
            raise self.damaged(f"its list of files and its content differ, first in {strange}")
        names = [saved.branch for saved in self.manifest.branches]
        if len({*names}) < len(names) or not all(names):
            raise self.damaged("it names a branch twice, or one without a name")

    def _check_digest(self, name: str, member: ArchiveMember) -> None:
        place, digest, at = self._places[name], hashlib.sha256(), 0
        with files.explained(self.path, "read", reading=True):
            while part := self.pread(place, files.CHUNK_BYTES, at):
                digest.update(part)
                at += len(part)
        if (at, digest.hexdigest()) != (member.length, member.sha256):
            raise self.damaged(f"{name} in it is not what was written")


def _is_a_store_file(name: str) -> bool:
    found = _MEMBER.fullmatch(name)
    return found is not None and layout.kind_of(found[2]) in {"head", "segment", "snapshot"}


@contextlib.contextmanager
def opened(fs: Fs, path: Path) -> Iterator[Backup]:
    """Open a backup, and read its table and its list of files.

    Raises:
        NotFound: there is no such file.
        BackupDamaged: it is none, or is not what was written.
        FormatTooNew: a newer KB wrote it.
        StorageError: it cannot be read.
    """
    with files.explained(path, "read", reading=True):
        try:
            # A named pipe without a writer would be waited for.
            fd = fs.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except FileNotFoundError as error:
            raise NotFound(f"There is no file {path}.", hint=f"Name a file that {kb('backup')} wrote.") from error
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            message = f"{path} is a symbolic link, and KB reads a backup through none"
            hint = "Name the file itself that the link leads to."
            raise StorageError(message, hint=hint, data={"file": str(path)}) from error
    try:
        with files.explained(path, "read", reading=True):
            status = fs.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise StorageError(f"cannot read {path}: it is not a file")
        yield Backup(fs, path, fd)
    finally:
        files.close(fs, fd)


class BackupFs:
    """The branches in a backup as directories of files that can only be read: what ``verify.prove`` looks at."""

    def __init__(self, backup: Backup) -> None:
        """``backup`` stays open for as long as this is used."""
        self._backup = backup
        self._open: dict[int, tuple[int, int]] = {}
        self._read_up_to: dict[int, int] = {}
        self._next = 0

    def directory(self, number: int) -> Path:
        """Return the directory of one branch."""
        return self._backup.path / str(number)

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:  # noqa: ARG002 - the signature of an Fs
        """Open a member."""
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise _read_only()
        self._next += 1
        self._open[self._next] = self._place(path)
        self._read_up_to[self._next] = 0
        return self._next

    def close(self, fd: int) -> None:
        """Close a member."""
        del self._open[fd], self._read_up_to[fd]

    def read(self, fd: int, length: int) -> bytes:
        """Read from where the last read ended."""
        data = self.pread(fd, length, self._read_up_to[fd])
        self._read_up_to[fd] += len(data)
        return data

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        """Read at an offset of the member."""
        return self._backup.pread(self._open[fd], length, offset)

    def fstat(self, fd: int) -> os.stat_result:
        """Return the status of an open member."""
        return _status(stat.S_IFREG, self._open[fd][1])

    def lstat(self, path: Path) -> os.stat_result:
        """Return the status of a member, or of the directory of a branch."""
        if path.parent == self._backup.path and self._backup.names(path.name):
            return _status(stat.S_IFDIR, 0)
        return _status(stat.S_IFREG, self._place(path)[1])

    def listdir(self, path: Path) -> list[str]:
        """Return the names of the files of a branch."""
        if path.parent != self._backup.path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return self._backup.names(path.name)

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        """Refuse every call that would write."""

        def refuse(*_: Any) -> Any:
            raise _read_only()

        return refuse

    def _place(self, path: Path) -> tuple[int, int]:
        place = self._backup.place(f"{path.parent.name}/{path.name}")
        if place is None or path.parent.parent != self._backup.path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return place


def _read_only() -> OSError:
    return OSError(errno.EROFS, os.strerror(errno.EROFS))


def _status(kind: int, size: int) -> os.stat_result:
    return os.stat_result((kind | MODE, 0, 0, 1, 0, 0, size, 0, 0, 0))
