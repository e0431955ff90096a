"""A feature flag guards something."""

from __future__ import annotations

import pytest

from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "idle-flag"


def test_a_flag_that_guards_nothing_is_reported_with_its_file_and_remedy():
    graph = graph_of(
        [node("F", "flag", path="docs/flags/f.md"), node("REQ")], [link("REQ", "relates_to", "F", kind="x")]
    )
    [found] = violations(graph, RULE)
    assert (found.id, found.severity, found.source) == ("F", "warning", "docs/flags/f.md")
    assert found.message == "F guards nothing (no edge guards)."
    assert "`links: [{guards: [ID]}]` in the file" in found.hint


def test_the_remedy_for_a_flag_of_a_client_is_a_changeset():
    [found] = violations(graph_of([node("F", "flag")]), RULE)
    assert "`kb apply`" in found.hint


def test_a_flag_that_guards_something_breaks_nothing():
    assert violations(graph_of([node("F", "flag"), node("REQ")], [link("F", "guards", "REQ")]), RULE) == []


def test_an_edge_that_waits_for_its_end_guards_nothing_yet():
    assert len(violations(graph_of([node("F", "flag")], [link("F", "guards", "X", is_resolved=False)]), RULE)) == 1


@pytest.mark.parametrize("status", ["retired", "Removed", "deprecated"])
def test_a_retired_flag_may_guard_nothing(status):
    assert violations(graph_of([node("F", "flag", status=status)]), RULE) == []
