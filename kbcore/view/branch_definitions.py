"""The types and predicates that a branch defines by records of its own, which its schema has besides the project's.

They are nodes like others. A view finds them once (``View.definitions``), so that a request pays no statement for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kbcore.model.concepts import DEFINING, Concept, extended
from kbcore.model.graph import Node, nested
from kbcore.model.schema import Schema
from kbcore.view.tables import NODE, Rows, node_of

_AT: Final = f"""
select {", ".join(NODE)} from node where version <= $1 and type in ($2, $3) union all
select {", ".join(NODE)} from node_history where version <= $1 and ended > $1 and type in ($2, $3)
"""


def schema_at(rows: Rows, project: Schema, seq: int) -> Schema:
    """Return the schema of a branch at a seq; ``rows`` answers SQL over the tables of its view."""
    found = map(node_of, rows(_AT, [seq, *DEFINING]))
    return extended(project, definitions(found))


def definitions(nodes: Iterable[Node]) -> list[Concept]:
    """Return what nodes of the two defining types define, always in the same order."""
    return [definition_of(node) for node in sorted(nodes, key=lambda node: node.id)]


def definition_of(node: Node) -> Concept:
    """Return what one such node defines; who gave it no name means the one in its id."""
    name = str(node.fields.get("name") or node.id.removeprefix(f"{node.type}:"))
    return Concept(node.type, name, nested(node.fields, "attributes"))


def is_definition(node: Node) -> bool:
    """Tell whether a node defines a type or a predicate."""
    return node.fields.get("type") in DEFINING
