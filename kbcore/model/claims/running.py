"""The state of changes that follow one another, each of which has seen all before it. Pure.

What is known here of an element is what ``fold`` gives of all changes so far. A change that only sets fields, members
and edges is added at a cost that does not depend on how many changes came before. The elements of any other change are
not known any more: they are folded when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kbcore.ids import link_id
from kbcore.model.claims.change import (
    DOCUMENT,
    MAX_SEEN,
    SELF,
    AddEdge,
    AddMember,
    Change,
    Claim,
    Create,
    EdgeRef,
    EntityRef,
    Ref,
    RemoveEdge,
    RemoveMember,
    SetField,
    UnsetField,
    claim_name,
    creation_of,
    named_by,
)
from kbcore.model.claims.derived import NamedElements
from kbcore.model.claims.fold import ABSENT, ClaimedEdge, Entity, Field, FoldedClaims, Value
from kbcore.model.claims.subjects import ids_in

_ADDED: Final = frozenset({Create, SetField, UnsetField, AddMember, RemoveMember, AddEdge, RemoveEdge})
_OF_DOCUMENT: Final = (DOCUMENT,)
_UNNAMED: Final = Field(())

_OF_CHANGE: Final = (SELF,)

Ends = tuple[str, str]
"""The ids of the entities at the ends of an edge."""


class _Known(msgspec.Struct):
    """An entity, with those of its members that change: the same objects."""

    entity: Entity
    fields: dict[str, Field]
    sets: dict[str, dict[str, tuple[str, ...]]]
    claimed_by: set[str]


class _KnownEdge(msgspec.Struct):
    """An edge with its ends; None for one that no change states, and of whose fields none says anything.

    ``fields`` are those of the edge: the same object.
    """

    ends: Ends
    edge: ClaimedEdge | None
    fields: dict[str, Field]


class RunningClaims:
    """The known state of some entities, and of some edges between entities.

    Each of the entities is *plain*: changes know it by one id and one creation at most, and documents by no former id.
    So no other element has to do with its state.
    """

    def __init__(self) -> None:
        self._entities: dict[str, _Known] = {}
        self._edges: dict[str, _KnownEdge] = {}
        self._at: dict[str, set[str]] = {}
        """The ids of these edges, by each of their ends."""
        self._whole: set[str] = set()
        """The entities of which all edges are known that there are."""

    def __len__(self) -> int:
        """Return how many elements are known."""
        return len(self._entities) + len(self._edges)

    def knows(self, key: str) -> bool:
        """Tell whether an entity is known."""
        return key in self._entities

    def knows_edge(self, key: str, ends: Ends) -> bool:
        """Tell whether it is known of an edge what changes say of it."""
        return key in self._edges or not self._whole.isdisjoint(ends)

    def before(self, touched: NamedElements) -> FoldedClaims | None:
        """Return the state of what the operations of a record touch; None where that is not known here."""
        if not touched.is_simple:
            return None
        known = [one for key in touched.entities if (one := self._entities.get(key)) is not None]
        if len(known) < len(touched.entities) or not all(map(self._may_come, touched.around)):
            return None
        edges = {}
        for key, ends in touched.edges.items():
            if not self.knows_edge(key, ends):
                return None
            found = self._edges.get(key)
            if found is not None and found.edge is not None:
                edges[key] = found.edge
        return FoldedClaims({one.entity.id: one.entity for one in known}, edges, {}, ())

    def _may_come(self, key: str) -> bool:
        """Tell whether an entity was created before, or no change says anything of it and of edges at it."""
        return self._entities[key].entity.of != _OF_DOCUMENT or self._is_new(key)

    def _is_new(self, key: str) -> bool:
        known = self._entities[key]
        return key in self._whole and not (known.fields or known.sets or self._at.get(key))

    def note_new(self, key: str) -> None:
        """Note an entity that no change names."""
        self._put_new(key, DOCUMENT, set())
        self._whole.add(key)

    def note(self, state: FoldedClaims, entities: Iterable[str], edges: Mapping[str, Ends]) -> None:
        """Note what the fold of all changes gives of some entities and edges.

        An edge that is not stated, and of whose fields changes say something all the same, is not noted.
        """
        for key in entities:
            self._put_entity(state.entities[key])
        for key, ends in edges.items():
            if key not in state.unstated:
                self._put_edge(key, ends, state.edges.get(key))

    def forget(self, ids: Iterable[str]) -> None:
        """Forget entities, and the edges at them."""
        for key in ids:
            self._entities.pop(key, None)
            self._whole.discard(key)
            for edge in [*self._at.get(key, ())]:
                self._forget_edge(edge, self._edges[edge].ends)

    def add(self, change: Change) -> None:
        """Add a change that has seen all others. What it is on, and is not known, stays so."""
        if not _ADDED.issuperset(map(type, change.claims)):
            self.forget(ids_in(change))
            return
        last: Ref | None = None
        known: _Known | None = None
        own = (change.id,)
        for at, claim in enumerate(change.claims):
            if type(claim) is Create:
                self._create(change.id, claim.id)
            elif isinstance(claim.on, EntityRef):
                if claim.on is not last:
                    last, known = claim.on, self._named(change.id, claim.on)
                    if known is not None and known.entity.of != _OF_DOCUMENT:
                        known.claimed_by.add(change.id)
                if known and type(claim) is SetField and not claim.after and claim.field not in known.fields:  # most
                    known.fields[claim.field] = Field((Value(claim.now, own),), own)
                elif known is None or not _claim_entity(known, change.id, at, claim):
                    self.forget([claim.on.id])
                    known = None
            elif not self._claim_edge(change.id, at, claim, claim.on):
                self._forget_edge(*_edge_of(claim.on))

    def _create(self, change: str, key: str) -> None:
        known = self._entities.get(key)
        if known is None or known.fields or known.sets:
            self.forget([key])
        else:
            self._put_new(key, creation_of(change, key), {change})

    def _claim_edge(self, change: str, at: int, claim: Claim, on: EdgeRef) -> bool:
        """Add a claim on an edge, and tell whether its state is known after it."""
        if type(claim) is AddMember:  # of what a target said: nothing of the edge itself
            return True
        key, ends = _edge_of(on)
        if not (self.knows_edge(key, ends) and self._named(change, on.from_end) and self._named(change, on.to_end)):
            return False
        if key not in self._edges:
            self._put_edge(key, ends, None)
        known = self._edges[key]
        additions = known.edge.additions if known.edge else ()
        if type(claim) is SetField or type(claim) is UnsetField:
            return bool(additions) and _set(known.fields, change, claim)
        if type(claim) is AddEdge and not additions:
            ref, names = named_by(change, on), (claim_name(change, at),)
            known.edge = ClaimedEdge(key, on.type, on.kind, *ends, additions=names, fields=known.fields, ref=ref)
            return True
        if type(claim) is RemoveEdge and not known.fields and {*additions} <= {*claim.removes}:
            known.edge = None
            return True
        return False

    def _named(self, change: str, ref: Ref) -> _Known | None:
        """Return the entity that a reference of a change names, where it is known and the reference names all of it."""
        if isinstance(ref, EdgeRef):
            return None
        known = self._entities.get(ref.id)
        of = (creation_of(change, ref.id),) if ref.of == _OF_CHANGE else ref.of
        return known if known is not None and known.entity.of == of else None

    def _put_new(self, key: str, of: str, changes: set[str]) -> None:
        fields, sets = dict[str, Field](), dict[str, dict[str, tuple[str, ...]]]()
        shown = Entity(key, (of,), fields, sets, _UNNAMED, (), changes, ())
        self._entities[key] = _Known(shown, fields, sets, changes)

    def _put_entity(self, one: Entity) -> None:
        fields, claimed_by = dict(one.fields), set(one.claimed_by)
        sets = {name: dict(members) for name, members in one.sets.items()}
        shown = msgspec.structs.replace(one, fields=fields, sets=sets, claimed_by=claimed_by)
        self._entities[one.id] = _Known(shown, fields, sets, claimed_by)

    def _put_edge(self, key: str, ends: Ends, one: ClaimedEdge | None) -> None:
        fields = dict(one.fields) if one else {}
        shown = msgspec.structs.replace(one, fields=fields) if one else None
        self._edges[key] = _KnownEdge(ends, shown, fields)
        for end in ends:
            self._at.setdefault(end, set()).add(key)

    def _forget_edge(self, key: str, ends: Ends) -> None:
        self._edges.pop(key, None)
        for end in ends:
            self._at.get(end, set()).discard(key)
            self._whole.discard(end)


def _claim_entity(known: _Known, change: str, at: int, claim: Claim) -> bool:
    """Add a claim on an entity, and tell whether its state is known after it."""
    if type(claim) is SetField or type(claim) is UnsetField:
        return _set(known.fields, change, claim)
    if not (type(claim) is AddMember or type(claim) is RemoveMember):
        return False
    members = dict(known.sets.get(claim.field, {}))
    if type(claim) is AddMember:
        members[claim.now] = tuple(sorted((*members.get(claim.now, ()), claim_name(change, at))))
    else:
        left = [(one, tuple([name for name in names if name not in claim.removes])) for one, names in members.items()]
        members = {one: names for one, names in left if names}
    if members:
        known.sets[claim.field] = dict(sorted(members.items()))
    else:
        known.sets.pop(claim.field, None)
    return True


def _edge_of(ref: EdgeRef) -> tuple[str, Ends]:
    """Return the id and the ends of an edge that is named by the ids that its ends have; "" for an edge at an end."""
    from_id, to_id = [one.id if isinstance(one, EntityRef) else "" for one in (ref.from_end, ref.to_end)]
    return link_id(ref.type, ref.kind, from_id, to_id), (from_id, to_id)


def _set(fields: dict[str, Field], change: str, claim: SetField | UnsetField) -> bool:
    """Give a field the value of a claim of the last change, and tell whether no other one is left beside it."""
    field, own = fields.get(claim.field), (change,)
    value = Value(claim.now if type(claim) is SetField else ABSENT, own)
    if field is None and not claim.after:
        fields[claim.field] = Field((value,), own)
        return True
    seen = tuple(dict.fromkeys(own + claim.after))[:MAX_SEEN]
    if field is not None:
        latest = {one for value in field.values for one in value.changes}
        if not (latest <= {*claim.after} or (latest == {change} and field.seen == seen)):
            return False
    fields[claim.field] = Field((value,), seen, missing=field.missing if field else frozenset())
    return True
