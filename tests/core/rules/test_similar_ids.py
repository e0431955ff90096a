"""No two ids look like one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.view.likeness import differences_in_words
from tests.support.generators.histories import laws
from tests.support.views.graph import graph_of, node
from tests.support.views.rules import violations

RULE = "similar-ids"


def test_different_ids_break_nothing():
    ids = ["REQ-1", "REQ-10", "REQ-100", "REQ-2", "REQ-0", "REQ", "REQ-1.0", "A0", "A"]
    assert violations(graph_of(map(node, ids)), RULE) == []


@pytest.mark.parametrize(
    ("ids", "what"),
    [
        (["REQ-1", "req-1"], "case"),
        (["REQ-07", "REQ-7"], "leading zeros"),
        (["A-0.1", "A-00.01"], "leading zeros"),
        (["caf\u00e9", "cafe\u0301"], "Unicode normal form"),
        (["REQ-7", "req-007"], "case and leading zeros"),
        (["Caf\u00e9-1", "cafe\u0301-01"], "case and leading zeros"),
    ],
)
def test_ids_that_look_alike_are_one_violation_that_says_what_differs(ids, what):
    [found] = violations(graph_of([node(ids[0], path="docs/a.md"), node(ids[1], path="docs/b.md")]), RULE)
    assert found.severity == "warning"
    assert found.id in ids
    assert what in found.message
    assert "(docs/a.md, docs/b.md)" in found.hint
    for asked in ids:
        assert violations(graph_of(map(node, [*ids, "OTHER"])), RULE, ids=[asked])[0].message == found.message


def test_ids_in_two_normal_forms_are_shown_by_their_code_points():
    [found] = violations(graph_of([node("caf\u00e9"), node("cafe\u0301")]), RULE)
    assert r"'caf\xe9'" in found.message
    assert r"'cafe\u0301'" in found.message


def test_three_that_look_alike_are_one_violation_for_each_of_them():
    graph = graph_of(map(node, ["REQ-7", "req-7", "REQ-07", "OTHER"]))
    [found] = violations(graph, RULE, ids=["req-7"])
    assert found.message.startswith("REQ-07, REQ-7 and req-7 are different entities")
    assert violations(graph, RULE, ids=["OTHER"]) == []


@laws(25)
@given(st.sets(st.text("aA0é1-", min_size=1, max_size=4), min_size=2, max_size=12))
def test_whatever_is_reported_differs_in_something_that_has_a_name(ids):
    graph = graph_of(map(node, ids))
    for found in violations(graph, RULE):
        group = found.message.partition(" are different")[0].replace(" and ", ", ").split(", ")
        assert len(group) > 1
        assert differences_in_words(group)


def test_a_former_id_that_another_entity_has_or_states_too_is_a_violation_of_the_one_that_it_does_not_mean():
    nodes = [
        node("REQ-2", path="docs/2.md"),
        node("REQ-5", attributes__former_ids=["REQ-2", "REQ-5"], path="docs/5.md"),
        node("REQ-9", attributes__former_ids="REQ-1"),
        node("REQ-7", attributes__former_ids=["REQ-1", "REQ-3"], path="docs/7.md"),
    ]
    found = violations(graph_of(nodes), RULE)
    assert [(one.id, one.message, one.hint) for one in found] == [
        (
            "REQ-5",
            "'REQ-2' in `former_ids` of 'REQ-5' is the id of another entity, in 'docs/2.md', which it means.",
            "`kb set REQ-5 former_ids-=REQ-2` takes it out.",
        ),
        (
            "REQ-9",
            "'REQ-1' in `former_ids` of 'REQ-9' is a former id of 'REQ-7', in 'docs/7.md', which it means.",
            "`kb set REQ-9 former_ids-=REQ-1` takes it out.",
        ),
    ]
    assert [one.id for one in violations(graph_of(nodes), RULE, ids=["REQ-7"])] == ["REQ-9"]
