"""Somebody publishes every event, and somebody consumes it."""

from __future__ import annotations

import pytest

from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "event-flow"
NODES = [node("E", "event", path="docs/events/e.md"), node("S", "symbol"), node("T", "symbol")]
OUT, IN = link("S", "publishes", "E"), link("T", "consumes", "E")


@pytest.mark.parametrize(
    ("links", "said"),
    [
        ([OUT], "E: nothing consumes it."),
        ([IN], "E: nothing publishes it."),
        ([], "E: nothing publishes or consumes it."),
        ([OUT, link("X", "consumes", "E", is_resolved=False)], "E: nothing consumes it."),
    ],
)
def test_what_is_lacking_is_said_once(links, said):
    [found] = violations(graph_of(NODES, links), RULE)
    assert (found.id, found.severity, found.message, found.source) == ("E", "warning", said, "docs/events/e.md")
    assert ("`consumes: [E]`" in found.hint) == ("consumes" in said)
    assert "`status: retired` in the file" in found.hint


def test_an_event_that_flows_breaks_nothing():
    assert violations(graph_of(NODES, [OUT, IN]), RULE) == []


def test_a_retired_event_needs_nobody():
    assert violations(graph_of([node("E", "event", status="retired")]), RULE) == []
