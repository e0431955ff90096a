"""The fields that a merge would leave contested, by the change files of both sides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from kbcore.extract.changes import is_change_file
from kbcore.model.claims.change import Change
from kbcore.model.graph import CONTESTED, Link, Node, nested
from kbcore.model.record import SYNC
from kbcore.model.state import Stamp
from kbcore.sync.scan import FoundFile
from kbcore.sync.shared_changes import ChangesInFiles, SharedChanges, newly_contested, plan_changes
from kbcore.view.claim_index import ClaimIndex
from kbcore.view.view import View


class ContestedField(msgspec.Struct, frozen=True):
    """A field that would be contested, of an entity or an edge, and the values that changes give it.

    ``here`` is a file of this side with one of the changes, ``there`` one of the other; "" for none.
    """

    element: Node | Link
    field: str
    values: Sequence[Mapping[str, Any]]
    here: str
    there: str


def contested_by_merge(
    view: View, claims: Callable[[View], ClaimIndex], sides: Sequence[Sequence[FoundFile]]
) -> list[ContestedField]:
    """Return the fields that are contested once the change files of the other side are there as well.

    ``sides`` are the files that are not the same in all of the common ancestors, this side and the other one, which are
    the last two. A file that one side removed stays removed.
    """
    *bases, ours, theirs = [_changes(side) for side in sides]
    earlier = {path for base in bases for path in base}
    files = {path: theirs[path] for path in theirs.keys() - ours.keys() - earlier}
    gone = (ours.keys() & earlier) - theirs.keys()
    if not files and not gone:
        return []
    found = ChangesInFiles(files, gone)
    shared = SharedChanges(claims(view), view.recorded_seq, found, view.unrecorded_ops)
    changes = plan_changes(view, Stamp(view.seq + 1, view.basis.at, "kb", SYNC), shared).changes
    return [_field(element, field, files) for element, field in newly_contested(changes)]


def _field(element: Node | Link, field: str, theirs: Collection[str]) -> ContestedField:
    values = nested(element.fields, CONTESTED)[field]
    changes = [change for value in values for change in value.get("changes", [value])]
    named = sorted({str(change["file"]) for change in changes if "file" in change})
    here = next((path for path in named if path not in theirs), "")
    return ContestedField(element, field, values, here, next((path for path in named if path in theirs), ""))


def _changes(files: Sequence[FoundFile]) -> dict[str, tuple[Change, ...]]:
    return {one.path: one.facts.changes for one in files if is_change_file(one.path) and one.facts is not None}
