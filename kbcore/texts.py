"""Text search of one branch: its index, kept in the cache and caught up with the view that is asked.

The index is built by the first search that needs it, never by a write. It is published as the view is: under a
temporary name, then renamed, and never changed after. Losing it costs time, and one that is damaged is thrown away.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

from kbcore import interrupting, limits
from kbcore.errors import ResourceLimit, StorageError, ViewDamaged
from kbcore.model import Node
from kbcore.query.text.tables import Index
from kbcore.storage import files
from kbcore.storage.fs import Fs
from kbcore.view import textdocuments, texttables
from kbcore.view.textdocuments import Reader
from kbcore.view.view import View
from kbcore.viewcache import TEXT, ViewCache

BODIES: Final = ".bodies.duckdb"
"""Beside the folders of the branches, whose names never begin with a dot."""

_TAIL_ROWS: Final = 32
_SHARE: Final = 100
"""The tail is worth publishing from so many entities on, and from a hundredth of a large index on: every process that
begins takes the words of all of them apart again, but publishing only copies what is known."""
_FEW_BODIES: Final = 1000
"""With so many kept documents a new one is kept at once, of more when they are a hundredth of the rest."""
_SHOWN_CHARS: Final = 200_000
"""As much of a document is looked at for a snippet."""


class _Indexes:
    """The seqs that the two indexes in a view's database are of, None where there is none."""

    def __init__(self) -> None:
        self.seq: int | None = None
        self.past: int | None = None


