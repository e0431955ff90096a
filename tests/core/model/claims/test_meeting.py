"""The changes of two sides that may be in conflict: no conflict of the two is missing in what these changes give."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.ids import link_id
from kbcore.model.claims.change import (
    AddEdge,
    Change,
    Claim,
    Create,
    EdgeRef,
    EntityRef,
    Rename,
    SetField,
    creation_of,
    identified,
)
from kbcore.model.claims.fold import DocumentFacts, fold
from kbcore.model.claims.meeting import meeting, named
from tests.support.effort.scale import tries
from tests.support.generators.change_histories import DOCUMENTS, conflicts, known_names, play, random_steps

_IDS = "ABCDEFGHIJ"


@given(st.integers(0, 1 << 32), st.sampled_from(DOCUMENTS), st.integers(3, len(_IDS)))
@settings(max_examples=tries(200, 20_000), deadline=None)
def test_no_conflict_of_two_sides_is_missing(seed: int, documents: DocumentFacts, number: int) -> None:
    played = play(random_steps(seed, 60), documents, ids=_IDS[:number])
    here, there, _ = played.held
    new = [one for key, one in there.items() if key not in here]
    # The least that ``ClaimIndex.known_names`` returns for the names in the new changes, as its own law says.
    asked = set[str]().union(*(named(one).entities for one in new))
    known, renamed = (names & asked for names in known_names(here.values()))
    renamed = renamed.union(documents.former_ids.keys(), documents.former_ids.values())
    kept = meeting({one.id: named(one) for one in new}, (), known, renamed)

    both = conflicts(fold([*here.values(), *new], documents))
    assert conflicts(fold([*here.values(), *(one for one in new if one.id in kept)], documents)) == both


def test_changes_that_name_nothing_that_others_claim_are_left_out() -> None:
    first, second = made("T1", Create("A")), made("T2", Create("B"))
    third = made("T3", SetField(entity("A", first), "title", now="x", salt="s"))
    edge = made("T4", AddEdge(EdgeRef("t", entity("A", first), entity("B", second))))

    new = {one.id: named(one) for one in (first, second, edge)}
    assert meeting(new, (), (), ()) == set()
    assert meeting({**new, third.id: named(third)}, (), (), ()) == {first.id, third.id}
    assert meeting(new, [named(third)], (), ()) == {first.id}
    assert meeting(new, (), {"A"}, ()) == {first.id}
    assert meeting(new, (), {"A", creation_of(second.id, "B")}, ()) == new.keys()


def test_edges_that_become_one_by_a_new_id_of_their_end_are_kept() -> None:
    first, other, target = made("T1", Create("A")), made("T2", Create("C")), made("T3", Create("B"))
    ends = entity("A", first), entity("C", other)
    new = [
        made(f"T{at}", AddEdge(edge), SetField(edge, "confidence", now=at / 10, salt="s"))
        for at, edge in enumerate((EdgeRef("t", end, entity("B", target)) for end in ends), start=4)
    ]
    renaming = made("T6", Rename(ends[0], "C"))
    here = [first, other, renaming]

    known, renamed = known_names(here)
    assert conflicts(fold([*here, target, *new]))
    there = {one.id: named(one) for one in (target, *new)}
    assert meeting(there, (), known, renamed) == {one.id for one in new}
    assert meeting(there, [named(renaming)], (), ()) == {one.id for one in new}


@pytest.mark.parametrize("is_named_by_id_here", [True, False])
def test_an_edge_about_an_edge_is_one_by_whichever_name(*, is_named_by_id_here: bool) -> None:
    ends = EntityRef(link_id("t", "", "D", "E")), EdgeRef("t", EntityRef("D"), EntityRef("E"))
    here, there = (
        made(f"T{at}", AddEdge(edge), SetField(edge, "confidence", now=at / 10, salt="s"))
        for at, edge in enumerate(EdgeRef("about", end, EntityRef("X")) for end in ends)
    )
    if not is_named_by_id_here:
        here, there = there, here
    documents = DocumentFacts({key: {"type": "req"} for key in "DEX"}, {}, {ends[0].id: ("t", "", "D", "E")})
    assert conflicts(fold([here, there], documents))
    known, renamed = known_names([here])
    assert meeting({there.id: named(there)}, (), known, renamed) == {there.id}
    assert meeting({there.id: named(there)}, [named(here)], (), ()) == {there.id}


def made(at: str, *claims: Claim) -> Change:
    return identified(Change("", at, "ann", "test", claims))


def entity(key: str, by: Change) -> EntityRef:
    return EntityRef(key, (creation_of(by.id, key),))
