"""From any state to any other: the operations of the inverse lead exactly there."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.model import inverse
from kbcore.model.folding import apply
from kbcore.model.graph import Link, Node, Statement
from kbcore.model.record import Operation, PutNode, WithdrawLink
from kbcore.model.state import Stamp, State
from tests.support.generators.histories import content, entries_of, laws, records, states_of

LAWS = laws(100)
AT = "2027-01-01T00:00:00.000000Z"
STAMP = Stamp(99, AT, "undoer", "undo")


def way(now: State, wanted: State) -> list[Operation]:
    ops: list[Operation] = []
    for key in sorted(now.nodes.keys() | wanted.nodes.keys()):
        ops += inverse.node_ops(now.nodes.get(key), wanted.nodes.get(key))
    for key in sorted(now.links.keys() | wanted.links.keys()):
        ops += inverse.link_ops(now.links.get(key), wanted.links.get(key))
    for key in sorted(now.sources.keys() | wanted.sources.keys()):
        ops += inverse.source_ops(now.sources.get(key), wanted.sources.get(key))
    return ops


@pytest.mark.sliced
@LAWS
@given(records(), st.data())
def test_the_way_from_any_state_to_any_other_of_a_history_leads_there(history, data) -> None:
    states = states_of(entries_of(history))
    here = data.draw(st.integers(0, len(states) - 1))
    there = data.draw(st.integers(0, len(states) - 1))
    now, wanted = states[here], states[there]
    state = State(now.nodes.values(), now.links.values(), now.sources.values())
    apply(state, STAMP, way(now, wanted))
    assert content(state) == content(wanted)


@LAWS
@given(records())
def test_there_is_no_way_to_go_where_nothing_differs(history) -> None:
    for state in states_of(entries_of(history)):
        assert way(state, state) == []


@LAWS
@given(records())
def test_an_element_is_what_its_units_say(history) -> None:
    for state in states_of(entries_of(history)):
        for node in state.nodes.values():
            assert inverse.node_from(node, inverse.node_units(node)) == node
        for link in state.links.values():
            assert inverse.link_from(link, inverse.link_units(link)) == link


def test_every_operation_names_the_version_that_it_is_made_on() -> None:
    now = Node("A", {"type": "req", "title": "x"}, {"title": "a.md"}, AT, AT, "a.md", 1, 7)
    wanted = msgspec.structs.replace(now, fields={"type": "test", "status": "open"}, owners={"type": "b.md"})
    ops = inverse.node_ops(now, wanted)
    assert ops
    assert all(isinstance(op, PutNode) and op.base == 7 for op in ops)
    assert all(op.base == 0 for op in inverse.node_ops(None, wanted) if isinstance(op, PutNode))


def test_a_change_of_nothing_but_the_time_is_undone_only_when_asked() -> None:
    now = Node("A", {"type": "req"}, {}, AT, AT, "cli", 1, 7)
    wanted = msgspec.structs.replace(now, updated_at="2020-01-01T00:00:00.000000Z")
    assert inverse.node_ops(now, wanted) == []
    assert inverse.node_ops(now, wanted, restamp=True) == [
        PutNode(id="A", base=7, set={"updated_at": "2020-01-01T00:00:00.000000Z"})
    ]


def test_an_edge_that_only_files_state_comes_back_with_the_time_that_it_was_made() -> None:
    link = Link("link:0", "depends_on", "", "A", "B", {}, {}, (Statement("a.md", said="A"),), False, AT, "ann", 1, 3)
    ops = inverse.link_ops(None, link)
    state = State()
    apply(state, Stamp(9, "2030-01-01T00:00:00.000000Z", "bob", "undo"), ops)
    (back,) = state.links.values()
    assert (back.created_at, back.created_by, back.statements) == (AT, "ann", link.statements)
    assert [op.src for op in ops if isinstance(op, WithdrawLink)] == [""]
