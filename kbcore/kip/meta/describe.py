"""DESCRIBE: who the agent is, how KIP is written, which domains there are, and what the schema of a branch defines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from kbcore.kip import syntax as s
from kbcore.kip.elements import name_of, node_json
from kbcore.kip.errors import NOT_FOUND
from kbcore.kip.meta.neighbourhood import neighbourhood
from kbcore.kip.paging import cursor_in, mark_of
from kbcore.kip.reference import SYNTAX
from kbcore.kip.undefined_names import no_predicate, no_type
from kbcore.kip.vocabulary import Vocabulary, vocabulary
from kbcore.model.concepts import DOMAIN, IN_DOMAIN, PERSON, PREDICATE, SELF, TYPE, concept_id
from kbcore.model.graph import Node
from kbcore.model.schema import Schema
from kbcore.text import cursor as cursors
from kbcore.view.view import View

_KINDS: Final = {"CONCEPT": TYPE, "PROPOSITION": PREDICATE}
_MAPPED: Final = 100
"""The number of domains in the primer: those with the most members."""
_KEY: Final = 5
"""The most types and predicates listed for a domain: its most frequent."""
_MEMBERS: Final = (
    "select l.to_id as domain, l.from_id as id, n.type as type from link l join node n "  # noqa: S608 - constants
    "on n.id = l.from_id "
    f"where l.is_resolved and l.type = '{IN_DOMAIN}'"
)
_TYPES: Final = f"select domain, type, count(*) from ({_MEMBERS}) group by all"  # noqa: S608 - constants
_PREDICATES: Final = (
    f"select m.domain, l.type, count(*) from ({_MEMBERS}) m join link l on l.from_id = m.id "  # noqa: S608 - constants
    f"where l.is_resolved and l.type != '{IN_DOMAIN}' group by all"
)
_OUTSIDE: Final = (
    "select n.type, count(*) from node n where not exists "  # noqa: S608 - constants
    f"(from link l where l.is_resolved and l.type = '{IN_DOMAIN}' and l.from_id = n.id) group by all"
)
_DOMAINS: Final = "select id from node where type = ? order by id"


def describe(view: View, schema: Schema, tree: s.Describe) -> tuple[Any, str]:
    """Return what a DESCRIBE answers, and the cursor of the next page, "" where there is none.

    Raises: ``KipRefused`` with the offset of the place: KIP_3002 for an unknown definition, KIP_1001 for a cursor.
    """
    known = vocabulary(schema)
    match tree:
        case s.DescribePrimer():
            return primer(view, known), ""
        case s.DescribeDomains():
            return [_domain_json(one) for one in _domains(view, known)], ""
        case s.DescribeSyntax():
            return SYNTAX, ""
        case s.DescribeTypes():
            return _types(view, known, schema, tree)
        case s.DescribeType(of, name):
            return definition(view, known, of, name), ""
        case s.DescribeNeighbourhood():
            return neighbourhood(view, schema, known, tree), ""


def primer(view: View, known: Vocabulary) -> dict[str, Any]:
    """Return who the agent is and the map of what it knows; what belongs to no domain is counted by type."""
    key = concept_id(PERSON, SELF)
    actor = next(iter(view.nodes([key])), None) or _node_of(known, key)
    identity = {name: part for name, part in node_json(actor, known.names).items() if name != "metadata"}
    found = _domains(view, known)
    largest = sorted(found, key=lambda one: (-one.members, one.name))[:_MAPPED]
    mapped = [
        _domain_json(one) | {"key_concept_types": list(one.types), "key_proposition_types": list(one.predicates)}
        for one in sorted(largest, key=lambda one: one.name)
    ]
    shown = {"identity": identity, "domain_map": mapped, "outside_domains": _outside(view, known)}
    return shown | ({"domains": len(found)} if len(found) > len(mapped) else {})


def _domain_json(field: _Domain) -> dict[str, Any]:
    description = field.node.fields.get("attributes.description", "")
    return {
        "id": field.node.id,
        "type": DOMAIN,
        "name": field.name,
        "description": description,
        "members": field.members,
    }


def _types(view: View, known: Vocabulary, schema: Schema, tree: s.DescribeTypes) -> tuple[list[str], str]:
    names = sorted(known.names.of_kip if tree.of == "CONCEPT" else schema.edges)
    mark = mark_of(view.basis.store_id, tree)
    if tree.cursor is not None:
        last = cursor_in(tree.cursor, mark).last
        names = [name for name in names if name > last]
    limit = tree.limit.value if tree.limit else len(names)
    shown = names[:limit]
    more = len(shown) < len(names)
    return shown, cursors.encode(cursors.Cursor(mark, view.seq, len(names), shown[-1])) if more else ""


def definition(view: View, known: Vocabulary, of: s.Kind, name: s.Text) -> dict[str, Any]:
    """Return the definition of a type or predicate: the concept that defines it.

    With a type come its ``relationships``: the predicates whose definitions name it. Raises: ``KipRefused`` (KIP_3002).
    """
    kind, key = _KINDS[of], concept_id(_KINDS[of], name.value)
    stored = view.definitions()
    all_known = {node.id: node for node in known.nodes if node.type in _KINDS.values()} | dict(stored)
    found = all_known.get(key) or next((one for one in all_known.values() if _is_called(one, kind, name.value)), None)
    if found is None:
        if of == "CONCEPT":
            raise no_type(known.names, name, code=NOT_FOUND)
        raise no_predicate(
            [str(one.fields.get("name")) for one in all_known.values() if one.type == kind], name, code=NOT_FOUND
        )
    shown = node_json(found, known.names)
    if of == "CONCEPT":
        shown["relationships"] = _relationships(all_known.values(), name.value)
    return shown


def _relationships(nodes: Iterable[Node], name: str) -> Mapping[str, list[str]]:
    predicates = [node for node in nodes if node.type == PREDICATE]
    return {
        side: sorted(str(one.fields.get("name")) for one in predicates if name in (one.fields.get(field) or ()))
        for side, field in (("outgoing", "attributes.subject_types"), ("incoming", "attributes.object_types"))
    }


def _is_called(node: Node, kind: str, name: str) -> bool:
    return node.type == kind and node.fields.get("name") == name


def _node_of(known: Vocabulary, key: str) -> Node:
    return next(node for node in known.nodes if node.id == key)


class _Domain(msgspec.Struct, frozen=True):
    """A domain: how many concepts belong to it, of which types, and by which predicates they are linked."""

    node: Node
    name: str
    members: int
    types: tuple[str, ...]
    predicates: tuple[str, ...]


def _domains(view: View, known: Vocabulary) -> list[_Domain]:
    """Return the domains of a branch by their names."""
    stored = {node.id: node for node in view.nodes([key for (key,) in view.rows(_DOMAINS, [DOMAIN])])}
    nodes = {node.id: node for node in known.nodes if node.type == DOMAIN} | stored
    types: dict[str, Counter[str]] = {key: Counter() for key in nodes}
    for domain, kb_type, count in view.rows(_TYPES):
        if domain in types:
            types[domain][known.names.shown(kb_type)] += count
    for domain, kb_type in _unwritten(view, known):
        types[domain][known.names.shown(kb_type)] += 1
    predicates: dict[str, Counter[str]] = {key: Counter() for key in nodes}
    for domain, predicate, count in view.rows(_PREDICATES):
        if domain in predicates:
            predicates[domain][predicate] += count
    found = [
        _Domain(node, name_of(node, known.names), types[key].total(), _most(types[key]), _most(predicates[key]))
        for key, node in nodes.items()
    ]
    return sorted(found, key=lambda one: (one.name, one.node.id))


def _outside(view: View, known: Vocabulary) -> dict[str, int]:
    """Return how many concepts of each type belong to no domain; domains themselves, and those in no record, aside."""
    counts = {known.names.shown(kb_type): count for kb_type, count in view.rows(_OUTSIDE) if kb_type != DOMAIN}
    return dict(sorted(counts.items()))


def _unwritten(view: View, known: Vocabulary) -> Iterable[tuple[str, str]]:
    """Yield domain and type of what belongs there without a record that says so."""
    types: Mapping[str, str] = {node.id: node.type for node in known.nodes}
    written = {link.id for link in view.links([link.id for link in known.links]) if link.is_resolved}
    return [(one.to_id, types[one.from_id]) for one in known.links if one.id not in written]


def _most(counts: Counter[Any]) -> tuple[str, ...]:
    return tuple(name for name, _ in sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:_KEY])
