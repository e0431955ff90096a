"""Whole-file work on top of ``Fs``, and the one translation from ``OSError`` to KB's errors.

Invariant: a published file is complete and durable under its name, or the name holds what it held before.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import pwd
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

from kbcore.errors import KBError, ReadOnlyStore, StorageError, StorageFull
from kbcore.errors.remedies import shell
from kbcore.storage import layout
from kbcore.storage.fs import Fs

CHUNK_BYTES: Final = 1024 * 1024
_SMALL_BYTES: Final = 64 * 1024
"""For files read whole: a larger buffer costs two memory mappings, and the head is read on every request."""

_STORES: Final = "branches"
"""The name of the folder that holds the stores of a repository."""
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_DENIED: Final = frozenset({errno.EACCES, errno.EPERM})
_SHARE: Final = (
    "Run it as {}, or have them share the repository: `git config core.sharedRepository group`, then give what is in "
    "the git directory and in .kb to a common group with `chgrp -R GROUP` and `chmod -R g+rwX`."
)
WRITABLE_ROOT: Final = "writable_root"
"""The key of an error's data for the folder that has to be writable; it is there when the hint says how."""
_READ_ONLY: Final = frozenset({errno.EROFS, errno.EACCES, errno.EPERM})


@lru_cache(maxsize=256)
def below(folder: Path, name: str) -> Path:
    """Return ``folder / name``, the same object every time: a server joins the same few paths for each request."""
    return folder / name


def explain(error: OSError, path: Path, doing: str, *, reading: bool = False) -> KBError:
    """Return KB's error for a refused call: what was being done, to which file, and the system's own words.

    Args:
        error: what the system call raised.
        path: the file or directory to name.
        doing: a verb phrase, as in "cannot <doing> <path>".
        reading: permission denied while reading is no sign of a read-only store.
    """
    reason, hint = refusal(error, path)
    if error.errno == errno.ELOOP:
        return StorageError(
            f"cannot {doing} {path}: it is a symbolic link, and KB follows none there",
            hint="Remove the link. If it leads to what belongs there, put that in its place.",
            data={"file": str(path)},
        )
    message = f"cannot {doing} {path}: {reason}"
    if is_full(error):
        return StorageFull(message, data={"file": str(path)})
    if error.errno in _READ_ONLY and not reading:
        root = None if hint else _data_dir(path)
        data = {"file": str(path)} | ({WRITABLE_ROOT: str(root)} if root else {})
        return ReadOnlyStore(message, hint=hint or (ways_to_write(root) if root else ""), data=data)
    return StorageError(message, hint=hint, data={"file": str(path)})


def is_full(error: OSError) -> bool:
    """Tell whether the system refused a call because the disk or a quota is full, or the file is as large as may be."""
    return error.errno in _FULL


def refusal(error: OSError, path: Path) -> tuple[str, str]:
    """Return why the system refused a file, with its owner where that is another user, and what to do then, else ""."""
    reason = os.strerror(error.errno) if error.errno else str(error)
    owner = _other_owner(path) if error.errno in _DENIED else ""
    return (f"{reason}; it belongs to {owner}", _SHARE.format(owner)) if owner else (reason, "")


def _other_owner(path: Path) -> str:
    """Return the user that a file or the nearest folder above it belongs to; "" when that is this user."""
    for one in (path, *path.parents):
        try:
            uid = one.lstat().st_uid
        except OSError:
            continue
        if uid == os.geteuid():
            return ""
        try:
            return f"{pwd.getpwuid(uid).pw_name!a} (uid {uid})"
        except KeyError:
            return f"uid {uid}"
    return ""


def _data_dir(path: Path) -> Path | None:
    """Return the folder of stores and caches that a path is in, None for other files."""
    return next((folder.parent for folder in path.parents if folder.name == _STORES), None)


def ways_to_write(data: Path) -> str:
    """Return how somebody can write all the same whose sandbox shuts the folder of the stores."""
    make = "" if os.path.lexists(data) else " once it was made"
    return (
        f"Where a sandbox shuts git's folder: use the tools of {shell('mcp')}, whose server runs outside of it; or "
        f"have {data} as a writable root of the sandbox{make}. Else give the user write permission there, or remount "
        "read-write. Queries keep working."
    )


