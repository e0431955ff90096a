"""The text index of one branch: kept in the cache and updated to the seq of the view.

The index is built by the first search that needs it, or before it by a process that expects one, never by a write. It
is published as the view is: under a temporary name, then renamed, and never changed after. Losing it costs time, and a
damaged one is deleted.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kbcore import limits
from kbcore.errors import ViewDamaged
from kbcore.model.graph import Node
from kbcore.process import interrupting
from kbcore.view import text_documents, text_index
from kbcore.view.cache_files import FORMER_TEXT, TEXT, CacheFiles
from kbcore.view.opening import LOOK_S
from kbcore.view.text_documents import Reader
from kbcore.view.text_index import TextIndex
from kbcore.view.view import View

if TYPE_CHECKING:
    from kbcore.view.entity_vectors import BranchVectors, EntityVectors

BODIES: Final = ".bodies.duckdb"
"""Beside the folders of the branches, whose names never begin with a dot."""

_TAIL_ROWS: Final = 32
_SHARE: Final = 100
"""Entities taken in since the published index are worth publishing from so many on, and from a hundredth of a
large index on: every process that begins splits the words of all of them again."""
_FEW_BODIES: Final = 1000
"""With so many kept documents a new one is kept at once, of more when they are a hundredth of the rest."""
_SHOWN_CHARS: Final = 200_000
"""As much of a document is looked at for a snippet."""


class _Indexes:
    """The indexes of one view: of its head, with how many entities it took in since it was published, and of a seq."""

    def __init__(self) -> None:
        self.head: TextIndex | None = None
        self.seq = 0
        self.taken_in = 0
        self.past: tuple[int, TextIndex] | None = None


class BranchTexts:
    """The text index of a branch in one process. Each view has an index of its own, for one thread."""

    def __init__(self, files: CacheFiles) -> None:
        self._files = files.for_other_files()
        self.path = files.directory / TEXT
        self.bodies_path = files.directory.parent / BODIES
        self._known = weakref.WeakKeyDictionary[View, _Indexes]()
        self._building = threading.Lock()
        self._meanings: BranchVectors | None = None

    def is_kept(self) -> bool:
        """Tell whether the cache has an index, of whatever state."""
        return self._files.usable_size(self.path) is not None

    def index(self, view: View, at: int | None, read: Reader) -> TextIndex:
        """Return an index of the entities of a view, as of a seq.

        ``read`` reads documents. Those that were not available are tried again, once for each state of the branch.
        """
        known = self._known.get(view)
        if known is None:
            self._open_bodies(view)
            known = self._known[view] = _Indexes()
        with interrupting.maintenance():
            if at is None:
                return self._at_head(view, known, read)
            if known.past is None or known.past[0] != at:
                known.past = None
                known.past = at, text_index.build(view, ":memory:", read, at)
            return known.past[1]

    def meanings(self, view: View, at: int | None, read: Reader) -> EntityVectors | None:
        """Return the meaning of the entities of a view that an index was asked for, as of a seq; None of too many.

        Raises: ``embedding.ModelUnusable``.
        """
        from kbcore.view.entity_vectors import BranchVectors  # noqa: PLC0415 - most searches need no model

        if self._meanings is None:
            self._meanings = BranchVectors(self._files)
        return self._meanings.of(view, at, read)

    def bodies(self, view: View, entities: Sequence[Node], at: int | None, read: Reader) -> Mapping[str, str]:
        """Return the documents that state these entities as of a seq, by id, as far as they are available."""
        documents = text_documents.documents_of(view, entities, at)
        if not documents:
            return {}
        found = text_documents.bodies(view, sorted({digest for _, digest in documents.values()}), _SHOWN_CHARS)
        found |= dict(read([one for one in sorted({*documents.values()}) if one[1] not in found]))
        return {key: found[digest] for key, (_, digest) in documents.items() if digest in found}

    def forget(self, held: Collection[str], *, dry_run: bool = False) -> int:
        """Drop the kept documents but those with these hashes, and return how many those are."""
        length_bytes = self._files.usable_size(self.bodies_path)
        target = self._files.new_file() if length_bytes is not None and not dry_run else None
        if length_bytes is None or (target is None and not dry_run):
            return 0
        path = str(self.bodies_path)
        try:
            gone = text_documents.forget(path, str(target or ""), sorted(held), self._files.room, length_bytes)
        except ViewDamaged:
            gone = 0
        if target and gone:
            self._files.move_in(target, self.bodies_path)
        elif target:
            self._files.drop(target)
        return gone

    def discard(self) -> None:
        """Throw away the files: something that was read in a search is damaged."""
        self._known.clear()
        if self._meanings:
            self._meanings.discard()
        self._files.drop(self.path, self.bodies_path)

    def _at_head(self, view: View, known: _Indexes, read: Reader) -> TextIndex:
        index, known.head = known.head, None  # what fails half way is not used again
        is_first = index is None
        if index is None:
            index, known.taken_in = self._open(view) or self._build_once(view, read), 0
            known.seq = index.stamp().seq
        if is_first or known.seq != view.seq:
            index = self._caught_up(view, known, index, read)
        known.head, known.seq = index, view.seq
        return index

    def _caught_up(self, view: View, known: _Indexes, index: TextIndex, read: Reader) -> TextIndex:
        """Return an index that has what changed since the one that is given, which may be written again for it."""
        changed = text_index.changed_since(view, index, known.seq, read)
        if not changed:
            return index
        if index.is_published:
            index = self._changeable(view, index) or self._build(view, read)
        if not index.is_published:
            text_index.take_in(view, index, changed, read)
            known.taken_in += len(changed)
        if view.is_overlaid:
            return index  # what is in no record is in no file either
        if known.taken_in >= max(_TAIL_ROWS, index.counts()[0] // _SHARE):
            index, known.taken_in = self._published(index), 0
        fresh, kept = text_documents.bodies_share(view)
        if fresh and fresh >= (kept - _FEW_BODIES) // _SHARE:
            self._keep_bodies(view)
        return index

    def _changeable(self, view: View, index: TextIndex) -> TextIndex | None:
        """Return a copy that can be changed; None for a large index of records alone, which is built in a file instead.

        For a view with an overlay a large index is copied to a file that has no name any more.
        """
        if not index.is_large:
            return index.copied()
        if not view.is_overlaid:
            return None
        copied: list[TextIndex] = []
        target = self._files.written(lambda path: copied.append(index.copied(str(path))))
        if target is None:
            return index.copied()
        self._files.drop(target)
        return copied[0]

    def _published(self, index: TextIndex) -> TextIndex:
        """Write an index to the cache and return the published one, or the index itself where that cannot be done."""
        return self._files.publish(self.path, lambda path: index.copied(str(path)).close(), _published) or index

    def _open_bodies(self, view: View) -> None:
        length_bytes = self._files.usable_size(self.bodies_path)
        try:
            path = "" if length_bytes is None else str(self.bodies_path)
            text_documents.attach_bodies(view, path, length_bytes)
        except ViewDamaged as error:
            self._files.discard_damaged(self.bodies_path, error)
            text_documents.attach_bodies(view, "")

    def _open(self, view: View) -> TextIndex | None:
        """Return the published index; None where there is none of this history."""
        if self._files.usable_size(self.path) is None:
            return None
        try:
            return text_index.opened(view, str(self.path))
        except ViewDamaged as error:
            self._files.discard_damaged(self.path, error)
            return None

    def _build_once(self, view: View, read: Reader) -> TextIndex:
        """Return the index that another thread of this process has published meanwhile, or else a new one."""
        while not self._building.acquire(timeout=LOOK_S):
            interrupting.check()
        try:
            return self._open(view) or self._build(view, read)
        finally:
            self._building.release()

    def _build(self, view: View, read: Reader) -> TextIndex:
        """Return a new index: a published one of the records, or one in memory where the cache cannot be written."""
        at = view.recorded_seq if view.is_overlaid else None
        index = None
        if view.recorded_seq:
            index = self._files.publish(
                self.path, lambda path: text_index.build(view, str(path), read, at).close(), _published
            )
        if index is None:
            return text_index.build(view, ":memory:", read)
        self._files.drop(self.path.with_name(FORMER_TEXT))
        self._keep_bodies(view)
        return index

    def _keep_bodies(self, view: View) -> None:
        """Keep the documents that this process has read, for all branches and processes."""
        if not text_documents.bodies_share(view)[0] or not self._files.is_writable():
            return
        self._open_bodies(view)  # another process may have kept some since
        target = self._files.written(
            lambda path: text_documents.keep_bodies(view, str(path), limits.MAX_KEPT_BODIES_BYTES)
        )
        if target is None:
            self._open_bodies(view)
        else:
            self._files.move_in(target, self.bodies_path)


def _published(path: Path) -> TextIndex:
    return TextIndex(str(path), is_published=True)
