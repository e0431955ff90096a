"""Every requirement of priority must has a scenario and a test."""

from __future__ import annotations

import pytest

from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "must-coverage"
BESIDE = [node("S", "scenario"), node("T", "test")]


def test_a_requirement_with_both_breaks_nothing():
    graph = graph_of(
        [node("R", priority="must"), *BESIDE], [link("R", "specified_by", "S"), link("R", "verified_by", "T")]
    )
    assert violations(graph, RULE) == []


def test_what_is_missing_is_said_once_each():
    scenario, test = violations(graph_of([node("R", priority="must", path="docs/r.md")]), RULE)
    assert (scenario.id, scenario.severity, scenario.source) == ("R", "error", "docs/r.md")
    assert scenario.message == "R has priority must, but no scenario (no edge specified_by)."
    assert "`links: [R]`" in scenario.hint
    assert "`links: [{specified_by: [ID]}]` to the file of " in scenario.hint
    assert scenario.hint.endswith("or state the edge in the store: `kb link R specified_by ID`.")
    assert test.message == "R has priority must, but no test (no edge verified_by)."


def test_an_unresolved_link_covers_nothing():
    links = [link("R", "specified_by", "S"), link("R", "verified_by", "T-9", is_resolved=False)]
    [found] = violations(graph_of([node("R", priority="Must"), *BESIDE], links), RULE)
    assert "no test" in found.message


@pytest.mark.parametrize("fields", [{}, {"priority": "should"}, {"priority": "must", "type_": "adr"}])
def test_nothing_else_is_held_to_it(fields):
    assert violations(graph_of([node("R", **fields)]), RULE) == []


@pytest.mark.parametrize("status", ["rejected", "Deprecated", "obsolete", "superseded by REQ-2", "withdrawn"])
def test_a_requirement_that_asks_for_nothing_any_more_is_exempt(status):
    assert violations(graph_of([node("R", priority="must", status=status)]), RULE) == []


@pytest.mark.parametrize("status", ["open", "not rejected", "rejectedish"])
def test_other_statuses_are_not_exempt(status):
    assert len(violations(graph_of([node("R", priority="must", status=status)]), RULE)) == 2


def test_what_is_said_with_a_reason_not_to_apply_is_not_asked_for():
    waived = {"verified": "checked by the vendor"}
    [found] = violations(graph_of([node("R", priority="must", attributes__not_applicable=waived)]), RULE)
    assert "no scenario" in found.message


@pytest.mark.parametrize("said", ["all of it", {"verified": " "}, {"verified": True}, {"implemented": "bought"}])
def test_without_a_reason_of_its_own_an_aspect_is_asked_for(said):
    graph = graph_of([node("R", priority="must", attributes__not_applicable=said)])
    assert len(violations(graph, RULE)) == 2
