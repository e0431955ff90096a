"""The state that a set of changes gives, beside what documents state. Pure: it depends on the set alone.

A claim is superseded by a present claim on the same field that names it. What is left of a field is its value, or a
conflict where the values differ. Nothing is left out in silence: each claim is shown, superseded, covered by a
document, deleted by a change that saw it, or waits for the creation of its entity.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import zip_longest
from typing import Any, Final

import msgspec

from kbcore.ids import link_id
from kbcore.model.claims.change import (
    DOCUMENT,
    MAX_SEEN,
    REDACTED,
    SELF,
    AddMember,
    Change,
    Claim,
    Create,
    Delete,
    EdgeRef,
    EntityRef,
    Keep,
    RedactedField,
    Ref,
    RemoveEdge,
    RemoveMember,
    Rename,
    SetField,
    UnsetField,
    claim_name,
    creation_of,
    named_by,
    redacted_value,
    union,
    value_key,
)
from kbcore.model.graph import Link

ID: Final = "id"
"""The field of renames. No field of an entity has this name."""

DELETED: Final = "deleted"
"""In place of a field: whether the entity is there."""

ABSENT: Final = msgspec.UNSET
"""The value of a field that a claim unset."""


_OF_NO_EDGE: Final = frozenset({RemoveEdge, AddMember, RedactedField})
"""Claims on an edge that do not state it, and no field of it."""
OF_EXISTENCE: Final = frozenset({Delete, Keep, Rename})
"""Claims on whether an entity is there, and on its id."""


class DocumentFacts(msgspec.Struct, frozen=True):
    """The facts of documents: the fields of each entity, by former id what has it now, and edges, by id.

    An edge is its type, its kind, and the ids of its two ends.
    """

    fields: Mapping[str, Mapping[str, Any]] = {}
    former_ids: Mapping[str, str] = {}
    edges: Mapping[str, tuple[str, str, str, str]] = {}


NO_DOCUMENTS: Final = DocumentFacts()


class Value(msgspec.Struct, frozen=True, gc=False):
    """One value of a field, and the changes that claim it and that none supersedes, in the order of their ids."""

    value: Any
    changes: tuple[str, ...]


class Field(msgspec.Struct, frozen=True, gc=False):
    """The values of a field, the one that is shown first; ``seen`` is what a new claim on it names.

    ``stated`` is the value of a document, which covers them, or ``ABSENT``. ``missing`` are changes that claims on it
    name and that are not present.
    """

    values: tuple[Value, ...]
    seen: tuple[str, ...] = ()
    stated: Any = ABSENT
    missing: frozenset[str] = frozenset()

    @property
    def shown(self) -> Any:
        """Return the value that is shown, ``ABSENT`` for none."""
        if self.stated is not ABSENT:
            return self.stated
        return self.values[0].value if self.values else ABSENT

    @property
    def is_contested(self) -> bool:
        """Tell whether claims that no other supersedes have different values."""
        return len(self.values) > 1 and self.stated is ABSENT


class Entity(msgspec.Struct, frozen=True, gc=False):
    """An entity: all living creations of one id (``of``), and the document that states it (``DOCUMENT``).

    ``sets`` has the additions of each member of a set, by field and member. ``claimed_by`` are the changes that a
    deletion names. ``deletions`` are those that did not see all of it, so that it stays until somebody decides.
    """

    id: str
    of: tuple[str, ...]
    fields: Mapping[str, Field]
    sets: Mapping[str, Mapping[str, tuple[str, ...]]]
    names: Field
    former_ids: tuple[str, ...]
    claimed_by: AbstractSet[str]
    deletions: tuple[str, ...]


class ClaimedEdge(msgspec.Struct, frozen=True, gc=False):
    """An edge: its type and the ids of its ends, the claims that add it, and its fields.

    ``ref`` is how the first of these claims names it; None where only documents state it.
    """

    id: str
    type: str
    kind: str
    from_id: str
    to_id: str
    additions: tuple[str, ...]
    fields: Mapping[str, Field]
    ref: EdgeRef | None


class FoldedClaims(msgspec.Struct, frozen=True):
    """The state of a set of changes. ``deleted`` has, for each creation that is gone, the changes that deleted it.

    ``waiting`` are the names of the claims whose entity or edge is not there; ``unstated`` has, for each edge that is
    not there, the fields that they give it. ``confirmed`` has, by the id of an edge, the members of ``CONFIRMED``.
    ``edges_named`` has the id of each edge that a change states, or a field of it, by the change and how it names it.
    """

    entities: Mapping[str, Entity]
    edges: Mapping[str, ClaimedEdge]
    deleted: Mapping[str, tuple[str, ...]]
    waiting: tuple[str, ...]
    unstated: Mapping[str, Mapping[str, Field]] = {}
    confirmed: Mapping[str, frozenset[str]] = {}
    edges_named: Mapping[tuple[str, EdgeRef], str] = {}


Claims = Mapping[str, tuple[Any, tuple[str, ...]]]
"""Claims on one field, by change: the value, and the changes whose claims it names."""

EdgeClaim = tuple[str, str, SetField | UnsetField]
"""A claim on a field of an edge: its name, its change, and the claim."""


def fold(changes: Iterable[Change], documents: DocumentFacts = NO_DOCUMENTS) -> FoldedClaims:
    """Return the state of these changes, in whatever order and however often they are given."""
    present = union(changes)
    subjects = _collected(present, documents)
    deleted = subjects.deleted()
    last_id = {key: subjects.name_of(key) for key in sorted(subjects.created_ids)}
    groups: dict[str, list[str]] = {key: [creation_of(DOCUMENT, key)] for key in documents.fields}
    for creation, key in last_id.items():
        if creation not in deleted:
            groups.setdefault(key, []).append(creation)
    entities = {key: _entity(key, of, subjects, documents) for key, of in sorted(groups.items())}
    ids = last_id | {creation_of(DOCUMENT, key): key for key in documents.fields}
    names = _Names(entities, ids, deleted, documents)
    edges, others, edges_named = _edges(subjects, names, documents)
    waiting = sorted([*subjects.waiting, *(name for found in others.values() for name, _, _ in found)])
    unstated = {key: _fields_of_edge(found, present) for key, found in others.items()}
    confirmed = _confirmed(subjects, names)
    return FoldedClaims(entities, edges, deleted, tuple(waiting), unstated, confirmed, edges_named)


class _Claimed(msgspec.Struct):
    """The claims on one creation, or on the entity that a document states. ``changes`` made them, deletions aside."""

    changes: set[str] = msgspec.field(default_factory=set)
    fields: defaultdict[str, dict[str, tuple[Any, tuple[str, ...]]]] = msgspec.field(
        default_factory=lambda: defaultdict(dict)
    )
    names: dict[str, tuple[Any, tuple[str, ...]]] = msgspec.field(default_factory=dict)
    members: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    """By the name of the claim: the field and the member."""
    removed: set[str] = msgspec.field(default_factory=set)
    """The names of additions that are taken away here; another creation that they were made on may keep them."""
    deletions: set[str] = msgspec.field(default_factory=set)
    kept: set[str] = msgspec.field(default_factory=set)
    """The deletions in spite of which it is to stay."""


class _ClaimsByCreation(msgspec.Struct):
    """All that claims are made on, by creation. ``deletions`` are those of creations that are present."""

    present: Mapping[str, Change]
    claimed: dict[str, _Claimed]
    created_ids: dict[str, str]
    deletions: list[tuple[str, Delete, list[str]]]
    waiting: list[str]
    on_edges: list[tuple[EdgeRef, str, int, Claim]]
    """The claims on edges, each with how it names its edge, its change, and its position there."""

    def name_of(self, creation: str) -> str:
        """Return the id that a creation has, or had when it was deleted."""
        shown = _field([self.claimed[creation].names], self.present).shown
        return self.created_ids[creation] if shown is ABSENT else str(shown)

    def deleted(self) -> dict[str, tuple[str, ...]]:
        """Return the creations that are gone, with the changes that deleted them and had seen every claim on them."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for change, claim, creations in self.deletions:
            whole = set[str]().union(*[self.claimed[one].changes for one in creations])
            if whole <= {change, *claim.after}:
                for one in creations:
                    found[one].add(change)
        return {key: tuple(sorted(changes)) for key, changes in found.items()}


