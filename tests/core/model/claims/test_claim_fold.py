"""Folds of single histories that a simpler fold would get wrong."""

from __future__ import annotations

from typing import Any

from kbcore.ids import link_id
from kbcore.model.claims import edits
from kbcore.model.claims.change import (
    MAX_SEEN,
    SELF,
    Change,
    Claim,
    Create,
    Delete,
    EdgeRef,
    EntityRef,
    Rename,
    SetField,
    creation_of,
    identified,
)
from kbcore.model.claims.fold import ABSENT, DocumentFacts, FoldedClaims, fold
from tests.support.generators import new_claims

NOTHING = fold([])


class Clone:
    """The changes that one clone has, in the order in which they came."""

    def __init__(self, *changes: Change, documents: DocumentFacts = DocumentFacts()) -> None:  # noqa: B008 - it is frozen
        self.changes = [*changes]
        self._documents = documents

    @property
    def state(self) -> FoldedClaims:
        return fold(self.changes, self._documents)

    def write(self, *claims: Any, at: str = "T") -> Change:
        made = identified(Change("", at, "ann", "test", claims))
        self.changes.append(made)
        return made

    def create(self, key: str, **fields: Any) -> Change:
        new = EntityRef(key, (SELF,))
        return self.write(Create(key), *(SetField(new, name, now=value) for name, value in fields.items()))

    def set(self, key: str, field: str, value: Any) -> Change:
        return self.write(new_claims.set_field(self.state, key, field, value))

    def shown(self, key: str, field: str) -> Any:
        return self.state.entities[key].fields[field].shown


def values_of(state: FoldedClaims, key: str, field: str) -> set[Any]:
    return {one.value for one in state.entities[key].fields[field].values}


def test_a_value_that_came_back_holds_when_the_first_claim_of_it_is_dropped() -> None:
    clone = Clone()
    made = clone.create("A", title="one")
    first, second, third = (clone.set("A", "title", value) for value in ("x", "y", "x"))
    assert values_of(fold([made, second, third]), "A", "title") == {"x"}
    assert values_of(fold([made, first, second]), "A", "title") == {"y"}


def test_first_and_third_claim_are_no_conflict_when_the_second_is_dropped() -> None:
    clone = Clone()
    made, _, third = clone.create("A", title="one"), clone.set("A", "title", "two"), clone.set("A", "title", "three")
    state = fold([made, third])
    assert values_of(state, "A", "title") == {"three"}
    assert state.entities["A"].fields["title"].missing == {clone.changes[1].id}


def test_so_many_missing_claims_as_a_claim_names_are_no_conflict_and_one_more_is() -> None:
    clone = Clone()
    made = clone.create("A", title="one")
    for number in range(MAX_SEEN):
        clone.set("A", "title", str(number))
    assert values_of(fold([made, clone.changes[-1]]), "A", "title") == {str(MAX_SEEN - 1)}
    last = clone.set("A", "title", "last")
    assert values_of(fold([made, last]), "A", "title") == {"one", "last"}


def test_a_deletion_that_did_not_see_a_concurrent_change_leaves_the_entity_whole_and_contested() -> None:
    start = Clone()
    start.create("A", type="req", title="one", status="open")
    mine, other = Clone(*start.changes), Clone(*start.changes)
    gone = mine.write(edits.delete(mine.state, "A"))
    changed = other.set("A", "status", "done")
    both = Clone(*start.changes, gone, changed)
    assert both.state.entities["A"].deletions == (gone.id,)
    assert {both.shown("A", name) for name in ("type", "title", "status")} == {"req", "one", "done"}
    both.write(edits.keep(both.state, "A"))
    assert both.state.entities["A"].deletions == ()
    both.write(edits.delete(both.state, "A"))
    assert both.state.entities == {}


def test_a_new_entity_under_a_deleted_id_is_another_creation() -> None:
    clone = Clone()
    clone.create("A", title="one")
    clone.write(edits.delete(clone.state, "A"))
    clone.create("A", title="two")
    assert clone.shown("A", "title") == "two"
    assert not clone.state.entities["A"].fields["title"].is_contested


def test_two_creations_of_one_id_are_one_entity_until_one_is_renamed() -> None:
    mine, other = Clone(), Clone()
    mine.create("A", title="one", status="open")
    other.create("A", title="two", status="open")
    both = Clone(*mine.changes, *other.changes)
    found = both.state.entities["A"]
    assert (found.fields["title"].is_contested, found.fields["status"].is_contested) == (True, False)
    [creation] = other.state.entities["A"].of
    both.write(edits.rename(both.state, "A", "B", creations=[creation]))
    assert (both.shown("A", "title"), both.shown("B", "title")) == ("one", "two")
    # Who has not seen that goes on to write to both, and each of them gets it.
    late = Clone(*mine.changes, *other.changes).set("A", "status", "done")
    both.changes.append(late)
    assert (both.shown("A", "status"), both.shown("B", "status")) == ("done", "done")


