"""An effect goes as far as the schema says, on a shortest way; what it comes to is grouped by what to do with it."""

from __future__ import annotations

import pytest

from kbcore import limits
from kbcore.model.schema import CORE, CORE_EDGES, CORE_ENTITIES, EdgeType, schema_of
from kbcore.query import subject
from kbcore.query.impact import impact
from kbcore.query.walk import path_text
from tests.support.views.graph import graph_of, link, node

TYPES = {
    "R": "req",
    "S": "scenario",
    "T": "test",
    "A": "adr",
    "F": "flag",
    "E": "event",
    "Y": "symbol",
    "C": "component",
}


def built(*edges, **owners):
    """Return a graph of edges written ``R1 depends_on R2``; the first letter of an id is its type."""
    ends = [edge.split() for edge in edges]
    ids = sorted({end for one in ends for end in (one[0], one[-1])})
    nodes = [node(id_, TYPES[id_[0]], owner=owners.get(id_)) for id_ in ids]
    return graph_of(
        nodes, [link(from_id, type_, to_id, kind="k" * (type_ == "relates_to")) for from_id, type_, to_id in ends]
    )


def asked(graph, id_, schema=CORE, **limits_):
    return impact(graph.rows, schema, subject.find(graph.rows, id_, None), **limits_)


def ids(part):
    return [one.subject.id for one in part]


def everything(found):
    return {*ids(found.direct), *ids(found.transitive), *ids(found.tests)}


@pytest.mark.parametrize(
    ("edge", "changed", "affected"),
    [
        ("R1 depends_on R2", "R2", {"R1"}),
        ("R1 depends_on R2", "R1", set()),
        ("R1 specified_by S1", "R1", {"S1"}),
        ("R1 specified_by S1", "S1", {"R1"}),
        ("R1 verified_by T1", "R1", {"T1"}),
        ("R1 verified_by T1", "T1", set()),
        ("Y1 implements R1", "R1", {"Y1"}),
        ("Y1 implements R1", "Y1", {"R1"}),
        ("Y1 covered_by T1", "Y1", {"T1"}),
        ("Y1 constrained_by A1", "A1", {"Y1"}),
        ("Y1 constrained_by A1", "Y1", set()),
        ("A1 affects C1", "A1", {"C1"}),
        ("F1 guards E1", "F1", {"E1"}),
        ("Y1 publishes E1", "Y1", {"E1"}),
        ("Y1 publishes E1", "E1", {"Y1"}),
        ("Y1 consumes E1", "E1", {"Y1"}),
        ("Y1 consumes E1", "Y1", set()),
        ("R1 supersedes R2", "R1", set()),
        ("R1 supersedes R2", "R2", set()),
    ],
)
def test_each_edge_carries_an_effect_to_the_end_that_it_affects(edge, changed, affected):
    assert everything(asked(built(edge), changed)) == affected


def test_what_is_affected_is_grouped_with_a_way_to_each():
    graph = built(
        "R2 depends_on R1",
        "Y1 implements R1",
        "Y1 publishes E1",
        "Y2 consumes E1",
        "R1 verified_by T1",
        "Y2 covered_by T2",
        "Y1 constrained_by A1",
        "A2 affects Y2",
        "Y1 relates_to C1",
        R1="ann",
        Y2="bob",
        T2="ann",
    )
    found = asked(graph, "R1")
    assert ids(found.direct) == ["R2", "Y1"]
    assert ids(found.transitive) == ["E1", "Y2"]
    assert [path_text(one.path) for one in found.tests] == [
        "R1 → verified_by → T1",
        "R1 ← implements ← Y1 → publishes → E1 ← consumes ← Y2 → covered_by → T2",
    ]
    assert ids(found.related) == ["C1"]
    assert [path_text(one.path) for one in found.decisions] == [
        "R1 ← implements ← Y1 → constrained_by → A1",
        "R1 ← implements ← Y1 → publishes → E1 ← consumes ← Y2 ← affects ← A2",
    ]
    assert [(one.owner, one.ids) for one in found.people] == [("ann", ("R1", "T2")), ("bob", ("Y2",))]
    assert not found.goes_on


