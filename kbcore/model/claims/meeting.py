"""The changes that may be in conflict with others: they have claims on what others have claims on. Pure.

No claim on an entity or an edge is contested as long as all claims on it are of one change. So the state of two sides
together is asked for these changes only.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kbcore.ids import is_link_id, link_id
from kbcore.model.claims.change import Change, Create, EdgeRef, EntityRef, Ref, Rename, creation_of
from kbcore.model.claims.subjects import creations_of, entities_in

Name = str | tuple["Name", "Name"]
"""An id or a creation of an entity; for an edge one of each end."""


class Named(NamedTuple):
    """The names in a change: ``claimed`` of what it has claims on, and those of all entities, also at ends of edges.

    ``renamed`` are those of entities that it gives another id, and of edges that it knows by their id.
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
                if is_link_id(one.id):
                    renamed.add(one.id)
            entities.update(_edges_at(last))
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
    # An edge at an end may be named by its id as well.
    at_from, at_to = ((*_names_of(change_id, end), *_id_of_edge(end)) for end in (ref.from_end, ref.to_end))
    return [*itertools.product(at_from, at_to)]


def _edges_at(ref: Ref) -> Iterator[str]:
    """Yield the ids of the edges at the ends of an edge, and of those at their ends."""
    for end in (ref.from_end, ref.to_end) if isinstance(ref, EdgeRef) else ():
        yield from _id_of_edge(end)
        yield from _edges_at(end)


def _id_of_edge(ref: Ref) -> Sequence[str]:
    """Return the id of an edge by the ids that a change knows its ends by, nothing of an entity."""
    if isinstance(ref, EntityRef):
        return ()
    ends = (one.id if isinstance(one, EntityRef) else _id_of_edge(one)[0] for one in (ref.from_end, ref.to_end))
    return (link_id(ref.type, ref.kind, *ends),)


def _names_of_entity(change_id: str, ref: EntityRef) -> Sequence[str]:
    return [ref.id, *creations_of(change_id, ref)]
