"""No two entities of one type have the same title."""

from __future__ import annotations

import pytest

from tests.support.views.graph import graph_of, node
from tests.support.views.rules import violations

RULE = "duplicate-title"


def titled(*titles, type_="req", **fields):
    return graph_of([node(f"R{at}", type_, title=title, **fields) for at, title in enumerate(titles)])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Log in", "log  IN "),
        ("Log in", "Log\tin"),
        ("Log in", "Log\fin"),
        ("Log in", "\tLog in"),
        ("Caf\u00e9", "cafe\u0301"),
        ("Straße", "STRASSE"),
        ("ΟΔΟΣ", "οδος"),
        ("a\u00a0b c", "A\u00a0B  C"),
    ],
)
def test_titles_are_one_whatever_case_spaces_and_normal_form(one, other):
    [found] = violations(titled(one, other, "Something else"), RULE)
    assert (found.id, found.severity) == ("R0", "warning")
    assert found.message.startswith("R0 and R1 are of type req and have one title, ")
    assert violations(titled(one, other, "Something else"), RULE, ids=["R1"]) == [found]
    assert violations(titled(one, other, "Something else"), RULE, ids=["R2"]) == []


def test_all_with_one_title_are_one_violation_with_their_files():
    graph = graph_of([node(key, title="Same", path=f"docs/{key}.md") for key in "CAB"])
    [found] = violations(graph, RULE)
    assert found.message == "A, B and C are of type req and have one title, 'Same'."
    assert (found.source, found.hint.endswith(" how they differ (docs/A.md, docs/B.md, docs/C.md).")) == (
        "docs/A.md",
        True,
    )
    assert violations(graph, RULE, ids=["B"]) == [found]
    assert len(violations(titled(*["x"] * 30), RULE)[0].message) < 150


def test_of_many_files_a_few_are_named_with_how_many_more_there_are():
    graph = graph_of([node(f"R{at}", title="Same", path=f"docs/{at}.md") for at in range(10, 22)])
    [found] = violations(graph, RULE)
    assert found.hint.endswith(" how they differ (docs/10.md, docs/11.md, docs/12.md and 9 more).")
    assert (found.id, *found.values) == tuple(f"R{at}" for at in range(10, 22))


def test_other_types_other_titles_and_retired_ones_break_nothing():
    assert violations(titled("a b", "ab", "a-b", ""), RULE) == []
    assert violations(graph_of([node("A", title="Same"), node("B", "test", title="Same")]), RULE) == []
    assert (
        violations(graph_of([node("A", title="Same"), node("B", title="Same", status="superseded by A")]), RULE) == []
    )


def test_scenarios_that_are_known_by_their_places_are_compared_within_their_file():
    places = ["a.feature#1", "a.feature#3", "b.feature#1", "c.feature#1", "c.feature#2"]
    known = [node(id_, "scenario", title="result", path=id_.partition("#")[0]) for id_ in places]
    assert [one.message for one in violations(graph_of(known), RULE)] == [
        "a.feature#1 and a.feature#3 are of type scenario and have one title, 'result'.",
        "c.feature#1 and c.feature#2 are of type scenario and have one title, 'result'.",
    ]
    [found] = violations(graph_of([*known[2:4], node("LOGIN-2", "scenario", title="result", path="d.feature")]), RULE)
    assert found.message.startswith("LOGIN-2, b.feature#1 and c.feature#1 are of type scenario")