def test_an_effect_does_not_come_back_to_siblings_but_goes_on_from_what_they_share():
    graph = built("Y1 implements R1", "Y2 implements R1", "R2 depends_on R1", "Y3 implements R2")
    assert everything(asked(graph, "Y1")) == {"R1", "R2", "Y3"}
    assert everything(asked(graph, "R1")) == {"Y1", "Y2", "R2", "Y3"}


def test_a_sibling_that_is_reached_on_another_way_is_affected():
    graph = built("Y1 implements R1", "Y2 implements R1", "Y1 publishes E1", "Y2 consumes E1")
    found = asked(graph, "Y1")
    assert ids(found.transitive) == ["Y2"]
    graph = built("Y1 publishes E1", "Y1 implements R1", "Y2 implements R1", "F1 guards R1", "Y1 covered_by T1")
    assert everything(asked(graph, "F1")) == {"R1", "Y1", "Y2", "E1", "T1"}


def test_an_edge_that_works_both_ways_between_equals_spreads_all_over():
    schema = schema_of(CORE_ENTITIES, [*CORE_EDGES, EdgeType("twins", ("req",), ("req",), impact="both")])
    graph = built("R1 twins R2", "R3 twins R2", "R3 twins R4")
    assert everything(asked(graph, "R1", schema)) == {"R2", "R3", "R4"}


def test_an_edge_with_a_kind_is_the_end_of_the_effect():
    graph = built("R1 relates_to R2", "R3 depends_on R2", "R4 relates_to R1", "R4 depends_on R1")
    found = asked(graph, "R1")
    assert (ids(found.direct), ids(found.related), found.transitive) == (["R4"], ["R2"], [])


def test_cycles_and_self_loops_end():
    graph = built("R1 depends_on R2", "R2 depends_on R3", "R3 depends_on R1", "R1 depends_on R1")
    assert everything(asked(graph, "R1")) == {"R2", "R3"}


def test_a_depth_ends_it_and_it_says_that_it_would_go_on():
    graph = built("R2 depends_on R1", "R3 depends_on R2", "Y1 implements R2", "Y1 constrained_by A1")
    one = asked(graph, "R1", depth=1)
    assert (everything(one), one.goes_on) == ({"R2"}, True)
    two = asked(graph, "R1", depth=2)
    assert (everything(two), two.goes_on, ids(two.decisions)) == ({"R2", "R3", "Y1"}, False, ["A1"])


def test_unresolved_links_and_edges_about_edges_carry_nothing():
    schema = schema_of(CORE_ENTITIES, [*CORE_EDGES, EdgeType("doubts", ("req",), ("link",), impact="both")])
    edge = link("R1", "depends_on", "R2")
    graph = graph_of(
        [node("R1"), node("R2"), node("R3")],
        [edge, link("R3", "doubts", edge.id), link("R3", "depends_on", "R2", is_resolved=False)],
    )
    assert everything(asked(graph, "R2", schema)) == {"R1"}


def test_a_hub_takes_a_statement_a_step_and_one_each_for_verdicts_and_owners():
    leaves = [f"R{number:04}" for number in range(1, 2001)]
    graph = built(*(f"{id_} depends_on R0000" for id_ in leaves))
    found = asked(graph, "R0000")
    assert (len(found.direct), len(graph.asked)) == (2000, 5)


def test_beyond_the_limit_it_stops_and_says_so(monkeypatch):
    monkeypatch.setattr(limits, "MAX_AFFECTED", 2)
    graph = built("R2 depends_on R1", "R3 depends_on R2", "R4 depends_on R3", "R5 depends_on R4")
    found = asked(graph, "R1")
    assert (everything(found), found.goes_on) == ({"R2", "R3"}, True)


def test_it_answers_as_of_an_earlier_seq():
    graph = graph_of([node("R1"), node("R2")], old_links=[(link("R2", "depends_on", "R1"), 5)])
    start = subject.find(graph.rows, "R1", 4)
    assert ids(impact(graph.rows, CORE, start, at=4).direct) == ["R2"]
    assert impact(graph.rows, CORE, start).direct == []
    assert subject.find(graph.rows, "R9", None) is None
