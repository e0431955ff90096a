"""The scan stamps of one worktree, kept in ``.kb/cache``. Losing them costs a read of every file, nothing else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from kbcore import limits
from kbcore.errors import KBError
from kbcore.storage import files
from kbcore.storage.fs import Fs
from kbcore.sync.scan import FileStamp

_decode = msgspec.json.Decoder(dict[str, FileStamp]).decode
_MAX_BYTES = 256 * limits.MIB


def path_of(cache: Path, worktree: Path) -> Path:
    """Return where the stamps of a worktree are kept; each worktree has its own files, whatever the branch."""
    return cache / f"stamps-{hashlib.sha256(str(worktree).encode('utf-8', 'surrogateescape')).hexdigest()[:16]}.json"


def read_stamps(fs: Fs, path: Path) -> dict[str, FileStamp]:
    """Return the stamps; none when there are none that can be used."""
    try:
        data = files.read_file(fs, path, _MAX_BYTES)
        return _decode(data) if data else {}
    except (KBError, msgspec.DecodeError):
        return {}


def write_stamps(fs: Fs, path: Path, stamps: Mapping[str, FileStamp]) -> bool:
    """Keep the stamps for the next scan; returns whether the cache could be written."""
    try:
        if not files.is_directory(fs, path.parent):
            fs.mkdir(path.parent)
        files.publish_file(fs, path, msgspec.json.encode(stamps))
    except (OSError, KBError):
        return False
    return True