def _collected(present: Mapping[str, Change], documents: DocumentFacts) -> _ClaimsByCreation:
    made = [(change.id, claim) for change in present.values() for claim in change.claims if type(claim) is Create]
    created = {creation_of(by, claim.id): claim.id for by, claim in made}
    stated = [creation_of(DOCUMENT, key) for key in documents.fields]
    found = _ClaimsByCreation(present, {key: _Claimed() for key in [*created, *stated]}, created, [], [], [])
    for by, claim in made:
        found.claimed[creation_of(by, claim.id)].changes.add(by)
    for change in present.values():
        _collect(found, change, documents)
    return found


def _collect(found: _ClaimsByCreation, change: Change, documents: DocumentFacts) -> None:
    """Add the claims of a change, but for creations, to those that are found."""
    last: Ref | None = None
    meant, claimed = list[str](), list[_Claimed]()
    for at, claim in enumerate(change.claims):
        if type(claim) is Create:
            continue
        on = claim.on
        if not isinstance(on, EntityRef):
            found.on_edges.append((on, change.id, at, claim))
            continue
        if on is not last and on != last:
            last, meant = on, _meant(change.id, on, found.claimed, documents)
            claimed = [found.claimed[key] for key in meant]
        if meant and type(claim) is SetField and not claim.hash:  # most are
            for one in claimed:
                one.fields[claim.field][change.id] = (claim.now, claim.after)
                one.changes.add(change.id)
            continue
        creations = meant
        if type(claim) in OF_EXISTENCE:  # a document decides itself whether it is there and its id
            creations = [key for key in creations if key in found.created_ids]
        if not creations:
            found.waiting.append(claim_name(change.id, at))
        elif type(claim) is Delete:
            found.deletions.append((change.id, claim, creations))
        _note([found.claimed[key] for key in creations], change.id, at, claim)


