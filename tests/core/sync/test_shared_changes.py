"""The state of clones that share their changes in files equals the fold of the set of changes, in every history."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.model.claims.change import Create
from kbcore.model.claims.derived import derived, may_be_change, touched
from kbcore.model.claims.fold import DocumentFacts, fold
from kbcore.model.claims.subjects import ids_of_clients
from kbcore.model.graph import FORMER_IDS
from kbcore.model.record import DropNode, LeaveChange, Operation, PutNode, StateLink, TakeChange
from kbcore.view.claim_filling import Filling
from kbcore.view.claim_index import ClaimIndex
from tests.support.effort.scale import tries
from tests.support.generators.change_histories import known_names
from tests.support.generators.sharing_clones import MOST, WRITES, Clone, Step, facts_expected, facts_of, play

_numbers = st.integers(0, MOST - 1)
_steps = st.lists(st.tuples(_numbers, _numbers, _numbers, _numbers, _numbers), min_size=1, max_size=25)


@given(_steps, st.integers(2, 4))
@settings(max_examples=tries(100, 20_000), deadline=None)
def test_the_state_of_a_clone_is_that_of_the_changes_it_has(steps: list[Step], clones: int) -> None:
    for clone in play(steps, clones):
        assert facts_of(clone.state) == facts_expected(clone.present()), clone.name


@given(_steps, st.integers(2, 4))
@settings(max_examples=tries(100, 20_000), deadline=None)
def test_the_same_holds_beside_documents_that_come_and_go_and_get_other_ids(steps: list[Step], clones: int) -> None:
    for clone in play(steps, clones, with_documents=True):
        assert facts_of(clone.state) == facts_expected(clone.present(), clone.stated()), clone.name


@given(_steps, st.booleans())
@settings(max_examples=tries(60, 10_000), deadline=None)
def test_clones_that_have_all_files_have_the_same_state(steps: list[Step], with_documents: bool) -> None:
    clones = {clone.name: clone for clone in play(steps, with_documents=with_documents)}
    for clone in clones.values():
        clone.publish()
    for one in clones.values():
        for other in clones.values():
            one.merge(other)
    for one in clones.values():
        one.sync()
    states = [facts_of(one.state) for one in clones.values()]
    assert states == [states[0]] * len(states)


@given(_steps, st.booleans())
@settings(max_examples=tries(60, 5_000), deadline=None)
def test_packing_changes_no_state_and_copies_no_change(steps: list[Step], commits: bool) -> None:
    for clone in {clone.name: clone for clone in play(steps)}.values():
        clone.publish()
        clone.sync()
        before, seq = facts_of(clone.state), clone.seq
        withdrawn = [one.change.id for one in clone.index.withdrawn(seq)]
        clone.pack(0, commits=commits)
        for _ in range(3):
            clone.sync()
            assert facts_of(clone.state) == before
            assert [one.change.id for one in clone.index.withdrawn(clone.seq)] == withdrawn
        clone.committed = set(clone.tree)
        clone.sync()
        assert facts_of(clone.state) == before
        for ops in clone.records[seq:]:
            assert all(isinstance(op, TakeChange | LeaveChange) or names_files_of_conflicts(op) for op in ops)
            assert not any(isinstance(op, TakeChange) and op.change for op in ops)


def names_files_of_conflicts(op: Operation) -> bool:
    """Tell whether an operation sets nothing but conflicts: these name the files of their changes, packs now."""
    is_element = isinstance(op, PutNode | StateLink)
    return is_element and not op.unset and all(name.startswith("contested.") for name in op.set)


@given(_steps, st.integers(1, 3))
@settings(max_examples=tries(100, 20_000), deadline=None)
def test_the_change_of_a_record_is_what_the_fold_of_all_changes_before_it_says(steps: list[Step], clones: int) -> None:
    for clone in {clone.name: clone for clone in play(steps, clones)}.values():
        assert_derived_from_all(clone)


@given(st.lists(st.tuples(st.integers(0, len(WRITES) - 1), *[_numbers] * 4), min_size=20, max_size=40))
@settings(max_examples=tries(100, 20_000), deadline=None)
def test_the_same_holds_where_one_clone_writes_and_shares_nothing(steps: list[Step]) -> None:
    assert_derived_from_all([*play(steps, 1)][-1])


@given(_steps, st.integers(1, 3))
@settings(max_examples=tries(50, 5_000), deadline=None)
def test_an_index_knows_the_names_in_its_changes(steps: list[Step], clones: int) -> None:
    for clone in {clone.name: clone for clone in play(steps, clones)}.values():
        names, renamed = known_names(clone.index.all_changes())
        for asked in (names, {*sorted(names)[::3]}):
            found, several = clone.index.known_names(asked | {"Q", "0:Q"})
            assert found == asked
            assert renamed & asked <= several <= renamed


def assert_derived_from_all(clone: Clone) -> None:
    """Assert that each record of a clone is the change that the fold of all changes before it says."""
    index = ClaimIndex(":memory:")
    index.database.empty()
    filling = Filling(index)
    for entry in clone.entries:
        present = [*index.present([one.id for one in index.all_changes()], entry.seq - 1).values()]
        filling.take_in(entry)
        if may_be_change(entry.record):
            stated = touched(entry.record.ops).entities - ids_of_clients(present)
            before = fold(present, DocumentFacts({key: {} for key in stated}))
            assert index.own_since(entry.seq).get(entry.seq) == derived(entry.record, entry.sum, before)


def test_a_conflict_is_noted_with_both_values_and_their_actors() -> None:
    one, other = Clone("ann"), Clone("bob")
    one.write([PutNode("A", 0, {"type": "req", "title": "first"})])
    one.publish()
    other.merge(one)
    other.sync()
    for clone, title in ((one, "this"), (other, "that")):
        clone.write([PutNode("A", clone.seq, {"title": title})])
        clone.publish()

    one.merge(other)
    one.sync()

    node = one.state.nodes["A"]
    values = node.fields["contested.title"]
    assert {(value["value"], change["actor"]) for value in values for change in value["changes"]} == {
        ("this", "ann"),
        ("that", "bob"),
    }
    assert values[0]["value"] == node.fields["title"]


def test_a_change_that_was_dropped_with_its_commit_is_gone_and_can_be_told_from_one_never_shared() -> None:
    clone = Clone("ann")
    clone.write([PutNode("A", 0, {"type": "req", "title": "first"})])
    clone.publish()
    clone.sync()
    clone.write([PutNode("B", 0, {"type": "req", "title": "not shared"})])
    path = next(iter(clone.tree))
    del clone.tree[path]

    clone.sync()

    assert clone.state.nodes.keys() == {"B"}
    assert [one.change.claims[0] for one in clone.index.withdrawn(clone.seq)] == [Create("A")]
    assert [one.change.claims[0] for one in clone.index.unshared(clone.seq)] == [Create("B")]


def test_an_edge_goes_back_to_an_entity_that_comes_back_by_a_change_that_its_deletion_had_not_seen() -> None:
    one, other, third = Clone("ann"), Clone("bob"), Clone("eve")
    one.write([PutNode("A", 0, {"type": "req", "title": "first"}), PutNode("T", 0, {"type": "req"})])
    fields = {"type": "req", "title": "first", FORMER_IDS: ["A"]}
    one.write([PutNode("F", 0, fields), DropNode("A", one.seq)])
    other.write([PutNode("A", 0, {"type": "req", "title": "second"})])
    clones = (one, other, third)
    for clone in clones:
        clone.publish()
    for clone in clones:
        for another in clones:
            clone.merge(another)
        clone.sync()
    one.write([DropNode("A", one.state.nodes["A"].version)])
    other.write([StateLink("depends_on", "A", "T", 0)])
    third.write([PutNode("A", third.seq, {"title": "third"})])
    for clone in clones:
        clone.publish()

    for clone, end in ((other, "F"), (third, "A")):
        one.merge(clone)
        one.sync()
        assert [link.from_id for link in one.state.links.values()] == [end]
        assert facts_of(one.state) == facts_expected(one.present())


def test_a_change_goes_on_when_its_file_goes_before_it_was_committed() -> None:
    clone = Clone("ann")
    clone.write([PutNode("A", 0, {"type": "req", "title": "first"})])
    clone.share()
    clone.sync()
    clone.tree.clear()

    clone.sync()

    assert clone.state.nodes.keys() == {"A"}
    assert len(clone.index.unshared(clone.seq)) == 1
