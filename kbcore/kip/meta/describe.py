"""DESCRIBE: who the agent is, how KIP is written, which domains there are, and what the schema of a branch defines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kbcore.kip import syntax as s
from kbcore.kip.elements import node_json
from kbcore.kip.errors import NOT_FOUND
from kbcore.kip.meta import domains
from kbcore.kip.meta.neighbourhood import neighbourhood
from kbcore.kip.paging import cursor_in, mark_of
from kbcore.kip.reference import SYNTAX
from kbcore.kip.undefined_names import no_predicate, no_type
from kbcore.kip.vocabulary import Vocabulary, vocabulary
from kbcore.model.concepts import DOMAIN, PERSON, PREDICATE, SELF, TYPE, concept_id
from kbcore.model.graph import Node
from kbcore.model.schema import Schema
from kbcore.text import cursor as cursors
from kbcore.view.view import View

_KINDS: Final = {"CONCEPT": TYPE, "PROPOSITION": PREDICATE}
_MAPPED: Final = 100
"""The number of domains in the primer: those with the most members."""


def describe(view: View, schema: Schema, tree: s.Describe) -> tuple[Any, str]:
    """Return what a DESCRIBE answers, and the cursor of the next page, "" where there is none.

    Raises: ``KipRefused`` with the offset of the place: KIP_3002 for an unknown definition, KIP_1001 for a cursor.
    """
    known = vocabulary(schema)
    match tree:
        case s.DescribePrimer():
            return primer(view, known), ""
        case s.DescribeDomains():
            return [_domain_json(one) for one in domains.domains(view, known)], ""
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
    found = domains.domains(view, known)
    largest = sorted(found, key=lambda one: (-one.members, one.name))[:_MAPPED]
    mapped = [
        _domain_json(one) | {"key_concept_types": list(one.types), "key_proposition_types": list(one.predicates)}
        for one in sorted(largest, key=lambda one: one.name)
    ]
    shown = {"identity": identity, "domain_map": mapped, "outside_domains": domains.outside(view, known)}
    return shown | ({"domains": len(found)} if len(found) > len(mapped) else {})


def _domain_json(field: domains.Domain) -> dict[str, Any]:
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
