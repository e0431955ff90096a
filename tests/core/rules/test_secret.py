"""A stored text that looks like a secret is reported with its field and file, and never shown whole."""

from __future__ import annotations

import json

from kbmcp.tools.hints import in_tool_words
from tests.support.views.graph import graph_of, link, node
from tests.support.views.rules import violations

RULE = "secret"
TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
PASSWORD = "Tr0ub4dor&3xQ9"


def test_ordinary_entities_and_edges_break_nothing():
    nodes = [node("REQ-1", title="Reset the password", attributes__token_count="many", tags=("secret",)), node("B")]
    edges = [link("REQ-1", "depends_on", "B", fields={"metadata.why": "https://example.org/a:b"})]
    assert violations(graph_of(nodes, edges), RULE) == []


def test_each_field_of_an_entity_is_looked_at():
    given = {
        "title": f"Use {TOKEN}",
        "owner": TOKEN,
        "text_ref": f"docs/{TOKEN}.md",
        "tags": ("plain", TOKEN),
        "links": (f"https://me:{PASSWORD}@example.org",),
        "attributes__deploy": {"steps": ["x", TOKEN]},
        "attributes__db_password": PASSWORD,
        "metadata__note": TOKEN,
    }
    found = violations(graph_of([node("A", **given), node("B")]), RULE)
    assert {one.message.split("`")[1] for one in found} == {
        *("title", "owner", "text_ref", "tags[1]", "links[0]"),
        *("attributes.deploy.steps[1]", "attributes.db_password", "metadata.note"),
    }
    assert {(one.id, one.severity, one.source) for one in found} == {("A", "warning", "")}
    assert not any(TOKEN[:20] in f"{one}" or PASSWORD in f"{one}" for one in found)
    assert found[0].message.startswith("`attributes.db_password` of A looks like a random value in a field for secrets")
    assert all("`kb apply`" in one.hint and "revoke it" in one.hint for one in found)


def test_the_file_that_states_the_field_is_named():
    [found] = violations(graph_of([node("A", attributes__key=TOKEN, path="docs/a.md")]), RULE)
    assert found.source == "docs/a.md"
    assert found.hint.startswith("Take it out of the file and run `kb sync`.")


def test_an_id_is_reported_once_and_not_repeated():
    [found] = violations(graph_of([node(TOKEN, title="x")]), RULE)
    assert found.message == "The id of an entity looks like a GitHub token (ghp_…, 40 characters)."


def test_an_edge_is_looked_at_and_shown_for_either_end():
    edges = [
        link("A", "relates_to", "B", kind=TOKEN, files=["docs/a.md"]),
        link("A", "depends_on", "B", fields={"attributes.token": PASSWORD}),
    ]
    graph = graph_of([node("A"), node("B")], edges)
    kind, attribute = violations(graph, RULE, ids=["B"])[::-1]
    assert kind.message == "`kind` of A relates_to B looks like a GitHub token (ghp_…, 40 characters)."
    assert kind.source == "docs/a.md"
    assert "`attributes.token` of A depends_on B" in attribute.message


def test_the_graph_is_asked_three_times_however_large_it_is():
    graph = graph_of([node(f"R{number}", attributes__password=json.dumps(number)) for number in range(50)])
    assert violations(graph, RULE) == []
    assert len(graph.asked) == 3


def test_a_target_that_does_not_exist_is_looked_at_and_one_that_exists_is_reported_once():
    there = [link("A", "depends_on", TOKEN, files=["docs/a.md"])]
    [found] = violations(graph_of([node("A"), node(TOKEN, title="x")], there), RULE)
    assert (found.id, found.field) == (TOKEN, "id")
    for edge, end in ((("A", f"NOPE-{TOKEN}"), "to_id"), ((f"NOPE-{TOKEN}", "A"), "from_id")):
        missing = [link(edge[0], "depends_on", edge[1], is_resolved=False, files=["docs/a.md"])]
        [found] = violations(graph_of([node("A")], missing), RULE)
        assert (found.id, found.field, found.source) == ("A", end, "docs/a.md")
        assert found.values == ("depends_on", "NOPE-ghp_…")
        assert TOKEN not in f"{found}"


def test_an_agent_can_follow_the_remedy():
    nodes = [node("A", title=TOKEN), node("B", title=TOKEN, path="docs/b.md"), node(TOKEN, title="x")]
    hints = [in_tool_words(one.remedy, is_dotted=False) for one in violations(graph_of(nodes), RULE)]
    assert any("Write the field again without it, with kb_upsert." in hint for hint in hints)
    assert any("and call kb_upsert with `sync` true." in hint for hint in hints)
    assert not any("`kb apply`" in hint for hint in hints)
