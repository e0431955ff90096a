"""The contested fields of a branch: values of changes that have not seen each other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from kbcore.model.graph import CONTESTED, Link, Node, is_contested_note, nested
from kbcore.text.wording import some_of
from kbcore.view.view import View

_MOST_NAMED = 3


class ContestedValue(msgspec.Struct, frozen=True):
    """One contested field of an entity or an edge. ``edge`` is how an edge is called, "" for an entity.

    ``values`` are the alternatives, the one that is shown first, as ``graph.CONTESTED`` says; for ``deleted`` the
    changes that delete the entity.
    """

    id: str
    field: str
    values: tuple[dict[str, Any], ...]
    edge: tuple[str, str, str, str] | None = None
    """Of an edge: type, kind and the ids of both ends."""

    @property
    def name(self) -> str:
        """Return what is contested, as a sentence names it."""
        if self.edge is None:
            return self.id
        type_, kind, from_id, to_id = self.edge
        return f"{from_id} {type_}:{kind} {to_id}" if kind else f"{from_id} {type_} {to_id}"

    def as_json(self) -> dict[str, Any]:
        """Return the conflict as JSON; an edge with its type and its ends."""
        edge = {}
        if self.edge is not None:
            edge = {"type": self.edge[0], "kind": self.edge[1], "from": self.edge[2], "to": self.edge[3]}
        return {"id": self.id, **edge, "field": self.field, "values": list(self.values)}


def find_conflicts(view: View, ids: Collection[str] = ()) -> list[ContestedValue]:
    """Return the contested fields of these entities and edges, of all where none is named, in order."""
    condition = ("contested <> '{}'", ())
    nodes = [row[0] for row in view.cells("node", ("id", CONTESTED), condition, _is_contested)]
    links = [row[0] for row in view.cells("link", ("id", CONTESTED), condition, _is_contested)]
    wanted = set(ids)
    found = [
        *(
            one
            for node in view.nodes([key for key in sorted(nodes) if not wanted or key in wanted])
            for one in of(node)
        ),
        *(
            one
            for link in view.links([key for key in sorted(links) if not wanted or key in wanted])
            for one in of(link)
        ),
    ]
    return sorted(found, key=lambda one: (one.name, one.field))


def of(element: Node | Link) -> list[ContestedValue]:
    """Return the contested fields of an entity or an edge."""
    edge = (element.type, element.kind, element.from_id, element.to_id) if isinstance(element, Link) else None
    return [
        ContestedValue(element.id, field, tuple(values), edge)
        for field, values in nested(element.fields, CONTESTED).items()
    ]


def actors(values: Collection[dict[str, Any]]) -> str:
    """Return by whom the values of a conflict are, as a sentence names them."""
    changes = [change for value in values for change in value.get("changes", [value])]
    return some_of([*dict.fromkeys(str(change["actor"]) for change in changes)], _MOST_NAMED)


def _is_contested(element: Node | Link) -> bool:
    return any(map(is_contested_note, element.fields))
