"""The lock of a branch or of the repository: ``flock`` on a file that is never deleted, renamed or replaced.

Invariant: whoever is inside ``held`` is alone, among processes and threads, until it leaves or dies; the
kernel frees the lock with its holder, so nothing is ever stolen and nothing goes stale.

Those who wait form a queue, so that each gets its turn. One is next: it holds ``flock`` on the directory of the lock
file, and looks often whether the lock is free. The others look whether they are next, the more often the longer they
have waited. The queue decides who looks when, and nothing else: who was stopped while it was next delays the others for
``_PATIENCE_S``, and one that died has left the queue.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Self

import msgspec

from kbcore.clock import Clock
from kbcore.errors import KBError, LockTimeout, LockUnsupported
from kbcore.limits import LOCK_WAIT_S
from kbcore.process import interrupting
from kbcore.storage import files
from kbcore.storage.fs import LOCK_EXCLUSIVE, LOCK_RELEASE, Fs

_NEXT_PAUSE_S: Final = 0.001
"""Between two looks of the one that is next, at first."""
_SHARE_OF_NEXT: Final = 0.02
"""Its pauses are at least this share of the time for which it has been next."""
_FIRST_PAUSE_S: Final = 0.016
"""After the first look of one that has just come; the pauses get shorter, down to the shortest."""
_SHORTENED: Final = 0.7
_SHORTEST_PAUSE_S: Final = 0.008
_SHARE: Final = 0.01
"""They are at least this share of the time that was waited: who waits for long takes little of the processor."""
_LONGEST_PAUSE_S: Final = 0.02
_PATIENCE_S: Final = 0.5
"""After this long, one that is not next looks at the lock as well."""
_SPREAD: Final = 0.5
"""Pauses differ by up to this share either way, so that those who wait do not all look at the same moment."""
_HOLDER_BYTES: Final = 1024
"""Fixed, so that naming the holder is one write that needs no new disk block."""
_SHOWN_CHARS: Final = 64
_UNKNOWN_HOLDER: Final = "another process"
"""The holder of a lock whose file names none."""
_UNSUPPORTED: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})


class Holder(msgspec.Struct, frozen=True):
    """The process named in a lock file; only for messages."""

    command: str
    pid: int
    host: str
    since: str

    def __str__(self) -> str:
        """Say who it is in half a sentence."""
        return f"{self.command} (process {self.pid} on {self.host}, since {self.since})"


@contextlib.contextmanager
def held(
    fs: Fs,
    clock: Clock,
    path: Path,
    *,
    wait_s: float = LOCK_WAIT_S,
    command: str = "kb",
    meanwhile: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Hold the lock at ``path`` for the length of the block, waiting up to ``wait_s`` seconds for it.

    A fresh descriptor each time, so that threads of one process exclude each other too.

    Args:
        fs: the file system.
        clock: for the waiting, and for "since".
        path: the lock file; made if missing.
        wait_s: seconds; 0 tries once.
        command: what the holder calls itself in other processes' messages.
        meanwhile: called once if the lock is not free, when this process is next; what it does need not be done later,
            inside the block. It must not take long, and what it raises is raised here.

    Raises:
        LockTimeout: another process held it all that time; names the holder.
        Stopped: the work was asked to end while it waited.
        LockUnsupported: this file system cannot lock.
        StorageFull, ReadOnlyStore, StorageError: the lock file cannot be opened or written.
    """
    fd = _acquire(fs, clock, path, wait_s, meanwhile)
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
            raise refusal(f"{already}, by {read_holder(fs, path) or _UNKNOWN_HOLDER}.", data=other.data) from other
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
    """Return who holds the lock at this moment, in half a sentence; "" when there is none or it cannot be found out."""
    try:
        fd = fs.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        fs.flock(fd, LOCK_EXCLUSIVE)
        fs.flock(fd, LOCK_RELEASE)
    except BlockingIOError:
        return str(read_holder(fs, path) or _UNKNOWN_HOLDER)
    except OSError:
        return ""
    finally:
        files.close(fs, fd)
    return ""


def _acquire(fs: Fs, clock: Clock, path: Path, wait_s: float, meanwhile: Callable[[], None] | None) -> int:
    with _LockFile(fs, path) as file:
        if file.take() or (wait_s > 0 and _wait(fs, clock, file, wait_s, meanwhile)):
            return file.hand_over()
    holder = read_holder(fs, path)
    raise LockTimeout(
        f"{path} is held by {holder or _UNKNOWN_HOLDER}; waited {wait_s:g} s",
        data={"file": str(path), "holder": msgspec.to_builtins(holder)},
    )