def test_a_deletion_of_two_creations_that_did_not_see_all_of_one_leaves_both() -> None:
    mine, other = Clone(), Clone()
    mine.create("A", title="one")
    other.create("A", status="open")
    both = Clone(*mine.changes, *other.changes)
    both.write(edits.delete(both.state, "A"))
    assert both.state.entities == {}
    for clone in (mine, other):  # each has seen one creation only
        late = Clone(*clone.changes).set("A", "owner", "ann")
        assert {*fold([*both.changes, late]).entities["A"].fields} == {"title", "status", "owner"}


def test_a_conflict_is_the_same_for_everybody_and_settled_by_a_claim_that_saw_it() -> None:
    start = Clone()
    start.create("A", title="one")
    mine, other = Clone(*start.changes).set("A", "title", "x"), Clone(*start.changes).set("A", "title", "y")
    both = Clone(*start.changes, mine, other)
    field = both.state.entities["A"].fields["title"]
    assert [one.changes for one in field.values] == sorted([(mine.id,), (other.id,)])
    both.set("A", "title", "z")
    assert both.shown("A", "title") == "z"
    assert not both.state.entities["A"].fields["title"].is_contested


def test_equal_values_of_two_writers_are_no_conflict_and_another_kind_of_value_is() -> None:
    start = Clone()
    start.create("A", title="one")

    def values(*written: Any) -> set[Any]:
        return values_of(
            fold([*start.changes, *(Clone(*start.changes).set("A", "k", one) for one in written)]), "A", "k"
        )

    assert values("x", "x") == {"x"}
    assert len(fold([Clone().create("B", k=1), Clone().create("B", k=True)]).entities["B"].fields["k"].values) == 2


def test_an_addition_that_a_removal_did_not_see_survives() -> None:
    start = Clone()
    start.create("A")
    start.write(new_claims.add_member(start.state, "A", "tags", "red"))
    mine, other = Clone(*start.changes), Clone(*start.changes)
    gone = mine.write(new_claims.remove_member(mine.state, "A", "tags", "red"))
    again = other.write(new_claims.add_member(other.state, "A", "tags", "red", salt="again"))
    assert mine.state.entities["A"].sets == {}
    assert [*fold([*start.changes, gone, again]).entities["A"].sets["tags"]] == ["red"]


def test_edges_follow_a_renamed_entity_and_their_removal_does_too() -> None:
    clone = Clone()
    clone.create("A")
    clone.create("B")
    clone.write(new_claims.add_edge(clone.state, "depends_on", "A", "B"))
    [edge] = clone.state.edges
    clone.write(new_claims.add_edge(clone.state, "about", edge, "A"))
    clone.write(edits.rename(clone.state, "A", "C"))
    inner = link_id("depends_on", "", "C", "B")
    assert {*clone.state.edges} == {inner, link_id("about", "", inner, "C")}
    assert clone.state.entities["C"].former_ids == ("A",)
    clone.write(new_claims.remove_edge(clone.state, inner))
    assert {*clone.state.edges} == {link_id("about", "", inner, "C")}


def _edge_of_a_deleted_entity_beside_that_of_its_successor() -> tuple[Clone, list[Change]]:
    """Return a clone in which B was A before and has an edge, and another clone's A with such an edge was deleted."""
    one, other = Clone(), Clone()
    target = one.create("T", type="req")
    other.changes.append(target)
    one.create("A", type="req")
    one.write(edits.rename(one.state, "A", "B"))
    for clone, value in ((one, 1), (other, 2)):
        if clone is other:
            other.create("A", type="req", title="of another clone")
        end = "B" if clone is one else "A"
        clone.write(new_claims.add_edge(clone.state, "depends_on", end, "T"))
        clone.write(new_claims.set_field(clone.state, link_id("depends_on", "", end, "T"), "confidence", value))
    merged = Clone(*one.changes, *other.changes)
    gone = link_id("depends_on", "", "A", "T")
    return merged, [
        merged.write(new_claims.remove_edge(merged.state, gone)),
        merged.write(edits.delete(merged.state, "A")),
    ]


