"""The schema as text: as YAML in the format of ``.kb/schema``, and as JSON.

The order is always the same: KB's own types as KB lists them, then the project's by name.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final, TypeVar

from kbcore.model.schema import CORE, CORE_EDGES, CORE_ENTITIES, Attribute, EdgeType, EntityType, Impact, Schema

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9 ,;.()/'_-]*[A-Za-z0-9.)]|[A-Za-z]")
_HEADER: Final = """\
# The types of entities and edges that every KB store knows. This file is KB's own: it is here to be read,
# and a changed copy is refused; one of another version of KB is left alone. To add types, attributes, statuses
# or edges, write another file beside it, such as project.yaml, in the same format; docs/schema.md of KB explains it.
#
# entities:
#   NAME:                      small letters, digits and _, or UpperCamelCase
#     description: text
#     required: [fields]       fields that each such entity must have
#     statusDefault: text      the status of a document that states none
#     statuses: [texts]        the statuses there are; any, where this is left out
#     attributes:
#       NAME:
#         type: text|number|boolean|list|object|any
#         required: true|false
#         values: [texts]        the values there are, of an attribute that is text
#         keys: [texts]          the members there are, of one that is an object; each holds a text
#         description: text
# edges:
#   NAME:                      small letters, digits and _
#     from: [types]            entity types at the beginning; any: every entity; link: an edge
#     to: [types]              the same for the end
#     acyclic: true|false      whether a cycle breaks the rule about cycles
#     kind: true|false         whether each such edge needs a kind
#     impact: from|to|both|none  the end that is affected when the other one changes
#     description: text

"""

IMPACT_WORDS: Final[Mapping[Impact, str]] = {
    "from": "a change of the to end affects the from end",
    "to": "a change of the from end affects the to end",
    "both": "a change of either end affects the other",
    "none": "a change of one end does not affect the other",
}

_SUM: Final = "# sha256 of what follows: "
"""Begins the first line, by which a copy that nobody changed is known, whatever version wrote it."""

_T = TypeVar("_T")


@cache
def core_schema_text() -> str:
    """Return the file ``core.yaml`` that ``kb init`` writes: KB's own types, to be read."""
    text = _HEADER + schema_yaml(CORE_ENTITIES, CORE_EDGES)
    return f"{_SUM}{_sum_of(text)}\n{text}"


def is_core_schema(text: str) -> bool:
    """Tell whether this is a ``core.yaml`` as a version of KB, this or another one, wrote it."""
    first, _, rest = text.partition("\n")
    return first == _SUM + _sum_of(rest)


def _sum_of(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def schema_yaml(entities: Iterable[EntityType], edges: Iterable[EdgeType]) -> str:
    """Return definitions as YAML in the format of ``.kb/schema``."""
    lines = ["entities:"]
    for entity in entities:
        lines += [f"  {entity.name}:", *_members(_written(entity_type_json(entity)), "    ")]
    lines.append("edges:")
    for edge in edges:
        lines += [f"  {edge.name}:", *_members(_written(edge_type_json(edge)), "    ")]
    return "\n".join(lines) + "\n"


def schema_json(schema: Schema) -> dict[str, Any]:
    """Return the schema as JSON: ``entities`` and ``edges`` by name, in the words of the YAML format.

    Every key is always there; ``origin`` is the file that defines the type, or ``core``.
    """
    return {
        "entities": {entity.name: entity_type_json(entity) for entity in _ordered(schema.entities, CORE.entities)},
        "edges": {edge.name: edge_type_json(edge) for edge in _ordered(schema.edges, CORE.edges)},
    }


def entity_type_json(entity: EntityType) -> dict[str, Any]:
    """Return one entity type as JSON."""
    return {
        "description": entity.description,
        "required": list(entity.required),
        "statusDefault": entity.status_default,
        "statuses": list(entity.statuses),
        "attributes": {name: _attribute_json(one) for name, one in entity.attributes.items()},
        "origin": entity.origin or "core",
    }


def edge_type_json(edge: EdgeType) -> dict[str, Any]:
    """Return one edge type as JSON."""
    return {
        "description": edge.description,
        "from": list(edge.from_types),
        "to": list(edge.to_types),
        "acyclic": edge.acyclic,
        "kind": edge.needs_kind,
        "impact": edge.impact,
        "origin": edge.origin or "core",
    }


def _ordered(found: Mapping[str, _T], core: Iterable[str]) -> list[_T]:
    first = [name for name in core if name in found]
    return [found[name] for name in [*first, *sorted(found.keys() - set(first))]]


def _attribute_json(attribute: Attribute) -> dict[str, Any]:
    return {
        "type": attribute.type,
        "required": attribute.required,
        "values": list(attribute.values),
        "keys": list(attribute.keys),
        "description": attribute.description,
    }


def _written(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members of a definition that say something: not the defaults, and not its origin."""
    kept = {key: member for key, member in members.items() if key not in {"origin", "attributes"} and member}
    attributes = {name: _written(one) for name, one in members.get("attributes", {}).items()}
    return kept | ({"attributes": attributes} if attributes else {})


def _members(members: Mapping[str, Any], indent: str) -> list[str]:
    lines = []
    for key, member in members.items():
        if isinstance(member, dict):
            lines += [f"{indent}{_scalar(key)}:", *_members(member, indent + "  ")]
        elif isinstance(member, list):
            lines.append(f"{indent}{_scalar(key)}: [{', '.join(_scalar(one, ',') for one in member)}]")
        else:
            lines.append(f"{indent}{_scalar(key)}: {_scalar(member)}")
    return lines


def _scalar(value: str | bool, breaking: str = "") -> str:
    """Return a scalar as YAML: as it is where that is safe, else in double quotes."""
    if isinstance(value, bool):
        return "true" if value else "false"
    is_plain = _PLAIN.fullmatch(value) and not (breaking and breaking in value)
    if is_plain:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(one if one.isprintable() else f"\\U{ord(one):08X}" for one in quoted)
