"""Renames: the operations that give an entity another id, and which changes are the rename of one. Pure.

The history has a rename as an entity that is removed and one that is created, of which one has the id of the other
among its former ids, with all edges that have another id for it. ``joined`` makes one change of the two sides of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from kbcore.model import inverse
from kbcore.model.claims.fold import ID, later_id
from kbcore.model.graph import CLIENT, Link, Node, contested_note, former_ids, is_contested_note
from kbcore.model.record import Operation, PutNode, StateLink
from kbcore.model.state import Changes, ElementChange, State

E = TypeVar("E", Node, Link)


def renamed_links(state: State, ids: Mapping[str, str]) -> list[tuple[Link, Link]]:
    """Return each edge whose id changes with those of its ends, and the edge as it is afterwards.

    ``ids`` has the later ids by the earlier ones. An edge about such an edge changes as well; ``state`` holds all of
    them.
    """
    pairs = []
    for link in state.links.values():
        key = later_id(link.id, state.links, ids)
        if key == link.id:
            continue
        statements = tuple(
            sorted(msgspec.structs.replace(one, said=ids.get(one.said, one.said)) for one in link.statements)
        )
        ends = {
            "from_id": later_id(link.from_id, state.links, ids),
            "to_id": later_id(link.to_id, state.links, ids),
        }
        pairs.append((link, msgspec.structs.replace(link, id=key, statements=statements, **ends)))
    return pairs


def rename_ops(state: State, node: Node, wanted: Node) -> list[Operation]:
    """Return the operations that make an entity another one with another id, with its edges.

    Where an edge waits for the new id already, the two become one; what it states itself is kept. That the id was
    contested is not noted any more: a rename decides it.
    """
    made = {op.src: op for op in inverse.node_ops(None, wanted) if isinstance(op, PutNode)}
    notes = _notes(wanted)
    notes.pop(contested_note(ID), None)
    if notes:  # with what the client states: each operation that creates the entity would claim its new id
        own = made.get(CLIENT, PutNode(wanted.id, 0))
        made[CLIENT] = msgspec.structs.replace(own, set={**own.set, **notes})
    edges = edge_ops(state, node.id, wanted.id)
    return [*made.values(), *edges, *inverse.node_ops(node, None)]


def edge_ops(state: State, old: str, new: str) -> list[Operation]:
    """Return the operations by which the edges of one id become those of another one; as ``rename_ops``."""
    ops: list[Operation] = []
    pairs = renamed_links(state, {old: new})
    for _, after in pairs:
        there = state.links.get(after.id)
        ops += inverse.link_ops(there, joined_link(there, after) if there else after)
        if notes := _notes(after):
            ops.append(StateLink(after.type, after.from_id, after.to_id, 0, after.kind, notes))
    for before, _ in pairs:
        ops += inverse.link_ops(before, None)
    return ops


def _notes(element: Node | Link) -> dict[str, Any]:
    """Return the fields of an element that say which are contested: they go along with another id."""
    return {name: value for name, value in element.fields.items() if is_contested_note(name)}


def joined_link(there: Link, moved: Link) -> Link:
    """Return an edge with what another one states besides."""
    by_source = {one.src: one for one in (*moved.statements, *there.statements)}
    fields = {**moved.fields, **there.fields}
    owners = {name: (there if name in there.fields else moved).owners.get(name, "") for name in fields}
    return msgspec.structs.replace(
        there,
        fields=fields,
        owners={name: owner for name, owner in owners.items() if owner},
        statements=tuple(sorted(by_source.values())),
        created_at=min(there.created_at, moved.created_at),
    )


def renamed_back(node: Node, old: str, earlier: Sequence[str]) -> tuple[str, ...]:
    """Return the former ids of an entity when the rename that took the id ``old`` from it is undone.

    ``earlier`` are those that it had before that rename: its present id is among them where the rename undid another.
    """
    kept = {*former_ids(node), *({node.id} & {*earlier})} - {old}
    return tuple(one for one in dict.fromkeys((*earlier, *former_ids(node))) if one in kept)


def renamed_in(nodes: Iterable[ElementChange[Node]]) -> dict[str, str]:
    """Return the id that each entity had before these changes by the id that it has after them, where that is another.

    To undo a rename is one as well: then the entity that goes has the other id among its former ones.
    """
    gone = {one.key: one.before for one in nodes if one.before is not None and one.after is None}
    if not gone:
        return {}
    before = {former: key for key, node in sorted(gone.items()) for former in former_ids(node)}
    found: dict[str, str] = {}
    for one in nodes:
        if one.before is None and one.after is not None:
            names = [*reversed(former_ids(one.after)), before.get(one.key, "")]
            old = earlier_id(names, one.after.path, gone)
            if old:
                found[one.key] = old
                del gone[old]
    return found


def earlier_id(names: Iterable[str], path: str, gone: Mapping[str, Node]) -> str:
    """Return which entity of those that go has another id now: the one of the same file, else the first of the names.

    The others of these are taken over by it. "" where none of the names is that of an entity that goes.
    """
    there = [one for one in names if one in gone]
    return next((one for one in there if path and gone[one].path == path), there[0] if there else "")


def joined(changes: Changes) -> Changes:
    """Return changes with one in the place of both sides of each rename; it has the later id as its key.

    So it is with each edge that has another id for it; where that is all that happened to it, it is left out.
    """
    whole = paired(changes)
    return msgspec.structs.replace(whole, links=tuple(one for one in whole.links if not _is_moved_alone(one)))


def paired(changes: Changes) -> Changes:
    """Return changes as ``joined`` does, with the edges too to which nothing happened but that they have another id."""
    renamed = renamed_in(changes.nodes)
    if not renamed:
        return changes
    moved = moved_links((one.before for one in changes.links if one.before is not None), renamed)
    added = {one.key for one in changes.links if one.before is None}
    gone = {one.key for one in changes.links if one.after is None}
    links = {new: old for old, new in moved.items() if new in added and old in gone}
    return Changes(_joined_by(changes.nodes, renamed), _joined_by(changes.links, links), changes.sources)


class Moved(msgspec.Struct, frozen=True):
    """An entity or an edge that a record gave another id, and since when it had the one before.

    Of an entity that is the seq that created it under that id, of an edge the seq that last wrote it.
    """

    was: str
    now: str
    since: int


def moved_in(changes: Changes, renamed: Mapping[str, str]) -> list[Moved]:
    """Return what these renames gave another id: the entities, and the edges that say the same as before.

    ``renamed`` has the earlier ids of the entities by the later ones.
    """
    nodes = {one.key: one.before for one in changes.nodes if one.before is not None}
    gone = {one.key: one.before for one in changes.links if one.before is not None and one.after is None}
    left = {one.key: one.after for one in changes.links if one.after is not None}
    found = [Moved(old, new, nodes[old].created_seq) for new, old in renamed.items()]
    for old, new in moved_links(gone.values(), renamed).items():
        before, after = gone[old], left.get(new)
        if after is not None and (before.fields, before.is_resolved) == (after.fields, after.is_resolved):
            found.append(Moved(old, new, before.version))
    return found


def moved_links(links: Iterable[Link], renamed: Mapping[str, str]) -> dict[str, str]:
    """Return the id that each of these edges has after renames, where that is another one.

    ``renamed`` has the earlier ids of entities by the later ones. An edge about such an edge has another id as well.
    """
    now = {old: new for new, old in renamed.items()}
    by_id = {link.id: link for link in links}
    return {key: new for key in by_id if (new := later_id(key, by_id, now)) != key}


def _is_moved_alone(change: ElementChange[Link]) -> bool:
    before, after = change.before, change.after
    return before is not None and after is not None and before.id != after.id and _said(before) == _said(after)


def _said(link: Link) -> tuple[object, ...]:
    return link.fields, [one.source for one in link.statements], link.is_resolved


def _joined_by(changes: tuple[ElementChange[E], ...], before: Mapping[str, str]) -> tuple[ElementChange[E], ...]:
    """Return changes with one in the place of two; ``before`` has the key before by the key after."""
    elements, gone = {one.key: one.before for one in changes}, {*before.values()}
    return tuple(
        ElementChange(one.key, elements[before[one.key]], one.after) if one.key in before else one
        for one in changes
        if one.key not in gone
    )
