"""Linux's own notices of changed files, by inotify. The only module that calls the C library.

A listener sleeps until the kernel has something for it. Folders that come later are listened to as well; what they hold
already is reported. What may have been missed ends the listener.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

IS_AVAILABLE: Final = sys.platform == "linux"

_MODIFY, _ATTRIB, _CLOSE_WRITE, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x8, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_OVERFLOW, _IGNORED, _IS_FOLDER = 0x4000, 0x8000, 0x40000000
_ONLY_FOLDERS, _NO_LINKS = 0x01000000, 0x02000000
_WANTED: Final = (
    _MODIFY | _ATTRIB | _CLOSE_WRITE | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
)
_EVENT: Final = struct.Struct("iIII")
_READ_BYTES: Final = 256 * 1024

_QUIET_MS: Final = 5
"""Changes are handed on when none has followed for so long."""
_GROUP_MS: Final = 50
"""They are handed on after so long although more follow."""

_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP})
_REASONS: Final = {
    errno.ENOSPC: "the system has no more watches (fs.inotify.max_user_watches)",
    errno.EMFILE: "the system has no more listeners (fs.inotify.max_user_instances)",
}


class Listener:
    """Listens to folders; with ``is_deep`` also to everything below them, without following links there.

    Raises: ``OSError`` when the system refuses.
    """

    def __init__(self, folders: Sequence[Path], *, is_deep: bool) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._add_watch = library.inotify_add_watch
        self._remove_watch = library.inotify_rm_watch
        self._is_deep = is_deep
        self._folders: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._fd = library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._fd < 0:
            raise _refusal()
        try:
            for folder in folders:
                self._listen_to(str(folder), 0)
                if is_deep:
                    self._listen_below(str(folder))
        except BaseException:
            os.close(self._fd)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def take(self) -> set[str] | None:
        """Return the paths at which something changed by now, without waiting; None when events were lost."""
        changed: set[str] = set()
        waits = select.poll()
        waits.register(self._fd, select.POLLIN)
        while waits.poll(0):
            if not self._read(changed):
                return None
        return changed

    def close(self) -> None:
        """Stop listening."""
        os.close(self._fd)

    def changes(self, stop_fd: int) -> Iterator[set[str]]:
        """Yield the paths at which something changed, in groups, until something can be read from ``stop_fd``.

        It ends as well when the kernel had more to report than it could keep.
        """
        waits = select.poll()
        waits.register(self._fd, select.POLLIN)
        waits.register(stop_fd, select.POLLIN)
        while True:
            changed: set[str] = set()
            left_ms = _GROUP_MS
            wait_ms: int | None = None
            while ready := waits.poll(wait_ms):
                if any(fd == stop_fd for fd, _ in ready):
                    return
                if not self._read(changed):
                    yield changed
                    return
                if changed:
                    wait_ms, left_ms = min(_QUIET_MS, left_ms), left_ms - _QUIET_MS
                    if left_ms < 0:
                        break
            yield changed

    def _read(self, changed: set[str]) -> bool:
        """Add the paths of the events that wait; return False when events were lost."""
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return True
        at = 0
        while at < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size + length
            if mask & _OVERFLOW:
                return False
            folder = self._folders.get(watch)
            if folder is None:
                continue
            name = os.fsdecode(data[at - length : at].rstrip(b"\0"))
            path = f"{folder}/{name}" if name else folder
            if mask & _IGNORED:
                self._forget(watch, folder)
                continue
            changed.add(path)
            if self._is_deep and mask & _IS_FOLDER and name:
                if mask & (_MOVED_FROM | _DELETE):
                    self._leave(path)
                elif path not in self._watches:
                    self._listen_to(path, _NO_LINKS)
                    changed |= self._listen_below(path)
        return True

    def _listen_to(self, folder: str, flags: int) -> bool:
        """Have changes of one folder reported; return False when it is not there or may not be read."""
        watch = self._add_watch(self._fd, os.fsencode(folder), _WANTED | _ONLY_FOLDERS | flags)
        if watch < 0:
            refusal = _refusal()
            if refusal.errno in _GONE:
                return False
            raise refusal
        self._folders[watch] = folder
        self._watches[folder] = watch
        return True

    def _listen_below(self, folder: str) -> set[str]:
        """Listen to all folders below one that is listened to; return the paths of everything there."""
        found: set[str] = set()
        ahead = [folder]
        while ahead:
            try:
                with os.scandir(ahead.pop()) as entries:
                    for entry in entries:
                        found.add(entry.path)
                        if entry.is_dir(follow_symlinks=False) and self._listen_to(entry.path, _NO_LINKS):
                            ahead.append(entry.path)
            except OSError as error:
                if error.errno not in _GONE:
                    raise
        return found

    def _leave(self, folder: str) -> None:
        """Listen no more to a folder that was moved away or deleted, nor to what was below it."""
        below = f"{folder}/"
        for path in [path for path in self._watches if path == folder or path.startswith(below)]:
            watch = self._watches[path]
            self._remove_watch(self._fd, watch)
            self._forget(watch, path)

    def _forget(self, watch: int, folder: str) -> None:
        if self._folders.get(watch) == folder:
            del self._folders[watch]
        if self._watches.get(folder) == watch:
            del self._watches[folder]


def _refusal() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, _REASONS.get(number, os.strerror(number)))
