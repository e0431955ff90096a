"""Conditions of a store after many wrote to it at once; each that fails is a sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from kbcore.model import record
from kbcore.model.record import Record
from kbcore.storage import head, journal, verify
from kbcore.storage.fs import RealFs
from kbcore.view.tables import ELEMENTS
from kbcore.view.view import View
from tests.support.repository.project import Project

_TABLES = (*ELEMENTS, *(f"{name}_history" for name in ELEMENTS), "record")
_FS = RealFs()


class Written(msgspec.Struct, frozen=True):
    """One record of a store."""

    seq: int
    sum: str
    rec: Record


def records(directory: Path) -> list[Written]:
    """Return all records of a store, each verified against the one before."""
    found = journal.scan(_FS, directory, head.read(_FS, directory))
    return [Written(one.frame.seq, one.frame.sum, record.decode(one.frame.rec, seq=one.frame.seq)) for one in found]


def unsound(directory: Path, acked: Mapping[str, int]) -> Iterator[str]:
    """Yield what is wrong with a store, to which these changesets were acknowledged with these seqs."""
    proof = verify.prove(_FS, directory)
    if not proof.is_sound:
        yield f"it does not verify: {proof.findings}"
        return
    there = records(directory)
    first = head.read(_FS, directory).first_seq
    if [one.seq for one in there] != list(range(first, first + len(there))):
        yield f"there is a gap or a double in {[one.seq for one in there]}"
    twice = [key for key, times in Counter(one.rec.changeset_id for one in there).items() if times > 1]
    if twice:
        yield f"these took effect more than once: {twice}"
    places = {one.rec.changeset_id: one.seq for one in there}
    lost = {key: seq for key, seq in acked.items() if places.get(key) != seq}
    if lost:
        yield f"these were acknowledged and are not where that said: {lost}"


def differing(project: Project, branch: str | None = None) -> Iterator[str]:
    """Yield the tables in which a view that was kept up to date differs from one that the whole journal makes."""
    view = project.view(branch)
    directory = project.workspace().folders.directory_of(branch or project.workspace().head().branch)
    store = project.workspace().store(branch or project.workspace().head().branch)
    if view.seq != head.read(_FS, directory).seq:
        yield f"the view is at {view.seq}"
    kept = {table: _rows(view, table) for table in _TABLES}
    with store.view_until(view.seq) as made:
        for table in _TABLES:
            if kept[table] != _rows(made, table):
                yield f"the view differs from full replay in {table}"


def _rows(view: View, table: str) -> list[tuple[object, ...]]:
    return view.rows(f"select * from {table} order by all")
