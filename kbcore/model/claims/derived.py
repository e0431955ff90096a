"""The change that a record of a client is. Pure.

The records of a branch have one order, so a client has seen every change that was present before its record. What a
claim names follows from that, and a record need not state it: the same journal gives the same changes, with the same
ids, in every copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from kbcore.ids import is_link_id, link_id
from kbcore.model import verdict
from kbcore.model.claims import edits
from kbcore.model.claims.change import (
    CONFIRMED,
    DOCUMENT,
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
    Rename,
    SetField,
    UnsetField,
    identified,
    salt_of,
    value_key,
)
from kbcore.model.claims.fold import ABSENT, DELETED, ID, ClaimedEdge, Entity, Field, FoldedClaims, later_id
from kbcore.model.graph import CLIENT, FORMER_IDS, contested_note, former_ids_of, is_contested_note
from kbcore.model.record import (
    EPOCH,
    MERGE,
    REPAIR,
    RESULTS,
    SYNC,
    ConfirmLink,
    DropNode,
    EdgeOperation,
    Operation,
    PutNode,
    Record,
    StateLink,
    TakeChange,
    WithdrawLink,
)

SETS: Final = frozenset({"tags"})
"""The fields of which each member is claimed by itself."""

_NO_CHANGE: Final = frozenset({SYNC, MERGE, REPAIR, EPOCH, RESULTS})
_NO_FIELD: Final = frozenset({FORMER_IDS, "source", *verdict.FIELDS})
"""Members without claims, beside contested ones: former ids follow from renames, the source is the change."""


_MOVED_WITH: Final = frozenset({"created_at", "created_by", "updated_at"})
"""The members of an entity or an edge that a rename writes again, although nobody states it."""


def may_be_change(record: Record) -> bool:
    """Tell whether a record may be a change of a client. One that brings changes with it is none beside these."""
    is_of_others = record.source in _NO_CHANGE or any(type(op) is TakeChange and not op.file for op in record.ops)
    return not is_of_others and any(_is_of_client(op) for op in record.ops)


def settles(op: Operation) -> bool:
    """Tell whether an operation decides what is contested."""
    return (type(op) is PutNode or type(op) is StateLink) and any(map(is_contested_note, op.unset))


class NamedElements(msgspec.Struct, frozen=True):
    """The elements that operations name: entities, those whose edges may all change, and single edges with their ends.

    ``is_simple`` says that no entity goes, and that no edge is an end of another one.
    """

    entities: frozenset[str]
    around: frozenset[str]
    edges: Mapping[str, tuple[str, str]]
    is_simple: bool


def touched(ops: Iterable[Operation]) -> NamedElements:
    """Return what a client's operations name."""
    entities, around, edges = set[str](), set[str](), dict[str, tuple[str, str]]()
    is_simple = True
    for op in ops:
        if not _is_of_client(op):
            continue
        if type(op) is PutNode:
            entities.add(op.id)
            if op.base == 0:
                around.add(op.id)
        elif type(op) is DropNode:
            entities.add(op.id)
            around.add(op.id)
            is_simple = False
        elif isinstance(op, EdgeOperation):
            ends = edges[_key(op)] = op.from_id, op.to_id
            for end in ends:
                if is_link_id(end):
                    is_simple = False
                else:
                    entities.add(end)
    return NamedElements(frozenset(entities), frozenset(around), edges, is_simple)


def derived(record: Record, chain: str, before: FoldedClaims) -> Change | None:
    """Return the change that a record is; None where it claims nothing.

    ``chain`` is the hash of the record in its journal, which the salts are made of: nobody without the journal can
    guess them. ``before`` is the state of the changes before it, of what ``touched`` names at least.
    """
    found = _Claims(record.ops, chain, before)
    for op in filter(_is_of_client, record.ops):
        if type(op) is PutNode:
            found.put(op)
        elif type(op) is StateLink:
            found.state_edge(op)
        elif type(op) is DropNode:
            found.drop(op.id)
        elif type(op) is WithdrawLink:
            found.withdraw_edge(op)
        elif type(op) is ConfirmLink:
            found.confirm_edge(op)
    if not found.claims:
        return None
    return identified(
        Change(
            id="",
            at=record.at,
            actor=record.actor,
            tool=record.tool,
            claims=tuple(found.claims),
            message=record.message,
            salt=found.salt("message") if record.message else "",
            session=record.session,
        )
    )


