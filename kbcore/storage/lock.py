"""The lock of a branch or of the repository: ``flock`` on a file that is never deleted, renamed or replaced.

Invariant: whoever is inside ``held`` is alone, among processes and threads, until it leaves or dies; the
kernel frees the lock with its holder, so nothing is ever stolen and nothing goes stale.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from kbcore import interrupting
from kbcore.clock import Clock
from kbcore.errors import KBError, LockTimeout, LockUnsupported
from kbcore.limits import LOCK_WAIT_S
from kbcore.storage import files
from kbcore.storage.fs import LOCK_EXCLUSIVE, LOCK_RELEASE, Fs

_FIRST_PAUSE_S: Final = 0.001
_LONGEST_PAUSE_S: Final = 0.02
_SPREAD: Final = 0.5
"""Pauses differ by up to this share either way, so that those who wait do not all look at the same moment."""
_HOLDER_BYTES: Final = 1024
"""Fixed, so that naming the holder is one write that needs no new disk block."""
_SHOWN_CHARS: Final = 64
_SOMEBODY: Final = "another process"
"""Who holds a lock whose file names nobody."""
_UNSUPPORTED: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})


class Holder(msgspec.Struct, frozen=True):
    """Who wrote its name into a lock file; only for messages."""

    command: str
    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        """Say who it is in half a sentence."""
        return f"{self.command} (process {self.pid} on {self.host}, since {self.since})"


@contextlib.contextmanager
def held(fs: Fs, clock: Clock, path: Path, *, wait_s: float = LOCK_WAIT_S, command: str = "kb") -> Iterator[None]:
    """Hold the lock at ``path`` for the length of the block, waiting up to ``wait_s`` seconds for it.

    A fresh descriptor each time, so that threads of one process exclude each other too.

    Args:
        fs: the file system.
        clock: for the waiting, and for "since".
        path: the lock file; made if missing.
        wait_s: seconds; 0 tries once.
        command: what the holder calls itself in other processes' messages.

    Raises:
        LockTimeout: somebody held it all that time; names the holder.
        Stopped: the work was asked to end while it waited.
        LockUnsupported: this file system cannot lock.
        StorageFull, ReadOnlyStore, StorageError: the lock file cannot be opened or written.
    """
    fd = _acquire(fs, clock, path, wait_s)
    try:
        with files.explained(path, "write the holder's name to"):
            fs.pwrite(fd, describe(clock, command), 0)
        yield
    finally:
        # Both, because a forked child that still has the descriptor would keep the lock past the close.
        # Neither may hide how the block ended: what it wrote is durable already.
        with contextlib.suppress(OSError):
            fs.flock(fd, LOCK_RELEASE)
        files.close(fs, fd)


@contextlib.contextmanager
def alone(fs: Fs, clock: Clock, path: Path, *, command: str, refusal: type[KBError], already: str) -> Iterator[None]:
    """Hold the lock of work that is done by one process at a time and is not waited for.

    Raises: ``refusal``, which says what is done ``already``, and by whom; otherwise as ``held``.
    """
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(held(fs, clock, path, wait_s=0, command=command))
        except LockTimeout as other:
            raise refusal(f"{already}, by {read_holder(fs, path) or _SOMEBODY}.", data=other.data) from other
        yield


def describe(clock: Clock, command: str) -> bytes:
    """Return the content of a lock file held by this process."""
    holder = Holder(command[:_SHOWN_CHARS], os.getpid(), os.uname().nodename[:_SHOWN_CHARS], clock.now())
    return msgspec.json.encode(holder).ljust(_HOLDER_BYTES - 1) + b"\n"


def read_holder(fs: Fs, path: Path) -> Holder | None:
    """Return who last took the lock, or None if the file does not say."""
    try:
        return msgspec.json.decode(files.read_file(fs, path, 2 * _HOLDER_BYTES) or b"", type=Holder)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KBError):
        return None


def live_holder(fs: Fs, path: Path) -> str:
    """Return who holds the lock at this moment, in half a sentence; "" when nobody does or that cannot be found out."""
    try:
        fd = fs.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        fs.flock(fd, LOCK_EXCLUSIVE)
        fs.flock(fd, LOCK_RELEASE)
    except BlockingIOError:
        return str(read_holder(fs, path) or _SOMEBODY)
    except OSError:
        return ""
    finally:
        files.close(fs, fd)
    return ""


def _acquire(fs: Fs, clock: Clock, path: Path, wait_s: float) -> int:
    deadline_s = clock.monotonic_s() + wait_s
    pause_s = _FIRST_PAUSE_S
    while True:
        fd = _try(fs, path)
        if fd is not None:
            return fd
        interrupting.check()
        left_s = deadline_s - clock.monotonic_s()
        if left_s <= 0:
            holder = read_holder(fs, path)
            raise LockTimeout(
                f"{path} is held by {holder or _SOMEBODY}; waited {wait_s:g} s",
                data={"file": str(path), "holder": msgspec.to_builtins(holder)},
            )
        clock.sleep(min(pause_s * random.uniform(1 - _SPREAD, 1 + _SPREAD), left_s))  # noqa: S311 - no secret
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _try(fs: Fs, path: Path) -> int | None:
    with files.explained(path, "open"):
        fd = fs.open(path, os.O_RDWR | os.O_CREAT)
    try:
        fs.flock(fd, LOCK_EXCLUSIVE)
        # The directory may have been moved away while we waited: then this is the lock of something else.
        is_mine = _is_same_file(fs.fstat(fd), fs.lstat(path))
    except (BlockingIOError, FileNotFoundError):
        is_mine = False
    except OSError as error:
        files.close(fs, fd)
        if error.errno in _UNSUPPORTED:
            reason = os.strerror(error.errno)
            raise LockUnsupported(f"cannot lock {path}: {reason}", data={"file": str(path)}) from error
        raise files.explain(error, path, "lock") from error
    if is_mine:
        return fd
    files.close(fs, fd)
    return None


def _is_same_file(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
