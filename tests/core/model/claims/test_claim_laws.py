"""The laws of the fold of claims, over histories of several writers, and a mutant of each rule that must break one."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.model.claims import fold as real
from kbcore.model.claims.change import (
    AddEdge,
    AddMember,
    Change,
    Create,
    EdgeRef,
    SetField,
    UnsetField,
    creation_of,
    identified,
    redacted,
)
from kbcore.model.claims.fold import DocumentFacts, FoldedClaims
from tests.support.effort.scale import tries
from tests.support.generators import change_histories
from tests.support.generators.change_histories import DOCUMENTS, MOST, Step, conflicts, play, random_steps
from tests.support.oracles.claims_model import as_plain, evaluate

_numbers = st.integers(0, MOST - 1)
_steps = st.lists(st.tuples(_numbers, _numbers, _numbers, _numbers, _numbers), min_size=1, max_size=30)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Change).decode


@given(_steps, st.sampled_from(DOCUMENTS), st.integers(3, 5))
@settings(max_examples=tries(200, 50_000), deadline=None)
def test_laws_hold_in_every_history(steps: list[Step], documents: DocumentFacts, writers: int) -> None:
    assert list(broken_laws(steps, documents, writers)) == []


def broken_laws(
    steps: Sequence[Step], documents: DocumentFacts, writers: int, module: ModuleType = real
) -> Iterator[tuple[str, object]]:
    """Yield the laws that a fold breaks in a history, each with where."""
    played = play(steps, documents, writers)
    for changes in [*played.held, played.made]:
        yield from _broken_laws_of_set([*changes.values()], documents, module)
    for seen, made, what in played.writes:
        before, after = module.fold(seen, documents), module.fold([*seen, made], documents)
        earlier = [{*one} for one in conflicts(before)]
        # Of three values that differ, one that gets another id leaves two: that is no other conflict.
        if more := [one for one in conflicts(after) if not any({*one} <= was for was in earlier)]:
            yield "a change made after seeing everything adds no conflict", (what, more)


def _broken_laws_of_set(
    changes: list[Change], documents: DocumentFacts, module: ModuleType
) -> Iterator[tuple[str, object]]:
    state = module.fold(changes, documents)
    if (found := as_plain(state)) != (expected := evaluate(changes, documents)):
        yield "the state is that of the rules", (found, expected)
    shuffled = [*changes, *changes[:2]]
    random.Random(len(changes)).shuffle(shuffled)
    packed = [_decode(line) for line in b"\n".join(map(_encode, shuffled)).splitlines()]
    if module.fold(packed, documents) != state:
        yield "order, repetition and packing change nothing", [one.id for one in shuffled]
    if lost := set(_lost(changes, state)):
        yield "no claim is lost in silence", lost
    hidden = [redacted(one, message=True, claims=range(len(one.claims))) for one in changes]
    whole = module.fold(hidden, documents)
    if not (module.fold([*changes, *hidden], documents) == whole == module.fold([*hidden, *changes], documents)):
        yield "a redacted copy wins over others", None
    if (found := as_plain(whole)) != (expected := evaluate(hidden, documents)):
        yield "a redacted value is shown as redacted", (found, expected)
    partly = [other if number % 2 else one for number, (one, other) in enumerate(zip(changes, hidden, strict=True))]
    if (found := as_plain(module.fold(partly, documents))) != (expected := evaluate(partly, documents)):
        yield "a redacted value is shown as redacted", (found, expected)
    if whole.confirmed:
        yield "a redacted confirmation says nothing", whole.confirmed
    if [identified(one).id for one in hidden] != [one.id for one in changes]:
        yield "a redacted copy has the id of the whole one", None


def _lost(changes: list[Change], state: FoldedClaims) -> Iterator[str]:
    """Yield the claims that are neither shown nor superseded, covered, deleted, removed or waiting."""
    kept = {*state.waiting, *_shown(state)}
    for change in changes:
        for claim in change.claims:  # what a present claim names is superseded or removed
            kept |= {f"{one} field" for one in getattr(claim, "after", ())} | {*getattr(claim, "removes", ())}
    for change in changes:
        for at, claim in enumerate(change.claims):
            names = {f"{change.id}.{at}"}
            if isinstance(claim, Create):
                names = {creation_of(change.id, claim.id)}
            elif isinstance(claim, SetField | UnsetField):
                names |= {f"{change.id} field"}
            elif not isinstance(claim, AddMember | AddEdge):
                continue
            elif isinstance(claim, AddMember) and isinstance(claim.on, EdgeRef):
                names = {claim.now}
            if not names & kept and not _is_deleted(change, claim, state):
                yield f"{change.id}.{at}"


def _shown(state: FoldedClaims) -> Iterator[str]:
    yield from state.deleted
    yield from (member for members in state.confirmed.values() for member in members)
    for one in [*state.entities.values(), *state.edges.values()]:
        yield from (
            f"{change} field" for field in one.fields.values() for value in field.values for change in value.changes
        )
        yield from getattr(one, "additions", ())
        yield from getattr(one, "of", ())
        yield from (
            name for members in getattr(one, "sets", {}).values() for names in members.values() for name in names
        )


def _is_deleted(change: Change, claim: object, state: FoldedClaims) -> bool:
    on = getattr(claim, "on", None)
    of = [creation_of(change.id, on.id) if one == "@" else one for one in getattr(on, "of", ())]
    return any(one in state.deleted for one in of)


# Of each rule: what to replace in the source of the fold, and by what.
MUTANTS = {
    "a superseded claim is not shown": ("latest = sorted(claims.keys() - named)", "latest = sorted(claims)"),
    "the smallest change id is shown first": (
        "latest = sorted(claims.keys() - named)",
        "latest = sorted(claims.keys() - named, reverse=True)",
    ),
    "equal values are no conflict": (
        'by_value[b"" if is_alone else value_key(value)]',
        "by_value[change.encode()]",
    ),
    "different values are a conflict": (
        'by_value[b"" if is_alone else value_key(value)]',
        'by_value[b""]',
    ),
    "no value and a value are a conflict": (
        "for change in latest:\n",
        "for change in [one for one in latest if claims[one][0] is not ABSENT] or latest:\n",
    ),
    "a claim names all that its writer saw": (
        "dict.fromkeys([*latest, *before])",
        "dict.fromkeys(latest)",
    ),
    "a missing change is noted": ("frozenset(one for one in named if one not in present)", "frozenset()"),
    "a document covers claims": ("stated.get(name, ABSENT)", "ABSENT"),
    "a deleted creation keeps its last id": ("(living or found)[0]] if found", "living[0]] if living"),
    "a removal takes away the additions that it names": ("if claim not in one.removed:", "if True:"),
    "a removal takes away no other addition": ("if claim not in one.removed:", "if not one.removed:"),
    "an edge is gone with its additions": ("elif name not in removed:", "else:"),
    "an addition of an edge that no removal names survives": ("elif name not in removed:", "elif not removed:"),
    "a deletion holds if it saw everything": ("if whole <= {change, *claim.after}:", "if False:"),
    "a deletion does not hold if it did not see everything": ("if whole <= {change, *claim.after}:", "if True:"),
    "a second deletion is no change of the entity": (
        "continue  # what a deletion did not see of an entity are changes of it",
        "pass",
    ),
    "an entity that is kept is not contested": ("for one in parts]) - kept)", "for one in parts]))"),
    "a document is not deleted, kept or renamed": ("if type(claim) in OF_EXISTENCE:  #", "if False:  #"),
    "claims without their creation wait": ("found.waiting.append(", "len("),
    "a renamed entity has its new id": (
        "return self.created_ids[creation] if shown is ABSENT else str(shown)",
        "return self.created_ids[creation]",
    ),
    "creations of one id are one entity": (
        "groups.setdefault(key, []).append(creation)",
        "groups[key] = [creation]",
    ),
    "an end of an edge is a creation": ("key = self.ids[(living or found)[0]] if found else ref.id", "key = ref.id"),
    "an end of an edge may have a former id": ("self.aliases.get(key, key)", "key"),
    "an entity that is there comes before a former id": (
        "return key if living or key in self.entities or", "return key if living or",
    ),
    "a claim on an edge of a deleted entity is none on that of another": (
        "is_stated = is_own or named_by", "is_stated = True or named_by",
    ),
    "a claim on an edge of a deleted entity is none on that of another with its id": (
        " and not of_others[one[1], ref]", "",
    ),
    "a claim on an edge goes to another entity with its statement": (
        "named_by(one[1], ref) in additions.get(key, {}).values()", "False",
    ),
    "a document may have renamed its entity": ("else documents.former_ids.get(ref.id, ref.id)", "else ref.id"),
    "claims on an edge that is not there wait": (
        "*(name for found in others.values() for name, _, _ in found)",
        "*()",
    ),
    "a confirmation is that of its edge": ("found[names.id_of(change, ref)].add", "found[change].add"),
    "a confirmation that was redacted says nothing": (
        "if type(claim) is AddMember and not claim.is_redacted", "if type(claim) is AddMember",
    ),
    "a redacted value is shown as redacted": (
        "redacted_value(claim.field) if claim.is_redacted", "ABSENT if claim.is_redacted",
    ),
    "a redacted member is shown as redacted": ("REDACTED if claim.is_redacted else claim.now", "claim.now"),
}  # fmt: skip


RARE = {
    "a missing change is noted": 71,
    "a deleted creation keeps its last id": 507,
    "a removal takes away no other addition": 133,
    "an entity that is kept is not contested": 202,
    "a claim on an edge of a deleted entity is none on that of another": 1_435,
    "a claim on an edge of a deleted entity is none on that of another with its id": 1_435,
    "a claim on an edge goes to another entity with its statement": 15_756,
    "claims on an edge that is not there wait": 103,
}
"""The number of the first history that meets a rule, where many come before it."""


@pytest.mark.parametrize("rule", MUTANTS)
def test_a_fold_without_a_rule_breaks_a_law(rule: str, tmp_path: Path) -> None:
    module = mutated(tmp_path, *MUTANTS[rule])
    histories = ((random_steps(seed), DOCUMENTS[seed % 3], 3 + seed % 3) for seed in range(RARE.get(rule, 0), 20_000))
    assert any(True for steps, documents, writers in histories for _ in broken_laws(steps, documents, writers, module))


def mutated(folder: Path, old: str, new: str) -> ModuleType:
    """Return the module of the fold with one piece of its source replaced."""
    source = Path(str(real.__file__)).read_text(encoding="utf-8")
    assert source.count(old) == 1, source.count(old)
    path = folder / "mutated_fold.py"
    path.write_text(source.replace(old, new), encoding="utf-8")
    spec = importlib.util.spec_from_file_location("mutated_fold", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_histories_meet_every_case() -> None:
    """The histories have what the rules speak of, or the laws would hold for nothing."""
    met = set[str]()
    for seed in range(600):
        documents = DOCUMENTS[seed % 3]
        played = play(random_steps(seed), documents, 3 + seed % 3)
        met |= {what for _, _, what in played.writes}
        for changes in [*played.held, played.made]:
            state = real.fold(changes.values(), documents)
            met |= {kind for kind, *_ in conflicts(state)}
            met |= {"deleted"} if state.deleted else set()
            met |= {"waiting"} if state.waiting else set()
            met |= {"one id twice"} if any(len(one.of) > 1 for one in state.entities.values()) else set()
    assert met == {*change_histories.WRITES, "field", "name", "deletion", "deleted", "waiting", "one id twice"}
