"""No entity stands alone."""

from __future__ import annotations

from tests.support.graph import graph_of, link, node
from tests.support.rules import violations

RULE = "orphans"


def test_either_end_of_an_edge_is_no_orphan():
    assert violations(graph_of([node("A"), node("B")], [link("A", "depends_on", "B")]), RULE) == []


def test_an_entity_without_edges_is_a_warning_that_names_the_edges_there_are():
    [found] = violations(graph_of([node("E", "event", path="docs/e.md")]), RULE)
    assert (found.id, found.severity, found.source) == ("E", "warning", "docs/e.md")
    assert found.message == "The event E is linked to nothing."
    assert "(guards, publishes, consumes)" in found.hint
    assert "docs/e.md" in found.hint


def test_an_unresolved_link_ties_nothing():
    [found] = violations(graph_of([node("A")], [link("A", "depends_on", "B", stands=False)]), RULE)
    assert found.id == "A"
