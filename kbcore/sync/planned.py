"""The changes that pending files make of a state: sync commits them, readers apply them to a view of their own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from kbcore.git.file_dates import DocumentDates
from kbcore.model.graph import Link, Node
from kbcore.model.record import SYNC
from kbcore.model.schema import Schema
from kbcore.model.state import Changes, ElementChange, Stamp
from kbcore.sync.active_extractors import as_defined
from kbcore.sync.comparison import Compared, FileSources, compare
from kbcore.sync.first_sync import is_first
from kbcore.sync.paths import is_named
from kbcore.sync.pending import PendingFiles, ScanScope, find
from kbcore.sync.scan import FoundFile, read_facts
from kbcore.view.tables import files_of
from kbcore.view.view import View

if TYPE_CHECKING:
    from kbcore.view.claim_index import ClaimIndex

FirstPlanner = Callable[[Sequence[FoundFile], Schema, Stamp], Compared | None]
"""Returns the difference that files make of an empty state, None where it has to be worked out as a whole."""


class FilePlan:
    """The state that pending files of a worktree make. A file is read once, however often it is asked for."""

    def __init__(
        self,
        place: ScanScope,
        schema: Schema,
        pending: PendingFiles,
        now_ns: int,
        *,
        claims: Callable[[View], ClaimIndex],
        committed: Callable[[Collection[str]], Collection[str]] = lambda _: (),
        dates: Callable[[Collection[str]], Mapping[str, DocumentDates]] = lambda _: {},
        first: FirstPlanner | None = None,
    ) -> None:
        """``schema`` is that of the project; ``now_ns`` the time of the scan, in nanoseconds since 1970.

        ``claims``, ``committed`` and ``dates`` are those of ``FileSources``; ``first`` plans a first sync of many.
        """
        self._first = first
        self._claims = claims
        self._committed = committed
        self._dates = dates
        self._place = place
        self._schema = schema
        self._pending = pending
        self._now_ns = now_ns
        self._read: dict[str, FoundFile] = {}

    def on(self, view: View, stamp: Stamp) -> Compared:
        """Return the difference that the files make of the state of a view, with this stamp."""
        pending = self._pending
        if self._first and not (pending.gone or pending.again or self._place.begun) and is_first(view, pending.changed):
            found = self._first(pending.changed, view.schema(self._schema), stamp)
            if found is not None:
                return found
        return self._compared(view, stamp, self._pending)

    def unchanged(self, view: View, stamp: Stamp, whole: Changes | None = None) -> frozenset[str]:
        """Return the pending files that say what the records have of them, and are read by other settings now.

        They are compared without the others, whose changes may resolve their links. ``whole`` are the changes of all.
        """
        pending = self._pending
        recorded = {one.path: one.hash for one in view.sources(sorted(one.path for one in pending.changed))}
        same = tuple(one for one in pending.changed if recorded.get(one.path) == one.hash)
        if not same:
            return frozenset()
        if whole and len(same) == len(pending.changed) and not pending.gone:
            return unchanged_files(whole)
        alone = msgspec.structs.replace(pending, changed=same, gone=())
        return unchanged_files(self._compared(view, stamp, alone).last.changes)

    def _compared(self, view: View, stamp: Stamp, pending: PendingFiles) -> Compared:
        ways = FileSources(
            view.schema(self._schema),
            pending.gone,
            self._whole,
            self._as_recorded,
            self._claims,
            self._committed,
            self._dates,
            self._place.begun,
        )
        return compare(view, stamp, (*pending.changed, *pending.again), ways)

    def _as_recorded(self, view: View, paths: Collection[str]) -> list[FoundFile]:
        """Return those of these files that may be read: named ones, and others as far as they did not change."""
        known = {one.path: (one.hash, one.extractor) for one in view.sources(sorted(paths))}
        files, named = self._pending.scan.files, frozenset(self._place.named)
        if self._place.below is not None and paths - files.keys():
            place = msgspec.structs.replace(self._place, wants=as_defined(self._place.wants, view))
            files = files | find(place, paths - files.keys(), self._now_ns)
        doubted = self._pending.doubted
        there = (files[path] for path in sorted(paths) if path in files and path not in doubted)
        return [
            found
            for found in there
            if is_named(found.path, named) or known.get(found.path) == (found.hash, found.wanted.mark)
        ]

    def _whole(self, found: FoundFile) -> FoundFile:
        whole = self._read[found.path] = self._read.get(found.path) or read_facts(self._place.root, found)
        return whole


def unchanged_files(changes: Changes) -> frozenset[str]:
    """Return the files that other settings or another extractor read now, and that state what the records have of them.

    One that states an entity or an edge which changes is none of them.
    """
    same = {
        one.key
        for one in changes.sources
        if one.before
        and one.after
        and msgspec.structs.replace(one.before, extractor=one.after.extractor, version=one.after.version) == one.after
    }
    changed: tuple[ElementChange[Node] | ElementChange[Link], ...] = (*changes.nodes, *changes.links)
    for change in changed:
        same -= {file for element in (change.before, change.after) if element for file in files_of(element)}
    return frozenset(same)


def differing(
    view: View,
    place: ScanScope,
    schema: Schema,
    pending: PendingFiles,
    now_ns: int,
    *,
    claims: Callable[[View], ClaimIndex],
) -> PendingFiles:
    """Return pending files without those that say the same by other settings. Files are read only where one may."""
    stamp = Stamp(view.seq + 1, view.basis.at, "kb", SYNC)
    same = FilePlan(place, schema, pending, now_ns, claims=claims).unchanged(view, stamp)
    return msgspec.structs.replace(pending, changed=tuple(one for one in pending.changed if one.path not in same))