@contextlib.contextmanager
def explained(path: Path, doing: str, *, reading: bool = False) -> Iterator[None]:
    """Turn an ``OSError`` inside the block into KB's error for it.

    Raises:
        StorageFull, ReadOnlyStore, StorageError: as ``explain`` chooses.
    """
    try:
        yield
    except OSError as error:
        raise explain(error, path, doing, reading=reading) from error


@contextlib.contextmanager
def opened(fs: Fs, path: Path, flags: int) -> Iterator[int]:
    """Open a file for the length of the block; raises ``OSError`` as the call does."""
    fd = fs.open(path, flags)
    try:
        yield fd
    finally:
        close(fs, fd)


def close(fs: Fs, fd: int) -> None:
    """Close a descriptor whose data is synced already or not wanted: a failure can take nothing back."""
    with contextlib.suppress(OSError):
        fs.close(fd)


def is_there(fs: Fs, path: Path) -> bool:
    """Tell whether there is anything at a path, a link that leads nowhere included."""
    try:
        fs.lstat(path)
    except OSError:
        return False
    return True


def read_file(fs: Fs, path: Path, limit_bytes: int) -> bytes | None:
    """Read a whole file, or return None if there is none.

    Raises:
        StorageError: it cannot be read, or holds more than ``limit_bytes``.
    """
    parts: list[bytes] = []
    length = 0
    with explained(path, "read", reading=True):
        try:
            fd = fs.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            while part := fs.read(fd, _SMALL_BYTES):
                parts.append(part)
                length += len(part)
                if length > limit_bytes:
                    raise StorageError(f"cannot read {path}: it is larger than {limit_bytes} bytes")
        finally:
            close(fs, fd)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_size(fs: Fs, path: Path) -> int | None:
    """Return a file's size in bytes, or None if there is none.

    Raises:
        StorageError: it is not a regular file, or cannot be looked at.
    """
    status = _status(fs, path, "read")
    if status is None:
        return None
    if not stat.S_ISREG(status.st_mode):
        raise StorageError(f"cannot read {path}: it is not a file")
    return status.st_size


def is_directory(fs: Fs, path: Path) -> bool:
    """Say whether there is a real directory at ``path``.

    Raises:
        StorageError: it is a symbolic link or a file, or cannot be looked at.
    """
    status = _status(fs, path, "open")
    if status is None:
        return False
    if not stat.S_ISDIR(status.st_mode):
        raise StorageError(f"cannot open {path}: it is not a directory")
    return True


def _status(fs: Fs, path: Path, verb: str) -> os.stat_result | None:
    """Return the status of what is at a path, None of nothing. Raises: ``StorageError`` also for a symbolic link."""
    with explained(path, verb, reading=True):
        try:
            status = fs.lstat(path)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(status.st_mode):
            raise OSError(errno.ELOOP, "symbolic link")
    return status


def make_directory(fs: Fs, path: Path) -> None:
    """Make a directory durably, unless it is there; its parent must exist.

    Raises: ``StorageError`` and its kin when something else is there, or it cannot be made.
    """
    if is_directory(fs, path):
        return
    with explained(path, "make"):
        with contextlib.suppress(FileExistsError):  # another process made it at this moment
            fs.mkdir(path)
        fs.fsync_dir(path.parent)
    if not is_directory(fs, path):
        raise StorageError(f"cannot make {path}: it was removed at once", data={"file": str(path)})


def write_all(fs: Fs, fd: int, data: bytes | memoryview) -> None:
    """Write every byte at the descriptor's position; raises ``OSError`` as the call does."""
    left = memoryview(data)
    while left:
        left = left[_progress(fs.write(fd, left)) :]


def pwrite_all(fs: Fs, fd: int, data: bytes | memoryview, offset: int) -> None:
    """Write every byte at ``offset``; raises ``OSError`` as the call does."""
    left = memoryview(data)
    while left:
        taken = _progress(fs.pwrite(fd, left, offset))
        left = left[taken:]
        offset += taken