def _wait(fs: Fs, clock: Clock, file: _LockFile, wait_s: float, meanwhile: Callable[[], None] | None) -> bool:
    """Wait until the lock is free, and take it; return False when the time is over."""
    start_s, pause_s, next_since_s = clock.monotonic_s(), _FIRST_PAUSE_S, 0.0
    until_s = start_s + wait_s
    with QueueLock(fs, file.path.parent) as queue:
        while True:
            now_s = clock.monotonic_s()
            waited_s = now_s - start_s
            if queue.take():
                next_since_s = waited_s
                if meanwhile:
                    meanwhile()
            is_last = now_s >= until_s
            if queue.is_held or not queue.is_possible or waited_s >= _PATIENCE_S or is_last:
                is_mine = file.take()
                if is_mine or is_last:
                    return is_mine
            interrupting.check()
            if queue.is_held:
                pause_s = max(_NEXT_PAUSE_S, _SHARE_OF_NEXT * (waited_s - next_since_s))
            else:
                pause_s = max(_SHORTEST_PAUSE_S, _SHORTENED * pause_s, _SHARE * waited_s)
            pause_s = min(pause_s, _LONGEST_PAUSE_S)
            spread = random.uniform(1 - _SPREAD, 1 + _SPREAD)  # noqa: S311 - no secret
            clock.sleep(min(pause_s * spread, until_s - now_s))


class _LockFile:
    """A lock file, which stays open between two attempts to lock it: opening it takes longer than an attempt."""

    def __init__(self, fs: Fs, path: Path) -> None:
        self._fs = fs
        self._fd: int | None = None
        self.path = path

    def take(self) -> bool:
        """Lock the file, unless another process has the lock; return whether it is locked now.

        Raises: what opening and locking it raise.
        """
        if self._fd is None:
            with files.explained(self.path, "open"):
                self._fd = self._fs.open(self.path, os.O_RDWR | os.O_CREAT)
        is_locked, is_in_place = _try(self._fs, self._fd, self.path)
        if not is_in_place:
            self._close()
        return is_locked and is_in_place

    def hand_over(self) -> int:
        """Return the descriptor, which the caller closes."""
        fd, self._fd = self._fd, None
        assert fd is not None  # noqa: S101 - for the type checker: the lock was taken
        return fd

    def _close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            files.close(self._fs, fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


class QueueLock:
    """A lock on a directory, for what one process at a time had better do. It protects nothing and is not waited for.

    Where a directory cannot be locked, as on some file systems, the lock is never taken.
    """

    def __init__(self, fs: Fs, directory: Path) -> None:
        self._fs = fs
        self._fd: int | None = None
        self.is_held = False
        with contextlib.suppress(OSError):
            self._fd = fs.open(directory, os.O_RDONLY | os.O_DIRECTORY)

    @property
    def is_possible(self) -> bool:
        """Tell whether anybody can have the lock, as far as is known."""
        return self._fd is not None

    def take(self) -> bool:
        """Take the lock if it is free; tell whether this call has taken it."""
        if self._fd is None or self.is_held:
            return False
        try:
            self._fs.flock(self._fd, LOCK_EXCLUSIVE)
        except BlockingIOError:
            return False
        except OSError:
            files.close(self._fs, self._fd)
            self._fd = None
            return False
        self.is_held = True
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None:
            with contextlib.suppress(OSError):
                self._fs.flock(self._fd, LOCK_RELEASE)  # a forked child may still have the descriptor
            files.close(self._fs, self._fd)


def _try(fs: Fs, fd: int, path: Path) -> tuple[bool, bool]:
    """Try to lock an open file, and return whether it is locked now, and whether it is still the file at this path."""
    is_locked = True
    try:
        try:
            fs.flock(fd, LOCK_EXCLUSIVE)
        except BlockingIOError:
            is_locked = False
        # The directory may have been moved away since the file was opened: then this is the lock of something else.
        return is_locked, _is_same_file(fs.fstat(fd), fs.lstat(path))
    except FileNotFoundError:
        return is_locked, False
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            reason = os.strerror(error.errno)
            raise LockUnsupported(f"cannot lock {path}: {reason}", data={"file": str(path)}) from error
        raise files.explain(error, path, "lock") from error


def _is_same_file(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