def test_a_deletion_with_an_edge_leaves_the_edge_of_an_entity_that_had_the_id_before_as_it_is() -> None:
    merged, _ = _edge_of_a_deleted_entity_beside_that_of_its_successor()
    [edge] = merged.state.edges.values()
    assert edge.from_id == "B"
    assert [one.value for one in edge.fields["confidence"].values] == [1]
    assert len(merged.state.waiting) == 1


def test_an_edge_that_a_deletion_did_not_see_goes_with_its_fields_to_the_entity_that_had_the_id_before() -> None:
    merged, (removal, _) = _edge_of_a_deleted_entity_beside_that_of_its_successor()
    [edge] = fold([one for one in merged.changes if one != removal]).edges.values()
    assert edge.from_id == "B"
    assert {one.value for one in edge.fields["confidence"].values} == {1, 2}


def test_a_claim_on_an_edge_of_a_deleted_entity_is_none_on_the_edge_that_a_document_states_by_its_id() -> None:
    def change(minute: int, *claims: Claim) -> Change:
        return identified(Change("", f"2026-11-01T00:0{minute}:00.000000Z", "ann", "kb/test", claims))

    first, second = change(1, Create("B")), change(2, Create("B"))
    gone, stays = [EntityRef("B", (creation_of(one.id, "B"),)) for one in (first, second)]
    claimed = change(3, SetField(EdgeRef("t", EntityRef("A"), gone), "confidence", now=0.9, salt="0"))
    changes = [first, claimed, change(4, Delete(gone, (first.id,))), second, change(5, Rename(stays, "C"))]
    edge = link_id("t", "", "A", "B")
    state = fold(changes, DocumentFacts({"A": {"type": "req"}}, {}, {edge: ("t", "", "A", "B")}))
    assert state.edges[edge].fields == {}
    assert state.waiting == (f"{claimed.id}.0",)
    assert {*state.unstated[edge]} == {"confidence"}


def test_an_edge_to_two_creations_follows_the_one_that_lives() -> None:
    mine, other = Clone(), Clone()
    mine.create("A", title="one")
    other.create("A", title="two")
    for creation in (mine.state.entities["A"].of[0], other.state.entities["A"].of[0]):
        both = Clone(*mine.changes, *other.changes)
        both.write(new_claims.add_edge(both.state, "about", "A", "B"))
        gone = mine if creation.startswith(other.changes[0].id) else other
        both.changes.append(Clone(*gone.changes).write(edits.delete(gone.state, "A")))
        both.write(edits.rename(both.state, "A", "C"))
        assert [one.from_id for one in both.state.edges.values()] == ["C"]


def test_claims_without_their_creation_wait_and_hold_again_with_it() -> None:
    clone = Clone()
    made = clone.create("A", title="one")
    changed = clone.set("A", "title", "two")
    assert fold([changed]).waiting == (f"{changed.id}.0",)
    assert fold([changed, made]).entities["A"].fields["title"].shown == "two"


def test_a_field_of_a_document_covers_claims_until_the_document_gives_it_up() -> None:
    stated = DocumentFacts({"A": {"type": "req", "title": "stated"}})
    clone = Clone(documents=DocumentFacts({"A": {"type": "req"}}))
    changed = clone.set("A", "title", "claimed")
    assert fold([changed], stated).entities["A"].fields["title"].shown == "stated"
    assert fold([changed], DocumentFacts({"A": {"type": "req"}})).entities["A"].fields["title"].shown == "claimed"
    assert fold([changed], DocumentFacts({"B": {}}, {"A": "B"})).entities["B"].fields["title"].shown == "claimed"
    assert fold([changed]).waiting == (f"{changed.id}.0",)


def test_two_records_of_one_moment_with_other_content_are_two_changes() -> None:
    clone = Clone()
    first, second = clone.create("A", title="one"), clone.create("B", title="one")
    assert first.id != second.id
    assert fold([first, second]) == fold([second, first, first])


def test_no_value_is_a_value_that_may_be_contested() -> None:
    start = Clone()
    start.create("A", title="one")
    mine = Clone(*start.changes).write(new_claims.unset_field(start.state, "A", "title"))
    other = Clone(*start.changes).set("A", "title", "two")
    found = fold([*start.changes, mine, other]).entities["A"].fields["title"]
    assert {one.value for one in found.values} == {ABSENT, "two"}
    assert fold([*start.changes, mine]).entities["A"].fields["title"].shown is ABSENT


def test_the_state_of_nothing_is_empty() -> None:
    assert (NOTHING.entities, NOTHING.edges, NOTHING.deleted, NOTHING.waiting) == ({}, {}, {}, ())
