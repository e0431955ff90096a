"""The change files of both sides: what a merge would leave contested or bring back, and ids that both sides made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kbcore.extract.changes import is_change_file, is_pack_file
from kbcore.model.claims.change import Change, Create, Rename, union
from kbcore.model.claims.fold import ABSENT, DELETED, fold
from kbcore.model.claims.meeting import meeting, named
from kbcore.model.claims.subjects import ids_in
from kbcore.model.graph import CONTESTED, Link, Node, nested
from kbcore.model.record import SYNC, TakeChange
from kbcore.model.state import Stamp
from kbcore.sync.scan import FoundFile
from kbcore.sync.shared_changes import ChangesInFiles, SharedChanges, newly_contested, plan_changes
from kbcore.view.claim_index import ClaimIndex
from kbcore.view.view import View


class ContestedField(msgspec.Struct, frozen=True):
    """A field that would be contested, of an entity or an edge, and the values that changes give it.

    ``here`` is a file of this side with one of the changes, ``there`` one of the other; "" for none. Of a deletion one
    is that of a change by ``changed_by``, which the other side did not see.
    """

    element: Node | Link
    field: str
    values: Sequence[Mapping[str, Any]]
    here: str
    there: str
    is_deleted_here: bool = False
    changed_by: str = ""


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
    index = claims(view)
    found = ChangesInFiles(_meeting(view, index, files), gone)
    if not found:
        return []
    shared = SharedChanges(index, view.recorded_seq, found, view.unrecorded_ops)
    changes = plan_changes(view, Stamp(view.seq + 1, view.basis.at, "kb", SYNC), shared).changes
    new_here = {path: changes for path, changes in ours.items() if path not in earlier}
    return [
        _deletion(element, new_here, files) if field == DELETED else _field(element, field, files)
        for element, field in newly_contested(changes)
    ]


def _meeting(view: View, index: ClaimIndex, files: Mapping[str, tuple[Change, ...]]) -> dict[str, tuple[Change, ...]]:
    """Return of the new changes of the other side, by file, those that may be in conflict."""
    new = {key: named(one) for key, one in union(one for changes in files.values() for one in changes).items()}
    others = [named(op.change) for op in view.unrecorded_ops if isinstance(op, TakeChange) and op.change]
    known, renamed = index.known_names(set[str]().union(*(one.entities for one in new.values())))
    holders = view.holders()
    kept = meeting(new, others, known, renamed.union(holders, *holders.values()))
    found = {path: tuple([one for one in changes if one.id in kept]) for path, changes in files.items()}
    return {path: changes for path, changes in found.items() if changes}


class SharedId(msgspec.Struct, frozen=True):
    """An id that a change of the other side gives to a new entity, and this side to another new one.

    ``here`` is the file of this side, "" for none, and ``there`` that of the other one; ``creation`` is the change
    there. The titles are ``ABSENT`` where there is none.
    """

    id: str
    here: str
    there: str
    creation: str
    title: Any
    title_there: Any


def made_by_both(
    view: View, claims: Callable[[View], ClaimIndex], sides: Sequence[Sequence[FoundFile]], documented: Collection[str]
) -> list[SharedId]:
    """Return the ids that new changes of both sides give to entities, or those of the other side and documents here.

    ``sides`` are as above; ``documented`` are the entities that documents state on this side alone.
    """
    *bases, ours, theirs = [_changes(side) for side in sides]
    earlier = _by_change(*bases)
    files = {key: one for key, one in _by_change(theirs).items() if key not in earlier}
    if not files:
        return []
    index, seq = claims(view), view.recorded_seq
    here = {key: one for key, one in _by_change(ours).items() if key not in earlier}
    known = here.keys() | index.present(files, seq).keys()
    new_there = [change for key, (_, change) in files.items() if key not in known]
    given_there = _given(new_there)
    if not given_there:
        return []
    own = {one.change.id: ("", one.change) for one in index.unshared(seq)} | here
    new_here = [change for key, (_, change) in own.items() if key not in files]
    if given_there.isdisjoint(_given(new_here) | {*documented}):
        return []
    made_there, made_here = _made(new_there), _made(new_here)
    nodes = {node.id: node for node in view.nodes(sorted(made_there.keys() & (made_here.keys() | {*documented})))}
    return [
        SharedId(
            key,
            own[made_here[key][0]][0] if key in made_here else node.path,
            files[made_there[key][0]][0],
            made_there[key][0],
            node.fields.get("title", ABSENT),
            made_there[key][1],
        )
        for key, node in sorted(nodes.items())
    ]


def _by_change(*sides: Mapping[str, Sequence[Change]]) -> dict[str, tuple[str, Change]]:
    """Return the file and the change, by the id of the change."""
    return {change.id: (path, change) for side in sides for path, changes in side.items() for change in changes}


def _given(changes: Iterable[Change]) -> set[str]:
    """Return the ids that changes give to entities."""
    found = set[str]()
    for claim in (claim for change in changes for claim in change.claims):
        if type(claim) is Create:
            found.add(claim.id)
        elif type(claim) is Rename:
            found.add(claim.now)
    return found


def _made(changes: Iterable[Change]) -> dict[str, tuple[str, Any]]:
    """Return the entities that changes create, by id: the change of the first creation, and the title."""
    return {
        key: (entity.of[0].partition(":")[0], entity.fields["title"].shown if "title" in entity.fields else ABSENT)
        for key, entity in fold(changes).entities.items()
    }


class DeletedChanges(msgspec.Struct, frozen=True):
    """Changes of a file that one side deleted, and which the other side has in a pack. Both files are named.

    ``is_packed_here`` says that this side has the pack.
    """

    file: str
    pack: str
    changes: tuple[str, ...]
    is_packed_here: bool


def packed_and_deleted(
    view: View, claims: Callable[[View], ClaimIndex], sides: Sequence[Sequence[FoundFile]]
) -> list[DeletedChanges]:
    """Return the changes that one side packed and the other side deleted. ``sides`` are as above.

    A merge has the file on no side and the pack of one: what was deleted holds again.
    """
    *bases, ours, theirs = [_changes(side) for side in sides]
    earlier = {path: changes for base in bases for path, changes in base.items()}
    found = []
    for one, other, is_here in ((ours, theirs, True), (theirs, ours, False)):
        packed = {
            change.id: path
            for path, changes in sorted(one.items())
            if path not in earlier and is_pack_file(path)
            for change in changes
        }
        left = {change.id for changes in other.values() for change in changes}
        for path in sorted(earlier.keys() - other.keys()) if packed else ():
            ids = [change.id for change in earlier[path] if change.id in packed and change.id not in left]
            if ids:
                held = claims(view).files_of(ids, view.recorded_seq)
                ids = [one for one in ids if held.get(one, set()) <= {path, packed[one]}]
            if ids:
                found.append(DeletedChanges(path, packed[ids[0]], tuple(ids), is_here))
    return found


def _field(element: Node | Link, field: str, theirs: Collection[str]) -> ContestedField:
    values = nested(element.fields, CONTESTED)[field]
    changes = [change for value in values for change in value.get("changes", [value])]
    named = sorted({str(change["file"]) for change in changes if "file" in change})
    here = next((path for path in named if path not in theirs), "")
    return ContestedField(element, field, values, here, next((path for path in named if path in theirs), ""))


def _deletion(
    element: Node | Link, ours: Mapping[str, Sequence[Change]], theirs: Mapping[str, Sequence[Change]]
) -> ContestedField:
    """Return what is contested of a deletion: the file of one side has it, that of the other one a change."""
    found = _field(element, DELETED, theirs)
    is_here = not found.there
    path, actor = next(
        (
            (path, change.actor)
            for path, changes in (theirs if is_here else ours).items()
            for change in changes
            if element.id in ids_in(change)
        ),
        ("", ""),
    )
    here, there = (found.here, path) if is_here else (path, found.there)
    return msgspec.structs.replace(found, here=here, there=there, is_deleted_here=is_here, changed_by=actor)


def _changes(files: Sequence[FoundFile]) -> dict[str, tuple[Change, ...]]:
    return {one.path: one.facts.changes for one in files if is_change_file(one.path) and one.facts is not None}
