"""Claims on fields, sets and edges, made on a folded state: they name all that the writer saw there."""

from __future__ import annotations

from typing import Any

from kbcore.model.claims import edits
from kbcore.model.claims.change import (
    AddEdge,
    AddMember,
    EdgeRef,
    RemoveEdge,
    RemoveMember,
    SetField,
    UnsetField,
)
from kbcore.model.claims.fold import ABSENT, Field, FoldedClaims


def set_field(state: FoldedClaims, key: str, field: str, value: Any, *, salt: str = "") -> SetField:
    """Return the claim that a field of an entity or an edge has a value, after all that is claimed of it."""
    found = _field(state, key, field)
    was = found.shown if found else ABSENT
    return SetField(edits.reference(state, key), field, was, value, salt, after=_seen(found))


def unset_field(state: FoldedClaims, key: str, field: str) -> UnsetField:
    """Return the claim that a field of an entity or an edge has no value, after all that is claimed of it."""
    found = _field(state, key, field)
    return UnsetField(edits.reference(state, key), field, found.shown if found else ABSENT, _seen(found))


def add_member(state: FoldedClaims, key: str, field: str, member: str, *, salt: str = "") -> AddMember:
    """Return the claim that a set of an entity has a member."""
    return AddMember(edits.entity(state, key), field, now=member, salt=salt)


def remove_member(state: FoldedClaims, key: str, field: str, member: str, *, salt: str = "") -> RemoveMember:
    """Return the claim that takes a member out of a set of an entity."""
    additions = state.entities[key].sets[field][member]
    return RemoveMember(edits.entity(state, key), field, now=member, salt=salt, removes=additions)


def add_edge(state: FoldedClaims, type: str, source: str, target: str, *, kind: str = "") -> AddEdge:  # noqa: A002 - the word of the contract
    """Return the claim that states an edge between entities or edges."""
    return AddEdge(EdgeRef(type, edits.reference(state, source), edits.reference(state, target), kind))


def remove_edge(state: FoldedClaims, key: str) -> RemoveEdge:
    """Return the claim that takes away all that states an edge, documents aside."""
    return RemoveEdge(edits.edge(state, key), state.edges[key].additions)


def _field(state: FoldedClaims, key: str, field: str) -> Field | None:
    found = state.edges.get(key) or state.entities.get(key)
    return found.fields.get(field) if found else None


def _seen(field: Field | None) -> tuple[str, ...]:
    return field.seen if field else ()
