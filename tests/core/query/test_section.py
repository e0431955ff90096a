"""A part of the graph is the same every time, and what is left out of it is counted."""

from __future__ import annotations

import pytest

from kbcore import limits
from kbcore.query.section import SectionRequest, section
from tests.support.views.graph import graph_of, link, node


@pytest.fixture
def graph():
    return graph_of(
        [node("A"), node("B"), node("C"), node("D"), node("T", "test"), node("X")],
        [
            link("A", "depends_on", "B"),
            link("B", "depends_on", "C"),
            link("C", "depends_on", "D"),
            link("B", "verified_by", "T"),
            link("B", "relates_to", "A", kind="like"),
            link("D", "depends_on", "Y", is_resolved=False),
        ],
    )


def names(found):
    return [one.id for one in found.nodes], [(one.from_id, one.type, one.to_id) for one in found.arrows]


def test_a_neighbourhood_goes_both_ways_and_comes_nearest_first(graph):
    found = section(graph.rows, None, SectionRequest("B"))
    assert names(found) == (
        ["B", "A", "C", "T"],
        [("A", "depends_on", "B"), ("B", "depends_on", "C"), ("B", "relates_to", "A"), ("B", "verified_by", "T")],
    )
    assert (found.entities, found.edges, found.is_cut) == (4, 4, False)
    assert names(section(graph.rows, None, SectionRequest("A", depth=2)))[0] == ["A", "B", "C", "T"]
    assert names(section(graph.rows, None, SectionRequest("X", depth=9))) == (["X"], [])


def test_the_whole_graph_begins_with_what_has_the_most_edges(graph):
    found = section(graph.rows, None, SectionRequest())
    assert names(found)[0] == ["B", "A", "C", "D", "T", "X"]
    cut = section(graph.rows, None, SectionRequest(limit=2))
    assert names(cut) == (["B", "A"], [("A", "depends_on", "B"), ("B", "relates_to", "A")])
    assert (cut.entities, cut.is_cut) == (6, True)


def test_types_and_edges_can_be_chosen(graph):
    found = section(
        graph.rows, None, SectionRequest("T", depth=2, types=("req",), follow=("verified_by", "depends_on"))
    )
    assert names(found) == (
        ["T", "B", "A", "C"],
        [("A", "depends_on", "B"), ("B", "depends_on", "C"), ("B", "verified_by", "T")],
    )
    assert names(section(graph.rows, None, SectionRequest(types=("test",)))) == (["T"], [])


def test_edges_have_a_limit_too(graph, monkeypatch):
    monkeypatch.setattr(limits, "MAX_DRAWN_EDGES", 1)
    found = section(graph.rows, None, SectionRequest())
    assert (len(found.arrows), found.edges, found.is_cut) == (1, 5, True)


def test_an_empty_graph_has_an_empty_part_and_an_earlier_seq_its_own():
    assert names(section(graph_of().rows, None, SectionRequest())) == ([], [])
    graph = graph_of([node("A"), node("B")], old_links=[(link("A", "depends_on", "B"), 3)])
    assert names(section(graph.rows, 2, SectionRequest("A"))) == (["A", "B"], [("A", "depends_on", "B")])
    assert names(section(graph.rows, None, SectionRequest("A"))) == (["A"], [])