def _note(creations: Iterable[_Claimed], change: str, at: int, claim: Claim) -> None:
    """Note a claim of a change at each creation that it is made on."""
    for claimed in creations:
        match claim:
            case SetField() | UnsetField():
                claimed.fields[claim.field][change] = (_value_of(claim), claim.after)
            case AddMember():
                member = REDACTED if claim.is_redacted else claim.now
                claimed.members[claim_name(change, at)] = (claim.field, member)
            case RemoveMember():
                claimed.removed.update(claim.removes)
            case Delete():
                claimed.deletions.add(change)
                continue  # what a deletion did not see of an entity are changes of it
            case Rename():
                claimed.names[change] = (claim.now, claim.after)
            case Keep():
                claimed.kept.update(claim.after)
        claimed.changes.add(change)


def _value_of(claim: SetField | UnsetField) -> Any:
    if type(claim) is UnsetField:
        return ABSENT
    return redacted_value(claim.field) if claim.is_redacted else claim.now


def _meant(change: str, ref: EntityRef, present: Collection[str], documents: DocumentFacts) -> list[str]:
    """Return the creations that a reference of a change names and that are present."""
    found = []
    for one in ref.of:
        if one == SELF:
            one = creation_of(change, ref.id)  # noqa: PLW2901
        elif one == DOCUMENT:
            key = ref.id if ref.id in documents.fields else documents.former_ids.get(ref.id, ref.id)
            one = creation_of(DOCUMENT, key)  # noqa: PLW2901
        if one in present:
            found.append(one)
    return found


def _entity(key: str, of: list[str], subjects: _ClaimsByCreation, documents: DocumentFacts) -> Entity:
    parts = [subjects.claimed[one] for one in of]
    created = [one for one in of if one in subjects.created_ids]
    stated = documents.fields.get(key, {})
    fields = _fields(parts, subjects.present, stated)
    names = _field([one.names for one in parts], subjects.present)
    earlier = {subjects.created_ids[one] for one in created} | {
        str(name) for one in parts for name, _ in one.names.values()
    }
    kept = set[str]().union(*[one.kept for one in parts])
    return Entity(
        id=key,
        of=tuple([one if one in subjects.created_ids else DOCUMENT for one in of]),
        fields=fields,
        sets=_sets(parts) if any(one.members for one in parts) else {},
        names=names,
        former_ids=tuple(sorted(earlier - {key})),
        claimed_by=frozenset().union(*[subjects.claimed[one].changes for one in created]),
        deletions=tuple(sorted(set[str]().union(*[one.deletions for one in parts]) - kept)),
    )


