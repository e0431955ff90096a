"""What ``kb_query`` answers, and how it stays within its budget."""

from __future__ import annotations

import pytest

from tests.mcp.agents import MODES, Agent, agent, answer_of, direct, pages_of, text_of
from tests.support.project import Project, req

COUNT = 240


@pytest.fixture(scope="module", autouse=True)
def stored(shared: Project) -> None:
    """Many requirements of every size, one with many edges, one that is larger than an answer may be."""
    entities = [
        {"id": f"REQ-{number:03}", "type": "req", "title": f"Title {number}", "status": "open", "tags": ["many"]}
        | {"attributes": {"body": "x" * (number * 7 % 900)}}
        for number in range(COUNT)
    ]
    tests = [{"id": f"T-{number:03}", "type": "test", "title": "t", "status": "active"} for number in range(400)]
    edges = [{"type": "verified_by", "from": "REQ-000", "to": f"T-{number:03}"} for number in range(400)]
    shared.apply(entities=[*entities, *tests], edges=edges)
    long = {
        "id": "LONG",
        "type": "req",
        "title": "Long",
        "status": "open",
        "owner": "ann",
        "tags": [f"{number:050}" for number in range(900)],
    }
    attributes = {"body": "start " + "0123456789" * 6000 + " end", "small": 1, "list": list(range(9000))}
    shared.apply(entities=[{**long, "attributes": attributes}])


def test_an_answer_names_branch_and_seq_and_comes_in_both_forms(each_era):
    result = each_era.result("kb_query", {"ids": ["REQ-001"]})
    answer = answer_of(result)
    assert not result.is_error
    assert (answer["branch"], answer["seq"], answer["total"], answer["next_cursor"]) == ("main", 2, 1, None)
    [entity] = answer["entities"]
    assert entity["title"] == "Title 1"
    assert entity["version"] == 1
    assert "edges" in answer
    assert ": " not in text_of(result).replace('": "', "")


@pytest.mark.parametrize("name", ["kb_query", "kb_check", "kb_history", "execute_kip", "kb_sleep"])
def test_every_answer_names_the_repository_and_a_refusal_does_too(name, shared):
    asked = {"kb_history": {"action": "log"}, "execute_kip": {"command": "DESCRIBE DOMAINS"}}.get(name, {})
    with agent(shared.root, "--toolsets", "all") as found:
        answer = found.result(name, asked)
        refused = found.result(name, asked | {"expect_branch": "no such branch", "ids": [7]})
    assert (answer.is_error, refused.is_error) == (False, True)
    if name == "execute_kip":
        assert answer.meta["kb/repository"] == "a project"
    else:
        assert (answer.structured_content["repository"], refused.structured_content["repository"]) == ("a project",) * 2


def test_a_search_is_ranked_with_snippets_and_says_what_it_looked_for(kb):
    answer = kb.call("kb_query", text="lonk", fields=["id"])
    [found] = answer["entities"]
    assert (found["id"], found["snippet"]) == ("LONG", {"field": "title", "text": "«Long»"})
    assert set(found) == {"id", "score", "snippet"}
    assert answer["search"]["corrected"] == {"lonk": ["long"]}
    nothing = kb.call("kb_query", text="nowhere")
    assert (nothing["total"], nothing["search"]["unknown"]) == (0, ["nowhere"])
    assert nothing["search"]["note"] == "Nothing relevant: no entity holds 'nowhere'."
    assert kb.refused("kb_query", text="...")["details"][0]["path"] == "$.text"


def test_pages_of_a_search_fit_and_give_every_row_once(kb):
    found = [one["id"] for page in pages_of(kb, "kb_query", "entities", text="titl", limit=200) for one in page]
    assert sorted(found) == sorted({*found})
    assert len(found) == COUNT


def test_paging_to_the_end_gives_every_row_once(kb):
    found = [entity["id"] for page in pages_of(kb, "kb_query", "entities", tags=["many"]) for entity in page]
    assert found == [f"REQ-{number:03}" for number in range(COUNT)]


def test_a_page_that_does_not_fit_gets_shorter_and_says_so(kb):
    answer = kb.call("kb_query", tags=["many"], limit=200)
    shown = len(answer["entities"])
    assert 10 < shown < 200
    assert answer["total"] == COUNT
    assert answer["note"].startswith(f"{shown} of the 200 rows of this page fit")
    following = kb.call("kb_query", tags=["many"], limit=200, cursor=answer["next_cursor"])
    assert following["entities"][0]["id"] == f"REQ-{shown:03}"


