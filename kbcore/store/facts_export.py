"""All entities and edges of a branch, as changesets for ``kb apply --import``: they fill an empty store with the same.

What a record says of itself (who wrote it, and when) is not part of it, and neither are facts that wait for an end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.ids import is_link_id
from kbcore.model.graph import (
    CLIENT,
    FORMER_IDS,
    OBJECT_FIELDS,
    PROPOSED,
    STAMPS,
    Link,
    Node,
    edge_json,
    entity_json,
    former_ids,
    nested,
)
from kbcore.model.values import is_same
from kbcore.store.history.compare import changes_since, chunks, ids_on
from kbcore.store.history.reach import merge_base
from kbcore.view.history import state_at
from kbcore.view.tables import MAY_LACK_AN_END, may_lack_an_end
from kbcore.view.view import View

_PART_BYTES: Final = limits.MAX_CHANGESET_BYTES // 2
"""Items of one part, as JSON: its record also says who states each of them."""
_NOT_STATED: Final = frozenset({"version", "sources", "unresolved"})
_STAMPS: Final = frozenset({*STAMPS, "created_by"})
_MEMBERS: Final = tuple(f"{name}." for name in OBJECT_FIELDS)
_encode = msgspec.json.Encoder().encode

Part = dict[str, list[dict[str, Any]]]
"""One changeset."""


class Export(msgspec.Struct, frozen=True):
    """The present state of a branch: entities by id, and edges after what they begin and end at.

    ``waiting`` counts what was left out because it cannot be applied: edges of which an end does not exist, and of
    ``missing_on`` also facts about what does not exist there, values that the other branch or a file changed there, and
    a null among the attributes or metadata of what exists there. ``renamed`` has the entities that clients renamed and
    the other branch has under another id, which is the key.
    """

    entities: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    waiting: int
    renamed: dict[str, str] = {}


def export(view: View) -> Export:
    """Return all entities and resolved edges of a branch, as items of a changeset; hidden entities are left out."""
    ids = [key for (key,) in view.rows("select id from node order by id")]
    entities = [_entity(node) for chunk in chunks(ids) for node in sorted(view.nodes(chunk), key=lambda one: one.id)]
    ids = [key for (key,) in view.rows("select id from link where is_resolved order by from_id, type, kind, to_id")]
    links = {link.id: link for chunk in chunks(ids) for link in view.links(chunk)}
    ranked = sorted(ids, key=lambda key: _rank(links, key))
    [(waiting,)] = view.rows(f"select count(*) from link where not is_resolved and not {MAY_LACK_AN_END}")  # noqa: S608 - a constant
    return Export(entities, [_edge(links[key]) for key in ranked], waiting)


def export_at(view: View, seq: int) -> Export:
    """Return all entities and resolved edges of a branch at a seq; hidden entities are left out.

    Raises: ``HistoryPruned``.
    """
    if seq == view.seq:
        return export(view)
    state = state_at(view, seq)
    resolved = {key: link for key, link in state.links.items() if link.is_resolved}
    keys = sorted(resolved, key=lambda key: _place(resolved[key]))
    ranked = sorted(keys, key=lambda key: _rank(resolved, key))
    entities = [_entity(state.nodes[key]) for key in sorted(state.nodes) if not state.nodes[key].is_hidden]
    waiting = sum(not link.is_resolved and not may_lack_an_end(link) for link in state.links.values())
    return Export(entities, [_edge(resolved[key]) for key in ranked], waiting)


def missing_on(other: View | None, view: View) -> Export:
    """Return what clients wrote on the branch of a view and another branch has not, to be applied to that one.

    What was written since the histories of both diverged counts, hidden entities included. The other branch has a fact
    also where a file states it there. An entity that either branch renamed is the same one, and is written with the id
    that it has on the other.
    ``other`` is None for a branch without a store.
    """
    changes = changes_since(view, merge_base(view, other) if other else None)
    nodes = [(one.before, one.after) for one in changes.nodes if one.after]
    links = [(one.before, one.after) for one in changes.links if one.after]
    ids = ids_on(other, view, changes) if other else {}
    found, left_out = list[Node](), 0
    there = {
        one.id: one
        for chunk in chunks([ids.get(node.id, node.id) for _, node in nodes])
        for one in (other.nodes(chunk) if other else [])
    }
    renamed = dict[str, str]()
    for before, node in nodes:
        key = ids.get(node.id, node.id)
        fields, is_lacking = _fields_missing(before, node, there.get(key), is_new=node.path == CLIENT)
        left_out += is_lacking
        if fields:
            found.append(msgspec.structs.replace(node, id=key, fields=fields))
        if key != node.id and node.path == CLIENT and node.id not in former_ids(there.get(key)):
            renamed[key] = node.id
    as_there = [(before, _with_ids(link, ids)) for before, link in links]
    edges, more = _links_missing(other, as_there, {node.id for node in found})
    entities = [_unstamped(_entity(node)) for node in sorted(found, key=lambda one: one.id)]
    return Export(entities, [_unstamped(_edge(link)) for link in edges], left_out + more, renamed)


def _with_ids(link: Link, ids: Mapping[str, str]) -> Link:
    """Return an edge with the ids that it and its ends have on another branch."""
    key, begin, end = (ids.get(one, one) for one in (link.id, link.from_id, link.to_id))
    return msgspec.structs.replace(link, id=key, from_id=begin, to_id=end)


def _links_missing(
    other: View | None, links: Sequence[tuple[Link | None, Link]], entities: AbstractSet[str]
) -> tuple[list[Link], int]:
    """Return the edges to be written to another branch after these entities, and how many cannot be.

    The edges have the ids that they and their ends have there.
    """
    found, left_out = list[Link](), 0
    resolved = {link.id: link for _, link in links}
    ends = {end for link in resolved.values() for end in (link.from_id, link.to_id)}
    asked = sorted({*resolved, *ends})
    there = {one.id: one for chunk in chunks(asked) for one in (other.links(chunk) if other else [])}
    known = {one.id for chunk in chunks(sorted(ends)) for one in (other.nodes(chunk) if other else [])}
    known |= there.keys() | entities
    for before, link in sorted(links, key=lambda one: (_rank(resolved, one[1].id), _place(one[1]))):
        was_stated, is_stated = ((one is not None and _is_of_client(one)) for one in (before, link))
        basis = before if was_stated or link.id in there else None
        fields, is_lacking = _fields_missing(basis, link, there.get(link.id), is_new=is_stated)
        is_wanted = bool(fields) or (is_stated and not was_stated and link.id not in there)
        if is_wanted and not known >= {link.from_id, link.to_id}:
            left_out += 1
        elif is_wanted:
            found.append(msgspec.structs.replace(link, fields=fields))
            known.add(link.id)
        left_out += is_lacking
    return found, left_out


def _is_of_client(link: Link) -> bool:
    return any(statement.src == CLIENT for statement in link.statements)


def _fields_missing(
    before: Node | Link | None, element: Node | Link, there: Node | Link | None, *, is_new: bool
) -> tuple[dict[str, Any], bool]:
    """Return the fields of an element that another branch is to get, and whether some are left out.

    Only what a client wrote since ``before`` counts; what the other branch changed since by itself stays as it is
    there. An element that neither had gets all that clients wrote, if ``is_new`` says that they can make it. Former ids
    are left out: KB sets them. So is a null among attributes or metadata for any other element: a changeset could only
    set the whole object with it.
    """
    was, its = before.fields if before else {}, there.fields if there else {}
    written = {name: value for name, value in element.fields.items() if name not in {*element.owners, FORMER_IDS}}
    since = {name for name, value in written.items() if _differs(was, name, value)}
    if there is None:
        return (written, False) if before is None and is_new else ({}, bool(since))
    lacking = {name for name in since if _differs(its, name, written[name])}
    free = {name for name in lacking if name not in there.owners and not _is_changed(was, its, name)}
    free -= {name for name in free if written[name] is None and name.startswith(_MEMBERS)}
    return {name: written[name] for name in sorted(free)}, len(free) < len(lacking)


def _differs(fields: Mapping[str, Any], name: str, value: Any) -> bool:
    return name not in fields or not is_same(fields[name], value)


def _is_changed(before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> bool:
    return _differs(before, name, after[name]) if name in after else name in before


def _unstamped(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item without who wrote it and when: that is what the record that brings it says."""
    return {name: value for name, value in item.items() if name not in _STAMPS}


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
    return _stated(entity_json(node), node)


def _edge(link: Link) -> dict[str, Any]:
    return _stated(edge_json(link), link)


def _stated(shown: Mapping[str, Any], element: Node | Link) -> dict[str, Any]:
    """Return the item of a changeset that states this; null as a member is a value only in an object set whole.

    What is only proposed is in the metadata, as it is stored.
    """
    stated = {name: value for name, value in shown.items() if name not in _NOT_STATED}
    if stated.pop(PROPOSED, None):
        stated["metadata"] = nested(element.fields, "metadata")
    has_null = any(None in stated.get(name, {}).values() for name in OBJECT_FIELDS)
    return {**stated, "replace": True} if has_null else stated


def _rank(links: Mapping[str, Link], key: str) -> int:
    """Return how many edges must be there before an edge can: those that it begins or ends at, and so on."""
    link = links.get(key)
    ends = [end for end in (link.from_id, link.to_id) if is_link_id(end)] if link else []
    return 1 + max(_rank(links, end) for end in ends) if ends else 0
