"""The operations that write what the changes of clients come to into a state: of entities, and of edges. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kbcore.model.claims.change import DOCUMENT
from kbcore.model.claims.derived import SETS
from kbcore.model.claims.fold import ABSENT, DELETED, ID, ClaimedEdge, Entity, Field
from kbcore.model.graph import CLIENT, FORMER_IDS, Link, Node, contested_note, former_ids, is_contested_note
from kbcore.model.record import DropNode, Operation, PutNode, StateLink
from kbcore.model.schema import Schema
from kbcore.model.state import State
from kbcore.model.values import is_same

STATUS: Final = "status"

_DELETED: Final = contested_note(DELETED)
_ID: Final = contested_note(ID)


class ClaimOperations:
    """The operations that write the result of changes into a state.

    With a ``schema``, an entity whose document states no status has the default of its type again once no change gives
    it one.
    """

    def __init__(self, state: State, origins: Mapping[str, dict[str, Any]], schema: Schema | None = None) -> None:
        self._state = state
        self._origins = origins
        self._types = schema.entities if schema else {}

    def entity(self, key: str, was: Entity | None, now: Entity | None) -> list[Operation]:
        """Return the operations for one entity."""
        node = self._state.nodes.get(key)
        if now is None or (now.of == (DOCUMENT,) and node is None):
            return [DropNode(key, node.version)] if node is not None and not node.owners else []
        wanted = self._wanted(was, now, node)
        if node is None:
            if "type" not in wanted:
                return []  # the claim of its type waits
            return [PutNode(key, 0, wanted | self._made(now))]
        known = {*_values(was), *contested_names(node)} if was else set(contested_names(node))
        if was and was.former_ids:
            known.add(FORMER_IDS)
        if STATUS in known and node.path and (definition := self._types.get(node.type)):
            wanted = {STATUS: definition.status_default} | wanted
        unset = tuple(sorted(name for name in known - wanted.keys() if name in node.fields and name not in node.owners))
        changed = {
            name: value
            for name, value in wanted.items()
            if name not in node.owners and not _is_as(name, node.fields.get(name, ABSENT), value)
        }
        return [PutNode(key, node.version, changed, unset)] if changed or unset else []

    def edge(self, key: str, was: ClaimedEdge | None, now: ClaimedEdge) -> list[Operation]:
        """Return the operations for an edge that changes state."""
        link = self._state.links.get(key)
        wanted = shown_of_clients(now.fields) | self._contested(now.fields)
        if link is None:
            return [StateLink(now.type, now.from_id, now.to_id, 0, now.kind, wanted | self._made_edge(now))]
        known = {*_values(was), *contested_names(link)} if was else set(contested_names(link))
        unset = tuple(sorted(name for name in known - wanted.keys() if name in link.fields and name not in link.owners))
        changed = {
            name: value
            for name, value in wanted.items()
            if name not in link.owners and not (name in link.fields and is_same(link.fields[name], value))
        }
        is_stated = any(one.src == CLIENT for one in link.statements)
        if is_stated and not changed and not unset:
            return []
        return [StateLink(now.type, now.from_id, now.to_id, link.version, now.kind, changed, unset)]

    def _wanted(self, was: Entity | None, now: Entity, node: Node | None) -> dict[str, Any]:
        """Return the fields of clients that an entity has."""
        found = shown_of_clients(now.fields)
        for name, members in now.sets.items():
            if members and name not in now.fields:
                found[name] = list(members)
        gone = {*was.former_ids} - {*now.former_ids} if was else set[str]()
        if former := list(dict.fromkeys([*(one for one in former_ids(node) if one not in gone), *now.former_ids])):
            found[FORMER_IDS] = former
        found |= self._contested(now.fields)
        if now.names.is_contested:
            found[_ID] = self._alternatives(now.names)
        if now.deletions:
            found[_DELETED] = [self._origins[one] for one in now.deletions if one in self._origins]
        return found

    def _contested(self, fields: Mapping[str, Field]) -> dict[str, Any]:
        contested = [name for name, one in fields.items() if len(one.values) > 1 and one.is_contested]
        return {contested_note(name): self._alternatives(fields[name]) for name in contested}

    def _alternatives(self, field: Field) -> list[dict[str, Any]]:
        """Return the values of a contested field, the one that is shown first; none where it is removed."""
        return [
            {
                **({} if value.value is ABSENT else {"value": value.value}),
                "changes": [self._origins[one] for one in value.changes if one in self._origins],
            }
            for value in field.values
        ]

    def _made(self, entity: Entity) -> dict[str, Any]:
        """Return when an entity was created, and by which file."""
        origins = [self._origins[one.partition(":")[0]] for one in entity.of if one.partition(":")[0] in self._origins]
        if not origins:
            return {}
        first = min(origins, key=lambda one: (one["at"], one["change"]))
        return {"created_at": first["at"], **({"source": first["file"]} if "file" in first else {})}

    def _made_edge(self, edge: ClaimedEdge) -> dict[str, Any]:
        """Return when an edge was stated first, and by whom."""
        ids = [one.partition(".")[0] for one in edge.additions]
        origins = [self._origins[one] for one in ids if one in self._origins]
        if not origins:
            return {}
        first = min(origins, key=lambda one: (one["at"], one["change"]))
        source = {"source": first["file"]} if "file" in first else {}
        return {"created_at": first["at"], "created_by": first["actor"], **source}


def _is_as(name: str, old: Any, value: Any) -> bool:
    """Tell whether a field is as it is wanted; the members of a set have no order."""
    if old is ABSENT:
        return False
    if name in SETS and isinstance(old, list):
        return sorted(old) == sorted(value)
    return is_same(old, value)


def shown_of_clients(fields: Mapping[str, Field]) -> dict[str, Any]:
    """Return the values that changes give to fields, but those that a document states."""
    return {
        name: field.values[0].value
        for name, field in fields.items()
        if field.values and field.stated is ABSENT and field.values[0].value is not ABSENT
    }


def _values(element: Entity | ClaimedEdge) -> Iterable[str]:
    """Return the names of the fields that changes claim."""
    yield from (name for name, field in element.fields.items() if field.values)
    if isinstance(element, Entity):
        yield from element.sets


def contested_names(element: Node | Link | None) -> Iterable[str]:
    """Return the names of the fields of an element that say what is contested."""
    return [name for name in element.fields if is_contested_note(name)] if element else []
