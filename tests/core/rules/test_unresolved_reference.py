"""Whatever a link names exists."""

from __future__ import annotations

from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "unresolved-reference"


def test_links_that_stand_break_nothing():
    about = link("A", "relates_to", "B", kind="x")
    graph = graph_of([node("A"), node("B")], [about, link(about.id, "relates_to", "A", kind="y")])
    assert violations(graph, RULE) == []


def test_a_symbol_linked_to_a_requirement_that_does_not_exist_is_reported():
    stated = link("SYM-1", "implements", "REQ-9", is_resolved=False, files=["docs/z.yaml", "docs/symbols.yaml"])
    [found] = violations(graph_of([node("SYM-1", "symbol")], [stated]), RULE)
    assert (found.id, found.severity, found.source) == ("SYM-1", "error", "docs/symbols.yaml")
    assert found.message == "SYM-1 implements REQ-9, but there is no REQ-9."
    assert "Create what is missing, or take the link out of the file" in found.hint
    assert found.source == "docs/symbols.yaml"


def test_a_bare_link_says_that_it_links():
    [found] = violations(graph_of([node("A")], [link("A", "", "B", is_resolved=False, files=["a.md"])]), RULE)
    assert found.message == "A links to B, but there is no B."


def test_the_end_that_exists_is_the_one_that_is_named():
    [found] = violations(graph_of([node("T", "test")], [link("REQ-9", "verified_by", "T", is_resolved=False)]), RULE)
    assert found.id == "T"
    assert "there is no REQ-9" in found.message
    assert "kb delete --edge REQ-9 verified_by T" in found.hint


def test_two_missing_ends_are_one_violation():
    [found] = violations(graph_of([], [link("A", "depends_on", "B", is_resolved=False)]), RULE)
    assert found.message == "A depends_on B, but there is no A and no B."


def test_an_id_that_looks_like_the_missing_one_is_proposed():
    graph = graph_of(
        [node("SYM-1", "symbol"), node("REQ-007"), node("REQ-70")],
        [link("SYM-1", "implements", "req-7", is_resolved=False, files=["s.yaml"])],
    )
    [found] = violations(graph, RULE)
    assert found.hint.startswith("Did you mean REQ-007?")


def test_the_missing_id_can_be_asked_for():
    graph = graph_of([node("A")], [link("A", "depends_on", "B", is_resolved=False)])
    assert len(violations(graph, RULE, ids=["B"])) == 1
    assert violations(graph, RULE, ids=["C"]) == []


def test_an_odd_id_is_quoted_in_the_command():
    [found] = violations(graph_of([node("it's")], [link("it's", "depends_on", "$(x) y", is_resolved=False)]), RULE)
    assert """kb delete --edge 'it'"'"'s' depends_on '$(x) y'""" in found.hint


def test_a_link_about_an_unresolved_link_is_unresolved_too():
    about = link("A", "depends_on", "B", is_resolved=False)
    graph = graph_of([node("A")], [about, link("A", "relates_to", about.id, kind="x", is_resolved=False)])
    assert [one.message.endswith(f"there is no {about.id}.") for one in violations(graph, RULE)] == [False, True]


def test_edges_that_differ_in_their_kind_are_two_violations_each_with_its_own_command():
    edges = [link("A", "relates_to", "B", kind=kind, is_resolved=False) for kind in ("see", "part")]
    found = violations(graph_of([node("A")], edges), RULE)
    said = [f"A relates_to:{kind} B" for kind in ("part", "see")]
    assert sorted(one.message for one in found) == [f"{one}, but there is no B." for one in said]
    assert sorted(one.values for one in found) == [("relates_to:part", "B"), ("relates_to:see", "B")]
    assert all(f"`kb delete --edge {one}`" in " ".join(each.hint for each in found) for one in said)