def write_synced(fs: Fs, path: Path, data: bytes) -> None:
    """Write a file from its beginning and make its data durable; its name is not durable yet.

    Raises:
        StorageFull, ReadOnlyStore, StorageError: the file may exist in part.
    """
    with (
        explained(path, "write"),
        opened(fs, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd,
    ):
        write_all(fs, fd, data)
        fs.fsync(fd)


def make_empty(fs: Fs, path: Path) -> None:
    """Make an empty file, or empty it; it is durable with the next sync of its directory.

    Raises:
        StorageFull, ReadOnlyStore, StorageError: the call failed.
    """
    with explained(path, "make"), opened(fs, path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC):
        pass


def publish(fs: Fs, path: Path) -> None:
    """Rename the synced ``tmp_path(path)`` to ``path`` and make the name durable.

    Raises:
        StorageFull, ReadOnlyStore, StorageError: the name holds the old file or the new one, whole.
    """
    with explained(path, "publish"):
        fs.replace(layout.tmp_path(path), path)
        fs.fsync_dir(path.parent)


def publish_file(fs: Fs, path: Path, data: bytes) -> None:
    """Replace a file as a whole: write next to it, sync, rename, sync the directory.

    Raises:
        StorageFull, ReadOnlyStore, StorageError: the name holds the old file or the new one, whole.
    """
    write_synced(fs, layout.tmp_path(path), data)
    publish(fs, path)


def read_lines(fs: Fs, fd: int, start: int, limit: int, max_line_bytes: int) -> Iterator[tuple[int, bytes]]:
    """Yield (offset, line) from ``start`` up to byte ``limit``, reading in chunks.

    Only the last line may lack its newline, or be longer than ``max_line_bytes``. Raises ``OSError``.
    """
    offset, at, held = start, start, 0
    parts: list[bytes] = []
    while at < limit and held <= max_line_bytes:
        chunk = fs.pread(fd, min(CHUNK_BYTES, limit - at), at)
        if not chunk:
            break
        at += len(chunk)
        low = 0
        while (high := chunk.find(b"\n", low) + 1) > 0:
            line = chunk[low:high]
            low = high
            if parts:
                line = b"".join((*parts, line))
                parts.clear()
                held = 0
            yield offset, line
            offset += len(line)
        if low < len(chunk):
            parts.append(chunk[low:])
            held += len(chunk) - low
    if parts:
        yield offset, b"".join(parts)


def copy_range(fs: Fs, source: Path, target: Path, offset: int, length: int) -> str:
    """Copy ``length`` bytes of one file into a new one, sync its data, and return their SHA-256 in hex.

    Raises:
        StorageFull, ReadOnlyStore, StorageError: the target may exist in part; or the source is too short.
    """
    digest = hashlib.sha256()
    with (
        explained(target, f"copy {source} to"),
        opened(fs, source, os.O_RDONLY) as read_fd,
        opened(fs, target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as write_fd,
    ):
        end = offset + length
        while offset < end:
            part = fs.pread(read_fd, min(CHUNK_BYTES, end - offset), offset)
            if not part:
                raise StorageError(f"cannot copy {source}: it ends at byte {offset}, {end - offset} bytes early")
            write_all(fs, write_fd, part)
            digest.update(part)
            offset += len(part)
        fs.fsync(write_fd)
    return digest.hexdigest()


def remove_quietly(fs: Fs, path: Path) -> None:
    """Remove a file that nothing refers to; what cannot be removed now is removed by the next compaction."""
    with contextlib.suppress(OSError):
        fs.unlink(path)


def remove_tree(fs: Fs, path: Path) -> None:
    """Remove a directory and all in it, links as links; raises ``OSError`` as the calls do.

    ``NotADirectoryError`` where the path itself is a link: what it leads to is not touched.
    """
    if not stat.S_ISDIR(fs.lstat(path).st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    for name in sorted(fs.listdir(path)):
        entry = path / name
        if stat.S_ISDIR(fs.lstat(entry).st_mode):
            remove_tree(fs, entry)
        else:
            fs.unlink(entry)
    fs.rmdir(path)


def _progress(taken: int) -> int:
    if taken <= 0:
        raise OSError(errno.EIO, "the system wrote no bytes and gave no reason")
    return taken
