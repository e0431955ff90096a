"""Entities without any edge are violations."""

from __future__ import annotations

import pytest

from kbcore.model.graph import SyncedFile
from kbcore.model.schema import CORE, EntityType, schema_of
from tests.support.repository.project import Project
from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "orphans"


def test_either_end_of_an_edge_is_no_orphan():
    assert violations(graph_of([node("A"), node("B")], [link("A", "depends_on", "B")]), RULE) == []


def test_an_entity_without_edges_is_a_warning_that_names_the_edges_there_are():
    [found] = violations(graph_of([node("E", "event")]), RULE)
    assert (found.id, found.severity, found.source) == ("E", "warning", "")
    assert found.message == "E (event) is linked to nothing."
    assert "(guards, publishes, consumes) with `kb link`" in found.hint


def test_the_hint_for_a_document_names_the_edges_that_may_lead_away_from_it_and_no_others():
    nodes = [node("E", "event", path="docs/e.md"), node("R", "req", path="docs/r.md")]
    event, requirement = violations(graph_of(nodes), RULE)
    assert "below `links:` in its file, by its id alone, or with `kb link`, or remove" in event.hint
    assert "(depends_on, specified_by, verified_by)" in requirement.hint


def test_the_hint_for_a_feature_file_names_the_tag_that_links_a_scenario():
    read = SyncedFile("features/a.feature", "hash", "gherkin/1+abc", True, (), 1)
    graph = graph_of([node("S", "scenario", path=read.path)], files=[read])
    [found] = violations(graph, RULE)
    assert "`@links:ID`" in found.hint
    assert "`links:`" not in found.hint


def test_an_entity_with_an_unresolved_link_is_reported_for_that_alone():
    graph = graph_of([node("A")], [link("A", "depends_on", "B", is_resolved=False)])
    assert violations(graph, RULE) == []
    assert [one.id for one in violations(graph, "unresolved-reference")] == ["A"]


def test_a_link_in_a_text_to_a_page_ties_nothing():
    page = link("A", "mentions", "docs/b.md", is_resolved=False, files=("docs/a.md",))
    graph = graph_of([node("A")], [page])
    assert [one.id for one in violations(graph, RULE)] == ["A"]
    assert violations(graph, "unresolved-reference") == []


@pytest.mark.parametrize("type_", ["$ConceptType", "$PropositionType"])
def test_a_definition_of_a_type_or_a_predicate_is_no_orphan(type_: str) -> None:
    """It is used by what it defines, which is no edge."""
    nodes = [node(f"{type_}:Topic", type_, name="Topic"), node("Topic:a", "Topic", name="a")]
    assert [one.id for one in violations(graph_of(nodes), RULE)] == ["Topic:a"]


def test_a_write_that_removes_the_only_edge_of_a_definition_is_not_warned_of_it(project: Project) -> None:
    key = "$ConceptType:Topic"
    definition = {"id": key, "type": "$ConceptType", "name": "Topic", "title": "T", "attributes": {"description": "t"}}
    ends = [{"id": one, "type": "req", "title": "T", "status": "open"} for one in ("A", "B", "C")]
    edges = [{"type": "relates_to", "kind": "x", "from": "A", "to": to} for to in ("B", "C", key)]
    project.apply(entities=[*ends, definition], edges=edges)
    [said] = project.delete(edges=edges[1:2]).warnings
    assert "C (req) is linked to nothing" in said
    assert project.delete(edges=edges[2:]).warnings == ()


def test_notes_and_tasks_need_no_edge_but_a_type_of_the_project_named_note_does(project: Project) -> None:
    graph = graph_of([node("N", "note"), node("T", "task")])
    assert violations(graph, RULE) == []
    own = schema_of([*CORE.entities.values(), EntityType("note", origin="own.yaml")], CORE.edges.values())
    assert [one.id for one in violations(graph, RULE, schema=own)] == ["N"]
    entities = [{"id": key, "type": key, "title": key, "status": "s"} for key in ("note", "flag")]
    edges = [{"type": "relates_to", "kind": "x", "from": "note", "to": "flag"}]
    project.apply(entities=entities, edges=edges)
    [said] = project.delete(edges=edges).warnings
    assert said == "orphans (warning): flag (flag) is linked to nothing."
