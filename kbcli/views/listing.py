"""A long list between the view that answers it and the output that shows it.

Invariant: however long the list is, only a few MiB of it are in memory. It is written out after the view is given
back, so that a slow reader of the output holds nothing of the store, and an answer that had to begin again is not
shown twice.
"""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kbcore.errors import StorageError
from kbcore.limits import KIB, MIB

PAGE_ROWS: Final = 5_000
"""Rows that a whole list reads from the view at once."""
_IN_MEMORY_BYTES: Final = 8 * MIB
"""More than this is written to a file without a name, which ends with the process."""
_READ_BYTES: Final = 256 * KIB
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class Rows:
    """Values of JSON, kept in order. They can be read any number of times; each time all that was added before."""

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY_BYTES)  # noqa: SIM115 - as long as the rows
        weakref.finalize(self, self._file.close)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, row: Any) -> None:
        """Add a row. Raises: ``StorageError`` where the folder for temporary files takes no more."""
        try:
            self._file.write(_encode(row) + b"\n")
        except OSError as error:
            message = f"The list does not fit the folder for temporary files: {error.strerror}."
            hint = "Name another folder with TMPDIR, or ask for a page with --limit."
            raise StorageError(message, hint=hint) from error
        self._count += 1

    def __iter__(self) -> Iterator[Any]:
        """Yield the rows; each reader has a position of its own."""
        place = 0
        while True:
            self._file.seek(place)
            lines = self._file.readlines(_READ_BYTES)
            if not lines:
                return
            place = self._file.tell()
            yield from map(_decode, lines)
