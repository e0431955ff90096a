"""The result of a write of proposals, and of two clones that decide at once."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.model import graph
from kbcore.model.folding import apply
from kbcore.model.proposals import NotProposable, accepted_changes, as_proposals
from kbcore.model.record import ConfirmLink, DropNode, PutNode, StateLink, WithdrawLink
from kbcore.model.state import Stamp, State

STAMP = Stamp(1, "2026-01-01T00:00:00Z", "agent", "mcp:agent")
REQ = {"type": "req", "title": "One", "status": "open"}
MARK = graph.proposed_mark("")


def everything(_: str) -> bool:
    return True


def state_of(*ops):
    state = State()
    apply(state, STAMP, ops)
    return state


def copied(state):
    return State(state.nodes.values(), state.links.values())


def proposed(state, *ops, covers=everything):
    """Return what operations come to on a state when they are proposals, as operations and as a state."""
    planned = apply(copied(state), STAMP, ops)
    found = as_proposals(ops, planned, covers)
    after = copied(state)
    apply(after, STAMP, found.ops)
    return found, after


ACCEPTED = state_of(
    PutNode("R", 0, REQ), PutNode("T", 0, {**REQ, "type": "test"}), StateLink("verified_by", "R", "T", 0)
)
EDGE = next(iter(ACCEPTED.links))


def test_a_new_entity_and_a_new_edge_are_marked():
    found, after = proposed(ACCEPTED, PutNode("N", 0, REQ), StateLink("relates_to", "R", "N", 0, "see"))
    new = next(one for one in after.links.values() if one.to_id == "N")
    assert (found.elements, found.fields) == (2, 0)
    assert graph.is_proposed(after.nodes["N"])
    assert graph.is_proposed(new)
    assert graph.entity_json(after.nodes["N"])["proposed"] is True
    assert "metadata" not in graph.edge_json(new)


def test_an_accepted_field_keeps_its_value_and_the_proposed_one_is_beside_it():
    found, after = proposed(ACCEPTED, PutNode("R", 1, {"status": "done", "attributes.k": 1}, ("title",)))
    node = after.nodes["R"]
    assert found.fields == 3
    assert (node.fields["status"], node.fields["title"]) == ("open", "One")
    assert graph.proposed_values(node) == {"attributes.k": {"value": 1}, "status": {"value": "done"}, "title": {}}
    assert graph.entity_json(node)["proposed"] == {"attributes.k": 1, "status": "done", "title": None}
    assert not graph.is_proposed(node)


def test_what_is_proposed_already_is_written_and_removed_as_usual():
    _, state = proposed(ACCEPTED, PutNode("N", 0, REQ), StateLink("verified_by", "N", "T", 0))
    new = next(one for one in state.links.values() if one.from_id == "N")
    found, after = proposed(state, PutNode("N", 1, {"title": "Two"}))
    assert after.nodes["N"].fields["title"] == "Two"
    assert not found.fields
    ops = (WithdrawLink("verified_by", "N", "T", new.version), DropNode("N", 1))
    assert proposed(state, *ops)[0].ops == ops


def test_a_removal_of_accepted_facts_is_a_proposal_to_remove_them():
    found, after = proposed(ACCEPTED, WithdrawLink("verified_by", "R", "T", 1), DropNode("R", 1))
    assert found.fields == 2
    assert graph.entity_json(after.nodes["R"])["proposed"] == {"deleted": True}
    assert graph.edge_json(after.links[EDGE])["proposed"] == {"deleted": True}


def test_a_confirmation_of_an_accepted_edge_is_left_out():
    found, after = proposed(ACCEPTED, ConfirmLink("verified_by", "R", "T", 1))
    assert (found.ops, found.confirmations) == ((), 1)
    assert after.links == ACCEPTED.links


def test_types_that_the_settings_do_not_name_are_written():
    ops = (PutNode("N", 0, REQ), StateLink("verified_by", "N", "T", 0))
    found, after = proposed(ACCEPTED, *ops, covers=lambda type_: type_ == "verified_by")
    assert not graph.is_proposed(after.nodes["N"])
    assert found.elements == 1


def test_what_a_file_states_is_accepted_with_the_file():
    _, state = proposed(ACCEPTED, PutNode("N", 0, REQ), StateLink("verified_by", "N", "T", 0))
    link = next(one for one in state.links.values() if one.from_id == "N")
    apply(
        state, STAMP, [PutNode("N", 1, REQ, src="a.md"), StateLink("verified_by", "N", "T", link.version, src="a.md")]
    )
    assert not graph.is_proposed(state.nodes["N"])
    assert not graph.is_proposed(state.links[link.id])
    assert "proposed" not in graph.entity_json(state.nodes["N"])


@pytest.mark.parametrize(
    "ops",
    [
        (PutNode("N", 1, unset=(MARK,)),),
        (PutNode("R", 1, {MARK: True}),),
        (DropNode("R", 1), PutNode("R2", 0, {**REQ, graph.FORMER_IDS: ["R"]})),
    ],
    ids=["accept", "demote", "rename"],
)
def test_what_decides_or_renames_is_no_proposal(ops):
    _, state = proposed(ACCEPTED, PutNode("N", 0, REQ))
    with pytest.raises(NotProposable):
        proposed(state, *ops)


def test_changes_without_what_is_proposed_have_it_on_neither_side():
    _, state = proposed(ACCEPTED, PutNode("N", 0, REQ))
    accepted = apply(copied(state), STAMP, [PutNode("N", 1, unset=(MARK,)), PutNode("R", 1, {"title": "Two"})])
    changes = accepted_changes(accepted)
    assert [(one.key, one.before is None, one.after is None) for one in changes.nodes] == [
        ("N", True, False),
        ("R", False, False),
    ]
    gone = apply(copied(state), STAMP, [DropNode("N", 1)])
    assert not accepted_changes(gone)


FIELDS = ("title", "status", "attributes.a", "metadata.b")
_ops = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(["R", "T", "N", "M"]), st.sampled_from(FIELDS), st.integers(0, 2)),
        st.tuples(st.just("drop"), st.sampled_from(["R", "T", "N", "M"])),
        st.tuples(st.just("link"), st.sampled_from(["R", "N"]), st.sampled_from(["T", "M"])),
        st.tuples(st.just("unlink"), st.sampled_from(["R", "N"]), st.sampled_from(["T", "M"])),
    ),
    max_size=12,
)


@given(_ops)
def test_accepted_facts_stay_as_they_are_whatever_is_proposed(steps):
    """Law: what is not marked stays what it was, and to propose a proposal again changes nothing of it."""
    state = ACCEPTED
    for step in steps:
        ops = list(_operations(state, step))
        if not ops:
            continue
        found, after = proposed(state, *ops)
        assert as_proposals(found.ops, apply(copied(state), STAMP, found.ops), everything).ops == found.ops
        state = after
    assert _accepted(state) == _accepted(ACCEPTED)


def _operations(state, step):
    what, key, *rest = step
    node = state.nodes.get(key)
    if what == "put" and node is None:
        yield PutNode(key, 0, REQ)
    elif what == "put":
        yield PutNode(key, node.version, {rest[0]: f"value {rest[1]}"})
    elif what == "drop" and node is not None:
        yield from (_unlink(one) for one in state.links_of(key))
        yield DropNode(key, node.version)
    elif what in {"link", "unlink"} and {key, rest[0]} <= state.nodes.keys():
        old = next((one for one in state.links_of(key) if (one.from_id, one.to_id) == (key, rest[0])), None)
        if what == "link" and old is None:
            yield StateLink("verified_by", key, rest[0], 0)
        elif what == "unlink" and old is not None:
            yield _unlink(old)


def _unlink(link):
    return WithdrawLink(link.type, link.from_id, link.to_id, link.version, link.kind)


def _accepted(state):
    elements = itertools.chain(state.nodes.values(), state.links.values())
    return {
        one.id: {name: value for name, value in one.fields.items() if not graph.is_proposed_mark(name)}
        for one in elements
        if not graph.is_proposed(one)
    }
