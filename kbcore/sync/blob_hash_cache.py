"""The SHA-256 of contents by their names in git, kept in the cache: one spares the other, which would be read.

Both mean the same bytes for ever, so no entry becomes stale. Losing it costs a read of every document that git
keeps, nothing else; a file that another version wrote, or that is damaged, counts as none.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from kbcore import limits
from kbcore.errors import KBError
from kbcore.storage import files
from kbcore.storage.fs import Fs
from kbcore.sync.stamps import write_cached

_NAME: Final = "blobs.json"
_FORMAT: Final = 1
"""Raised whenever an entry means something else."""

_MAX_BYTES: Final = 256 * limits.MIB
_WORTH_WRITING: Final = 500
_WORTH_BYTES: Final = limits.MIB
"""The least number of new contents, or of bytes in them, for which the file is written: fewer are read in no time."""


class _Kept(msgspec.Struct, frozen=True):
    """The file: hex digits by hex digits."""

    format: int
    sums: dict[str, str]


_decode = msgspec.json.Decoder(_Kept).decode


class BlobSums:
    """The known contents. Read when first asked."""

    def __init__(self, fs: Fs, cache: Path) -> None:
        """Take the folder of the cache, which need not exist."""
        self._fs = fs
        self._path = cache / _NAME
        self._read: dict[str, str] | None = None
        self._new: dict[str, str] = {}
        self._new_bytes = 0

    def known(self, name: str) -> str | None:
        """Return the SHA-256 of a content by its name in git, as far as it is known."""
        if self._read is None:
            self._read = self._read_file()
        return self._new.get(name) or self._read.get(name)

    def learn(self, sums: Mapping[str, str], length_bytes: int = 0) -> None:
        """Take in what was read, contents of this length together."""
        self._new |= sums
        self._new_bytes += length_bytes

    def keep(self, names: Mapping[str, object]) -> None:
        """Write what is known of these names for the next time, where much of it is new."""
        if len(self._new) < _WORTH_WRITING and self._new_bytes < _WORTH_BYTES:
            return
        found = ((name, self.known(name)) for name in names)
        write_cached(
            self._fs, self._path, msgspec.json.encode(_Kept(_FORMAT, {name: known for name, known in found if known}))
        )
        self._read = {**(self._read or {}), **self._new}
        self._new, self._new_bytes = {}, 0

    def _read_file(self) -> dict[str, str]:
        try:
            data = files.read_file(self._fs, self._path, _MAX_BYTES)
            kept = _decode(data) if data else _Kept(_FORMAT, {})
        except (KBError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        return kept.sums if kept.format == _FORMAT else {}
