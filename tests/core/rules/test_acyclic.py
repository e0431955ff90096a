"""Edges that the schema calls acyclic form no cycle."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.model.schema import CORE, Schema
from kbcore.rules.acyclic import components, shortest_cycle
from tests.support.effort.scale import tries
from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "acyclic"


def cycles(*edges, schema=CORE, **options):
    nodes = sorted({end for edge in edges for end in (edge[0], edge[-1])})
    links = [link(edge[0], edge[1] if len(edge) > 2 else "depends_on", edge[-1]) for edge in edges]
    return violations(
        graph_of([node(name, path=f"docs/{name}.md") for name in nodes], links), RULE, schema=schema, **options
    )


def test_a_diamond_is_no_cycle():
    assert cycles("AB", "AC", "BD", "CD") == []


def test_a_cycle_is_reported_once_with_its_path():
    [found] = cycles("CA", "AB", "BC", "CD")
    assert (found.id, found.severity, found.source) == ("A", "error", "docs/A.md")
    assert found.message == "depends_on forms a cycle: A → B → C → A."
    assert "acyclic: false" in found.hint


def test_an_edge_to_itself_is_a_cycle():
    assert [one.message for one in cycles("AA", "AB", "BA")] == [
        "depends_on forms a cycle: A → A.",
        "depends_on forms a cycle: A → B → A.",
    ]


@pytest.mark.parametrize("ids", [None, ["A"]])
def test_an_edge_to_itself_of_several_kinds_is_one_cycle(ids):
    graph = graph_of([node("A")], [link("A", "depends_on", "A", kind=kind) for kind in ("one", "two")])
    assert [one.message for one in violations(graph, RULE, ids=ids)] == ["depends_on forms a cycle: A → A."]


def test_cycles_without_a_common_entity_are_reported_separately():
    assert [one.id for one in cycles("AB", "BA", "BC", "CD", "DC")] == ["A", "C"]


def test_tangled_cycles_are_one_violation_that_says_so():
    [found] = cycles("AB", "BA", "BC", "CB")
    assert found.message.endswith("A → B → A. It shares entities with further cycles; 1 more entity is on them.")
    [found] = cycles("AB", "BA", "BC", "CB", "BD", "DB")
    assert found.message.endswith("A → B → A. It shares entities with further cycles; 2 more entities are on them.")


def test_every_edge_type_is_looked_at_by_itself():
    assert cycles("AB", ("B", "supersedes", "A")) == []
    [found] = cycles(("A", "supersedes", "B"), ("B", "supersedes", "A"))
    assert found.message.startswith("supersedes forms a cycle")


def test_the_schema_can_allow_cycles():
    allowed = msgspec.structs.replace(CORE.edges["depends_on"], acyclic=False)
    assert cycles("AB", "BA", schema=Schema(CORE.entities, {**CORE.edges, "depends_on": allowed})) == []


def test_unresolved_links_close_no_cycle():
    graph = graph_of(
        [node("A"), node("B")], [link("A", "depends_on", "B"), link("B", "depends_on", "A", is_resolved=False)]
    )
    assert violations(graph, RULE) == []


def test_a_cycle_is_shown_for_every_entity_on_it():
    assert len(cycles("AB", "BC", "CA", ids=["C"])) == 1
    assert cycles("AB", "BC", "CA", "CD", ids=["D"]) == []


def test_a_long_cycle_needs_no_recursion_and_has_a_short_message():
    count = 5000
    names = [f"N{at:04d}" for at in range(count)]
    links = [link(name, "depends_on", names[(at + 1) % count]) for at, name in enumerate(names)]
    [found] = violations(graph_of(map(node, names), links), RULE)
    assert found.message.endswith("→ N0017 → (4982 more) → N0000.")


def graph_pairs(graph):
    return sorted({(near, far) for near, ends in graph.items() for far in ends})


GRAPHS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda pair: pair[0] != pair[1]), max_size=15)


@settings(max_examples=tries(30, 300), deadline=None)
@given(GRAPHS)
def test_knots_are_the_nodes_that_reach_each_other(pairs):
    graph: dict = {}
    for near, far in pairs:
        graph.setdefault(str(near), []).append(str(far))

    def reached(start):
        found: set = set()
        frontier = set(graph.get(start, ()))
        while frontier - found:
            found |= frontier
            frontier = {far for near in frontier for far in graph.get(near, ())}
        return found

    wanted = {frozenset(other for other in reached(name) if name in reached(other)) for name in graph}
    wanted.discard(frozenset())
    assert set(components(graph)) == wanted
    assert [violation.id for violation in cycles(*map("".join, graph_pairs(graph)))] == sorted(map(min, wanted))
    for group in components(graph):
        cycle = shortest_cycle(graph, group)
        assert cycle[0] == min(group)
        assert len(set(cycle)) == len(cycle)
        assert all(far in graph[near] for near, far in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