def _sets(parts: Iterable[_Claimed]) -> dict[str, dict[str, tuple[str, ...]]]:
    """Return the additions of the members of an entity that are left, by field and member, each in order."""
    found: defaultdict[str, defaultdict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in parts:
        for claim, (field, member) in one.members.items():
            if claim not in one.removed:
                found[field][member].add(claim)
    return {
        field: {member: tuple(sorted(claims)) for member, claims in sorted(members.items())}
        for field, members in sorted(found.items())
    }


def _fields(parts: Sequence[_Claimed], present: Collection[str], stated: Mapping[str, Any]) -> dict[str, Field]:
    """Return the fields of an entity, by name, in the order of the names."""
    if len(parts) == 1 and not stated:  # most entities are of one creation
        found = parts[0].fields
        return {name: _field((found[name],), present) for name in sorted(found)}
    return {
        name: _field([one.fields.get(name, {}) for one in parts], present, stated.get(name, ABSENT))
        for name in sorted({*stated, *(name for one in parts for name in one.fields)})
    }


def _field(parts: Sequence[Claims], present: Collection[str], stated: Any = ABSENT) -> Field:
    """Return the field that claims on it give. Parts that several creations share are counted once."""
    if len(parts) != 1:
        parts = [part for part in parts if part]
    if len(parts) == 1 and len(parts[0]) == 1:  # most fields are
        ((change, (value, after)),) = parts[0].items()
        if not after:
            own = (change,)
            return Field((Value(value, own),), own, stated)
    elif not any(parts):
        return Field((), (), stated)
    claims = {change: claim for part in parts for change, claim in part.items()}
    named = {one for _, after in claims.values() for one in after}
    latest = sorted(claims.keys() - named)
    by_value: defaultdict[bytes, list[str]] = defaultdict(list)
    for change in latest:
        value = claims[change][0]
        is_alone = value is ABSENT or len(latest) == 1
        by_value[b"" if is_alone else value_key(value)].append(change)
    values = [Value(claims[changes[0]][0], tuple(changes)) for changes in by_value.values()]
    before = [one for row in zip_longest(*[claims[change][1] for change in latest]) for one in row if one is not None]
    seen = tuple(dict.fromkeys([*latest, *before]))[:MAX_SEEN]
    return Field(tuple(values), seen, stated, frozenset(one for one in named if one not in present))


class _Names(msgspec.Struct):
    """The ids of what claims name: a creation that lives, else the entity of its last id, else one with that alias."""

    entities: Mapping[str, Entity]
    ids: Mapping[str, str]
    """The id of each creation, the last one of a deleted one."""
    deleted: Collection[str]
    documents: DocumentFacts
    aliases: dict[str, str] = {}

    def __post_init__(self) -> None:
        self.aliases = {
            **{name: one.id for one in reversed([*self.entities.values()]) for name in one.former_ids},
            **self.documents.former_ids,
        }

    def id_of(self, change: str, ref: Ref, *, replaces: bool = True) -> str:
        """Return the id of an entity or an edge that a reference of a change names.

        Without ``replaces`` no other entity takes the place of one that was deleted.
        """
        if isinstance(ref, EdgeRef):
            ends = [self.id_of(change, end, replaces=replaces) for end in (ref.from_end, ref.to_end)]
            return link_id(ref.type, ref.kind, *ends)
        found = _meant(change, ref, self.ids, self.documents)
        living = [one for one in found if one not in self.deleted]
        key = self.ids[(living or found)[0]] if found else ref.id
        return key if living or key in self.entities or (found and not replaces) else self.aliases.get(key, key)

    def is_of_another(self, change: str, ref: Ref) -> bool:
        """Tell whether an entity that was deleted has been named, whose id another one has, for an edge at an end."""
        if isinstance(ref, EdgeRef):
            return self.is_of_another(change, ref.from_end) or self.is_of_another(change, ref.to_end)
        found = _meant(change, ref, self.ids, self.documents)
        return bool(found) and all(one in self.deleted for one in found) and self.ids[found[0]] in self.entities


def _edges(
    subjects: _ClaimsByCreation, names: _Names, documents: DocumentFacts
) -> tuple[dict[str, ClaimedEdge], dict[str, list[EdgeClaim]], dict[tuple[str, EdgeRef], str]]:
    """Return the edges that are stated, the claims on fields of others, by edge, and ``FoldedClaims.edges_named``.

    Where another entity takes the place of a deleted one, a claim on a field comes along with a statement of its edge,
    and waits without one: it was not made on the edge that the other entity has.
    """
    removed = {name for *_, claim in subjects.on_edges if type(claim) is RemoveEdge for name in claim.removes}
    ends = dict(documents.edges)
    additions: defaultdict[str, dict[str, EdgeRef]] = defaultdict(dict)
    fields: defaultdict[str, list[EdgeClaim]] = defaultdict(list)
    of_fields: list[tuple[str, EdgeRef, EdgeClaim]] = []
    keys: dict[tuple[str, EdgeRef], str] = {}
    for ref, change, at, claim in subjects.on_edges:
        if type(claim) in _OF_NO_EDGE:
            continue
        name, place = claim_name(change, at), (change, ref)
        key = keys.get(place)
        if key is None:
            from_id, to_id = [names.id_of(change, end) for end in (ref.from_end, ref.to_end)]
            key = keys[place] = link_id(ref.type, ref.kind, from_id, to_id)
            ends[key] = (ref.type, ref.kind, from_id, to_id)
        if type(claim) is SetField or type(claim) is UnsetField:
            of_fields.append((key, ref, (name, change, claim)))
        elif name not in removed:
            additions[key][name] = named_by(change, ref)
    owns: dict[tuple[str, EdgeRef], str] = {}
    of_others: dict[tuple[str, EdgeRef], bool] = {}
    waiting: defaultdict[str, list[EdgeClaim]] = defaultdict(list)
    """By the edge that a claim was made on: no document that states an edge of this id means that one."""
    for key, ref, one in of_fields:
        if (one[1], ref) not in owns:
            owns[one[1], ref] = names.id_of(one[1], ref, replaces=False)
            of_others[one[1], ref] = names.is_of_another(one[1], ref)
        own = owns[one[1], ref]
        is_own = own == key and not of_others[one[1], ref]
        is_stated = is_own or named_by(one[1], ref) in additions.get(key, {}).values()
        (fields[key] if is_stated else waiting[own]).append(one)
    edges = {
        key: ClaimedEdge(
            key,
            *ends[key],
            additions=tuple(sorted(additions[key])),
            fields=_fields_of_edge(fields.pop(key, ()), subjects.present),
            ref=additions[key][min(additions[key])] if additions[key] else None,
        )
        for key in sorted({*documents.edges, *additions})
    }
    for key, claims in waiting.items():
        fields[key] += claims
    return edges, fields, keys


def _confirmed(subjects: _ClaimsByCreation, names: _Names) -> dict[str, frozenset[str]]:
    """Return what the targets of edges were when somebody confirmed these, as far as no redaction took it away."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for ref, change, _, claim in subjects.on_edges:
        if type(claim) is AddMember and not claim.is_redacted:
            found[names.id_of(change, ref)].add(claim.now)
    return {key: frozenset(members) for key, members in sorted(found.items())}


def _fields_of_edge(claims: Iterable[EdgeClaim], present: Collection[str]) -> dict[str, Field]:
    found: defaultdict[str, dict[str, tuple[Any, tuple[str, ...]]]] = defaultdict(dict)
    for _, change, claim in claims:
        found[claim.field][change] = (_value_of(claim), claim.after)
    return {name: _field([claims], present) for name, claims in sorted(found.items())}


def later_id(key: str, edges: Mapping[str, ClaimedEdge | Link], later: Mapping[str, str]) -> str:
    """Return the later id of an entity or an edge; that of an edge changes with those of its ends."""
    edge = edges.get(key)
    if key in later or edge is None:
        return later.get(key, key)
    ends = later_id(edge.from_id, edges, later), later_id(edge.to_id, edges, later)
    return key if ends == (edge.from_id, edge.to_id) else link_id(edge.type, edge.kind, *ends)
