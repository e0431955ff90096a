"""DESCRIBE NEIGHBOURHOOD: a concept with its links in both directions, those that matter most first, within a budget.

The order is fixed: what is put away or replaced comes last, then memberships in domains, then the lower confidence (0.5
where none was given), then the older link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kbcore.ids import is_link_id
from kbcore.kip import find
from kbcore.kip import syntax as s
from kbcore.kip.elements import link_json, node_json
from kbcore.kip.errors import NOT_FOUND, RESOURCE, refused
from kbcore.kip.run_statement import name_hint
from kbcore.kip.vocabulary import Vocabulary
from kbcore.limits import MAX_KIP_NEIGHBOURHOOD_CHARS
from kbcore.model.concepts import IN_DOMAIN
from kbcore.model.graph import Link, Node
from kbcore.model.schema import Schema
from kbcore.view.view import View

LINKS: Final = 50
"""The number of links shown unless LIMIT says otherwise."""
CHARS: Final = 4000
"""The characters of an answer unless BUDGET says otherwise."""
_UNSURE: Final = 0.5
_GONE: Final = frozenset({"archived", "superseded", "deprecated"})
_SUMMARY: Final = ("description", "content_summary", "title", "reason")
_SUMMARY_CHARS: Final = 160
_MANY: Final = 99_999
"""As long as any count of values."""
_PARTS: Final = ("attributes", "metadata")


def neighbourhood(view: View, schema: Schema, known: Vocabulary, tree: s.DescribeNeighbourhood) -> dict[str, Any]:
    """Return a concept, how many links it has, and the first of these.

    Where the concept is too long for the budget with its links, its values are cut and ``cut_values`` counts them.

    Raises: ``KipRefused``: KIP_3002 where there is no such concept, KIP_4002 for too large a budget.
    """
    budget = tree.budget.value if tree.budget else CHARS
    if budget > MAX_KIP_NEIGHBOURHOOD_CHARS:
        message = f"BUDGET is {budget} characters; the limit is {MAX_KIP_NEIGHBOURHOOD_CHARS}."
        raise refused(RESOURCE, message, at=tree.at, hint="Ask for less, and look at what is around a neighbour next.")
    node = _found(view, schema, known, tree.of)
    core = {one.id: one for one in known.nodes}
    links = {one.id: one for one in known.links if node.id in {one.from_id, one.to_id}}
    links |= {one.id: one for one in view.touching([node.id]) if one.is_resolved}
    ends = {_other(link, node.id) for link in links.values()}
    nodes = {key: core[key] for key in ends if key in core}
    nodes |= {one.id: one for one in view.nodes(sorted(key for key in ends if not is_link_id(key)))}
    about = {one.id: one for one in view.links(sorted(key for key in ends if is_link_id(key)))}
    ranked = sorted(links.values(), key=lambda one: one.id)
    ranked.sort(key=lambda one: one.created_at, reverse=True)
    ranked.sort(key=lambda one: _rank(one, nodes.get(_other(one, node.id))))
    asked = ranked[: tree.limit.value if tree.limit else LINKS]
    around: dict[str, Node | Link] = {**nodes, **about}
    rows = [_row(link, node.id, around, known) for link in asked]
    sizes = [_chars(row) + 1 for row in rows]
    shown: dict[str, Any] = {"concept": {}, "links": len(links), "neighbours": [], "left_out": len(links)}
    room = budget - _chars(shown | {"cut_values": _MANY})
    shown["concept"], cut_values = _fitted(node_json(node, known.names), max(room // 2, room - sum(sizes)))
    if cut_values:
        shown["cut_values"] = cut_values
    room = budget - _chars(shown)
    for row, size in zip(rows, sizes, strict=True):
        room -= size
        if room < 0:
            break
        shown["neighbours"].append(row)
    return shown | {"left_out": len(links) - len(shown["neighbours"])}


def _fitted(concept: dict[str, Any], room: int) -> tuple[dict[str, Any], int]:
    """Return a concept in so many characters, and how many of its values are shortened or left out for that.

    Long texts are shortened first, then values are left out, the longest first. ``id``, type and name stay in any case.
    """
    excess = _chars(concept) - room
    if excess <= 0:
        return concept, 0
    values = [(part, key) for part in _PARTS for key in concept[part]]
    parts = {part: dict(concept[part]) for part in _PARTS}
    cut = set[tuple[str, str]]()
    for part, key in values:
        value = parts[part][key]
        if isinstance(value, str) and len(value) > _SUMMARY_CHARS:
            parts[part][key] = f"{value[:_SUMMARY_CHARS]}…"
            cut.add((part, key))
    excess = _chars({**concept, **parts}) - room
    for part, key in sorted(values, key=lambda one: -_chars(parts[one[0]][one[1]])):
        if excess <= 0:
            break
        excess -= _chars({key: parts[part].pop(key)}) - 2
        cut.add((part, key))
    return {**concept, **parts}, len(cut)


def _found(view: View, schema: Schema, known: Vocabulary, of: s.Matcher) -> Node:
    """Return the concept that is meant. Raises: ``KipRefused`` (KIP_3002, or KIP_2001 for its type)."""
    variable = s.Variable("concept", of.at)
    [*rows] = find.solutions(view, schema, s.ClauseGroup((s.ConceptPattern(variable, of),), of.at), (variable,))
    if not rows:
        said = of.id.value if of.id else f"{of.type.value if of.type else ''} {of.name.value if of.name else ''}"
        near = ""
        if of.name:
            near = name_hint(view, known.names.of_kip.get(of.type.value, "") if of.type else "", of.name.value)
        hint = f"{near} Look for it with SEARCH CONCEPT.".lstrip()
        raise refused(NOT_FOUND, f"There is no concept {said.strip()}.", at=of.at, hint=hint)
    key = rows[0]["concept"] or ""
    stored = view.nodes([key])
    return stored[0] if stored else next(one for one in known.nodes if one.id == key)


def _other(link: Link, key: str) -> str:
    return link.to_id if link.from_id == key else link.from_id


def _rank(link: Link, neighbour: Node | None) -> tuple[bool, bool, float]:
    status = {neighbour.fields.get("status"), neighbour.fields.get("attributes.status")} if neighbour else set()
    is_gone = bool((status | {link.fields.get("attributes.status"), link.fields.get("metadata.status")}) & _GONE)
    confidence = link.fields.get("confidence")
    return is_gone, link.type == IN_DOMAIN, -(_UNSURE if confidence is None else confidence)


def _row(link: Link, key: str, ends: Mapping[str, Node | Link], known: Vocabulary) -> dict[str, Any]:
    said = link_json(link)
    row: dict[str, Any] = {"direction": "out" if link.from_id == key else "in", "predicate": link.type, "link": link.id}
    row |= {"attributes": said["attributes"]} if said["attributes"] else {}
    row |= {name: said["metadata"][name] for name in ("confidence", "source") if name in said["metadata"]}
    return row | {"neighbour": _brief(_other(link, key), ends, known)}


def _brief(key: str, ends: Mapping[str, Node | Link], known: Vocabulary) -> dict[str, Any]:
    one = ends.get(key)
    if isinstance(one, Link):
        return {"id": key, "subject": one.from_id, "predicate": one.type, "object": one.to_id}
    if one is None:
        return {"id": key}
    whole = node_json(one, known.names)
    said = next((text for name in _SUMMARY if isinstance(text := whole["attributes"].get(name), str)), "")
    brief = {"id": key, "type": whole["type"], "name": whole["name"]}
    return brief | ({"summary": said[:_SUMMARY_CHARS]} if said else {})


def _chars(value: Any) -> int:
    return len(msgspec.json.encode(value).decode())
