"""The answers of ``kb_query``, which stay within its budget."""

from __future__ import annotations

import pytest

from tests.mcp.agents import MODES, Agent, agent, answer_of, direct, pages_of, text_of
from tests.support.repository.project import Project, req

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


@pytest.mark.sliced(2)
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
    answer = kb.call("kb_query", text="lonk", fields=["id", "snippet"])
    [found] = answer["entities"]
    assert (found["id"], found["snippet"]) == ("LONG", {"field": "title", "text": "«Long»"})
    assert set(found) == {"id", "score", "snippet"}
    assert answer["search"]["corrected"] == {"lonk": ["long"]}
    nothing = kb.call("kb_query", text="nowhere")
    assert (nothing["total"], nothing["search"]["unknown"]) == (0, ["nowhere"])
    assert nothing["search"]["note"] == "Nothing relevant: no entity contains 'nowhere'."
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
    assert "`fields` gives such a value in full" in answer["note"]


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


def test_a_walk_follows_edges_in_both_directions(kb):
    assert kb.call("kb_query", from_="REQ-000", follow=["verified_by"])["total"] == 400
    assert [one["id"] for one in kb.call("kb_query", from_="T-007", reverse=True)["entities"]] == ["REQ-000"]
    error = kb.refused("kb_query", from_="NOPE")
    assert error["code"] == "not_found"
    assert "kb_query with `text`" in error["hint"]


def test_a_type_that_nothing_is_like_is_answered_with_those_there_are_and_how_to_add_one(kb):
    hint = kb.refused("kb_query", type="widget")["hint"]
    assert hint.startswith("Known: ")
    assert ("Did you mean" in hint, "entities: {widget:" in hint) == (False, True)
    assert kb.refused("kb_query", type="edgs")["hint"] == "Did you mean 'edge'?"


def test_an_answer_without_rows_names_what_nothing_has_and_the_other_way(kb):
    said = "Nothing has the tag 'mny'. Did you mean 'many'?"
    assert kb.call("kb_query", tags=["mny"])["note"] == kb.call("kb_query", text="title", tags=["mny"])["note"] == said
    assert kb.call("kb_query", ids=["T-007", "NOTHING"])["note"] == "There is no 'NOTHING'."
    assert "note" not in kb.call("kb_query", ids=["T-007", "REQ-000"])
    note = kb.call("kb_query", from_="T-007", follow=["verified_by"])["note"]
    assert note == "Against the direction of the edges: 1. Set `reverse`, or `^` in `follow`."
    note = kb.call("kb_query", from_="REQ-000", follow=["verified_by"], reverse=True)["note"]
    assert note == "Against the direction of the edges: 400. Leave out `reverse`."
    assert kb.call("kb_query", where=["path=./nowhere.md"])["note"].startswith("Nothing has the 'path' 'nowhere.md'.")
    note = kb.call("kb_query", tags=["many"], type="test")["note"]
    assert note.startswith("Without `type` 'test' 240 entities would match. Without `tags` 'many' ")


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


@pytest.mark.sliced(1)
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


@pytest.fixture
def linked(project: Project) -> Agent:
    """A requirement as projects have them: a document, six edges, attributes."""
    front = "priority: must\nowner: fatou\ntags: [billing, refunds]\nestimate: 8\ndue: 2026-12-01\n"
    files = {f"docs/tests/t{number}.md": f"---\nid: TEST-{number}\ntype: test\n---\n# T\n" for number in range(4)}
    names = ", ".join(f"TEST-{number}" for number in range(4))
    project.sync(
        files
        | {
            "docs/requirements/refund.md": f"---\nid: REQ-14\ntype: req\ntitle: Refund a payment in full\n{front}"
            f"links:\n  - verified_by: [{names}]\n  - depends_on: [REQ-2]\n---\nText\n",
            "docs/requirements/pay.md": req("REQ-2", links="\n  - depends_on: [REQ-14]"),
        }
    )
    with agent(project.root) as one:
        yield one


def test_an_entity_comes_with_each_edge_once_in_at_most_200_tokens(linked):
    linked.call("kb_query", count=True)  # the first answer has advice
    result = linked.result("kb_query", {"ids": ["REQ-14"], "edges": True})
    answer = answer_of(result)
    assert len(answer["edges"]) == 6
    assert all(
        {"type", "from", "to"} <= set(edge) <= {"type", "from", "to", "by", "source"} for edge in answer["edges"]
    )
    assert "edges" not in answer["entities"][0]
    assert len(text_of(result)) / 4 <= 200


def test_who_stated_what_when_and_where_comes_on_request(linked):
    entity, edge = {"created_at", "updated_at", "source"}, {"created_at", "created_by", "source", "sources", "version"}
    bare = linked.call("kb_query", ids=["REQ-14"], edges=True)
    whole = linked.call("kb_query", ids=["REQ-14"], edges=True, provenance=True)
    assert set(whole["entities"][0]) - set(bare["entities"][0]) == entity
    assert set(whole["edges"][0]) - set(bare["edges"][0]) >= edge - {"source"}
    assert linked.call("kb_query", ids=["REQ-14"], fields=["source"])["entities"] == [
        {"id": "REQ-14", "source": "docs/requirements/refund.md"}
    ]
    one = linked.call("kb_query", type="edge", where=["to=REQ-2"], fields=["created_by"])["edges"][0]
    assert set(one) == {"type", "from", "to", "id", "created_by"}


def test_a_count_is_the_total_and_why_it_is_none(kb):
    counted = kb.call("kb_query", tags=["many"], count=True)
    assert counted["total"] == COUNT
    assert not {"entities", "edges", "next_cursor"} & set(counted)
    assert kb.call("kb_query", tags=["mny"], count=True)["note"] == "Nothing has the tag 'mny'. Did you mean 'many'?"
    assert kb.call("kb_query", text="title", count=True)["search"]["words"] == ["title"]


