"""Histories of several writers who claim, share, merge, drop and pack changes, for the laws of the fold.

A step is a tuple of small numbers, so that Hypothesis makes it as well as ``random``; ``play`` says what it means.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import msgspec

from kbcore.ids import link_id
from kbcore.model.claims import edits
from kbcore.model.claims.change import (
    CONFIRMED,
    DOCUMENT,
    SELF,
    AddMember,
    Change,
    Create,
    Delete,
    EntityRef,
    Keep,
    Rename,
    SetField,
    creation_of,
    identified,
)
from kbcore.model.claims.fold import ABSENT, DocumentFacts, Field, FoldedClaims, fold
from kbcore.model.claims.subjects import claimed_by
from tests.support.generators import new_claims

IDS: Final = ("A", "B", "C")
FIELDS: Final = ("title", "attributes.k")
VALUES: Final = ("x", "y", 1, 1.0, True, None, {"a": [1]})
TITLES: Final = ("x", "y", "1")
MEMBERS: Final = ("red", "blue")
MOVES: Final = ("merge", "pick", "drop", "drop_all_of")
WRITES: Final = (
    "create", "set", "unset", "add", "remove", "delete", "keep", "rename", "separate", "link", "link_edge", "unlink",
    "set_edge", "confirm", "foreign",
)  # fmt: skip
DIGESTS: Final = ("0" * 64, "1" * 64)
KINDS: Final = (*WRITES, "create", "set", "set", "keep", "link", *MOVES, "merge", "merge", "race", "race")

MOST: Final = 1 << 16
Step = tuple[int, int, int, int, int]
"""The kind, the writer, and three choices, each below ``MOST``."""

DOCUMENTS: Final = (
    DocumentFacts(),
    DocumentFacts({"A": {"type": "req", "title": "stated"}}, {}, {link_id("t", "", "A", "B"): ("t", "", "A", "B")}),
    DocumentFacts({"B": {"type": "req"}, "C": {"attributes.k": "stated", "tags": ["red"]}}, {"A": "B"}),
)


class Played(msgspec.Struct):
    """The changes of each writer at the end, every change ever made, and each write with what its writer saw."""

    held: list[dict[str, Change]]
    made: dict[str, Change]
    writes: list[tuple[tuple[Change, ...], Change, str]]


def play(steps: Sequence[Step], documents: DocumentFacts, writers: int = 3, ids: Sequence[str] = IDS) -> Played:
    """Return what a history of so many writers comes to, who write of entities with these ids.

    A step that nothing can be done with is left out.
    """
    played = Played([{} for _ in range(writers)], {}, [])

    def write(what: str, who: int, choices: Sequence[int], salt: str) -> None:
        mine = played.held[who]
        claims = _claims(what, fold(mine.values(), documents), choices, salt=salt, ids=ids)
        if claims:
            made = identified(Change("", f"T{salt}", f"w{who}", "test", claims))
            played.writes.append((tuple(mine.values()), made, what))
            played.made[made.id] = mine[made.id] = made

    for number, (kind, who, *choices) in enumerate(steps):
        what, one, other = KINDS[kind % len(KINDS)], who % writers, (who // writers) % writers
        mine, theirs = played.held[one], played.held[other]
        if what == "race":  # both see the same, and write of the same entity
            mine |= theirs
            theirs |= mine
            write(("delete", "rename", "set")[choices[0] % 3], one, choices[1:] + choices[:1], f"{number} first")
            write(("set", "rename", "add")[choices[0] // 3 % 3], other, choices[1:] + choices[:1], f"{number} second")
        elif what in MOVES:
            _move(what, mine, theirs, choices[0])
        else:
            write(what, one, choices, str(number))
    return played


def random_steps(seed: int, most: int = 40) -> list[Step]:
    """Return the steps of one history."""
    chosen = random.Random(seed)
    return [_step(chosen) for _ in range(chosen.randint(3, most))]


def known_names(changes: Iterable[Change]) -> tuple[set[str], set[str]]:
    """Return the ids and creations that changes name, and those of entities that they know by several ids."""
    known, ids = set[str](), dict[str, set[str]]()
    for change in changes:
        keys, names, _ = claimed_by(change)
        known |= {creation for creation, _ in keys}
        for key, creation in names:
            known |= {key, creation}
            ids.setdefault(creation, set()).add(key)
    known |= {one.removeprefix(creation_of(DOCUMENT, "")) for one in known}
    return known, {name for creation, keys in ids.items() if len(keys) > 1 for name in (creation, *keys)}


def conflicts(state: FoldedClaims) -> set[tuple[str, ...]]:
    """Return what is contested in a state, by the claims, since the id of an entity or an edge may change."""
    return set(_conflicts(state))


def _conflicts(state: FoldedClaims) -> Iterator[tuple[str, ...]]:
    for one in state.entities.values():
        if one.names.is_contested:
            yield "name", *_claims_of(one.names)
        yield from (("deletion", change) for change in one.deletions)
    for element in [*state.entities.values(), *state.edges.values()]:
        yield from (("field", name, *_claims_of(one)) for name, one in element.fields.items() if one.is_contested)


def _claims_of(field: Field) -> list[str]:
    return [change for value in field.values for change in value.changes]


def _step(chosen: random.Random) -> Step:
    first, second, third, fourth, fifth = (chosen.randrange(MOST) for _ in range(5))
    return first, second, third, fourth, fifth


def _move(what: str, mine: dict[str, Change], theirs: dict[str, Change], choice: int) -> None:
    if what == "merge":
        mine |= theirs
    elif what == "pick" and theirs:
        one = _one_of([*theirs.values()], choice)
        mine[one.id] = one
    elif what == "drop" and mine:
        del mine[_one_of([*mine], choice)]
    elif what == "drop_all_of" and mine:
        actor = mine[_one_of([*mine], choice)].actor
        for key in [key for key, one in mine.items() if one.actor == actor]:
            del mine[key]


def _one_of(found: Sequence[Any], number: int) -> Any:
    return found[number % len(found)]


def _claims(
    what: str, state: FoldedClaims, choices: Sequence[int], *, salt: str, ids: Sequence[str]
) -> tuple[Any, ...]:
    first, second, third = choices
    if what == "create":
        key = _one_of(ids, first)
        new = EntityRef(key, (SELF,))
        title = SetField(new, "title", now=_one_of(TITLES, second), salt=salt)
        return (
            ()
            if key in state.entities
            else (Create(key), title, AddMember(new, "tags", now=_one_of(MEMBERS, third), salt=salt))
        )
    if what in {"unlink", "set_edge", "link_edge", "confirm"}:
        return _claims_of_edge(what, state, choices, salt, ids)
    if what == "link":
        target = _one_of(ids, second)
        return (new_claims.add_edge(state, _one_of("tu", third), _one_of(ids, first), target),)
    if what == "foreign":  # no edit makes it, a file may hold it
        on = EntityRef(_one_of(ids, first))
        return (_one_of((Delete(on), Keep(on), Rename(on, _one_of(ids, second))), third),)
    found = [key for key, one in state.entities.items() if what != "keep" or one.deletions]
    if not found:
        return ()
    key = _one_of(found, first)
    return _claims_of_entity(what, state, key, (second, third), salt)


def _claims_of_edge(
    what: str, state: FoldedClaims, choices: Sequence[int], salt: str, ids: Sequence[str]
) -> tuple[Any, ...]:
    if not state.edges:
        return ()
    key = _one_of([*state.edges], choices[0])
    edge = state.edges[key]
    if what == "unlink":
        return (new_claims.remove_edge(state, key),) if edge.additions else ()
    if not {edge.from_id, edge.to_id} <= state.entities.keys() | state.edges.keys():
        return ()  # KB refuses to write of an edge to what is not there
    if what == "confirm":
        return (AddMember(edits.edge(state, key), CONFIRMED, now=_one_of(DIGESTS, choices[1]), salt=salt),)
    if what == "link_edge":
        return (new_claims.add_edge(state, "about", key, _one_of(ids, choices[1])),)
    return (new_claims.set_field(state, key, "confidence", _one_of((0.1, 0.9), choices[1]), salt=salt),)


def _claims_of_entity(what: str, state: FoldedClaims, key: str, choices: Sequence[int], salt: str) -> tuple[Any, ...]:
    entity, (first, second) = state.entities[key], choices
    field, is_created = _one_of(FIELDS, first), entity.claimed_by
    is_stated = field in entity.fields and entity.fields[field].stated is not ABSENT
    claims: tuple[Any, ...] = ()
    if what == "set" and not is_stated:
        values = TITLES if field == "title" else VALUES
        claims = (new_claims.set_field(state, key, field, _one_of(values, second), salt=salt),)
    elif what == "unset" and not is_stated and field in entity.fields:
        claims = (new_claims.unset_field(state, key, field),)
    elif what == "add":
        claims = (new_claims.add_member(state, key, "tags", _one_of(MEMBERS, first), salt=salt),)
    elif what == "remove" and entity.sets.get("tags"):
        claims = (new_claims.remove_member(state, key, "tags", _one_of([*entity.sets["tags"]], first), salt=salt),)
    elif what == "delete" and is_created:
        claims = (edits.delete(state, key),)
    elif what == "keep":
        claims = (edits.keep(state, key),)
    elif what == "rename" and is_created and (free := sorted({*IDS, "E"} - state.entities.keys())):
        claims = (edits.rename(state, key, _one_of(free, first)),)
    elif what == "separate" and len(made := [one for one in entity.of if one]) > 1:
        free = [one for one in ("E", "F") if one not in state.entities]  # KB refuses an id in use
        if free:
            claims = (edits.rename(state, key, _one_of(free, first), creations=[_one_of(made, second)]),)
    return claims
