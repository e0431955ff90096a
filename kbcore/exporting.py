"""All that stands on a branch, as changesets for ``kb apply --import``: an empty store comes to hold the same by them.

What a record says of itself (who wrote it, and when) is not part of it, and neither are facts that wait for an end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.ids import is_link_id
from kbcore.model import OBJECT_FIELDS, Link, Node, edge_json, entity_json
from kbcore.view.past import state_at
from kbcore.view.view import View

_CHUNK: Final = 5_000
_PART_BYTES: Final = limits.MAX_CHANGESET_BYTES // 2
"""Items of one part, as JSON: its record also says who states each of them."""
_NOT_STATED: Final = frozenset({"version", "sources", "unresolved"})
_encode = msgspec.json.Encoder().encode

Part = dict[str, list[dict[str, Any]]]
"""One changeset."""


class Export(msgspec.Struct, frozen=True):
    """What stands on a branch, entities by id, and edges after what they begin and end at.

    ``waiting`` counts the edges that were left out because an end of theirs does not exist.
    """

    entities: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    waiting: int


def export(view: View) -> Export:
    """Return all entities and standing edges of a branch, as items of a changeset."""
    ids = [key for (key,) in view.rows("select id from node order by id")]
    entities = [_entity(node) for chunk in _chunks(ids) for node in sorted(view.nodes(chunk), key=lambda one: one.id)]
    ids = [key for (key,) in view.rows("select id from link where stands order by from_id, type, kind, to_id")]
    links = {link.id: link for chunk in _chunks(ids) for link in view.links(chunk)}
    ranked = sorted(ids, key=lambda key: _rank(links, key))
    [(waiting,)] = view.rows("select count(*) from link where not stands")
    return Export(entities, [_edge(links[key]) for key in ranked], waiting)


def export_at(view: View, seq: int) -> Export:
    """Return all entities and standing edges of a branch as they stood at a seq.

    Raises: ``HistoryPruned``.
    """
    if seq == view.seq:
        return export(view)
    state = state_at(view, seq)
    standing = {key: link for key, link in state.links.items() if link.stands}
    keys = sorted(standing, key=lambda key: _place(standing[key]))
    ranked = sorted(keys, key=lambda key: _rank(standing, key))
    entities = [_entity(state.nodes[key]) for key in sorted(state.nodes)]
    return Export(entities, [_edge(standing[key]) for key in ranked], len(state.links) - len(standing))


def _place(link: Link) -> tuple[str, str, str, str]:
    return link.from_id, link.type, link.kind, link.to_id


def parts(exported: Export) -> Iterator[Part]:
    """Yield changesets that each hold as much as KB takes at once, to be applied in their order; at least one."""
    part, size, has_any = _empty(), 0, False
    for kind, item in [*(("entities", one) for one in exported.entities), *(("edges", one) for one in exported.edges)]:
        more = len(_encode(item)) + 1
        count = len(part["entities"]) + len(part["edges"])
        if count >= limits.MAX_CHANGESET_ITEMS or (count and size + more > _PART_BYTES):
            yield part
            part, size, has_any = _empty(), 0, True
        part[kind].append(item)
        size += more
    if part["entities"] or part["edges"] or not has_any:
        yield part


def _empty() -> Part:
    return {"entities": [], "edges": []}


def _entity(node: Node) -> dict[str, Any]:
    return _stated(entity_json(node))


def _edge(link: Link) -> dict[str, Any]:
    return _stated(edge_json(link))


def _stated(shown: Mapping[str, Any]) -> dict[str, Any]:
    """Return the item of a changeset that states this; null as a member is a value only in an object set whole."""
    stated = {name: value for name, value in shown.items() if name not in _NOT_STATED}
    has_null = any(None in stated.get(name, {}).values() for name in OBJECT_FIELDS)
    return {**stated, "replace": True} if has_null else stated


def _rank(links: Mapping[str, Link], key: str) -> int:
    """Return how many edges must be there before an edge can: those that it begins or ends at, and so on."""
    link = links.get(key)
    ends = [end for end in (link.from_id, link.to_id) if is_link_id(end)] if link else []
    return 1 + max(_rank(links, end) for end in ends) if ends else 0


def _chunks(ids: list[str]) -> Iterable[list[str]]:
    return (ids[start : start + _CHUNK] for start in range(0, len(ids), _CHUNK))
