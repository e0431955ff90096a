"""File systems that misbehave: one call fails, the process ends at one call, or syncing is left out."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from kbcore.storage.fs import RealFs

WRITES = frozenset({"write", "pwrite"})
_AT_CWD = -100
_EXCHANGE = 2
_LIBC = ctypes.CDLL(None, use_errno=True)


def exchange(one: Path, other: Path) -> None:
    """Let two files have each other's names, in one step. Raises: ``OSError``."""
    if _LIBC.renameat2(_AT_CWD, os.fsencode(one), _AT_CWD, os.fsencode(other), _EXCHANGE):
        raise OSError(ctypes.get_errno(), "cannot exchange", str(one))


class Crash(BaseException):
    """The process ended here. Not an ``Exception``, so nothing in the code under test can go on after it."""


class NoSyncFs(RealFs):
    """The operating system without its syncs, for tests that commit a lot in one process."""

    def fsync(self, fd: int) -> None:
        """Do nothing."""

    def fsync_dir(self, path: Path) -> None:
        """Do nothing."""

    def replace(self, source: Path, target: Path, *, is_private: bool = False) -> None:
        """Rename in one step, but not over a file: ext4 would sync the new file, and that is most of the time.

        The two files exchange their names instead, and the old one is removed.
        """
        if target.is_file():
            if not is_private:
                self.take_mode(source, target)
            exchange(source, target)
            source.unlink()
        else:
            super().replace(source, target, is_private=is_private)


class LoggingFs:
    """Passes every call on and keeps its name and, where there is one, the name of its file."""

    def __init__(self, inner: Any = None) -> None:
        self.inner = inner or RealFs()
        self.calls: list[tuple[str, str]] = []
        self.names: dict[int, str] = {}

    def __getattr__(self, kind: str) -> Callable[..., Any]:
        method = getattr(self.inner, kind)

        def call(*args: Any, **options: Any) -> Any:
            name = args[-1].name if hasattr(args[-1], "name") else ""
            first = args[0]
            subject = self.names.get(first, "") if isinstance(first, int) else name or first.name
            self.calls.append((kind, subject))
            return self._run(kind, partial(method, **options) if options else method, args)

        return call

    def _run(self, kind: str, method: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        result = method(*args)
        if kind == "open":
            self.names[result] = args[0].name
        elif kind == "close":
            self.names.pop(args[0], None)
        return result

    def close_all(self) -> None:
        """Close what a crashed user of this file system left open, as the kernel would."""
        for fd in list(self.names):
            os.close(fd)
        self.names.clear()


class FailingFs(LoggingFs):
    """Fails the ``at``-th call (from 0): before it, after it, or, for a write, after half of its bytes.

    ``lasting`` fails every later call too, except ``close``.
    """

    def __init__(
        self, at: int, code: int = errno.EIO, *, when: str = "before", lasting: bool = False, inner: Any = None
    ) -> None:
        super().__init__(inner)
        self.at = at
        self.code = code
        self.when = when
        self.lasting = lasting

    def _run(self, kind: str, method: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        index = len(self.calls) - 1
        is_here = index == self.at
        if not is_here and not (self.lasting and index > self.at and kind != "close"):
            return super()._run(kind, method, args)
        if self.when == "after" or (kind == "close" and not is_here):
            super()._run(kind, method, args)
        elif self.when == "half" and kind in WRITES:
            method(args[0], bytes(args[1])[: len(args[1]) // 2], *args[2:])
        raise self.failure(kind)

    def failure(self, kind: str) -> BaseException:
        """Return what the call raises."""
        return OSError(self.code, os.strerror(self.code))


class CrashingFs(FailingFs):
    """Ends the process at the ``at``-th call: nothing that comes after it reaches the disk."""

    def __init__(self, at: int, *, when: str = "before", inner: Any = None) -> None:
        super().__init__(at, when=when, inner=inner)

    def _run(self, kind: str, method: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if len(self.calls) - 1 > self.at:
            raise Crash
        return super()._run(kind, method, args)

    def failure(self, kind: str) -> BaseException:
        """Return what the call raises."""
        return Crash()
