"""No requirement is verified by a test that fails."""

from __future__ import annotations

import pytest

from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "failing-test"


def a_test(outcome: str | None, message: str = ""):
    run = {"since": "2026-01-31T12:00:00.000000Z", "since_commit": "a" * 40, "message": message}
    fields = {"attributes__test_verdict": outcome, "attributes__test_run": run} if outcome else {}
    return node("T", "test", **fields)


VERIFIED = [link("R", "verified_by", "T")]


@pytest.mark.parametrize("outcome", ["failed", "error"])
def test_a_requirement_with_a_failing_test_is_reported_with_the_time_and_the_commit(outcome):
    graph = graph_of([node("R", path="docs/r.md"), a_test(outcome, "got 3\nmore")], VERIFIED)
    [found] = violations(graph, RULE)
    assert (found.id, found.severity, found.source, found.values) == ("R", "error", "docs/r.md", ("verified_by", "T"))
    assert found.message == (
        "R is verified by T, but that test fails since aaaaaaaaaaaa of 2026-01-31T12:00:00Z: got 3"
    )
    assert "`kb results FILE`" in found.hint


@pytest.mark.parametrize("outcome", [None, "passed", "skipped"])
def test_a_test_that_does_not_fail_breaks_nothing(outcome):
    assert violations(graph_of([node("R"), a_test(outcome)], VERIFIED), RULE) == []


def test_a_retired_requirement_and_a_failing_test_without_one_break_nothing():
    assert violations(graph_of([node("R", status="retired"), a_test("failed")], VERIFIED), RULE) == []
    assert violations(graph_of([a_test("failed")], []), RULE) == []


def test_asking_for_the_test_reports_it_too():
    graph = graph_of([node("R"), a_test("failed")], VERIFIED)
    assert [one.id for one in violations(graph, RULE, ids=["T"])] == ["R"]