class _Claims:
    """The claims of one record, as its operations are read in their order."""

    def __init__(self, ops: Sequence[Operation], chain: str, before: FoldedClaims) -> None:
        self.claims: list[Claim] = []
        self._chain = chain
        self._before = before
        self._documented = {op.id for op in ops if type(op) is PutNode and op.src != CLIENT and "type" in op.set}
        self._earlier = _renamed(ops)
        later = {old: new for new, old in self._earlier.items()}
        last = {_key(op): op for op in ops if (type(op) is StateLink or type(op) is WithdrawLink) and op.src == CLIENT}
        self._stays = {key for key, op in last.items() if type(op) is StateLink}
        self._moved: dict[str, str] = {}
        """By the later id of an edge that only its ends' new ids move: its id before."""
        gone = [key for key in last if key not in self._stays]
        for key in gone:
            moved = later_id(key, before.edges, later)
            if moved != key and moved in self._stays and key in before.edges:
                self._moved[moved] = key
        self._withdrawn = {*gone} - {*self._moved.values()}
        self._created: set[str] = set()
        self._bound: set[str] = set()
        """The edges of ``_bind_edges``."""
        self._added: dict[str, EdgeRef] = {}

    @cached_property
    def _edges_at(self) -> dict[str, list[ClaimedEdge]]:
        """The edges before the record, by each of their ends."""
        found: dict[str, list[ClaimedEdge]] = {}
        for edge in self._before.edges.values():
            for end in {edge.from_id, edge.to_id}:
                found.setdefault(end, []).append(edge)
        return found

    def salt(self, name: object) -> str:
        """Return the salt of a value of this record."""
        return salt_of(self._chain, name)

    def put(self, op: PutNode) -> None:
        """Claim what an operation sets and removes of an entity."""
        old = self._earlier.get(op.id, op.id)
        entity = self._before.entities.get(old)
        self._place(op, old, entity)
        on = self._entity(op.id)
        known = None if op.id in self._created else entity
        fields = known.fields if known else {}
        for name, value in op.set.items():
            if name in SETS:
                self._set_members(on, known, name, value)
            elif _is_claimed(name) and (old == op.id or name not in _MOVED_WITH):
                self._set(on, fields, name, value, op.unset)
        for name in op.unset:
            if name in SETS:
                self._set_members(on, known, name, [])
            elif _is_claimed(name):
                self._unset(on, fields, name)
        if entity is not None and contested_note(DELETED) in op.unset:
            self.claims.append(edits.keep(self._before, old))
        if entity is not None and old == op.id and contested_note(ID) in op.unset:
            self.claims.append(Rename(EntityRef(old, _created(entity)), old, entity.names.seen))

    def _place(self, op: PutNode, old: str, entity: Entity | None) -> None:
        """Claim that an entity is there, or its new id."""
        created = _created(entity) if entity is not None else ()
        if old != op.id and entity is not None and created:
            self._bind_edges(old)
            self.claims.append(Rename(EntityRef(old, created), op.id, entity.names.seen))
        elif op.base == 0 and not created and op.id not in self._created and op.id not in self._documented:
            self.claims.append(Create(op.id))
            self._created.add(op.id)
            self._bind_edges(op.id)

    def drop(self, key: str) -> None:
        """Claim that an entity goes, unless it gets another id."""
        entity = self._before.entities.get(key)
        if key in self._earlier.values() or entity is None or all(one == DOCUMENT for one in entity.of):
            return
        self._bind_edges(key)
        self.claims.append(edits.delete(self._before, key))

    def _bind_edges(self, key: str) -> None:
        """Claim the edges at an id again whose claims name another entity that had it, or none.

        Such an edge belongs to the entity from now on, and stays with it when its id changes or is given to another.
        """
        if not self._before.edges:
            return
        entity = self._before.entities.get(key)
        of = {*entity.of} if entity else set[str]()
        stale = [
            edge
            for edge in self._edges_at.get(key, ())
            if edge.ref and edge.id not in self._withdrawn and edge.id not in self._bound
            if any(end == key and not _is_of(ref, of) for end, ref in _ends(edge, edge.ref))
        ]
        for edge in stale:  # and the edges at these, which are added meanwhile
            self._bound.add(edge.id)
            stale += [one for one in self._edges_at.get(edge.id, ()) if one.ref and one.id not in self._withdrawn]
            ref = EdgeRef(edge.type, self._end(edge.from_id), self._end(edge.to_id), edge.kind)
            self._added[edge.id] = ref
            self.claims.append(RemoveEdge(edge.ref or ref, edge.additions))
            self.claims.append(AddEdge(ref))
            for name, field in edge.fields.items():
                if field.shown is not ABSENT:
                    self.claims.append(
                        SetField(ref, name, field.shown, field.shown, self._next_salt(), after=field.seen)
                    )

    def state_edge(self, op: StateLink) -> None:
        """Claim an edge, and what an operation sets and removes of it."""
        key = _key(op)
        if key not in self._stays:
            return
        edge = self._before.edges.get(self._moved.get(key, key))
        if key not in self._added and (edge is None or not edge.additions):
            ref = EdgeRef(op.type, self._end(op.from_id), self._end(op.to_id), op.kind)
            self._added[key] = ref
            self.claims.append(AddEdge(ref))
            waiting = self._waiting(op)
            self.claims += [
                UnsetField(ref, name, after=field.seen) for name, field in waiting.items() if name not in op.set
            ]
        on = self._added_edge(key) or (edge.ref if edge else None) or self._end(key)
        is_new = key in self._added and key not in self._bound
        fields = self._waiting(op) if is_new else edge.fields if edge else {}
        for name, value in op.set.items():
            if _is_claimed(name) and (key not in self._moved or name not in _MOVED_WITH):
                self._set(on, fields, name, value, op.unset)
        for name in op.unset:
            if _is_claimed(name):
                self._unset(on, fields, name)

    def _waiting(self, op: StateLink) -> Mapping[str, Field]:
        """Return the fields that claims give an edge which is not there, by the ids that its ends had before."""
        ends = [self._earlier.get(end, end) for end in (op.from_id, op.to_id)]
        key = link_id(op.type, op.kind, *ends)
        edge = self._before.edges.get(key)
        return edge.fields if edge and not edge.additions else self._before.unstated.get(key, {})

    def withdraw_edge(self, op: WithdrawLink) -> None:
        """Claim that an edge is not stated any more, unless only its id changes with those of its ends."""
        key = _key(op)
        known = key if key in self._before.edges else self._present_id(op)
        edge = self._before.edges.get(known)
        if {key, known} & self._stays or key in self._moved.values() or edge is None or not edge.additions:
            return
        self.claims.append(RemoveEdge(edits.edge(self._before, known), edge.additions))

    def _present_id(self, op: WithdrawLink) -> str:
        """Return the id by which changes know an edge about an edge that is not there, since a rename of its ends.

        Records have it by the id of before until the next sync: nothing else says what the ends of the other edge are.
        """
        if not (is_link_id(op.from_id) or is_link_id(op.to_id)):
            return _key(op)
        later = {former: one.id for one in self._before.entities.values() for former in one.former_ids}
        ends = (later_id(end, self._before.edges, later) if is_link_id(end) else end for end in (op.from_id, op.to_id))
        return link_id(op.type, op.kind, *ends)

    def confirm_edge(self, op: ConfirmLink) -> None:
        """Claim that an edge holds while its target is what the operation says."""
        on = self._end(_key(op))
        if not isinstance(on, EdgeRef):  # of documents alone
            on = EdgeRef(op.type, self._end(op.from_id), self._end(op.to_id), op.kind)
        self.claims.append(AddMember(on, CONFIRMED, now=op.seen, salt=self._next_salt()))

    def _entity(self, key: str) -> EntityRef:
        if key in self._created:
            return EntityRef(key, (SELF,))
        old = self._earlier.get(key, key)
        return EntityRef(key, edits.entity(self._before, old).of)

    def _end(self, key: str) -> Ref:
        """Return how the change names an end of an edge; an edge of documents alone by its own ends."""
        if added := self._added_edge(key):
            return added
        edge = self._before.edges.get(self._moved.get(key, key)) if is_link_id(key) else None
        if edge is None:
            return self._entity(key)
        return edge.ref or EdgeRef(edge.type, self._end(edge.from_id), self._end(edge.to_id), edge.kind)

    def _added_edge(self, key: str) -> EdgeRef | None:
        return self._added.get(key) or self._added.get(self._moved.get(key, key))

    def _set(self, on: Ref, fields: Mapping[str, Field], name: str, value: Any, unset: Collection[str]) -> None:
        """Claim a value; the one that is shown already only where ``unset`` removes the note of a conflict."""
        field = fields.get(name)
        if field is None:
            self.claims.append(SetField(on, name, ABSENT, value, self._next_salt()))
            return
        was = field.shown
        if was is ABSENT or value_key(was) != value_key(value) or contested_note(name) in unset:
            self.claims.append(SetField(on, name, was, value, self._next_salt(), after=field.seen))

    def _unset(self, on: Ref, fields: Mapping[str, Field], name: str) -> None:
        field = fields.get(name)
        if field and field.values:
            self.claims.append(UnsetField(on, name, field.shown, field.seen))

    def _set_members(self, on: EntityRef, known: Entity | None, name: str, members: Iterable[str]) -> None:
        there = known.sets.get(name, {}) if known else dict[str, tuple[str, ...]]()
        wanted = dict.fromkeys(members)
        for member in wanted:
            if member not in there:
                self.claims.append(AddMember(on, name, now=member, salt=self._next_salt()))
        for member, additions in there.items():
            if member not in wanted:
                self.claims.append(RemoveMember(on, name, now=member, salt=self._next_salt(), removes=additions))

    def _next_salt(self) -> str:
        return salt_of(self._chain, len(self.claims))


