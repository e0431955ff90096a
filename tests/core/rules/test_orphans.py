"""No entity stands alone."""

from __future__ import annotations

from kbcore.model.graph import SourceFile
from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "orphans"


def test_either_end_of_an_edge_is_no_orphan():
    assert violations(graph_of([node("A"), node("B")], [link("A", "depends_on", "B")]), RULE) == []


def test_an_entity_without_edges_is_a_warning_that_names_the_edges_there_are():
    [found] = violations(graph_of([node("E", "event")]), RULE)
    assert (found.id, found.severity, found.source) == ("E", "warning", "")
    assert found.message == "E (event) is linked to nothing."
    assert "(guards, publishes, consumes) with `kb apply`" in found.hint


def test_a_document_is_told_the_edges_that_may_lead_away_from_it_and_no_others():
    nodes = [node("E", "event", path="docs/e.md"), node("R", "req", path="docs/r.md")]
    event, requirement = violations(graph_of(nodes), RULE)
    assert "below `links:` in its file, by its id alone, or remove" in event.hint
    assert "(depends_on, specified_by, verified_by)" in requirement.hint


def test_a_feature_file_is_told_of_the_tag_that_links_a_scenario():
    read = SourceFile("features/a.feature", "hash", "gherkin/1+abc", True, (), 1)
    graph = graph_of([node("S", "scenario", path=read.path)], files=[read])
    [found] = violations(graph, RULE)
    assert "`@links:ID`" in found.hint
    assert "`links:`" not in found.hint


def test_an_unresolved_link_ties_nothing():
    [found] = violations(graph_of([node("A")], [link("A", "depends_on", "B", is_resolved=False)]), RULE)
    assert found.id == "A"
