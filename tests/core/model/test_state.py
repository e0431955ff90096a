"""Laws of the fold: what holds after any history of operations."""

from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kbcore.ids import link_id
from kbcore.model.folding import apply
from kbcore.model.record import ConfirmLink, DropNode, PutNode, StateLink, WithdrawLink
from kbcore.model.state import Stamp, State
from kbcore.view.record_rows import fold
from tests.support.generators.histories import based, entries_of, laws, lines_of, records, resolved_links, states_of

LAWS = laws(60)
AT = "2026-11-20T09:30:00.000000Z"


def stamp(seq: int = 9) -> Stamp:
    return Stamp(seq, AT, "ann", "cli")


@LAWS
@given(records())
def test_a_link_is_resolved_exactly_when_its_type_is_known_and_both_ends_exist(history) -> None:
    state = State()
    for entry in entries_of(history):
        fold(state, entry)
        assert {key: link.is_resolved for key, link in state.links.items()} == resolved_links(state)


@LAWS
@given(records())
def test_the_changes_of_a_record_are_exactly_what_differs_before_and_after_it(history) -> None:
    state = State()
    for entry in entries_of(history):
        before = (dict(state.nodes), dict(state.links), dict(state.sources))
        changes = fold(state, entry)
        after = (state.nodes, state.links, state.sources)
        for old, new, reported in zip(before, after, (changes.nodes, changes.links, changes.sources), strict=True):
            moved = {key for key in old.keys() | new.keys() if old.get(key) is not new.get(key)}
            assert {change.key for change in reported} == moved
            assert all(
                (change.before, change.after) == (old.get(change.key), new.get(change.key)) for change in reported
            )
            assert all(new[key].version == entry.seq for key in moved & new.keys())


@LAWS
@given(records())
def test_every_owner_of_a_field_of_a_link_states_that_link(history) -> None:
    for state in states_of(entries_of(history)):
        for link in state.links.values():
            sources = {statement.src for statement in link.statements}
            assert sources
            assert set(link.owners.values()) <= sources
            assert link.fields.keys() == link.owners.keys() or "" in sources


@LAWS
@given(records(max_ops=1))
def test_doing_the_same_again_changes_nothing_and_bumps_no_version(history) -> None:
    """All but a confirmation, whose only word is its seq."""
    state = State()
    for entry in entries_of(history):
        fold(state, entry)
        once = lines_of(state)
        ops = [op for op in entry.record.ops if not isinstance(op, ConfirmLink)]
        again = apply(state, stamp(99), based(state, ops))
        assert not again
        assert lines_of(state) == once


@LAWS
@given(records(), st.randoms(use_true_random=False))
def test_equal_states_are_equal_bytes_whatever_order_their_elements_came_in(history, chance: random.Random) -> None:
    state = states_of(entries_of(history))[-1]
    shuffled = [list(part.values()) for part in (state.nodes, state.links, state.sources)]
    for part in shuffled:
        chance.shuffle(part)
    assert lines_of(State(*shuffled)) == lines_of(state)


@LAWS
@given(records())
def test_a_link_is_found_from_each_of_its_ends_and_from_nowhere_else(history) -> None:
    for state in states_of(entries_of(history)):
        for end in {end for link in state.links.values() for end in (link.from_id, link.to_id)} | {"A", "stranger"}:
            found = {link.id for link in state.links_of(end)}
            assert found == {link.id for link in state.links.values() if end in {link.from_id, link.to_id}}


def test_a_file_that_states_its_source_stays_that_source_when_it_sets_another_field() -> None:
    state = State()
    apply(state, stamp(1), [PutNode(id="A", base=0, set={"type": "req", "source": "JIRA-1"}, src="docs/a.md")])
    apply(state, stamp(2), [PutNode(id="A", base=1, set={"title": "New"}, src="docs/a.md")])
    assert state.nodes["A"].source == "JIRA-1"


def test_a_file_becomes_the_source_of_what_it_sets_unless_it_says_otherwise() -> None:
    state = State()
    apply(state, stamp(1), [PutNode(id="A", base=0, set={"type": "req"})])
    assert state.nodes["A"].source == "cli"
    apply(state, stamp(2), [PutNode(id="A", base=1, set={"title": "New"}, src="docs/a.md")])
    assert state.nodes["A"].source == "docs/a.md"


def test_links_of_others_to_a_removed_entity_stay_and_stand_again_when_it_comes_back() -> None:
    state = State()
    put = [PutNode(id=key, base=0, set={"type": "req"}) for key in ("A", "B")]
    apply(state, stamp(1), [*put, StateLink(type="depends_on", from_id="A", to_id="B", base=0)])
    key = link_id("depends_on", "", "A", "B")
    assert state.links[key].is_resolved
    apply(state, stamp(2), [DropNode(id="B", base=1)])
    assert not state.links[key].is_resolved
    apply(state, stamp(3), [PutNode(id="B", base=0, set={"type": "req"})])
    assert state.links[key].is_resolved
    assert state.links[key].version == 3


def test_a_link_about_a_link_is_resolved_exactly_while_that_one_is() -> None:
    state = State()
    put = [PutNode(id=key, base=0, set={"type": "req"}) for key in ("A", "B")]
    below = link_id("depends_on", "", "A", "B")
    about = link_id("relates_to", "why", below, "A")
    apply(
        state,
        stamp(1),
        [
            StateLink(type="relates_to", kind="why", from_id=below, to_id="A", base=0),
            StateLink(type="depends_on", from_id="A", to_id="B", base=0),
            *put,
        ],
    )
    assert state.links[about].is_resolved
    apply(state, stamp(2), [WithdrawLink(type="depends_on", from_id="A", to_id="B", base=1)])
    assert not state.links[about].is_resolved


def test_an_edge_exists_as_long_as_one_source_states_it_and_loses_what_the_other_said() -> None:
    state = State()
    edge = {"type": "depends_on", "from_id": "A", "to_id": "B"}
    key = link_id("depends_on", "", "A", "B")
    apply(state, stamp(1), [StateLink(**edge, base=0, set={"confidence": 1}, src="docs/a.md")])
    apply(state, stamp(2), [StateLink(**edge, base=1, set={"metadata.why": "seen"})])
    assert [statement.source for statement in state.links[key].statements] == ["cli", "docs/a.md"]
    apply(state, stamp(3), [WithdrawLink(**edge, base=2, src="docs/a.md")])
    assert state.links[key].fields == {"metadata.why": "seen"}
    apply(state, stamp(4), [WithdrawLink(**edge, base=3)])
    assert key not in state.links


def test_a_confirmation_moves_the_version_of_an_edge_and_nothing_else() -> None:
    edge = {"type": "depends_on", "from_id": "A", "to_id": "B"}
    state = State()
    apply(state, stamp(1), [StateLink(**edge, base=0, set={"confidence": 0.5}, src="docs/a.md")])
    [old] = state.links.values()
    changes = apply(state, stamp(7), [ConfirmLink(**edge, base=1)])
    [change] = changes.links
    assert change.after == msgspec.structs.replace(old, version=7)
    assert not apply(state, stamp(8), [ConfirmLink(type="depends_on", from_id="A", to_id="X", base=0)])
