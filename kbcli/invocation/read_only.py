"""A file system on which nothing can be written, for the commands that promise to write nothing."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

from kbcore.storage.fs import Fs

_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _refuse(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS))


class ReadOnlyFs:
    """Passes reading on; every call that would change something fails as on a read-only mount."""

    write = pwrite = fsync = ftruncate = staticmethod(_refuse)
    replace = link = symlink = unlink = mkdir = rmdir = fsync_dir = staticmethod(_refuse)

    def __init__(self, fs: Fs) -> None:
        self.close = fs.close
        self.read = fs.read
        self.pread = fs.pread
        self.fstat = fs.fstat
        self.lstat = fs.lstat
        self.readlink = fs.readlink
        self.refusal_to_write = fs.refusal_to_write
        self.listdir = fs.listdir
        self.flock = fs.flock
        """Changes no file: it only names the writer. ``lock.held`` opens its file for writing, and is refused there."""
        self._open = fs.open

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        """Open a file for reading."""
        if flags & _WRITING:
            _refuse(path)
        return self._open(path, flags, mode)
