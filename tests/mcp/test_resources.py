"""Resources: what they are called, what they hold, and what is said where there is nothing."""

from __future__ import annotations

import json

import pytest
from mcp.shared.exceptions import MCPError

from kbcore.model.concepts import extended
from kbcore.model.schema_text import schema_json
from kbmcp.resources import skills
from kbmcp.resources.logic_prompts import LOGIC_PAGES
from kbmcp.resources.memory_prompts import MEMORY_GUIDES, REFERENCE
from kbmcp.resources.resource_list import RESOURCES
from kbmcp.resources.subscriptions import MAX_FOLLOWED
from tests.mcp.agents import MODES, ROOT, agent, without_note

ODD_IDS = ["a/b#c?d", "100% so & so", "50%25", "Ünï·😀", "{id}", "with,comma", "kb://entity/x"]


def entity(key, **fields):
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def encoded(key):
    return "kb://entity/" + "".join(f"%{byte:02X}" for byte in key.encode())


def read(found, uri):
    """Return the document of a resource, after a look at what it comes in."""
    [content] = found._portal.call(found._client.read_resource, uri).contents
    assert (content.uri, content.mime_type) == (uri, "application/json")
    assert len(content.text) <= 20_000
    return without_note(json.loads(content.text))


def refused(found, uri):
    with pytest.raises(MCPError) as caught:
        read(found, uri)
    return caught.value.error


def test_what_there_is_to_read_is_listed(each_era):
    listed = each_era._portal.call(each_era._client.list_resources).resources
    assert [(one.uri, one.name) for one in listed] == [
        ("kb://head", "head"),
        ("kb://schema", "schema"),
        ("kb://check", "check"),
        ("kb://read", "read"),
        ("skill://kb/SKILL.md", "kb"),
    ]
    templates = each_era._portal.call(each_era._client.list_resource_templates).resource_templates
    assert [one.uri_template for one in templates] == ["kb://entity/{id}", "kb://context{?paths,budget}"]
    assert all(one.description and one.mime_type == "application/json" for one in [*listed[:-1], *templates])


def test_an_entity_is_the_document_that_a_query_gives(each_era):
    keys = [f"{each_era.protocol_version}-{end}" for end in "ab"]
    edge = {"type": "depends_on", "from": keys[0], "to": keys[1]}
    each_era.call("kb_upsert", entities=[entity(key) for key in keys], edges=[edge])
    for key in keys:
        found = read(each_era, f"kb://entity/{key}")
        assert found == each_era.call("kb_query", ids=[key], edges=True)
        assert [found["entities"][0]["id"], found["edges"][0]["to"]] == [key, keys[1]]


def test_any_id_can_be_written_into_a_uri(shared, kb):
    kb.call("kb_upsert", entities=[entity(key) for key in ODD_IDS])
    for key in ODD_IDS:
        assert read(kb, encoded(key))["entities"][0]["id"] == key
    assert read(kb, "kb://entity/a/b#c?d")["entities"][0]["id"] == "a/b#c?d"


def test_the_head_has_the_seq_of_the_branch(shared, kb):
    written = kb.call("kb_upsert", entities=[entity("HEAD-1")])
    head = shared.workspace().store("main").head()
    found = read(kb, "kb://head")
    assert found == {
        "branch": "main",
        "seq": written["seq"],
        "freshness": "current",
        "pending_files": 0,
        "hash": head.hash,
        "at": head.head.at,
        "entities": kb.call("kb_query", limit=1)["total"],
        "edges": kb.call("kb_query", type="edge", limit=1)["total"],
    }


def test_the_schema_is_that_of_the_branch(shared, kb):
    found = read(kb, "kb://schema")
    assert {key: found[key] for key in ("entities", "edges")} == schema_json(extended(shared.workspace().schema))
    path = shared.root / ".kb" / "schema" / "own.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("entities: {fact: {description: A fact}}\n")
    try:
        assert read(kb, "kb://schema")["entities"]["fact"]["description"] == "A fact"
        types = "".join(f"  fact{at}: {{description: {'x' * 900}}}\n" for at in range(40))
        path.write_text(f"entities:\n{types}")
        assert "ask the user" in read(kb, "kb://schema")["note"]
        path.write_text("entities: [broken")
        assert refused(kb, "kb://schema").data["error"]["code"] == "invalid_config"
    finally:
        path.unlink()


def test_the_check_is_what_the_tool_answers_without_arguments(project):
    project.apply(entities=[entity(f"M-{at:03}", priority="must") for at in range(80)])
    with agent(project.root) as found:
        shown = read(found, "kb://check")
        assert shown["ok"] is False
        assert "`limit`" in shown["note"]
        assert shown["violations"] == found.call("kb_check")["violations"]


def test_an_entity_too_long_for_one_answer_is_cut_and_says_so(shared, kb):
    kb.call("kb_upsert", entities=[entity("LONG", attributes={"text": "x" * 30_000})])
    found = read(kb, "kb://entity/LONG")
    assert found["cut"][0]["field"] == "attributes.text"
    assert "kb_query" in found["note"]


@pytest.mark.parametrize("mode", MODES)
def test_what_is_not_there_is_an_error_of_the_protocol(mode, shared):
    shared.apply(entities=[entity("REQ-1")])
    with agent(shared.root, mode=mode) as found:
        code = -32002 if mode == "legacy" else -32602
        for uri, says in [
            ("kb://entity/REQ-11", "Did you mean 'REQ-1'?"),
            ("kb://entity/", "kb://entity/{id}"),
            ("kb://entity/%ff", "kb://entity/{id}"),
            ("kb://entity/" + "x" * 3000, "kb://entity/{id}"),
            ("kb://haed", "Did you mean 'kb://head'?"),
            ("kb://entity/..%2F..%2Fetc%2Fpasswd", "kb_query"),
            ("file:///etc/passwd", "kb://head"),
        ]:
            error = refused(found, uri)
            assert (error.code, error.data["error"]["code"], error.data["branch"]) == (code, "not_found", "main")
            assert says in error.data["error"]["hint"]
            assert error.data["error"]["hint"].count("kb://schema") <= 1
            assert len(error.message) < 400


@pytest.mark.parametrize("mode", MODES)
def test_outside_of_a_repository_a_resource_says_why_not(mode, tmp_path):
    with agent(tmp_path, mode=mode) as found:
        assert len(found._portal.call(found._client.list_resources).resources) == 5
        error = refused(found, "kb://head")
        assert (error.code, error.data["error"]["code"]) == (-32603, "not_a_repository")
        assert "-C PATH" in error.data["error"]["hint"]


def test_a_branch_is_read_as_the_tools_read_it(project):
    project.apply(entities=[entity("A")])
    with agent(project.root, "--read-only") as found:
        project.switch("feature", create=True)
        shown = read(found, "kb://entity/A")
        assert (shown["branch"], shown["answered_from"]) == ("feature", "main")
        assert "feature has no store yet" in shown["note"]


def test_every_resource_is_on_the_page():
    page = (ROOT / "docs" / "mcp.md").read_text(encoding="utf-8")
    section = page.partition("\n## Resources\n")[2].partition("\n### ")[0]
    listed = [line.split("|")[1].strip(" `") for line in section.splitlines() if line.startswith("| `")]
    assert listed == [
        one.uri for one in (*RESOURCES.values(), skills.PAGE, REFERENCE, *MEMORY_GUIDES.values(), *LOGIC_PAGES.values())
    ]
    assert f"at most {MAX_FOLLOWED:,} resources" in page
