"""Two states compared with the states that they come from: what both sides made or changed, each in its own way. Pure.

With several common ancestors, as after merges crosswise, a side has changed a value where no ancestor has it. Where
both sides have a value of an ancestor, and not the same one, each side has decided otherwise: that is a conflict too.
The comparison is the same from either side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal

import msgspec

from kbcore.extract.facts import StatedEntity
from kbcore.model.graph import FORMER_IDS, former_ids_of
from kbcore.model.values import is_same

Kind = Literal["id", "field", "edge"]

MADE_TWICE: Final = "made_twice"
FORMER: Final = "former_id"
FORMER_TWICE: Final = "former_twice"
RENAMED_TWICE: Final = "renamed_twice"
CHANGED_TWICE: Final = "changed_twice"
DELETED: Final = "deleted"
ABSENT: Final = msgspec.UNSET
"""The value of a field that is not stated, and of an entity that is not there."""

_SETS: Final = frozenset({"tags", FORMER_IDS})
"""Fields of which each side adds and takes away members: both may."""
_ID: Final = "id"
_OWN_TEXT: Final = "text_ref"


class EntityOfState(msgspec.Struct, frozen=True):
    """An entity as one state has it; ``path`` is "" where a client stated it."""

    entity: StatedEntity
    path: str

    @property
    def fields(self) -> dict[str, Any]:
        """Return what is stated of it: its type, and its fields but for the document itself."""
        kept = {name: value for name, value in self.entity.fields.items() if (name, value) != (_OWN_TEXT, self.path)}
        return {"type": self.entity.type, **kept}

    def place_of(self, field: str) -> StatedLine:
        """Return where a field is stated, or the entity."""
        return StatedLine(self.path, self.entity.lines.get(field) or self.entity.line)


class StatedLine(msgspec.Struct, frozen=True):
    """A line of a file, counted from 1; no file where a client stated something."""

    path: str
    line: int


class EdgeOfState(msgspec.Struct, frozen=True):
    """An edge as a file states it; ``type`` is "" where the file leaves it to the types of its ends."""

    type: str
    kind: str
    from_id: str
    to_id: str


class StateFacts(msgspec.Struct, frozen=True):
    """The facts of one state, of the files that are not the same in all states.

    ``unread`` are files of which a part could not be read: what they do not state may be in them all the same.
    """

    entities: Mapping[str, EntityOfState] = {}
    edges: Mapping[EdgeOfState, StatedLine] = {}
    unread: frozenset[str] = frozenset()


class ConflictSide(msgspec.Struct, frozen=True):
    """One side of a conflict: a value and its place; ``ABSENT`` where it states none.

    ``id`` is the entity as this side calls it, "" where it deleted it: then the place is where it was.
    """

    id: str
    value: Any
    place: StatedLine


class MergeConflict(msgspec.Struct, frozen=True):
    """One thing that both sides have decided, each in its own way."""

    kind: Kind
    code: str
    id: str
    field: str
    ours: ConflictSide
    theirs: ConflictSide
    edge: EdgeOfState | None = None

    def mirrored(self) -> MergeConflict:
        """Return the same as the other side sees it."""
        return msgspec.structs.replace(self, ours=self.theirs, theirs=self.ours)


def conflicts(bases: Sequence[StateFacts], ours: StateFacts, theirs: StateFacts) -> list[MergeConflict]:
    """Return what does not fit together in two states; ``bases`` are those of their common ancestors, at least one."""
    before = _Before(bases)
    one, other = _Now(before, ours), _Now(before, theirs)
    found = [
        *_new_ids(before, one, other),
        *_fields(before, one, other),
        *_one_sided(before, one, other),
        *(conflict.mirrored() for conflict in _one_sided(before, other, one)),
    ]
    return sorted(found, key=_order)


def deleted(bases: Sequence[StateFacts], now: StateFacts) -> set[str]:
    """Return the entities of the common ancestors that are not in a state any more."""
    return _Now(_Before(bases), now).deleted


def _order(one: MergeConflict) -> tuple[str, ...]:
    edge = msgspec.structs.astuple(one.edge) if one.edge else ()
    return one.kind, one.id, one.code, one.field, *edge


class _Before:
    """The states of the common ancestors."""

    def __init__(self, bases: Sequence[StateFacts]) -> None:
        self.entities: dict[str, list[EntityOfState]] = {}
        for base in bases:
            for key, stated in base.entities.items():
                self.entities.setdefault(key, []).append(stated)
        self._fields: dict[str, list[dict[str, Any]]] = {}
        self.edges: set[EdgeOfState] = set()
        self.held: set[tuple[str, str]] = set()
        """Each id that an entity had before, with the entity."""
        for base in bases:
            holders = _holders(base)
            self.held |= holders.items()
            self.edges |= {_with_ends(edge, partial(_called, holders)) for edge in base.edges}
        self.former = {former for former, _ in self.held}
        """These ids alone: to give one up and to use it for something else is one change."""

    def fields_of(self, key: str) -> list[dict[str, Any]]:
        """Return what the states had of an entity."""
        if key not in self._fields:
            self._fields[key] = [one.fields for one in self.entities[key]]
        return self._fields[key]

    def is_as_before(self, key: str, *sides: EntityOfState) -> bool:
        """Tell whether one of these is the only one that there was before."""
        found = self.entities[key]
        return len(found) == 1 and any(one is found[0] for one in sides)

    def had(self, key: str, field: str, value: Any) -> bool:
        """Tell whether an entity had a value in one of the states."""
        return any(_same(one.get(field, ABSENT), value) for one in self.fields_of(key))


class _Now:
    """One side: which entity of the common ancestors each of its entities is, by its id or by a former one."""

    def __init__(self, before: _Before, facts: StateFacts) -> None:
        self.facts = facts
        self.by_origin: dict[str, EntityOfState] = {}
        self.origins: dict[str, str] = {}
        self.holders = _holders(facts)
        for key, stated in facts.entities.items():
            if key in before.entities:
                self.by_origin[key], self.origins[key] = stated, key
        for former, key in self.holders.items():
            if former in before.entities and key not in self.origins:
                self.by_origin[former], self.origins[key] = facts.entities[key], former
        self.deleted = {
            key
            for key, found in before.entities.items()
            if key not in self.by_origin
            and key not in self.holders
            and facts.unread.isdisjoint(one.path for one in found)
        }


def _new_ids(before: _Before, ours: _Now, theirs: _Now) -> Iterator[MergeConflict]:
    """Yield ids that no common ancestor has and that mean an entity of its own on each side."""
    for key in sorted(ours.facts.entities.keys() & theirs.facts.entities.keys() - before.entities.keys()):
        one, other = ours.facts.entities[key], theirs.facts.entities[key]
        origin = ours.origins.get(key)
        if origin != theirs.origins.get(key) or (origin is None and not _is_one(one, other)):
            yield MergeConflict("id", MADE_TWICE, key, "", _side(one, _title(one)), _side(other, _title(other)))
    yield from _former(before, ours, theirs)
    yield from (conflict.mirrored() for conflict in _former(before, theirs, ours))
    yield from _former_twice(before, ours, theirs)


def _former(before: _Before, one: _Now, other: _Now) -> Iterator[MergeConflict]:
    """Yield new ids of one side that the other side has among the former ids of an entity."""
    for former, holder in sorted(other.holders.items()):
        stated = one.facts.entities.get(former)
        if stated is None or former in before.entities or former in before.former:
            continue
        origin = one.origins.get(former)
        if origin is None or origin != other.origins.get(holder):
            yield MergeConflict("id", FORMER, former, "", _side(stated, _title(stated)), _holding(other, holder))


def _former_twice(before: _Before, ours: _Now, theirs: _Now) -> Iterator[MergeConflict]:
    """Yield ids that each side has newly among the former ids of an entity, and not of the same one."""
    for former in sorted(ours.holders.keys() & theirs.holders.keys()):
        one, other = ours.holders[former], theirs.holders[former]
        origin, its_origin = ours.origins.get(one, ""), theirs.origins.get(other, "")
        is_one = one == other or (origin == its_origin != "")
        if not is_one and before.held.isdisjoint([(former, origin), (former, its_origin)]):
            yield MergeConflict("id", FORMER_TWICE, former, "", _holding(ours, one), _holding(theirs, other))


def _fields(before: _Before, ours: _Now, theirs: _Now) -> Iterator[MergeConflict]:
    """Yield the ids and fields of entities that both sides changed, and not to the same value."""
    for key in sorted(ours.by_origin.keys() & theirs.by_origin.keys()):
        one, other = ours.by_origin[key], theirs.by_origin[key]
        if before.is_as_before(key, one, other):
            continue
        ids = {one.entity.id, other.entity.id}
        if len(ids | {key}) == 3:  # noqa: PLR2004 - each of the three is another one
            sides = (_side(one, one.entity.id, _ID), _side(other, other.entity.id, _ID))
            yield MergeConflict("id", RENAMED_TWICE, key, "", *sides)
        mine, its = one.fields, other.fields
        for field in sorted({*mine, *its} - _SETS):
            here, there = mine.get(field, ABSENT), its.get(field, ABSENT)
            if not _same(here, there) and before.had(key, field, here) == before.had(key, field, there):
                yield MergeConflict(
                    "field", CHANGED_TWICE, key, field, _side(one, here, field), _side(other, there, field)
                )


def _one_sided(before: _Before, one: _Now, other: _Now) -> Iterator[MergeConflict]:
    """Yield what one side changed of what the other side deleted, and edges that it stated to that."""
    for key in sorted(other.deleted & one.by_origin.keys()):
        stated = one.by_origin[key]
        if before.is_as_before(key, stated):
            continue
        gone = ConflictSide("", ABSENT, before.entities[key][0].place_of(_ID))
        if stated.entity.id != key:
            yield MergeConflict("field", DELETED, key, _ID, _side(stated, stated.entity.id, _ID), gone)
        fields = stated.fields
        for field in sorted({*fields, *(name for had in before.fields_of(key) for name in had)} - {FORMER_IDS}):
            value = fields.get(field, ABSENT)
            if not before.had(key, field, value):
                yield MergeConflict("field", DELETED, key, field, _side(stated, value, field), gone)
    for edge, place in sorted(one.facts.edges.items(), key=lambda found: msgspec.structs.astuple(found[0])):
        known = _with_ends(edge, lambda key: _origin(one, key))
        if known in before.edges:
            continue
        for end in dict.fromkeys((known.from_id, known.to_id)):
            if end in other.deleted and end not in one.deleted:
                gone = ConflictSide("", ABSENT, before.entities[end][0].place_of(_ID))
                yield MergeConflict("edge", DELETED, end, "", ConflictSide(end, end, place), gone, edge)


def _holders(facts: StateFacts) -> dict[str, str]:
    """Return the entity that has an id among its former ones, of each id that no entity has."""
    found: dict[str, str] = {}
    for key, stated in sorted(facts.entities.items()):
        for former in former_ids_of(stated.entity.fields):
            if former not in facts.entities:
                found.setdefault(former, key)
    return found


def _called(holders: Mapping[str, str], key: str) -> str:
    return holders.get(key, key)


def _with_ends(edge: EdgeOfState, named: Callable[[str], str]) -> EdgeOfState:
    """Return an edge with other names of its ends."""
    ends = named(edge.from_id), named(edge.to_id)
    return edge if ends == (edge.from_id, edge.to_id) else EdgeOfState(edge.type, edge.kind, *ends)


def _origin(side: _Now, key: str) -> str:
    """Return what an end of an edge was called in the common ancestors."""
    now = key if key in side.facts.entities else side.holders.get(key, key)
    return side.origins.get(now, key)


def _is_one(one: EntityOfState, other: EntityOfState) -> bool:
    """Tell whether both sides state the same entity in the same file, as where one took over a commit of the other."""
    return one.path == other.path and _same(one.fields, other.fields)


def _title(stated: EntityOfState) -> Any:
    return stated.entity.fields.get("title", ABSENT)


def _side(stated: EntityOfState, value: Any, field: str = _ID) -> ConflictSide:
    return ConflictSide(stated.entity.id, value, stated.place_of(field))


def _holding(side: _Now, key: str) -> ConflictSide:
    """Return an entity that has an id among its former ones, at their place."""
    return ConflictSide(key, key, side.facts.entities[key].place_of(FORMER_IDS))


def _same(one: Any, other: Any) -> bool:
    if one is ABSENT or other is ABSENT:
        return one is other
    return one == other if isinstance(one, str) and isinstance(other, str) else is_same(one, other)
