"""What a branch defines by records of its own: the types and predicates that its schema has beside the project's.

They are nodes like others. Which they are is found once for a view and kept up with each record that it takes in, so
that a request pays no statement for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kbcore.model.concepts import DEFINING, Concept, extended
from kbcore.model.graph import Node, nested
from kbcore.model.schema import Schema
from kbcore.model.state import Changes
from kbcore.view.tables import NODE, AskBase, Rows, node_of
from kbcore.view.tail import Tail

_OF_BASE: Final = f"select {', '.join(NODE)} from base.node where type in (?, ?)"

_AT: Final = f"""
select {", ".join(NODE)} from node where version <= $1 and type in ($2, $3) union all
select {", ".join(NODE)} from node_history where version <= $1 and ended > $1 and type in ($2, $3)
"""


class BranchDefinitions:
    """The definitions of a branch at the seq of one view, and the schema that they make of a project's."""

    def __init__(self, ask_base: AskBase) -> None:
        self._ask_base = ask_base
        self._nodes: dict[str, Node] | None = None
        self._made: tuple[Schema, Schema] | None = None

    def note(self, changes: Changes) -> None:
        """Take in what one record changed."""
        for change in changes.nodes:
            if _is_definition(change.before) or _is_definition(change.after):
                self._made = None
                if self._nodes is not None:
                    self._nodes.pop(change.key, None)
                    if change.after is not None and _is_definition(change.after):
                        self._nodes[change.key] = change.after

    def nodes(self, tail: Tail) -> Mapping[str, Node]:
        """Return the nodes that define something, by id; ``tail`` is what came after the base of the view."""
        if self._nodes is None:
            after = tail.elements["node"]
            found = {node.id: node for node in map(node_of, self._ask_base(_OF_BASE, *DEFINING))}
            found = {key: node for key, node in found.items() if key not in after}
            self._nodes = found | {key: node for key, node in after.items() if _is_definition(node)}
        return self._nodes

    def schema(self, project: Schema, tail: Tail) -> Schema:
        """Return the schema of the branch, out of that of the project."""
        if self._made is None or self._made[0] is not project:
            self._made = project, extended(project, definitions(self.nodes(tail).values()))
        return self._made[1]


def schema_at(rows: Rows, project: Schema, seq: int) -> Schema:
    """Return the schema of a branch as it stood at a seq; ``rows`` answers SQL over the tables of its view."""
    found = map(node_of, rows(_AT, [seq, *DEFINING]))
    return extended(project, definitions(found))


def definitions(nodes: Iterable[Node]) -> list[Concept]:
    """Return what nodes of the two defining types define, always in the same order."""
    return [definition_of(node) for node in sorted(nodes, key=lambda node: node.id)]


def definition_of(node: Node) -> Concept:
    """Return what one such node defines; who gave it no name means the one in its id."""
    name = str(node.fields.get("name") or node.id.removeprefix(f"{node.type}:"))
    return Concept(node.type, name, nested(node.fields, "attributes"))


def _is_definition(node: Node | None) -> bool:
    return node is not None and node.fields.get("type") in DEFINING
