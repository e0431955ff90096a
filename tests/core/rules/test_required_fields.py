"""Every entity has the fields that its type requires."""

from __future__ import annotations

import pytest

from kbcore.model.schema import CORE_EDGES, CORE_ENTITIES, Attribute, EntityType, schema_of
from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "required-fields"
FACT = EntityType(
    "fact",
    required=("title", "status", "owner", "tags"),
    attributes={"a/b~'c": Attribute("number", required=True), "free": Attribute()},
)
SCHEMA = schema_of([*CORE_ENTITIES, FACT], CORE_EDGES)


def test_complete_entities_break_nothing():
    whole = node("F-1", "fact", owner="ann", tags=["x"], **{"attributes.a/b~'c": 0})
    assert violations(graph_of([node("REQ-1"), whole]), RULE, schema=SCHEMA) == []


def test_a_missing_field_is_named_with_the_file_to_edit():
    [found] = violations(graph_of([node("REQ-1", title=None, path="docs/r.md")]), RULE)
    assert (found.id, found.severity, found.source) == ("REQ-1", "error", "docs/r.md")
    assert found.message == "REQ-1 has no `title`, which every req needs."
    assert "`title:` to the file" in found.hint


def test_each_missing_field_is_reported_by_itself():
    found = violations(graph_of([node("F-1", "fact", title="  ", tags=[])]), RULE, schema=SCHEMA)
    assert [one.message.split("`")[1] for one in found] == ["attributes.a/b~'c", "owner", "tags", "title"]
    assert all("kb apply" in one.hint for one in found)


@pytest.mark.parametrize("value", [None, False, 0, "", []])
def test_an_attribute_counts_as_missing_only_when_it_is_not_there(value):
    graph = graph_of([node("F-1", "fact", owner="ann", tags=["x"], **{"attributes.a/b~'c": value})])
    assert len(violations(graph, RULE, schema=SCHEMA)) == (value is None)


def test_an_edge_that_needs_a_kind_has_one():
    graph = graph_of(
        [node("A"), node("B")],
        [link("A", "relates_to", "B", files=["docs/a.md"]), link("B", "relates_to", "A", kind="x")],
    )
    [found] = violations(graph, RULE)
    assert (found.id, found.source) == ("A", "docs/a.md")
    assert "A relates_to B has no `kind`" in found.message


def test_an_unresolved_edge_is_left_to_another_rule():
    assert violations(graph_of([node("A")], [link("A", "relates_to", "B", is_resolved=False)]), RULE) == []
