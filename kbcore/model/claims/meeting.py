"""The changes that may be in conflict with others: they have claims on what others have claims on. Pure.

No claim on an entity or an edge is contested as long as all claims on it are of one change. So the state of two sides
together is asked for these changes only.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from kbcore.model.claims.change import Change, Create, EntityRef, Ref, Rename, creation_of
from kbcore.model.claims.subjects import creations_of, entities_in

Name = str | tuple["Name", "Name"]
"""An id or a creation of an entity; for an edge one of each end."""


class Named(NamedTuple):
    """The names in a change: ``claimed`` of what it has claims on, and those of all entities, also at ends of edges.

    ``renamed`` are those of entities that it gives another id.
    """

    claimed: set[Name]
    entities: set[str]
    renamed: set[str]


def named(change: Change) -> Named:
    """Return what a change has claims on."""
    claimed, entities, renamed = found = Named(set(), set(), set())
    last: Ref | None = None
    for claim in change.claims:
        if type(claim) is Create:
            names = claim.id, creation_of(change.id, claim.id)
            claimed.update(names)
            entities.update(names)
        elif type(claim) is Rename:
            renamed.update((claim.now, *_names_of_entity(change.id, claim.on)))
            claimed |= renamed
            entities |= renamed
        elif claim.on is not last and claim.on != last:
            last = claim.on
            claimed.update(_names_of(change.id, last))
            for one in entities_in(last):
                entities.update(_names_of_entity(change.id, one))
    return found


def meeting(
    new: Mapping[str, Named], others: Iterable[Named], known: Container[str], renamed: Collection[str]
) -> set[str]:
    """Return the ids of those of some changes that may be in conflict with one of these, of ``others``, or of more.

    ``known`` are the names of entities that those more changes name, ``renamed`` those of entities with several ids.
    """
    found = [*new.values(), *others]
    times = Counter(itertools.chain.from_iterable(one.claimed for one in found))
    renamed = {*renamed}.union(*(one.renamed for one in found))

    def is_known(name: Name) -> bool:
        return name in known if isinstance(name, str) else all(map(is_known, name))

    return {
        key
        for key, one in new.items()
        if not renamed.isdisjoint(one.entities) or any(times[name] > 1 or is_known(name) for name in one.claimed)
    }


def _names_of(change_id: str, ref: Ref) -> Sequence[Name]:
    if isinstance(ref, EntityRef):
        return _names_of_entity(change_id, ref)
    return [*itertools.product(_names_of(change_id, ref.from_end), _names_of(change_id, ref.to_end))]


def _names_of_entity(change_id: str, ref: EntityRef) -> Sequence[str]:
    return [ref.id, *creations_of(change_id, ref)]
