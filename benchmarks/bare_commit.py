"""The floor of a commit: what makes the same bytes durable, and nothing else.

It appends to a file and syncs it, renames a small file over another, and syncs the directory.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.support.repository.places import stores_at

_TAIL_BYTES = 64 * 1024
"""The last record is in them: it is an upsert or one edit. What is measured next would count a journal read whole."""


class BareCommit:
    """Commits of the length of a store's last record, in a directory of the same file system."""

    def __init__(self, like: Path, directory: Path) -> None:
        """Take the lengths of a record and of the head from the store of a repository; make the directory."""
        branch = stores_at(like) / "main"
        with max(branch.glob("journal-*.jsonl")).open("rb") as lines:
            lines.seek(-min(_TAIL_BYTES, lines.seek(0, os.SEEK_END)), os.SEEK_END)
            self._line = lines.read().splitlines(keepends=True)[-1]
        self._head = (branch / "head.json").read_bytes()
        directory.mkdir()
        self._directory = directory
        self._journal = os.open(directory / "journal", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def __call__(self) -> None:
        """Append, sync, rename, sync the directory."""
        os.write(self._journal, self._line)
        os.fsync(self._journal)
        new = self._directory / "head.new"
        new.write_bytes(self._head)
        new.replace(self._directory / "head")
        folder = os.open(self._directory, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)

    def close(self) -> None:
        """Remove all of it."""
        os.close(self._journal)
        shutil.rmtree(self._directory)
