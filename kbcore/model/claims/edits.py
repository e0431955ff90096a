"""The claims of a new change, made on a folded state: they name all that the writer saw there. Pure.

A change whose claims are made so, on a state that has every present change, adds no conflict.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kbcore.model.claims.change import (
    DOCUMENT,
    AddEdge,
    AddMember,
    Delete,
    EdgeRef,
    EntityRef,
    Keep,
    Ref,
    RemoveEdge,
    RemoveMember,
    Rename,
    SetField,
    UnsetField,
)
from kbcore.model.claims.fold import ABSENT, Field, FoldedClaims


def reference(state: FoldedClaims, key: str) -> Ref:
    """Return how a change names the entity or the edge of an id; an id of neither is one that a document may state."""
    return edge(state, key) if key in state.edges else entity(state, key)


def edge(state: FoldedClaims, key: str) -> EdgeRef:
    """Return how a change names an edge: as the first claim that adds it, or by the ends that a document states."""
    one = state.edges[key]
    return one.ref or EdgeRef(one.type, reference(state, one.from_id), reference(state, one.to_id), one.kind)


def entity(state: FoldedClaims, key: str) -> EntityRef:
    """Return how a change names an entity."""
    found = state.entities.get(key)
    return EntityRef(key, found.of) if found else EntityRef(key)


def set_field(state: FoldedClaims, key: str, field: str, value: Any, *, salt: str = "") -> SetField:
    """Return the claim that a field of an entity or an edge has a value, after all that is claimed of it."""
    found = _field(state, key, field)
    was = found.shown if found else ABSENT
    return SetField(reference(state, key), field, was, value, salt, after=_seen(found))


def unset_field(state: FoldedClaims, key: str, field: str) -> UnsetField:
    """Return the claim that a field of an entity or an edge has no value, after all that is claimed of it."""
    found = _field(state, key, field)
    return UnsetField(reference(state, key), field, found.shown if found else ABSENT, _seen(found))


def add_member(state: FoldedClaims, key: str, field: str, member: str, *, salt: str = "") -> AddMember:
    """Return the claim that a set of an entity has a member."""
    return AddMember(entity(state, key), field, now=member, salt=salt)


def remove_member(state: FoldedClaims, key: str, field: str, member: str, *, salt: str = "") -> RemoveMember:
    """Return the claim that takes a member out of a set of an entity."""
    additions = state.entities[key].sets[field][member]
    return RemoveMember(entity(state, key), field, now=member, salt=salt, removes=additions)


def delete(state: FoldedClaims, key: str) -> Delete:
    """Return the claim that deletes all creations of an entity; its edges stay."""
    return Delete(_created(state, key), tuple(sorted(state.entities[key].claimed_by)))


def keep(state: FoldedClaims, key: str) -> Keep:
    """Return the claim that an entity stays in spite of the deletions that did not see all of it."""
    return Keep(_created(state, key), state.entities[key].deletions)


def rename(state: FoldedClaims, key: str, now: str, *, creations: Iterable[str] = ()) -> Rename:
    """Return the claim that an entity has another id; with ``creations`` only these of the creations of one id."""
    on = EntityRef(key, tuple(creations)) if creations else _created(state, key)
    return Rename(on, now, state.entities[key].names.seen)


def add_edge(state: FoldedClaims, type: str, source: str, target: str, *, kind: str = "") -> AddEdge:  # noqa: A002 - the word of the contract
    """Return the claim that states an edge between entities or edges."""
    return AddEdge(EdgeRef(type, reference(state, source), reference(state, target), kind))


def remove_edge(state: FoldedClaims, key: str) -> RemoveEdge:
    """Return the claim that takes away all that states an edge, documents aside."""
    return RemoveEdge(edge(state, key), state.edges[key].additions)


def _created(state: FoldedClaims, key: str) -> EntityRef:
    """Return the creations of an entity: a document decides itself whether it is there, and what its id is."""
    of = [one for one in state.entities[key].of if one != DOCUMENT]
    return EntityRef(key, tuple(of))


def _field(state: FoldedClaims, key: str, field: str) -> Field | None:
    found = state.edges.get(key) or state.entities.get(key)
    return found.fields.get(field) if found else None


def _seen(field: Field | None) -> tuple[str, ...]:
    return field.seen if field else ()