def test_pages_hold_all_rows_although_others_write_meanwhile(shared, kb):
    pages = pages_of(kb, "kb_query", "entities", tags=["many"], limit=60)
    found = [entity["id"] for entity in next(pages)]
    shared.apply(entities=[{"id": "REQ-0005", "type": "req", "title": "Late", "status": "open", "tags": ["many"]}])
    found += [entity["id"] for page in pages for entity in page]
    shared.delete(entities=[{"id": "REQ-0005"}])
    assert found == [f"REQ-{number:03}" for number in range(COUNT)]


def test_edges_page_like_entities(kb):
    edges = list(pages_of(kb, "kb_query", "edges", type="edge", where=["from=REQ-000"], limit=150))
    found = [edge["to"] for page in edges for edge in page]
    assert found == [f"T-{number:03}" for number in range(400)]


def test_more_edges_than_fit_are_counted_with_the_call_that_gets_them(kb):
    answer = kb.call("kb_query", ids=["REQ-000"], edges=True)
    assert len(answer["edges"]) + answer["omitted"]["edges"] == 400
    assert 'kb_query with type "edge" and where ["from=ID"]' in answer["note"]


def test_entities_come_with_their_edges_on_one_page(kb):
    pages = pages_of(kb, "kb_query", "entities", type="test", edges=True, limit=100)
    assert sum(len(page) for page in pages) == 400


def test_an_entity_too_long_is_cut_and_every_cut_is_named(kb):
    result = kb.result("kb_query", {"ids": ["LONG"]})
    answer = answer_of(result)
    assert len(text_of(result)) <= 20_000
    [entity] = answer["entities"]
    cut = {one["field"]: one for one in answer["cut"]}
    assert set(cut) == {"attributes.body", "attributes.list", "tags"}
    assert cut["attributes.body"]["characters"] == 60_010
    assert entity["attributes"]["body"].startswith("start 0123456789")
    assert len(entity["attributes"]["body"]) == cut["attributes.body"]["shown"] + 1
    assert entity["attributes"]["small"] == 1
    assert entity["owner"] == "ann"
    assert "`fields` gives such a value whole" in answer["note"]


@pytest.mark.parametrize("field", ["attributes.body", "attributes.list", "tags", "attributes"])
def test_a_long_value_can_be_had_in_parts(field, kb, shared):
    import json

    parts, cursor = [], {}
    while True:
        answer = kb.call("kb_query", ids=["LONG"], fields=[field], **cursor)
        part = answer["part"]
        assert part["offset"] == sum(len(one) for one in parts)
        parts.append(part["text"])
        if not answer["next_cursor"]:
            break
        cursor = {"cursor": answer["next_cursor"]}
    whole = "".join(parts)
    assert len(whole) == part["characters"]
    node = shared.node("LONG")
    members = {name.removeprefix("attributes."): value for name, value in node.fields.items() if "." in name}
    expected = members if field == "attributes" else node.fields[field]
    assert (whole if field == "attributes.body" else json.loads(whole)) == expected


def test_parts_speak_of_the_state_they_began_with(kb, shared):
    first = kb.call("kb_query", ids=["LONG"], fields=["body"])
    shared.apply(entities=[{"id": "LONG", "attributes": {"body": "short"}}])
    following = kb.call("kb_query", ids=["LONG"], fields=["body"], cursor=first["next_cursor"])
    assert following["seq"] == first["seq"]
    assert following["part"]["characters"] == 60_010
    assert kb.call("kb_query", ids=["LONG"], fields=["body"])["entities"][0]["attributes"] == {"body": "short"}


@pytest.mark.parametrize("cursor", ["part.1", "part.x.y", "nonsense", "part.1.2"])
def test_a_cursor_that_is_none_is_refused(cursor, kb):
    assert kb.refused("kb_query", cursor=cursor)["code"] == "invalid_query"


def test_a_walk_goes_along_edges_and_against_them(kb):
    assert kb.call("kb_query", from_="REQ-000", follow=["verified_by"])["total"] == 400
    assert [one["id"] for one in kb.call("kb_query", from_="T-007", reverse=True)["entities"]] == ["REQ-000"]
    error = kb.refused("kb_query", from_="NOPE")
    assert error["code"] == "not_found"
    assert "kb_query with `text`" in error["hint"]


