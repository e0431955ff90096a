"""A backup of branch stores as one file: written, proven, and read; format in ``docs/journal-format.md``.

Invariant: a file that was published is complete and was read back; what is read is trusted for nothing but its bytes:
only plain members with the names that KB gives, of the sizes and digests that the manifest states, are ever used.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import secrets
import stat
import tarfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Self

import msgspec

from kbcore import progress
from kbcore.errors import BackupDamaged, FormatTooNew, KBError, StorageError
from kbcore.limits import MAX_BACKUP_FILES, MAX_MANIFEST_BYTES
from kbcore.storage import files, head, journal, layout
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
MODE: Final = 0o600

_MEMBER: Final = re.compile(r"([0-9]{1,6})/([a-z0-9.-]{1,64})", re.ASCII)
_BLOCK: Final = 512
_END: Final = bytes(2 * _BLOCK)


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    files: tuple[Member, ...]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a backup holds. It is the last member, so a backup that was cut short has none."""

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

    The stores are not locked. A head is copied as it stands at the moment when its branch's turn comes.

    Args:
        fs: the file system.
        path: the backup.
        sources: directories of branches.
        at: the time to note.
        tool: the program to note.
        replaces: whether a file of that name may be replaced.

    Raises:
        StorageError: there is such a file, and it may not be replaced; or a file cannot be read.
        JournalCorrupt, JournalTruncated, SnapshotCorrupt, HeadDamaged, FormatTooNew: a store is not sound.
        BackupDamaged: what was read back is not what was written.
        StorageFull, ReadOnlyStore: there is no backup; an older one of that name is as it was.
    """
    if not replaces:
        _refuse_existing(fs, path)
    unfinished = path.with_name(f".{path.name[:100]}.{secrets.token_hex(8)}{layout.TMP_SUFFIX}")
    try:
        with files.explained(unfinished, "write"):
            fd = fs.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
        try:
            manifest = _write_members(fs, fd, unfinished, sources, at=at, tool=tool)
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


def _refuse_existing(fs: Fs, path: Path) -> None:
    with files.explained(path, "look at", reading=True), contextlib.suppress(FileNotFoundError):
        fs.lstat(path)
        raise _exists(path)


def _exists(path: Path) -> StorageError:
    return StorageError(
        f"{path} exists already", hint="Give another name, or replace it with --force.", data={"file": str(path)}
    )


def _publish(fs: Fs, unfinished: Path, path: Path, *, replaces: bool) -> None:
    with files.explained(path, "publish"):
        if replaces:
            fs.replace(unfinished, path)
        else:
            try:
                fs.link(unfinished, path)
            except FileExistsError as error:
                raise _exists(path) from error
            except OSError as error:
                if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}:
                    raise
                _refuse_existing(fs, path)
                fs.replace(unfinished, path)
            else:
                fs.unlink(unfinished)
        fs.fsync_dir(path.parent)


def _write_members(fs: Fs, fd: int, path: Path, sources: Sequence[Path], *, at: str, tool: str) -> Manifest:
    saved = [_write_branch(fs, fd, path, number, source) for number, source in enumerate(sources)]
    manifest = Manifest("backup", FORMAT, at, tool, tuple(saved))
    data = msgspec.json.format(msgspec.json.encode(manifest)) + b"\n"
    with files.explained(path, "write"):
        _write_member(fs, fd, MANIFEST, len(data), iter([data]))
        files.write_all(fs, fd, _END)
    return manifest


def _write_branch(fs: Fs, fd: int, path: Path, number: int, source: Path) -> Saved:
    """Copy one head of a branch; should a file be pruned meanwhile, all of it is copied again from a newer head."""
    begins = 0

    def copy(of: Head) -> Saved:
        with files.explained(path, "write"):
            begins_at = begins or _position(fs, fd)
            fs.ftruncate(fd, begins_at)
        return _write_head(fs, fd, path, number, source, of)

    begins = _position(fs, fd)
    return journal.reading(fs, source, copy)


def _position(fs: Fs, fd: int) -> int:
    return fs.fstat(fd).st_size
