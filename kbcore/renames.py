"""The operations that give an entity another id, and each of its edges the id that follows from it. Pure."""

from __future__ import annotations

import msgspec

from kbcore import inverse
from kbcore.ids import link_id
from kbcore.model import Link, Node
from kbcore.record import Operation
from kbcore.state import State


def renamed_links(state: State, old: str, new: str) -> list[tuple[Link, Link]]:
    """Return each edge whose id changes with that of an entity, and the edge as it is afterwards.

    An edge about such an edge changes as well. ``state`` holds all of them.
    """

    def name(key: str) -> str:
        if key == old:
            return new
        link = state.links.get(key)
        if link is None:
            return key
        ends = name(link.from_id), name(link.to_id)
        return key if ends == (link.from_id, link.to_id) else link_id(link.type, link.kind, *ends)

    pairs = []
    for link in state.links.values():
        key = name(link.id)
        if key == link.id:
            continue
        statements = tuple(
            sorted(msgspec.structs.replace(one, said=new if one.said == old else one.said) for one in link.statements)
        )
        ends = {"from_id": name(link.from_id), "to_id": name(link.to_id)}
        pairs.append((link, msgspec.structs.replace(link, id=key, statements=statements, **ends)))
    return pairs


def rename_ops(state: State, node: Node, wanted: Node) -> list[Operation]:
    """Return the operations that make an entity another one with another id, with its edges.

    Where an edge waits for the new id already, the two become one; what it states itself is kept.
    """
    return [*inverse.node_ops(None, wanted), *edge_ops(state, node.id, wanted.id), *inverse.node_ops(node, None)]


def edge_ops(state: State, old: str, new: str) -> list[Operation]:
    """Return the operations by which the edges of one id become those of another one; as ``rename_ops``."""
    ops: list[Operation] = []
    pairs = renamed_links(state, old, new)
    for _, after in pairs:
        there = state.links.get(after.id)
        ops += inverse.link_ops(there, _joined(there, after) if there else after)
    for before, _ in pairs:
        ops += inverse.link_ops(before, None)
    return ops


def _joined(there: Link, moved: Link) -> Link:
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
