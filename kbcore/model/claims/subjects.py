"""The elements that changes have claims on: creations, ids, and the ends of edges. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec

from kbcore.model.claims.change import (
    DOCUMENT,
    SELF,
    Change,
    Create,
    Delete,
    EdgeRef,
    EntityRef,
    Ref,
    Rename,
    creation_of,
    named_by,
)
from kbcore.model.claims.fold import fold


class Subjects(msgspec.Struct, frozen=True):
    """The elements that a state is asked for, by ids that entities have or had.

    ``entities`` are asked for themselves, ``around`` for all edges at them, and ``edges`` has the ends of single edges,
    for one about an edge those of that one as well.
    """

    entities: frozenset[str] = frozenset()
    around: frozenset[str] = frozenset()
    edges: tuple[frozenset[str], ...] = ()


def ids_of_clients(changes: Sequence[Change]) -> AbstractSet[str]:
    """Return the ids of the entities that changes created and that are there."""
    claims = [claim for change in changes for claim in change.claims]
    if any(type(claim) is Delete or type(claim) is Rename for claim in claims):
        return fold(changes).entities.keys()
    return {claim.id for claim in claims if type(claim) is Create}


class Claimed(NamedTuple):
    """The subjects of a change's claims.

    ``keys`` are creations, with True those that are ends of edges, ``names`` each id that the change gives to a
    creation, or knows it by, with the creation, and ``edges`` the ids at the ends of each edge.
    """

    keys: set[tuple[str, bool]]
    names: set[tuple[str, str]]
    edges: set[frozenset[str]]


def claimed_by(change: Change) -> Claimed:
    """Return what a change has claims on."""
    found = Claimed(set(), set(), set())
    keys, names, edges = found
    last: Ref | None = None
    for claim in change.claims:
        if type(claim) is Create:
            creation = creation_of(change.id, claim.id)
            keys.add((creation, False))
            names.add((claim.id, creation))
            continue
        if type(claim) is Rename:
            names.update((claim.now, one) for one in named_by(change.id, claim.on).of)
        on = claim.on
        if on is last or on == last:
            continue
        last = on
        entities, is_end = entities_in(on), type(on) is EdgeRef
        if is_end:
            edges.add(frozenset([one.id for one in entities]))
        for entity in entities:
            for one, creation in zip(entity.of, creations_of(change.id, entity), strict=True):
                keys.add((creation, is_end))
                if one != DOCUMENT:
                    names.add((entity.id, creation))
    return found


def refs_of(change: Change) -> list[Ref]:
    """Return what the claims of a change are on, each once."""
    found = dict[Ref, None]()
    last: Ref | None = None
    for claim in change.claims:
        if type(claim) is not Create:
            on = claim.on
            if on is not last and on != last:
                last = on
                found[on] = None
    return [*found]


def names_in(change: Change) -> set[tuple[str, str]]:
    """Return each id that a change gives to a creation, or knows it by, with the creation."""
    return claimed_by(change).names


def ids_in(change: Change) -> set[str]:
    """Return the ids of the entities that the claims of a change name."""
    found = {one.id for ref in refs_of(change) for one in entities_in(ref)}
    for claim in change.claims:
        if type(claim) is Rename:
            found.add(claim.now)
        elif type(claim) is Create:
            found.add(claim.id)
    return found


def creations_of(change_id: str, entity: EntityRef) -> list[str]:
    """Return the creations that a reference of a change names, the entity of a document by its id."""
    return [
        creation_of(DOCUMENT, entity.id)
        if one == DOCUMENT
        else creation_of(change_id, entity.id)
        if one == SELF
        else one
        for one in entity.of
    ]


def entities_in(ref: Ref) -> Sequence[EntityRef]:
    """Return the entities that a reference names: it itself, or the ends of an edge."""
    if isinstance(ref, EntityRef):
        return (ref,)
    return (*entities_in(ref.from_end), *entities_in(ref.to_end))
