"""The changes that say what private changes alone stated, although their own actor and types are shared. Pure.

There are two kinds. One puts values of earlier records back, such as a revert. The claims of the other one name an
entity, an edge, a field or a member of a set that private changes alone stated, such as a deletion.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Final, Literal

import msgspec

from kbcore.model.claims.change import (
    ID_CHARS,
    AddEdge,
    AddMember,
    Change,
    Claim,
    Create,
    Delete,
    EdgeRef,
    EntityRef,
    Ref,
    RemoveEdge,
    RemoveMember,
    Rename,
    SetField,
    UnsetField,
    value_key,
)
from kbcore.model.claims.subjects import entities_in, names_in

Kind = Literal["private_restored", "private_origin"]
"""The change puts back what private changes stated; its claims name what private changes alone stated."""

_ID: Final = "id"
_CREATED_BY: Final = "created_by"

Fact = tuple[Hashable, ...]
"""The statement of a claim: its kind, the element (``_Elements``), and the rest; for an id there is no element."""


class WrittenChange(msgspec.Struct, frozen=True):
    """A change, and whether it puts values of earlier records back (``claim_index.WrittenAt``)."""

    change: Change
    restores: bool

    @property
    def moves_values(self) -> bool:
        """Tell whether values may be those of others: an entity that goes may give its own to another one."""
        return self.restores or any(isinstance(claim, Delete) for claim in self.change.claims)


class PrivateOrigin(msgspec.Struct, frozen=True):
    """The reason why a change is private, and the place in it that says so."""

    kind: Kind
    place: str


def private_origins(
    others: Collection[WrittenChange],
    private: Collection[Change],
    shared: Iterable[Change] = (),
    documented: Iterable[str] = (),
) -> dict[str, PrivateOrigin]:
    """Return those of ``others`` that say what ``private`` changes alone stated, by id, each with the reason.

    What they state is private as well then, unless a change stated it that stays. ``shared`` are changes that a
    committed file held, ``documented`` ids of entities that documents state. The order of changes does not matter.
    """
    if not private:
        return {}
    shared = [*shared]
    elements = _Elements(chain(private, shared, (one.change for one in others)))
    public = Counter(fact for change in shared for fact in elements.stated(change))
    documented = {*documented}
    public.update((_ID, key) for key in documented)
    own = {one.change.id: [*elements.stated_itself(one)] for one in others}
    public.update(chain.from_iterable(own.values()))
    facts = PrivateFacts(elements, public, documented)
    concerned: dict[Hashable, list[WrittenChange]] = defaultdict(list)
    for one in others:
        for key in facts.looked_up(one):
            concerned[key].append(one)
    found: dict[str, PrivateOrigin] = {}
    hidden = private
    while hidden:
        new = facts.add(hidden, chain.from_iterable(own.get(one.id, ()) for one in hidden))
        asked = {one.change.id: one for key in new for one in concerned.get(key, ()) if one.change.id not in found}
        reasons = {key: reason for key, one in asked.items() if (reason := facts.reason(one))}
        found |= reasons
        hidden = [asked[key].change for key in reasons]
    return found


def place_of(claim: Claim) -> str:
    """Return what a claim is about, in words."""
    if isinstance(claim, Create):
        return claim.id
    name = getattr(claim, "field", "")
    of = f"{claim.on.type} edge" if isinstance(claim.on, EdgeRef) else claim.on.id
    return f"{name} of {of}" if name else of


class _Elements:
    """The entities and edges that changes name, each by one key, whatever ids and creations it has in a change.

    Entities that had one id after each other have one key.
    """

    def __init__(self, changes: Iterable[Change]) -> None:
        self._same: dict[str, str] = {}
        for change in changes:
            for pair in names_in(change):
                one, other = map(self._first, pair)
                self._same[one] = other

    def _first(self, name: str) -> str:
        while (other := self._same.get(name, name)) != name:
            self._same[name] = self._same.get(other, other)
            name = other
        return name

    def key(self, ref: Ref) -> Hashable:
        """Return the key of an entity or an edge."""
        if isinstance(ref, EdgeRef):
            return (ref.type, ref.kind, self.key(ref.from_end), self.key(ref.to_end))
        return self._first(ref.id)

    def of(self, claim: Claim) -> Hashable:
        """Return the key of what a claim is on."""
        return self._first(claim.id) if isinstance(claim, Create) else self.key(claim.on)

    def stated(self, change: Change) -> Iterator[Fact]:
        """Yield the facts that a change states, with who made its edges."""
        return self._stated(change, change.claims)

    def stated_itself(self, one: WrittenChange) -> Iterator[Fact]:
        """Yield the facts that a change states itself; none where values may be those of others."""
        claims = () if one.moves_values else [claim for claim in one.change.claims if not _is_repeated(claim)]
        return self._stated(one.change, claims)

    def _stated(self, change: Change, claims: Iterable[Claim]) -> Iterator[Fact]:
        for claim in claims:
            yield from self.facts(claim)
            if isinstance(claim, AddEdge):
                yield ("value", self.of(claim), _CREATED_BY, value_key(change.actor))
            elif isinstance(claim, SetField):
                yield self.field_fact(claim)

    def facts(self, claim: Claim) -> list[Fact]:
        """Return the fact that a claim states; none for one that takes something away, or whose value is redacted."""
        match claim:
            case Create():
                return [(_ID, claim.id)]
            case Rename():
                return [(_ID, claim.now)]
            case AddEdge():
                return [self.edge_fact(claim.on)]
            case AddMember() if not claim.is_redacted:
                return [("member", self.of(claim), claim.field, value_key(claim.now))]
            case SetField() if not claim.is_redacted:
                return [("value", self.of(claim), claim.field, value_key(claim.now))]
        return []

    def field_fact(self, claim: SetField | UnsetField) -> Fact:
        """Return the fact that a field has a value."""
        return ("field", self.of(claim), claim.field)

    def edge_fact(self, ref: EdgeRef) -> Fact:
        """Return the fact that an edge is there."""
        return ("edge", self.key(ref), ref.type, ref.kind)


class PrivateFacts:
    """The facts that private changes state, and how many changes that are not private state each fact.

    Another entity may have the id of one that was deleted: what was written of the deleted one names its creation.
    """

    def __init__(self, elements: _Elements, public: Counter[Fact], documented: Collection[str]) -> None:
        self._elements = elements
        self._public = public
        self._documented = documented
        self._ids = set[str]()
        self._facts = set[Fact]()
        self._anywhere = set[Fact]()
        """The facts without their elements: a value may be put back on another one."""

    def add(self, changes: Collection[Change], withdrawn: Iterable[Fact]) -> set[Hashable]:
        """Take in private changes, whose ``withdrawn`` facts were public, and return the keys that this concerns.

        A change whose ``looked_up`` keys are none of these is judged as before.
        """
        self._public.subtract(withdrawn_facts := [*withdrawn])
        ended = {fact for fact in withdrawn_facts if not self._public[fact]}
        facts = {fact for change in changes for fact in self._elements.stated(change)} - self._facts
        anywhere = {_without_element(fact) for fact in facts} - self._anywhere
        self._ids |= (ids := {one.id for one in changes})
        self._facts |= facts
        self._anywhere |= anywhere
        return {*ids, *facts, *ended, *anywhere, *map(_without_element, ended)}

    def looked_up(self, one: WrittenChange) -> set[Hashable]:
        """Return the keys that the reason of a change depends on: facts, also without elements, and ids of changes."""
        found = set[Hashable]()
        for claim in one.change.claims:
            if not isinstance(claim, Create):
                for entity in entities_in(claim.on):
                    found |= {(_ID, entity.id), *_creators_of(entity)}
                found |= {self._elements.edge_fact(edge) for edge in _edges_in(claim.on)}
            if isinstance(claim, UnsetField):
                found.add(self._elements.field_fact(claim))
            if isinstance(claim, RemoveEdge | RemoveMember):
                found |= {name[:ID_CHARS] for name in claim.removes}
            if one.moves_values or _is_repeated(claim):
                found |= {_without_element(fact) for fact in self._elements.facts(claim)}
        return found

    def reason(self, one: WrittenChange) -> PrivateOrigin | None:
        """Return why a change is private, None where it is not."""
        change = one.change
        elements = {self._elements.of(claim) for claim in change.claims}
        added = {self._elements.of(claim) for claim in change.claims if isinstance(claim, AddEdge)}
        for claim in change.claims:
            if name := self._named(claim, added):
                return PrivateOrigin("private_origin", name)
            if (one.moves_values or _is_repeated(claim)) and self._puts_back(claim, elements):
                return PrivateOrigin("private_restored", place_of(claim))
        return None

    def _named(self, claim: Claim, added: AbstractSet[Hashable]) -> str:
        """Return what a claim names that private changes alone stated, in words; "" for nothing.

        ``added`` are the edges that the change states itself.
        """
        if isinstance(claim, Create):
            return ""
        for entity in entities_in(claim.on):
            if self._is_hidden((_ID, entity.id)) or self._is_of_private(entity):
                return entity.id
        removes = claim.removes if isinstance(claim, RemoveEdge | RemoveMember) else ()
        edges = [one for one in _edges_in(claim.on) if not (removes and one is claim.on)]
        is_named = (
            self._is_all_hidden(removes)
            or any(
                self._elements.key(one) not in added and self._is_hidden(self._elements.edge_fact(one)) for one in edges
            )
            or (isinstance(claim, UnsetField) and self._is_hidden(self._elements.field_fact(claim)))
        )
        return place_of(claim) if is_named else ""

    def _is_hidden(self, fact: Fact) -> bool:
        """Tell whether private changes alone state a fact."""
        return fact in self._facts and not self._public[fact]

    def _is_of_private(self, entity: EntityRef) -> bool:
        """Tell whether private changes alone created an entity, whatever other changes created under its id."""
        return entity.id not in self._documented and self._ids.issuperset(_creators_of(entity))

    def _is_all_hidden(self, names: Collection[str]) -> bool:
        """Tell whether all of some claims (``claim_name``), if any, are of private changes."""
        return bool(names) and all(one[:ID_CHARS] in self._ids for one in names)

    def _puts_back(self, claim: Claim, elements: Collection[Hashable]) -> bool:
        """Tell whether a claim states what private changes state, and no other one of an element of the change."""
        for kind, *rest in {_without_element(fact) for fact in self._elements.facts(claim)} & self._anywhere:
            same = {(kind, *rest)} if kind == _ID else {(kind, key, *rest) for key in elements}
            if not any(self._public[fact] for fact in same):
                return True
        return False


def _creators_of(entity: EntityRef) -> set[str]:
    """Return the ids of the changes that a reference names as those which created its entity."""
    return {one.partition(":")[0] for one in entity.of}


def _without_element(fact: Fact) -> Fact:
    return fact if fact[0] == _ID else (fact[0], *fact[2:])


def _edges_in(ref: Ref) -> Iterator[EdgeRef]:
    """Yield the edges that a reference names: it itself, and those at its ends."""
    if isinstance(ref, EdgeRef):
        yield ref
        yield from _edges_in(ref.from_end)
        yield from _edges_in(ref.to_end)


def _is_repeated(claim: Claim) -> bool:
    """Tell whether a claim states again what was shown, as for an edge that another entity takes over."""
    if not isinstance(claim, SetField) or claim.was is msgspec.UNSET or claim.is_redacted:
        return False
    return value_key(claim.was) == value_key(claim.now)