def test_conditions_compare(kb):
    found = kb.call("kb_query", where=["id<REQ-002 OR id=REQ-239", "tag^=MAN"], fields=["id"], sort="-id")["entities"]
    assert [one["id"] for one in found] == ["REQ-239", "REQ-001", "REQ-000"]
    found = kb.call("kb_query", where={"title": ["Title 5", "Title 7"], "status": "open"}, fields=["id"])["entities"]
    assert [one["id"] for one in found] == ["REQ-005", "REQ-007"]
    refused = kb.refused("kb_query", where=["title==x"])
    assert "`^=` begins with" in refused["hint"]


class TestSeveralQueries:
    def test_each_is_answered_in_its_place_and_the_state_is_said_once(self, kb):
        asked = [{"ids": ["REQ-001"]}, {"tags": ["many"], "count": True}, {"type": "edge", "limit": 1}]
        answer = kb.call("kb_query", queries=asked)
        assert set(answer) == {"branch", "seq", "freshness", "pending_files", "answers"}
        first, second, third = answer["answers"]
        alone = kb.call("kb_query", **asked[0])
        assert first == {name: value for name, value in alone.items() if name not in answer}
        assert second == {"total": COUNT}
        assert (third["total"], len(third["edges"])) == (400, 1)
        assert "kb_query" not in third["note"]
        following = kb.call("kb_query", queries=[{"type": "edge", "limit": 1, "cursor": third["next_cursor"]}])
        assert following["answers"][0]["edges"][0]["to"] == "T-001"

    def test_what_is_wrong_with_one_leaves_the_others(self, kb):
        asked = [
            {"type": "rq"},
            {"from": "NOPE"},
            {"typ": 1},
            {"queries": [{}]},
            {"count": True},
            {"cursor": "part.1.1"},
        ]
        answers = kb.call("kb_query", queries=asked)["answers"]
        codes = [one.get("error", {}).get("code") for one in answers]
        assert codes == ["invalid_query", "not_found", "invalid_query", "invalid_query", None, "invalid_query"]
        assert answers[0]["error"]["hint"] == "Did you mean 'req'?"
        assert answers[2]["error"]["details"][0]["path"] == "$.typ"
        assert "kb_query with `text`" in answers[1]["error"]["hint"]
        assert kb.call("kb_query", queries=[{"type": "rq"}])["seq"] >= 2

    def test_each_says_its_own_seq_where_they_differ(self, kb):
        now = kb.call("kb_query", count=True)["seq"]
        answer = kb.call("kb_query", queries=[{"count": True}, {"count": True, "at": 1}])
        assert "seq" not in answer
        assert [one["seq"] for one in answer["answers"]] == [now, 1]

    @pytest.mark.parametrize("limit", [1, 200])
    def test_all_of_them_fit_into_one_answer(self, kb, limit):
        queries = [{"ids": ["LONG"]}, {"ids": ["REQ-000"], "edges": True}] + [{"tags": ["many"], "limit": limit}] * 8
        result = kb.result("kb_query", {"queries": queries})
        assert len(text_of(result)) <= 20_000
        answers = answer_of(result)["answers"]
        assert len(answers) == 10
        assert all(one.get("next_cursor") for one in answers[2:])
        assert {one["field"] for one in answers[0]["cut"]} >= {"tags"}
        assert answers[1]["omitted"]["edges"] + len(answers[1]["edges"]) == 400

    def test_arguments_next_to_queries_and_too_many_queries_are_refused(self, kb):
        refused = kb.refused("kb_query", queries=[{"count": True}], type="req", from_="REQ-000")
        assert {one["path"] for one in refused["details"]} == {"$.type", "$.from"}
        assert kb.refused("kb_query", queries=[{"count": True}] * 11)["details"][0]["code"] == "too_many"
        assert kb.refused("kb_query", queries=[])["details"][0]["code"] == "empty"
        assert kb.refused("kb_query", queries=[1])["details"][0]["path"] == "$.queries[0]"


def test_a_walk_along_edges_that_are_not_there_and_an_id_that_is_a_path_say_so(project):
    project.sync({"docs/requirements/f.md": req("F-1")})
    with agent(project.root) as kb:
        note = kb.call("kb_query", from_="F-1", follow=["implements"], reverse=True)["note"]
        assert "No edge of those in `follow` leads from 'F-1' in either direction." in note
        path = "docs/requirements/f.md"
        assert "Did you mean 'F-1'?" in kb.call("kb_query", ids=[path])["note"]
        assert "Did you mean 'F-1'?" in kb.refused("kb_query", from_=path)["hint"]


def test_a_condition_on_owners_sees_those_of_codeowners(project):
    project.sync(
        {
            "CODEOWNERS": "* @all\n!x @y\n",
            "docs/requirements/a.md": req("REQ-1"),
            "docs/requirements/b.md": req("REQ-2", owner="ann"),
        }
    )
    with agent(project.root) as kb:
        for where in (["owner=@all"], {"owner": "@all"}, ["owner!=ann"]):
            answer = kb.call("kb_query", where=where)
            assert [one["id"] for one in answer["entities"]] == ["REQ-1"]
            assert "CODEOWNERS:2: the line gives no owner" in answer["note"]
        found = kb.call("kb_query", coverage=True, where=["owner=@all"])
        assert (found["total"], found["coverage"]["requirements"]) == (1, 1)
        note = kb.call("kb_query", where=["owner=@al"])["note"]
        assert "Nothing has the 'owner' '@al'. Did you mean '@all'?" in note
        assert "CODEOWNERS" not in kb.call("kb_query", where=["status=open"]).get("note", "")
