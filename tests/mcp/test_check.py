"""What ``kb_check`` answers."""

from __future__ import annotations

import pytest

from kbmcp.replies import text_of
from tests.mcp.agents import agent, direct, pages_of
from tests.support.project import req

COUNT = 150


@pytest.fixture(scope="module", autouse=True)
def stored(shared):
    shared.apply(
        entities=[
            {"id": f"REQ-{number:03}", "type": "req", "title": "t" * 80, "status": "open", "priority": "must"}
            for number in range(COUNT)
        ],
        edges=[{"type": "depends_on", "from": "REQ-148", "to": "REQ-149"}],
    )


def test_violations_come_with_the_rules_that_ran(each_era):
    answer = each_era.call("kb_check", limit=5)
    assert (answer["branch"], answer["seq"], answer["ok"]) == ("main", 1, False)
    shape = {"rule", "severity", "id", "message", "hint", "source"}
    assert set(answer["violations"][0]) - {"values", "field", "line"} == shape
    assert answer["rules_run"] > 15
    assert "rules" not in answer
    assert answer["total"] > len(answer["violations"]) == 5
    assert "repeat the call with this next_cursor" in answer["note"]


def test_paging_gives_every_violation_once(kb):
    pages = list(pages_of(kb, "kb_check", "violations"))
    found = [(one["rule"], one["id"], one["message"]) for page in pages for one in page]
    assert len(found) == len(set(found)) == kb.call("kb_check", limit=1)["total"] >= COUNT
    assert [one["severity"] for page in pages for one in page] == sorted(
        one["severity"] for page in pages for one in page
    )


def test_rules_and_ids_narrow_it(kb):
    rule = kb.call("kb_check", limit=1)["violations"][0]["rule"]
    answer = kb.call("kb_check", rules=[rule], ids=["REQ-007"])
    assert {(one["rule"], one["id"]) for one in answer["violations"]} == {(rule, "REQ-007")}
    assert answer["rules_run"] == 1
    error = kb.refused("kb_check", rules=["no-such-rule"])
    assert error["code"] == "not_found"


def test_a_cursor_belongs_to_its_request(kb):
    cursor = kb.call("kb_check", limit=1)["next_cursor"]
    assert kb.refused("kb_check", ids=["REQ-001"], cursor=cursor)["code"] == "invalid_query"
    assert kb.refused("kb_check", limit=0)["code"] == "invalid_query"


def test_pages_go_on_although_violations_are_mended_meanwhile(shared, kb):
    first = kb.call("kb_check", limit=3)
    mended = first["violations"][2]["id"]
    shared.apply(entities=[{"id": mended, "priority": "could"}])
    following = kb.call("kb_check", limit=3, cursor=first["next_cursor"])
    before = {(one["rule"], one["id"]) for one in first["violations"]}
    assert not before & {(one["rule"], one["id"]) for one in following["violations"]}


def test_the_rules_of_the_project_run_too(project):
    project.write({".kb/rules/own.yaml": "rules: [{id: no-x, sql: \"select id, 'is x' as message from entity\"}]"})
    project.sync({"docs/requirements/a.md": req("REQ-1")})
    with agent(project.root) as found:
        answer = found.call("kb_check", rules=["no-x"])
        assert [(one["id"], one["message"]) for one in answer["violations"]] == [("REQ-1", "is x")]
        project.write({".kb/rules/own.yaml": "rules: [{id: no-x, sql: select nonsense from node}]"})
        answer = found.call("kb_check")
        assert answer["ok"] is False
        assert next(rule for rule in answer["rules"] if rule["id"] == "no-x")["status"] == "not_run"
        project.write({".kb/rules/own.yaml": "rules: ["})
        assert found.refused("kb_check")["code"] == "invalid_config"


def test_an_id_of_which_nothing_is_known_is_refused_with_the_nearest_one(kb):
    error = kb.refused("kb_check", ids=["REQ-001", "REQ-0O1", "NOPE"])
    assert error["code"] == "not_found"
    assert [(one["path"], one["hint"]) for one in error["details"]] == [
        ("$.ids[1]", "Did you mean 'REQ-001'?"),
        ("$.ids[2]", ""),
    ]
    assert "kb_query" in error["hint"]


def test_a_server_that_only_reads_names_no_tool_that_writes(shared):
    with direct(shared.root, is_read_only=True) as reader:
        answer = reader.answer("kb_check", rules=["orphans"], ids=["REQ-001"])
    assert "`kb apply`" in answer["violations"][0]["hint"]
    assert "kb_upsert" not in answer["violations"][0]["hint"]


MOST_CLEAN_CHARS = 4 * 50
"""A clean check takes at most 50 tokens, of four characters each."""


def test_a_clean_check_says_no_more_than_that_it_is_clean(project):
    ends = [{"id": f"E-{at}", "type": "component", "title": f"T{at}", "status": "active"} for at in (1, 2)]
    project.apply(entities=ends, edges=[{"type": "relates_to", "kind": "part", "from": "E-1", "to": "E-2"}])
    with direct(project.root) as tools:
        answer = tools.answer("kb_check")
    assert (answer["ok"], answer["total"], answer["violations"]) == (True, 0, [])
    assert len(text_of(answer)) <= MOST_CLEAN_CHARS