class BranchTexts:
    """What one process knows of the text index of a branch. Each view has an index of its own, for one thread."""

    def __init__(self, fs: Fs, cache: ViewCache) -> None:
        self._fs = fs
        self._cache = cache
        self.path = cache.directory / TEXT
        self.bodies_path = cache.directory.parent / BODIES
        self._is_refusing = False
        self._known = weakref.WeakKeyDictionary[View, _Indexes]()

    def index(self, view: View, at: int | None, read: Reader) -> Index:
        """Return an index of the entities of a view, as of a seq.

        ``read`` reads documents. Those that were not at hand before are tried again, once for each state of the branch.
        """
        known = self._known.get(view)
        if known is None:
            self._open_bodies(view)
            known = self._known[view] = _Indexes()
        with interrupting.maintenance():
            if at is None:
                self._bring_to_head(view, known, read)
                return texttables.WHOLE
            if known.past != at:
                known.past = None
                texttables.fill_past(view, at, read)
                known.past = at
            return texttables.PAST

    def bodies(self, view: View, entities: Sequence[Node], at: int | None, read: Reader) -> Mapping[str, str]:
        """Return the documents that state these entities as of a seq, by id, as far as they are at hand."""
        paths = sorted({node.path for node in entities if node.path})
        if not paths:
            return {}
        hashes = textdocuments.hashes(view, paths, at)
        found = textdocuments.bodies(view, sorted(set(hashes.values())), _SHOWN_CHARS)
        gone = [(path, digest) for path, digest in hashes.items() if digest not in found]
        found |= dict(read(gone))
        return {node.id: found[hashes[node.path]] for node in entities if hashes.get(node.path, "") in found}

    def forget(self, held: Collection[str], *, dry_run: bool = False) -> int:
        """Drop the kept documents but those with these hashes, and return how many those are."""
        length_bytes = self._size_of(self.bodies_path)
        target = self._new_file() if length_bytes is not None and not dry_run else None
        if length_bytes is None or (target is None and not dry_run):
            return 0
        path = str(self.bodies_path)
        try:
            gone = textdocuments.forget(path, str(target or ""), sorted(held), self._cache.room, length_bytes)
        except ViewDamaged:
            gone = 0
        if target and gone:
            self._move_in(target, self.bodies_path)
        elif target:
            self._discard(target)
        return gone

    def distrust(self) -> None:
        """Throw away the files: something that was read in a search is damaged."""
        self._known.clear()
        self._discard(self.path, self.bodies_path)

    def _bring_to_head(self, view: View, known: _Indexes, read: Reader) -> None:
        seq, known.seq = known.seq, None
        is_first = seq is None
        if is_first:
            seq = self._open(view)
        if seq is None:
            self._build(view, read)
        elif is_first or seq != view.seq:
            texttables.catch_up(view, seq, read)
            self._publish(view, read)
        known.seq = view.seq

    def _publish(self, view: View, read: Reader) -> None:
        """Write anew what enough came after: the index, and the documents that are kept.

        What is in no record is in no file either.
        """
        if view.is_overlaid:
            return
        touched, rows = texttables.tail_share(view)
        if touched >= max(_TAIL_ROWS, rows // _SHARE) and (target := self._new_file()):
            if self._is_written(target, lambda: texttables.merge(view, str(target))):
                self._move_in(target, self.path)
            else:
                self._build(view, read)
        fresh, kept = textdocuments.bodies_share(view)
        if fresh and fresh >= (kept - _FEW_BODIES) // _SHARE:
            self._keep_bodies(view)

    def _open_bodies(self, view: View) -> None:
        length_bytes = self._size_of(self.bodies_path)
        try:
            path = "" if length_bytes is None else str(self.bodies_path)
            textdocuments.attach_bodies(view, path, length_bytes)
        except ViewDamaged as error:
            self._cache.distrust(self.bodies_path, error)
            textdocuments.attach_bodies(view, "")

    def _open(self, view: View) -> int | None:
        """Stand on the published index and return its seq; None where there is none of this history."""
        length_bytes = self._size_of(self.path)
        if length_bytes is None:
            return None
        try:
            return texttables.attach(view, str(self.path), length_bytes)
        except ViewDamaged as error:
            self._cache.distrust(self.path, error)
            return None

    def _build(self, view: View, read: Reader) -> None:
        target = self._new_file() if view.seq and not view.is_overlaid else None
        if target is None or not self._is_written(target, lambda: texttables.build(view, str(target), read)):
            texttables.build(view, ":memory:", read)
            return
        self._move_in(target, self.path)
        self._keep_bodies(view)

    def _keep_bodies(self, view: View) -> None:
        """Keep the documents that this process has read, for all branches and processes."""
        target = self._new_file() if textdocuments.bodies_share(view)[0] else None
        if target is None:
            return
        self._open_bodies(view)  # another process may have kept some since
        if self._is_written(target, lambda: textdocuments.keep_bodies(view, str(target), limits.MAX_KEPT_BODIES_BYTES)):
            self._move_in(target, self.bodies_path)
        else:
            self._open_bodies(view)

    def _new_file(self) -> Path | None:
        return None if self._is_refusing else self._cache.new_file()

    def _is_written(self, target: Path, write: Callable[[], None]) -> bool:
        """Write a file and tell whether that went well.

        Where it did not, a full disk for one, the search goes on in memory, and nobody tries again in this process.
        """
        try:
            write()
        except (ViewDamaged, ResourceLimit):
            self._is_refusing = True
            self._discard(target)
            return False
        except BaseException:
            self._discard(target)
            raise
        return True

    def _move_in(self, target: Path, path: Path) -> None:
        """Give a finished file its name. Where that fails, the process goes on with the file that it has open."""
        try:
            self._fs.replace(target, path)
        except OSError:
            self._is_refusing = True
            self._discard(target)

    def _size_of(self, path: Path) -> int | None:
        """Return the size of a file of ours, None for none; one with a log beside it was written by another program."""
        try:
            length_bytes = self._cache.size_of(path)
            if length_bytes is None or files.read_size(self._fs, path.with_name(f"{path.name}.wal")) is None:
                return length_bytes
        except StorageError:
            return None
        self._discard(path)
        return None

    def _discard(self, *paths: Path) -> None:
        for path in paths:
            self._cache.drop(path)
