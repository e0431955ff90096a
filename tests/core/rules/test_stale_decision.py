"""No symbol is constrained by a decision that holds no more."""

from __future__ import annotations

import pytest

from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "stale-decision"
BOUND = link("SYM", "constrained_by", "ADR-1", files=["docs/symbols.yaml"])


def decided(status, *others):
    return [node("SYM", "symbol"), node("ADR-1", "adr", status=status, path="docs/adr/1.md"), *others]


def test_a_decision_that_holds_breaks_nothing():
    assert violations(graph_of(decided("accepted"), [BOUND]), RULE) == []


@pytest.mark.parametrize("status", ["deprecated", "Superseded", "superseded by ADR-2"])
def test_a_status_can_end_a_decision(status):
    [found] = violations(graph_of(decided(status), [BOUND]), RULE)
    assert (found.id, found.severity, found.source) == ("SYM", "error", "docs/symbols.yaml")
    assert found.message == f"SYM is constrained by ADR-1, which has the status {status!r}."
    assert "docs/adr/1.md" in found.hint


def test_an_edge_can_end_a_decision():
    nodes = decided("accepted", node("ADR-2", "adr", status="accepted"))
    [found] = violations(graph_of(nodes, [BOUND, link("ADR-2", "supersedes", "ADR-1")]), RULE)
    assert found.message == "SYM is constrained by ADR-1, which is superseded by ADR-2."
    assert found.hint.startswith("Link SYM to ADR-2 instead, and take the link out of the file")


def test_two_successors_are_one_violation():
    nodes = decided("accepted", node("ADR-2", "adr"), node("ADR-3", "adr"))
    links = [BOUND, link("ADR-3", "supersedes", "ADR-1"), link("ADR-2", "supersedes", "ADR-1")]
    [found] = violations(graph_of(nodes, links), RULE)
    assert "superseded by ADR-2" in found.message


def test_a_decision_does_not_supersede_itself():
    assert violations(graph_of(decided("accepted"), [BOUND, link("ADR-1", "supersedes", "ADR-1")]), RULE) == []


@pytest.mark.parametrize("status", ["draft", "proposed", "rejected", "withdrawn"])
def test_a_successor_that_is_not_in_force_ends_nothing(status):
    nodes = decided("accepted", node("ADR-2", "adr", status=status))
    assert violations(graph_of(nodes, [BOUND, link("ADR-2", "supersedes", "ADR-1")]), RULE) == []


def test_an_outdated_decision_that_binds_nobody_is_fine():
    assert violations(graph_of(decided("deprecated"), []), RULE) == []


def test_the_decision_can_be_asked_for():
    assert len(violations(graph_of(decided("deprecated"), [BOUND]), RULE, ids=["ADR-1"])) == 1


def test_unresolved_links_are_left_to_another_rule():
    unresolved = link("SYM-9", "constrained_by", "ADR-1", is_resolved=False)
    assert violations(graph_of(decided("deprecated"), [unresolved]), RULE) == []
    nodes = decided("accepted", node("ADR-2", "adr"))
    assert violations(graph_of(nodes, [BOUND, link("ADR-2", "supersedes", "ADR-1", is_resolved=False)]), RULE) == []
