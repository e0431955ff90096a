"""The file with the index of the changes of a branch: opened by each thread, brought to a head, replaced if damaged."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from kbcore.errors import ViewDamaged
from kbcore.storage import scan
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.view import claim_filling, redacted_changes
from kbcore.view.cache_files import CLAIMS, CacheFiles
from kbcore.view.claim_database import IndexNotWritten
from kbcore.view.claim_index import ClaimIndex

T = TypeVar("T")


class BranchClaims:
    """The index of the changes of one branch in one process, opened once by each thread that asks for it."""

    def __init__(self, fs: Fs, directory: Path, files: CacheFiles) -> None:
        self._fs = fs
        self._directory = directory
        self._files = files.for_other_files()
        self.path = files.directory / CLAIMS
        self._of_thread = threading.local()
        self._is_left = False
        """The file is damaged, and cannot be deleted: it is not read."""

    def read(self, use: Callable[[ClaimIndex, int], T]) -> T:
        """Return ``use(index, seq)`` at the last acknowledged head.

        Raises: ``LockTimeout``; what reading the journal raises.
        """

        def at(head: Head) -> T:
            try:
                return use(self.at(head), head.seq)
            except ViewDamaged:
                return use(self.at(head), head.seq)

        return scan.reading(self._fs, self._directory, at)

    def at(self, head: Head) -> ClaimIndex:
        """Return the index, which has all records up to a head at least.

        One that is damaged, as is seen now or was at an earlier use, is made again; where the cache cannot be written,
        or the disk is full or fails, it is made in memory.

        Raises: ``LockTimeout``; what reading the journal raises.
        """
        try:
            return self._updated(head)
        except IndexNotWritten:
            self._close()
            self._of_thread.index = self._in_memory()
            return self._updated(head)
        except ViewDamaged as error:
            self._discard(error)
            return self._updated(head)

    def _close(self) -> None:
        index: ClaimIndex | None = getattr(self._of_thread, "index", None)
        if index is not None:
            index.database.close()
            del self._of_thread.index

    def _in_memory(self) -> ClaimIndex:
        """Return a copy of the file in memory, or an empty index where the file cannot be read."""
        with contextlib.suppress(ViewDamaged):
            return ClaimIndex(f"{self.path.as_uri()}?mode=ro").copied()
        return ClaimIndex(":memory:")

    def _discard(self, error: ViewDamaged) -> None:
        """Throw away the file, or leave it alone where it cannot be deleted."""
        self._close()
        self._files.discard_damaged(self.path, error)
        self._is_left = not self._files.is_writable()

    def _updated(self, head: Head) -> ClaimIndex:
        index: ClaimIndex | None = getattr(self._of_thread, "index", None)
        if index is not None and index.database.is_damaged:
            raise ViewDamaged("it was damaged when it was read")
        if index is None:
            self._of_thread.index = index = self._new_index(head)
        claim_filling.update(index, self._fs, self._directory, head)
        index.taken_out = redacted_changes.noted(self._fs, self._directory.parent)
        return index

    def _new_index(self, head: Head) -> ClaimIndex:
        """Return an index to be brought to a head: the file, or a copy of it in memory where it cannot be written."""
        if self._files.is_writable():
            return ClaimIndex(str(self.path))
        if self._is_left or self._files.usable_size(self.path) is None:
            return ClaimIndex(":memory:")
        found = ClaimIndex(f"{self.path.as_uri()}?mode=ro")
        return found if found.database.has(head) else found.copied()
