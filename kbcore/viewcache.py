"""Where the published view of a branch lies, when it is written anew, and how it is replaced.

The cache may be deleted at any time, and may be unwritable: KB then works in memory. A published file is never
changed in place; a new one is built beside it and renamed over it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kbcore.errors import KBError
from kbcore.state import State
from kbcore.storage import files
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.view import base
from kbcore.view.database import ViewDamaged
from kbcore.view.fold import Entry
from kbcore.view.view import Basis, View

VIEW: Final = "view.duckdb"
_TAIL_ROWS: Final = 2000
_TAIL_SHARE: Final = 100
"""A tail is worth publishing from 2,000 rows on, and from a hundredth of a large base on: that bounds both what a
fresh process folds and what publishing costs per change."""


class ViewCache:
    """The view files of one branch, in one directory below ``.kb/cache``."""

    def __init__(self, fs: Fs, directory: Path) -> None:
        self._fs = fs
        self.directory = directory
        self.path = directory / VIEW
        self.notices: list[str] = []
        """What a person should hear of: a cache that contradicts the journal."""

    def open(self, head: Head) -> View | None:
        """Return a view on the published base, unless there is none that belongs to this head's history."""
        if files.read_size(self._fs, self.path) is None:
            return None
        try:
            view = base.open_base(str(self.path), self._temp_dir())
        except ViewDamaged:
            self.discard()
            return None
        basis = view.basis
        is_ours = basis.lineage == head.lineage
        if is_ours and basis.seq <= head.seq and (basis.seq < head.seq or basis.sum == head.hash):
            return view
        view.close()
        if is_ours:
            self._keep_witness(basis, head)
        return None

    def _keep_witness(self, basis: Basis, head: Head) -> None:
        """Keep a view that knows of records which the journal lacks: it is the second witness of a loss."""
        kept = self.directory / f"ahead-{basis.seq}.duckdb"
        self.notices.append(
            f"The cached view had seen record {basis.seq} ({basis.sum[:12]}); the journal now ends at {head.seq} "
            f"({head.hash[:12]}). The store was put back to an earlier state, or records are lost. The view is kept as "
            f"{kept.name} in {self.directory}."
        )
        with contextlib.suppress(OSError):
            self._fs.replace(self.path, kept)

    def build(self, head: Head, entries: Iterable[Entry], basis: Basis) -> View:
        """Return a view folded from the whole journal, published if the cache can be written."""
        target = self._new_file() if head.seq else None
        if target is None:
            return base.build(":memory:", self._temp_dir(), State(), entries, basis)
        try:
            view = base.build(str(target), self._temp_dir(), State(), entries, basis)
            self._fs.replace(target, self.path)
        except BaseException:
            files.remove_quietly(self._fs, target)
            raise
        return view

    def is_due(self, view: View) -> bool:
        """Tell whether the tail has grown long enough to be published."""
        if view.tail_rows + view.waiting_rows < _TAIL_ROWS:
            return False
        return view.tail_rows + view.waiting_rows >= view.base_rows() // _TAIL_SHARE

    def publish(self, view: View) -> None:
        """Write the view as the new base, if the cache can be written, and stand on it."""
        target = self._new_file()
        if target is None:
            return
        try:
            view.write_base(str(target))
            self._fs.replace(target, self.path)
            view.rebase(str(self.path))
        except BaseException:
            files.remove_quietly(self._fs, target)
            raise

    def discard(self) -> None:
        """Delete the published view; the next opening folds the journal again."""
        files.remove_quietly(self._fs, self.path)
        files.remove_quietly(self._fs, self.path.with_name(self.path.name + ".wal"))

    def _temp_dir(self) -> str:
        return str(self.directory / "spill")

    def _new_file(self) -> Path | None:
        """Return the name of a new file in the cache, or None when the cache cannot be written."""
        target = self.directory / f".view-{os.getpid()}-{secrets.token_hex(4)}.duckdb"
        try:
            for folder in (self.directory.parent, self.directory):
                if not files.is_directory(self._fs, folder):
                    self._fs.mkdir(folder)
            fd = self._fs.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            self._fs.close(fd)
            self._fs.unlink(target)
        except (OSError, KBError):
            return None
        return target