def _created(entity: Entity) -> tuple[str, ...]:
    """Return the creations of an entity, without the document that states it."""
    return tuple([one for one in entity.of if one != DOCUMENT])


def _is_of_client(op: Operation) -> bool:
    if type(op) is PutNode or type(op) is StateLink or type(op) is WithdrawLink:
        return op.src == CLIENT
    if type(op) is ConfirmLink:
        return bool(op.seen)
    return type(op) is DropNode


def _is_claimed(field: str) -> bool:
    return field not in _NO_FIELD and not is_contested_note(field)


def _ends(edge: ClaimedEdge, ref: EdgeRef) -> Iterable[tuple[str, Ref]]:
    """Return the id of each end of an edge, and how a claim names it."""
    return ((edge.from_id, ref.from_end), (edge.to_id, ref.to_end))


def _is_of(ref: Ref, of: Collection[str]) -> bool:
    return isinstance(ref, EdgeRef) or any(one in of for one in ref.of)


def _key(op: StateLink | WithdrawLink | ConfirmLink) -> str:
    return link_id(op.type, op.kind, op.from_id, op.to_id)


def _renamed(ops: Sequence[Operation]) -> dict[str, str]:
    """Return the id that each entity had before, by the id that operations give it.

    Of several that it takes over, it is the one that goes first (``renames.earlier_id``).
    """
    dropped = dict.fromkeys(op.id for op in ops if type(op) is DropNode)
    found: dict[str, str] = {}
    for op in ops if dropped else ():
        if type(op) is PutNode and op.base == 0 and op.id not in found:
            former = former_ids_of(op.set)
            old = next((one for one in dropped if one in former), "")
            if old:
                found[op.id] = old
                del dropped[old]
    return found
