"""Renames whose files are being written: noted before the first file is, so that a crash in between loses nothing.

The files alone need not say that an entity was renamed: a manifest has no place for former ids, and some entities have
no file. A sync that finds a file as a rename writes it takes the note for what the files do not say. The note is in
the cache, one for each worktree. It is removed when its renames are recorded, by what made them or by the sync that
records them or finds them recorded.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kbcore import limits
from kbcore.errors import KBError
from kbcore.storage import files
from kbcore.storage.fs import Fs
from kbcore.sync.stamps import mark_of

_MAX_BYTES: Final = 64 * limits.MIB


class BegunRename(msgspec.Struct, frozen=True):
    """A rename that began; ``written`` maps each of its files to the SHA-256 of what is written into it."""

    old: str
    new: str
    former: tuple[str, ...]
    """The former ids that the entity has afterwards."""
    written: dict[str, str]

    def is_seen(self, found: Iterable[tuple[str, str]]) -> bool:
        """Return whether one of these files, each with its SHA-256, is as the rename writes it."""
        return any(self.written.get(path) == hash_ for path, hash_ in found)

    def is_recorded(self, ids: Collection[str]) -> bool:
        """Return whether the rename is recorded where these entities exist, of its two ids."""
        return self.new in ids and self.old not in ids


_decode = msgspec.json.Decoder(tuple[BegunRename, ...]).decode


def begun(old: str, new: str, former: tuple[str, ...], contents: Iterable[tuple[str, bytes]]) -> BegunRename:
    """Return the note on a rename that writes these files."""
    return BegunRename(old, new, former, {path: hashlib.sha256(data).hexdigest() for path, data in contents})


def _path(cache: Path, worktree: Path) -> Path:
    return cache / f"renaming-{mark_of(worktree)}.json"


def read_begun(fs: Fs, cache: Path, worktree: Path) -> tuple[BegunRename, ...]:
    """Return the renames that began last and are not known to be recorded; none where the note is lost."""
    try:
        data = files.read_file(fs, _path(cache, worktree), _MAX_BYTES)
        return _decode(data) if data else ()
    except (KBError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()


def note_begun(fs: Fs, cache: Path, worktree: Path, renames: Sequence[BegunRename]) -> None:
    """Note renames durably, before their files are written; without a cache that can be written there is no note."""
    with contextlib.suppress(KBError):
        for folder in (cache.parent, cache):
            if not files.is_directory(fs, folder):
                files.make_directory(fs, folder)
        files.publish_file(fs, _path(cache, worktree), msgspec.json.encode(renames))


def forget_begun(fs: Fs, cache: Path, worktree: Path, renames: Sequence[BegunRename]) -> None:
    """Remove the note of these renames: they are recorded, or nothing of them is left. The note of later ones stays."""
    if read_begun(fs, cache, worktree) == tuple(renames):
        files.remove_quietly(fs, _path(cache, worktree))
