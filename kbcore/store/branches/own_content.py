"""The content of a branch store that others have not: records, and facts and changes of clients. Nothing is written."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from kbcore.errors import Damaged, HistoryPruned, Incompatible, KBError, UnknownBranch
from kbcore.storage import files, journal
from kbcore.storage.fs import Fs
from kbcore.store.branches.origins import default_store
from kbcore.store.branches.stores import missing_between
from kbcore.store.workspace import Workspace

_MOST_COUNTED: Final = 10
_COUNTING_S: Final = 2.0
"""So many stores at most, and so long, `kb gc` looks for what clients wrote there and the default branch has not."""
UNREADABLE: Final = (Damaged, Incompatible, UnknownBranch, HistoryPruned)


class Counted(NamedTuple):
    """The seq of a store, and what of it the default branch has not, as ``trash.Trashed`` has it."""

    seq: int | None = None
    facts: int | None = None
    unshared: int = 0


def seq_of(fs: Fs, place: Path) -> int | None:
    """Return the seq of the last record of a store, None where it cannot be read."""
    try:
        return journal.read_head(fs, place).seq
    except UNREADABLE:
        return None


def counted_facts(workspace: Workspace, dead: Mapping[str, Path]) -> dict[str, Counted]:
    """Return ``_facts_missing`` of the first of these stores, until the time for it is over: each is read for it."""
    clock, found = workspace.machine.clock, dict[str, Counted]()
    end_s = clock.monotonic_s() + _COUNTING_S
    for name, place in islice(dead.items(), _MOST_COUNTED):
        if clock.monotonic_s() >= end_s:
            break
        if workspace.folders.directory_of(name) == place:
            found[name] = _facts_missing(workspace, name, place)
    return found


def _facts_missing(workspace: Workspace, name: str, directory: Path) -> Counted:
    """Return the seq of a store, and how much of what clients wrote on it the default branch has not.

    None where that cannot be determined.
    """
    seq = seq_of(workspace.machine.fs, directory)
    try:
        default = default_store(workspace, name)
        missing = missing_between(workspace, default, name)
        unshared = _unshared(workspace, default, name)
    except KBError:  # whatever keeps it from being read is no reason to keep the store
        return Counted(seq)
    facts = len(missing.entities) + len(missing.edges) + missing.waiting + len(missing.renamed)
    return Counted(seq, facts, unshared)


def _unshared(workspace: Workspace, other: str, branch: str) -> int:
    """Return how many changes of a branch no committed file held and another branch has not.

    0 where changes are neither shared nor merged, and so no index is to be made of them.
    """
    is_off = workspace.config.share.mode == "off"
    if is_off and not workspace.store(branch).read(lambda view: view.past.has_shared_changes()):
        return 0
    ids = {one.change.id for one in workspace.changes(branch).read(lambda index, seq: index.unshared(seq))}
    if ids and other and workspace.folders.has_store(workspace.answering(other)):
        ids -= workspace.changes(other).read(lambda index, _: index.bodies(ids)).keys()
    return len(ids)


def own_records(fs: Fs, directory: Path, others: Iterable[Path]) -> int | None:
    """Return how many records of a store none of these others has; None where it cannot be read."""
    try:
        head = journal.read_head(fs, directory)
        records = [
            _Placed(one.frame.seq, one.frame.sum, one.file, one.offset, one.length)
            for one in journal.scan(fs, directory, head)
        ]
    except UNREADABLE:
        return None
    shared = max((_count_shared(fs, records, directory, other, head.lineage) for other in others), default=0)
    return len(records) - shared


class _Placed(msgspec.Struct, frozen=True, gc=False):
    """One record of a journal, and where its line is."""

    seq: int
    sum: str
    file: str
    offset: int
    length: int

    def read_line(self, fs: Fs, directory: Path) -> bytes:
        """Return the bytes at the place of the record, in this store or in a copy of it; empty without a file."""
        path = directory / self.file
        if files.read_size(fs, path) is None:
            return b""
        with files.explained(path, "read", reading=True), files.opened(fs, path, os.O_RDONLY) as fd:
            return fs.pread(fd, self.length, self.offset)


def _count_shared(fs: Fs, records: Sequence[_Placed], directory: Path, other: Path, lineage: str) -> int:
    """Return how many of a store's records, from the first on, another one has as well.

    A copy has the same bytes in the same places, and a record proves all before it: a few comparisons are enough.
    """
    try:
        there = journal.read_head(fs, other)
    except UNREADABLE:  # what a damaged store holds does not count
        return 0
    if there.lineage != lineage or not records:
        return 0
    sums = {one.seq: one.sum for one in records}

    def is_missing(one: _Placed) -> bool:
        if one.seq < there.first_seq:
            return sums.get(there.first_seq - 1) != there.segments[0].base_hash
        return one.seq > there.seq or one.read_line(fs, directory) != one.read_line(fs, other)

    return bisect_left(records, True, key=is_missing)
