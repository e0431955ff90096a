"""References and claims on whole entities for a new change, made on a folded state. Pure.

They name all that the writer saw there: on a state that has every present change, such claims add no conflict.
"""

from __future__ import annotations

from collections.abc import Iterable

from kbcore.model.claims.change import (
    DOCUMENT,
    Delete,
    EdgeRef,
    EntityRef,
    Keep,
    Ref,
    Rename,
)
from kbcore.model.claims.fold import FoldedClaims


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


def _created(state: FoldedClaims, key: str) -> EntityRef:
    """Return the creations of an entity: a document decides itself whether it is there, and what its id is."""
    of = [one for one in state.entities[key].of if one != DOCUMENT]
    return EntityRef(key, tuple(of))
