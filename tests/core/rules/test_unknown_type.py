"""The schema knows every type that is used."""

from __future__ import annotations

from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "unknown-type"


def test_known_types_and_bare_links_break_nothing():
    graph = graph_of([node("A"), node("B")], [link("A", "depends_on", "B"), link("A", "", "C", is_resolved=False)])
    assert violations(graph, RULE) == []


def test_an_unknown_entity_type_is_reported_with_the_nearest_known_one():
    [found] = violations(graph_of([node("A", "symbl", path="docs/a.md")]), RULE)
    assert (found.id, found.severity, found.source) == ("A", "error", "docs/a.md")
    assert "'symbl'" in found.message
    assert found.hint.startswith(
        "Did you mean 'symbol'? A new type goes into a file of .kb/schema/: `entities: {symbl: "
    )


def test_an_unknown_edge_type_is_reported_even_while_it_is_unresolved():
    links = [link("A", "implement", "B", files=["b.md", "a.md"]), link("A", "mystery", "Z", is_resolved=False)]
    found = violations(graph_of([node("A"), node("B")], links), RULE)
    assert [one.source for one in found] == ["a.md", ""]
    assert "'implements'" in found[0].hint
    assert "`edges: {mystery: " in found[1].hint
