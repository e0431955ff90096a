"""Every edge leads between types that the schema allows."""

from __future__ import annotations

from kbcore.model.schema import CORE_EDGES, CORE_ENTITIES, EdgeType, schema_of
from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "endpoint-types"
NODES = [node("R"), node("T", "test"), node("S", "symbol"), node("X", "odd")]


def test_edges_that_fit_break_nothing():
    about = link("R", "verified_by", "T")
    schema = schema_of(CORE_ENTITIES, [*CORE_EDGES, EdgeType("doubts", ("req",), ("link",))])
    graph = graph_of(NODES, [about, link("R", "doubts", about.id), link("T", "supersedes", "R")])
    assert violations(graph, RULE, schema=schema) == []


def test_swapped_ends_are_seen():
    [found] = violations(graph_of(NODES, [link("T", "verified_by", "R", files=["docs/t.md"])]), RULE)
    assert (found.id, found.severity, found.source) == ("T", "error", "docs/t.md")
    assert found.message == "T verified_by R leads from test to req; such an edge leads from req to test."
    assert found.hint.startswith("Swap its ends: state R verified_by T")


def test_edges_that_would_fit_are_named():
    [found] = violations(graph_of(NODES, [link("S", "depends_on", "R")]), RULE)
    assert "State implements or supersedes or relates_to instead" in found.hint
    assert "kb delete --edge S depends_on R" in found.hint


def test_an_edge_about_an_edge_needs_a_schema_that_allows_it():
    about = link("R", "verified_by", "T")
    [found] = violations(graph_of(NODES, [about, link("R", "depends_on", about.id)]), RULE)
    assert "leads from req to link" in found.message


def test_unresolved_links_and_unknown_types_are_left_to_other_rules():
    links = [link("T", "verified_by", "R", is_resolved=False), link("X", "depends_on", "R"), link("R", "mystery", "T")]
    assert violations(graph_of(NODES, links), RULE) == []