def test_an_answer_without_rows_names_what_nothing_has_and_the_other_way(kb):
    said = "Nothing has the tag 'mny'. Did you mean 'many'?"
    assert kb.call("kb_query", tags=["mny"])["note"] == kb.call("kb_query", text="title", tags=["mny"])["note"] == said
    note = kb.call("kb_query", from_="T-007", follow=["verified_by"])["note"]
    assert note == "Against the direction of the edges: 1. Set `reverse`, or `^` in `follow`."
    note = kb.call("kb_query", from_="REQ-000", follow=["verified_by"], reverse=True)["note"]
    assert note == "Against the direction of the edges: 400. Leave out `reverse`."
    assert kb.call("kb_query", where=["path=./nowhere.md"])["note"].startswith("Nothing has the 'path' 'nowhere.md'.")
    assert "note" not in kb.call("kb_query", tags=["many"], type="test")


def test_where_takes_text_and_objects(kb):
    by_text = kb.call("kb_query", where=["attributes.small=1"])
    by_object = kb.call("kb_query", where={"owner": "ann"})
    assert by_text["entities"] == [] or by_text["entities"][0]["id"] == "LONG"
    assert [one["id"] for one in by_object["entities"]] == ["LONG"]
    assert kb.refused("kb_query", where=[1])["details"][0]["path"] == "$.where[0]"
    assert kb.refused("kb_query", where={"owner": None})["details"][0]["path"] == "$.where.owner"
    assert kb.refused("kb_query", where=["owner"])["code"] == "invalid_query"


def test_an_entity_whose_file_could_not_be_read_is_marked(project):
    project.sync({"docs/requirements/a.md": req("FILE-1"), "docs/requirements/b.md": req("FILE-2")})
    project.sync({"docs/requirements/a.md": "---\nid: [\n---\n"})
    with direct(project.root) as tools:
        found = tools.answer("kb_query", fields=["title"])["entities"]
    assert {one["id"]: one.get("stale") for one in found} == {"FILE-1": True, "FILE-2": None}


def test_the_past_is_answered_by_seq_and_by_time(shared, kb):
    shared.apply(entities=[{"id": "REQ-001", "title": "Renamed"}])
    now = kb.call("kb_query", ids=["REQ-001"])
    then = kb.call("kb_query", ids=["REQ-001"], at=1)
    assert (now["entities"][0]["title"], then["entities"][0]["title"]) == ("Renamed", "Title 1")
    assert then["seq"] == 1
    today = kb.call("kb_query", ids=["REQ-001"], at="today")
    assert (today["seq"], today["entities"]) == (now["seq"], now["entities"])
    assert "'today' is before" in today["freshness_reason"]
    assert kb.call("kb_query", at="HEAD")["seq"] == now["seq"]
    refused = {"2999-01-01": "yet to come", "1999-01-01": "before the first record", "someday": "neither a seq nor"}
    for text, said in refused.items():
        assert said in kb.refused("kb_query", at=text)["message"]
    assert kb.refused("kb_query", at=10_000)["code"] == "invalid_query"


def test_names_that_do_not_exist_get_the_nearest_one(kb):
    error = kb.refused("kb_query", type="rq", follow=["verifiedby"], from_="T-001")
    assert {(one["path"], one["code"]) for one in error["details"]} == {
        ("$.type", "unknown_type"),
        ("$.follow[0]", "unknown_edge"),
    }
    assert "'req'" in error["details"][0]["hint"]


@pytest.mark.parametrize("mode", MODES)
def test_both_spellings_are_understood_whatever_is_listed(mode, shared):
    with agent(shared.root, "--tool-names", "dotted", mode=mode) as dotted:
        assert [tool.name for tool in dotted.tools()][:2] == ["kb.query", "kb.upsert"]
        assert dotted.call("kb_query", limit=1)["total"] == dotted.call("kb.query", limit=1)["total"]
        assert "kb.query" in dotted.refused("kb_query", from_="NOPE")["hint"]
        assert "kb_" not in dotted.instructions
        assert "kb_" not in "".join(tool.description or "" for tool in dotted.tools())


def test_the_listed_spelling_is_the_default(kb: Agent):
    assert "kb.q" not in kb.instructions
    assert kb.call("kb.query", limit=1) == kb.call("kb_query", limit=1)


def test_a_walk_says_depth_and_path_whatever_the_fields(kb):
    answer = kb.call("kb_query", **{"from": "T-001", "follow": ["^verified_by"], "fields": ["title"]})
    [entity] = answer["entities"]
    assert entity == {
        "id": "REQ-000",
        "title": "Title 0",
        "depth": 1,
        "path": [{"from": "REQ-000", "type": "verified_by", "to": "T-001"}],
    }
