"""The only place that makes system calls on the store: a thin protocol, so that tests can fail any one.

Invariant: no other module opens, writes, syncs, renames or locks a store path except by way of an ``Fs``.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

_ALWAYS: Final = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Store files are never inherited by a child and never reached through a symbolic link; what is a pipe in the place of
one is not waited for."""

_NO_FULL_SYNC: Final = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOTTY, errno.ENODEV})
"""Errors of F_FULLFSYNC on file systems and devices that do not have it."""

_OTHERS: Final = 0o077
"""A file that is made without any of these is its owner's alone, also in a shared repository."""
_READ: Final = 0o444

LOCK_EXCLUSIVE: Final = fcntl.LOCK_EX | fcntl.LOCK_NB
LOCK_RELEASE: Final = fcntl.LOCK_UN


def shared_mode(mode: int, share: int) -> int:
    """Return the mode of a new file or folder in a shared repository, as git's ``calc_shared_perm`` has it.

    Args:
        mode: the mode that the umask gave it, with its type.
        share: the bits that are added, such as 0o660; negative: the whole mode. 0 changes nothing.
    """
    if not share:
        return stat.S_IMODE(mode)
    bits = abs(share)
    if not mode & stat.S_IWUSR:
        bits &= ~0o222
    if mode & stat.S_IXUSR:
        bits |= (bits & _READ) >> 2
    new = stat.S_IMODE(mode)
    new = (new & ~0o777) | bits if share < 0 else new | bits
    if stat.S_ISDIR(mode):
        new |= (new & _READ) >> 2
        if new & 0o060:
            new |= stat.S_ISGID
    return new


def _share(fd: int, parent: Path, share: int) -> None:
    """Give what was just made the group of the folder that it is in, and the mode that is shared."""
    made, group = os.fstat(fd), parent.stat().st_gid
    if made.st_gid != group:
        with contextlib.suppress(PermissionError):  # this user is not in that group
            os.fchown(fd, -1, group)
    mode = shared_mode(made.st_mode, share)
    if mode != stat.S_IMODE(os.fstat(fd).st_mode):
        with contextlib.suppress(PermissionError):  # it was made by another user, who gave it its mode
            os.fchmod(fd, mode)


def _keep_mode(source: Path, target: Path) -> None:
    """Give a file the mode and the group of the file that it is going to replace, as far as this user may."""
    try:
        old, new = os.lstat(target), os.lstat(source)
    except FileNotFoundError:
        return
    if not (stat.S_ISREG(old.st_mode) and stat.S_ISREG(new.st_mode)):
        return
    with contextlib.suppress(PermissionError):
        if old.st_gid != new.st_gid:
            os.chown(source, -1, old.st_gid, follow_symlinks=False)
        if stat.S_IMODE(old.st_mode) != stat.S_IMODE(new.st_mode):
            source.chmod(stat.S_IMODE(old.st_mode))


class Fs(Protocol):
    """The system calls that the store makes, one method each; each raises ``OSError`` as the call does."""

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        """Open a file and return its descriptor; a symbolic link as last component is refused (ELOOP)."""
        ...

    def close(self, fd: int) -> None:
        """Close a descriptor."""
        ...

    def read(self, fd: int, length: int) -> bytes:
        """Read up to ``length`` bytes; empty at the end of the file."""
        ...

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        """Read up to ``length`` bytes at ``offset``; empty at the end of the file."""
        ...

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write some or all of ``data``; return how many bytes were taken."""
        ...

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write some or all of ``data`` at ``offset``; return how many bytes were taken."""
        ...

    def fsync(self, fd: int) -> None:
        """Make the file's data and size durable."""
        ...

    def ftruncate(self, fd: int, length: int) -> None:
        """Set the file's size."""
        ...

    def fstat(self, fd: int) -> os.stat_result:
        """Return the status of an open file."""
        ...

    def lstat(self, path: Path) -> os.stat_result:
        """Return the status of a path; of the link itself if it is one."""
        ...

    def refusal_to_write(self, path: Path) -> int:
        """Return the ``errno`` that a write to this file or directory would meet, 0 for none. Changes nothing."""
        ...

    def replace(self, source: Path, target: Path, *, is_private: bool = False) -> None:
        """Rename, replacing a file (or an empty directory) at ``target`` in one step.

        A private file keeps its own mode and group: those of the target and of the repository do not count.
        """
        ...

    def link(self, source: Path, target: Path) -> None:
        """Make a hard link."""
        ...

    def symlink(self, target: str, path: Path) -> None:
        """Make a symbolic link."""
        ...

    def readlink(self, path: Path) -> str:
        """Return where a symbolic link leads, as it says; anything else is refused (EINVAL)."""
        ...

    def unlink(self, path: Path) -> None:
        """Remove a name of a file."""
        ...

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        """Make a directory."""
        ...

    def rmdir(self, path: Path) -> None:
        """Remove an empty directory."""
        ...

    def listdir(self, path: Path) -> list[str]:
        """Return the names in a directory, in no particular order."""
        ...

    def fsync_dir(self, path: Path) -> None:
        """Make the names in a directory durable."""
        ...

    def flock(self, fd: int, operation: int) -> None:
        """Take (``LOCK_EXCLUSIVE``, not waiting) or give back (``LOCK_RELEASE``) the lock on an open file."""
        ...


