"""The state of a set of changes by the letter of the rules: an evaluation of its own, which shares no code with KB's.

It goes through all claims again for each question. What it returns is plain data, to be compared with ``as_plain``.
"""

from __future__ import annotations

import json
from typing import Any

from kbcore.ids import link_id
from kbcore.model.claims.change import (
    AddEdge,
    AddMember,
    Change,
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
)
from kbcore.model.claims.fold import ABSENT, DocumentFacts, FoldedClaims

NONE = "(no value)"
Row = tuple[str, int, Any]
"""Change, position, claim."""


def as_plain(folded: FoldedClaims) -> dict[str, Any]:
    """Return what KB's fold says, in the form of ``evaluate``."""
    entities = {}
    for key, one in folded.entities.items():
        values = {name: _values(field) for name, field in one.fields.items()}
        sets = {field: sorted(members) for field, members in one.sets.items()}
        entities[key] = {
            "of": sorted(one.of),
            "fields": values,
            "sets": sets,
            "names": _values(one.names),
            "former": list(one.former_ids),
            "deletions": list(one.deletions),
        }
    edges = {
        one.id: {
            "additions": list(one.additions),
            "fields": {name: _values(field) for name, field in one.fields.items()},
        }
        for one in folded.edges.values()
    }
    return {
        "entities": entities,
        "edges": edges,
        "deleted": {key: list(found) for key, found in folded.deleted.items()},
        "waiting": list(folded.waiting),
        "confirmed": {key: sorted(members) for key, members in folded.confirmed.items()},
    }


def _values(field: Any) -> dict[str, Any]:
    found = {
        "values": [[NONE if one.value is ABSENT else one.value, list(one.changes)] for one in field.values],
        "seen": sorted(field.seen),
        "missing": sorted(field.missing),
    }
    return found if field.stated is ABSENT else {**found, "stated": field.stated}


def shown(claim: Any) -> Any:
    """Return the value that a claim gives a field or a set: a text in the place of one that was taken out."""
    if isinstance(claim, UnsetField) or (claim.hash and claim.field == "confidence"):
        return NONE
    return "[redacted]" if claim.hash else claim.now


def evaluate(changes: list[Change], documents: DocumentFacts) -> dict[str, Any]:
    """Return the state of these changes, none of which is there twice."""
    return _Model(changes, documents).state()


