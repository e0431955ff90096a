"""Every status is one of those that the schema lists."""

from __future__ import annotations

import pytest

from kbcore.config.schema_files import load_schema
from kbcore.model.schema import CORE
from tests.support.views.graph import graph_of, node
from tests.support.views.rules import violations

RULE = "unknown-status"
NARROW = load_schema({".kb/schema/a.yaml": "entities: {req: {statuses: [draft, open, done], statusDefault: draft}}\n"})


def test_a_status_that_was_taken_out_of_the_schema_shows_with_the_nearest_one():
    graph = graph_of([node("A", status="opne", path="docs/a.md"), node("B", status="done"), node("C", "test")])
    [found] = violations(graph, RULE, schema=NARROW)
    assert (found.id, found.severity, found.source) == ("A", "warning", "docs/a.md")
    assert found.message == "A has the status 'opne', which no req has."
    assert (
        found.hint == "Did you mean 'open' or 'done'? Or list it below `statuses:` of `req` in a file of .kb/schema/."
    )


@pytest.mark.parametrize("status", ["Open", "open ", "OPEN"])
def test_statuses_are_compared_as_they_are_written(status):
    assert len(violations(graph_of([node("A", status=status)]), RULE, schema=NARROW)) == 1


def test_a_type_without_statuses_takes_any():
    assert violations(graph_of([node("A", status="whatever")]), RULE, schema=CORE) == []


def test_a_status_that_is_missing_is_for_another_rule():
    assert violations(graph_of([node("A", status=None), node("B", status=" ")]), RULE, schema=NARROW) == []