class RealFs:
    """The operating system. Interrupted calls are repeated by Python itself (PEP 475), except ``close``."""

    def __init__(
        self,
        full_sync: int | None = getattr(fcntl, "F_FULLFSYNC", None),
        *,
        shared: Callable[[Path], int] = lambda _: 0,
    ) -> None:
        """Make the layer.

        ``full_sync`` is the ``fcntl`` command that also empties the drive's cache; macOS has one. ``shared`` returns
        what ``core.sharedRepository`` says of what is made in a folder, as ``shared_mode`` takes it.
        """
        self._full_sync = full_sync
        self._shared = shared

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        """Open a file that is not a symbolic link; a new one gets the mode that is shared, unless it is private."""
        if not flags & os.O_CREAT:
            return os.open(path, flags | _ALWAYS, mode)
        while True:
            if not flags & os.O_EXCL:  # git, which is asked for the mode, is not started for a file that is there
                with contextlib.suppress(FileNotFoundError):
                    return os.open(path, (flags & ~os.O_CREAT) | _ALWAYS)
            share = self._shared(path.parent) if mode & _OTHERS else 0
            if not share:
                return os.open(path, flags | _ALWAYS, mode)
            try:
                fd = os.open(path, flags | os.O_EXCL | _ALWAYS, mode)
            except FileExistsError:
                if flags & os.O_EXCL:
                    raise
                continue  # another process made it just now: what is there now is opened, and a link is refused
            _share(fd, path.parent, share)
            return fd

    def close(self, fd: int) -> None:
        """Close a descriptor; an interrupted close has closed it, and another try could hit another file."""
        with contextlib.suppress(InterruptedError):
            os.close(fd)

    def read(self, fd: int, length: int) -> bytes:
        """Read from the descriptor's position."""
        return os.read(fd, length)

    def pread(self, fd: int, length: int, offset: int) -> bytes:
        """Read at an offset."""
        return os.pread(fd, length, offset)

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write at the descriptor's position, or at the end with ``O_APPEND``."""
        return os.write(fd, data)

    def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """Write at an offset; not for descriptors with ``O_APPEND``, where Linux ignores the offset."""
        return os.pwrite(fd, data, offset)

    def fsync(self, fd: int) -> None:
        """Sync to the medium: ``F_FULLFSYNC`` where there is one, else ``fsync``."""
        if self._full_sync is not None:
            try:
                fcntl.fcntl(fd, self._full_sync)
            except OSError as error:
                # Only "not available here" may fall back. After a real failure a second sync would report
                # success for pages that never reached the disk.
                if error.errno not in _NO_FULL_SYNC:
                    raise
            else:
                return
        os.fsync(fd)

    def ftruncate(self, fd: int, length: int) -> None:
        """Set the size."""
        os.ftruncate(fd, length)

    def fstat(self, fd: int) -> os.stat_result:
        """Return the status of an open file."""
        return os.fstat(fd)

    def lstat(self, path: Path) -> os.stat_result:
        """Return the status of a path without following a link."""
        return os.lstat(path)

    def refusal_to_write(self, path: Path) -> int:
        """Ask the system, which knows of mounts, permissions and lists of them; it does not say which it was."""
        if os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            return 0
        return errno.EROFS if os.statvfs(path).f_flag & os.ST_RDONLY else errno.EACCES

    def replace(self, source: Path, target: Path, *, is_private: bool = False) -> None:
        """Rename over the target; the file keeps the mode and the group of the target, or gets those that are shared.

        DuckDB makes its own files, which get the shared mode only here.
        """
        if not is_private:
            self.take_mode(source, target)
        source.replace(target)

    def take_mode(self, source: Path, target: Path) -> None:
        """Give a file the mode and the group of the one that it is to replace, or those that are shared."""
        share = self._shared(target.parent)
        if not share:
            _keep_mode(source, target)
        elif stat.S_ISREG(os.lstat(source).st_mode):
            fd = os.open(source, os.O_RDONLY | _ALWAYS)
            try:
                _share(fd, target.parent, share)
            finally:
                os.close(fd)

    def link(self, source: Path, target: Path) -> None:
        """Hard-link without following a symbolic link at ``source``."""
        os.link(source, target, follow_symlinks=False)

    def symlink(self, target: str, path: Path) -> None:
        """Make a symbolic link, unless the name is taken."""
        path.symlink_to(target)

    def readlink(self, path: Path) -> str:
        """Read a symbolic link, following none."""
        return os.readlink(path)  # noqa: PTH115 - asked on every request: a Path costs as much as the call

    def unlink(self, path: Path) -> None:
        """Remove a name."""
        path.unlink()

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        """Make a directory; the user's default permissions apply, or those that are shared, unless it is private."""
        path.mkdir(mode)
        share = self._shared(path.parent) if mode & _OTHERS else 0
        if share:
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _ALWAYS)
            try:
                _share(fd, path.parent, share)
            finally:
                os.close(fd)

    def rmdir(self, path: Path) -> None:
        """Remove an empty directory."""
        path.rmdir()

    def listdir(self, path: Path) -> list[str]:
        """Return the names in a directory."""
        return os.listdir(path)  # noqa: PTH208 - for every request: a Path of each entry costs more than the call

    def fsync_dir(self, path: Path) -> None:
        """Sync a directory; EINVAL says that this file system has no such thing, and only it is tolerated."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _ALWAYS)
        try:
            self.fsync(fd)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        finally:
            self.close(fd)

    def flock(self, fd: int, operation: int) -> None:
        """Lock or unlock by ``flock``: the kernel frees it when its holder dies."""
        fcntl.flock(fd, operation)
