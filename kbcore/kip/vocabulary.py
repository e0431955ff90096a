"""Elements of every store, without a record: the concepts and propositions of types and predicates. Pure.

It is the same for the same schema, ids included. An element of it that is stored hides the one here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from kbcore.ids import link_id
from kbcore.kip.names import TypeNames, end_types, type_names
from kbcore.model.concepts import (
    AUTHOR,
    CORE_CONCEPTS,
    DEFINING,
    DOMAIN,
    IN_DOMAIN,
    ORIGIN,
    PREDICATE,
    SCHEMA_DOMAIN,
    SYSTEM,
    TYPE,
    Concept,
    concept_id,
)
from kbcore.model.graph import Link, Node, Statement
from kbcore.model.schema import EntityType, Schema

METADATA: Final[Mapping[str, Any]] = {"author": SYSTEM, "confidence": 1.0, "status": "active"}
"""The members of each element besides its source."""

TYPES: Final = frozenset(one.type for one in CORE_CONCEPTS)
"""The types, as KB and KIP call them, that elements of the vocabulary have."""

PREDICATES: Final = frozenset({IN_DOMAIN})


class Vocabulary(msgspec.Struct, frozen=True):
    """The elements of a schema that no record holds, and what its types are called."""

    names: TypeNames
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]


def vocabulary(schema: Schema) -> Vocabulary:
    """Return the vocabulary of a schema, which ``concepts.extended`` has extended.

    Definitions that a branch adds are stored, and so are not in it.
    """
    names = type_names(schema)
    nodes = {node.id: node for node in map(_node, _concepts(schema, names))}
    domain = concept_id(DOMAIN, SCHEMA_DOMAIN)
    links = tuple(_link(node.id, domain) for node in nodes.values() if node.type in DEFINING)
    return Vocabulary(names, tuple(nodes.values()), links)


def _concepts(schema: Schema, names: TypeNames) -> Iterator[Concept]:
    for name, entity in sorted(schema.entities.items()):
        if entity.origin != ORIGIN:
            described = {"description": entity.description, "instance_schema": dict(_members(entity))}
            yield Concept(TYPE, names.shown(name), described)
    for name, edge in sorted(schema.edges.items()):
        if edge.origin != ORIGIN:
            ends = {"subject_types": end_types(names, edge.from_types), "object_types": end_types(names, edge.to_types)}
            yield Concept(PREDICATE, name, {"description": edge.description, **ends})
    yield from CORE_CONCEPTS


def _members(entity: EntityType) -> Iterable[tuple[str, dict[str, Any]]]:
    """Yield the attributes that a type of KB's or the project's demands or declares."""
    kinds = {"text": "string", "list": "array", "any": ""}
    for field in entity.required:
        yield field, {"type": "string", "required": True}
    for name, one in entity.attributes.items():
        kind = kinds.get(one.type, one.type)
        shown: dict[str, Any] = {"type": kind} if kind else {}
        shown |= {"description": one.description} if one.description else {}
        shown |= {"required": True} if one.required else {}
        yield name, shown | ({"enum": list(one.values)} if one.values else {})


def _node(concept: Concept) -> Node:
    fields = {"type": concept.type, "name": concept.name, "title": concept.name}
    attributes = {f"attributes.{key}": value for key, value in concept.attributes.items()}
    stamped = {f"metadata.{key}": value for key, value in METADATA.items()}
    return Node(
        id=concept_id(concept.type, concept.name),
        fields={**fields, **attributes, **stamped},
        owners={},
        created_at="",
        updated_at="",
        source=AUTHOR,
        created_seq=0,
        version=0,
    )


def _link(from_id: str, to_id: str) -> Link:
    said = {f"metadata.{key}": value for key, value in METADATA.items() if key not in {"author", "confidence"}}
    return Link(
        id=link_id(IN_DOMAIN, "", from_id, to_id),
        type=IN_DOMAIN,
        kind="",
        from_id=from_id,
        to_id=to_id,
        fields={"confidence": 1.0, **said},
        owners={},
        statements=(Statement("", via=AUTHOR),),
        is_resolved=True,
        created_at="",
        created_by=SYSTEM,
        created_seq=0,
        version=0,
    )
