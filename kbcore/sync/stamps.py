"""The scan stamps of one worktree, kept in the cache. Losing them costs a read of every file, nothing else.

So nothing is synced, and a file that another version wrote, or that is damaged, counts as none.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kbcore import limits
from kbcore.errors import KBError
from kbcore.storage import files
from kbcore.storage.fs import Fs
from kbcore.sync.scan import FileStamp

_FORMAT: Final = 2
"""Raised whenever a stamp means something else."""

_MAX_BYTES: Final = 256 * limits.MIB


class _Kept(msgspec.Struct, frozen=True):
    """A file of stamps: each by the path of its file."""

    format: int
    stamps: dict[str, FileStamp]


_decode = msgspec.json.Decoder(_Kept).decode


def stamps_file(cache: Path, worktree: Path) -> Path:
    """Return where the stamps of a worktree are kept; each worktree has its own files, whatever the branch."""
    return cache / f"stamps-{mark_of(worktree)}.json"


def mark_of(worktree: Path) -> str:
    """Return the mark of a worktree in the names of files that are its own."""
    return hashlib.sha256(str(worktree).encode("utf-8", "surrogateescape")).hexdigest()[:16]


def read_stamps(fs: Fs, path: Path) -> dict[str, FileStamp]:
    """Return the stamps; none when there are none that can be used."""
    try:
        data = files.read_file(fs, path, _MAX_BYTES)
        kept = _decode(data) if data else _Kept(_FORMAT, {})
    except (KBError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return kept.stamps if kept.format == _FORMAT else {}


def write_stamps(fs: Fs, path: Path, stamps: Mapping[str, FileStamp]) -> bool:
    """Keep the stamps for the next scan; returns whether the cache could be written."""
    return write_cached(fs, path, msgspec.json.encode(_Kept(_FORMAT, dict(stamps))))


def write_cached(fs: Fs, path: Path, data: bytes) -> bool:
    """Replace a file in the cache, whose folder need not exist; returns whether the cache could be written.

    Syncs that run at the same time each write a file of their own, and the last one to rename it stays.
    """
    fresh = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        for folder in (path.parent.parent, path.parent):
            if not files.is_directory(fs, folder):
                fs.mkdir(folder)
        with files.opened(fs, fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
            files.write_all(fs, fd, data)
        fs.replace(fresh, path)
    except (OSError, KBError):
        files.remove_quietly(fs, fresh)
        return False
    return True