class _Model:
    def __init__(self, changes: list[Change], documents: DocumentFacts) -> None:
        self.rows: list[Row] = [(one.id, at, claim) for one in changes for at, claim in enumerate(one.claims)]
        self.documents = documents
        self.creations = {
            f"{change}:{claim.id}": claim.id for change, _, claim in self.rows if isinstance(claim, Create)
        }

    def state(self) -> dict[str, Any]:
        living = sorted(one for one in self.creations if not self.deleters(one))
        ids = {one: self.name(one) for one in living}
        keys = sorted({*self.documents.fields, *ids.values()})
        members = {key: [one for one in living if ids[one] == key] for key in keys}
        self.members = members
        self.ids = ids
        entities = {key: self.entity(key) for key in keys}
        self.former = {name: key for key in reversed(keys) for name in entities[key]["former"]}
        self.former |= self.documents.former_ids
        edges = self.edges()
        return {
            "entities": entities,
            "edges": edges,
            "deleted": {one: found for one in self.creations if (found := self.deleters(one))},
            "waiting": sorted(self.waiting(edges)),
            "confirmed": self.confirmed(),
        }

    # Which creations and documents a reference of a change means.

    def creations_meant(self, change: str, ref: EntityRef) -> list[str]:
        named = [f"{change}:{ref.id}" if one == "@" else one for one in ref.of]
        return [one for one in named if one in self.creations]

    def document_meant(self, ref: EntityRef) -> str | None:
        if "" not in ref.of:
            return None
        if ref.id in self.documents.fields:
            return ref.id
        return self.documents.former_ids.get(ref.id)

    def on_creation(self, creation: str, kind: type) -> list[Row]:
        return [
            (change, at, claim)
            for change, at, claim in self.rows
            if isinstance(claim, kind) and creation in self.creations_meant(change, claim.on)
        ]

    # Deletion.

    def changes_on(self, creation: str) -> set[str]:
        kinds = (SetField, UnsetField, AddMember, RemoveMember, Keep, Rename, RedactedField)
        found = {creation.partition(":")[0]}
        for change, _, claim in self.rows:
            is_claim = isinstance(claim, kinds) and isinstance(claim.on, EntityRef)
            if is_claim and creation in self.creations_meant(change, claim.on):
                found.add(change)
        return found

    def deleters(self, creation: str) -> list[str]:
        found = set()
        for change, _, claim in self.on_creation(creation, Delete):
            seen = {*claim.after, change}
            if all(self.changes_on(one) <= seen for one in self.creations_meant(change, claim.on)):
                found.add(change)
        return sorted(found)

    # Names.

    def latest(self, claims: list[tuple[str, Any, tuple[str, ...]]]) -> list[tuple[str, Any]]:
        """Return the claims (change, value, names) that none of the others names."""
        return sorted(
            (change, value) for change, value, _ in claims if not any(change in after for _, _, after in claims)
        )

    def name(self, creation: str) -> str:
        found = self.latest(
            [(change, claim.now, claim.after) for change, _, claim in self.on_creation(creation, Rename)]
        )
        return found[0][1] if found else self.creations[creation]

    # Entities.

    def entity(self, key: str) -> dict[str, Any]:
        creations = self.members[key]
        is_stated = key in self.documents.fields
        mine = [
            (change, at, claim)
            for change, at, claim in self.rows
            if not isinstance(claim, Create) and isinstance(claim.on, EntityRef)
            and (
                {*creations} & {*self.creations_meant(change, claim.on)}
                or ((is_stated and self.document_meant(claim.on) == key)
                and not isinstance(claim, Delete | Keep | Rename))
            )
        ]  # fmt: skip
        stated = self.documents.fields.get(key, {})
        names = {*stated, *(claim.field for _, _, claim in mine if isinstance(claim, SetField | UnsetField))}
        fields = {}
        for name in names:
            claims = [
                (change, shown(claim), claim.after)
                for change, _, claim in mine
                if isinstance(claim, SetField | UnsetField) and claim.field == name
            ]
            fields[name] = self.values(claims) | ({"stated": stated[name]} if name in stated else {})
        sets: dict[str, list[str]] = {}
        for change, at, claim in mine:
            if isinstance(claim, AddMember) and self.is_kept(f"{change}.{at}", change, claim, key):
                sets[claim.field] = sorted({*sets.get(claim.field, []), shown(claim)})
        renames = [(change, claim) for change, _, claim in mine if isinstance(claim, Rename)]
        kept = {one for _, _, claim in mine if isinstance(claim, Keep) for one in claim.after}
        deletions = {change for change, _, claim in mine if isinstance(claim, Delete)} - kept
        former = {self.creations[one] for one in creations} | {claim.now for _, claim in renames}
        return {
            "of": sorted([*creations, *([""] if is_stated else [])]),
            "fields": fields,
            "sets": sets,
            "names": self.values([(change, claim.now, claim.after) for change, claim in renames]),
            "former": sorted(former - {key}),
            "deletions": sorted(deletions),
        }

    def values(self, claims: list[tuple[str, Any, tuple[str, ...]]]) -> dict[str, Any]:
        found: dict[str, list[Any]] = {}
        for change, value in self.latest(claims):
            found.setdefault(json.dumps(value, sort_keys=True), [value, []])[1].append(change)
        latest = {change for change, _ in self.latest(claims)}
        present = {change for change, _, _ in self.rows}
        named = {one for change, _, after in claims if change in latest for one in after}
        return {
            "values": list(found.values()),
            "seen": sorted(latest | named),
            "missing": sorted({one for _, _, after in claims for one in after} - present),
        }

    def is_kept(self, name: str, change: str, addition: AddMember, key: str) -> bool:
        """Tell whether a creation of an entity, or its document, that an addition was made on still has it."""
        removals = [
            (one, claim.on) for one, _, claim in self.rows if isinstance(claim, RemoveMember) and name in claim.removes
        ]
        creations = {*self.members[key]} & {*self.creations_meant(change, addition.on)}
        gone = {one for by, on in removals for one in self.creations_meant(by, on)}
        is_of_document = key in self.documents.fields and self.document_meant(addition.on) == key
        is_kept_by_document = is_of_document and all(self.document_meant(on) != key for _, on in removals)
        return bool(creations - gone) or is_kept_by_document

    def removed(self) -> set[str]:
        return {name for _, _, claim in self.rows if isinstance(claim, RemoveEdge) for name in claim.removes}

    # Edges.

    def end(self, change: str, ref: Ref, *, replaces: bool = True) -> str:
        if isinstance(ref, EdgeRef):
            ends = [self.end(change, one, replaces=replaces) for one in (ref.from_end, ref.to_end)]
            return link_id(ref.type, ref.kind, *ends)
        creations = self.creations_meant(change, ref)
        living = [self.ids[one] for one in creations if one in self.ids]
        stated = self.document_meant(ref)
        if stated in self.documents.fields:
            living = [*living, stated] if ref.of.index("") else [stated, *living]
        if living:
            return str(living[0])
        key = self.name(creations[0]) if creations else ref.id
        if key in self.members or ((creations or stated) and not replaces):
            return key
        return self.former.get(key, key)

    def edges(self) -> dict[str, Any]:
        removed = self.removed()
        found: dict[str, Any] = {key: {"additions": []} for key in self.documents.edges}
        for change, at, claim in self.rows:
            if isinstance(claim, AddEdge) and f"{change}.{at}" not in removed:
                found.setdefault(self.end(change, claim.on), {"additions": []})["additions"].append(f"{change}.{at}")
        for key, one in found.items():
            one["additions"].sort()
            claims = [(change, claim) for change, _, claim in self.rows if self.is_on_edge(claim, change, key)]
            one["fields"] = {
                name: self.values([
                    (change, shown(claim), claim.after)
                    for change, claim in claims
                    if claim.field == name
                ])
                for name in {claim.field for _, claim in claims}
            }  # fmt: skip
        return found

    def confirmed(self) -> dict[str, list[str]]:
        claims = [(change, claim) for change, _, claim in self.rows if isinstance(claim, AddMember)]
        claims = [(change, one) for change, one in claims if isinstance(one.on, EdgeRef) and not one.is_redacted]
        on_edges = [(self.end(change, one.on), one.now) for change, one in claims]
        return {key: sorted({member for edge, member in on_edges if edge == key}) for key, _ in on_edges}

    def is_on_edge(self, claim: Any, change: str, key: str) -> bool:
        is_field = isinstance(claim, SetField | UnsetField) and isinstance(claim.on, EdgeRef)
        if not is_field or self.end(change, claim.on) != key:
            return False
        if self.end(change, claim.on, replaces=False) == key and not self.is_of_another(change, claim.on):
            return True
        removed, named = self.removed(), self.named(change, claim.on)
        return any(
            isinstance(other, AddEdge) and f"{one}.{at}" not in removed and self.named(one, other.on) == named
            for one, at, other in self.rows
        )

    def is_of_another(self, change: str, ref: Ref) -> bool:
        """Tell whether another entity has the id of a deleted one that is named."""
        if isinstance(ref, EdgeRef):
            return any(self.is_of_another(change, one) for one in (ref.from_end, ref.to_end))
        creations = self.creations_meant(change, ref)
        is_there = any(one in self.ids for one in creations) or self.document_meant(ref) in self.documents.fields
        return bool(creations) and not is_there and self.name(creations[0]) in self.members

    def named(self, change: str, ref: Ref) -> Any:
        if isinstance(ref, EdgeRef):
            return (ref.type, ref.kind, self.named(change, ref.from_end), self.named(change, ref.to_end))
        return (ref.id, *[f"{change}:{ref.id}" if one == "@" else one for one in ref.of])

    def waiting(self, edges: dict[str, Any]) -> list[str]:
        found = []
        for change, at, claim in self.rows:
            if isinstance(claim, Create | AddEdge | RemoveEdge):
                continue
            if isinstance(claim, RedactedField) and isinstance(claim.on, EdgeRef):
                continue
            if isinstance(claim.on, EdgeRef):
                if isinstance(claim, AddMember):
                    continue
                is_there = any(self.is_on_edge(claim, change, key) for key in edges)
            elif isinstance(claim, Delete | Keep | Rename):
                is_there = bool(self.creations_meant(change, claim.on))
            else:
                key = self.document_meant(claim.on)
                is_there = bool(self.creations_meant(change, claim.on)) or key in self.documents.fields
            if not is_there:
                found.append(f"{change}.{at}")
        return found
