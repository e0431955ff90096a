"""Additions of ``kb_query`` to the fields of entities: impact, coverage and bodies."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc

import pytest

from tests.core.results.reporting import take
from tests.mcp.agents import agent, direct, server_env, text_of
from tests.support.repository.project import document


def req(key, **fields):
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def edge(name, from_id, to_id):
    return {"type": name, "from": from_id, "to": to_id}


@pytest.fixture
def linked(project):
    """R-2 needs R-1, which T-1 verifies; R-3 is retired."""
    tests = [{"id": "T-1", "type": "test", "title": "t", "status": "active"}]
    project.apply(
        entities=[req("R-1", tags=["a"], owner="ann"), req("R-2", tags=["a"]), req("R-3", status="retired"), *tests],
        edges=[edge("depends_on", "R-2", "R-1"), edge("verified_by", "R-1", "T-1")],
    )
    return project


@pytest.mark.sliced
def test_the_impact_is_that_of_the_command(linked):
    with agent(linked.root) as found:
        answer = found.call("kb_query", ids=["R-1"], impact=True)
        command = [sys.executable, "-m", "kbcli.app", "--json", "impact", "R-1"]
        ran = subprocess.run(command, cwd=linked.root, env=server_env(), capture_output=True, check=True)
        assert answer == json.loads(ran.stdout)
        assert [one["id"] for one in answer["direct"]] == ["R-2"]
        assert [one["id"] for one in answer["tests"]] == ["T-1"]
        linked.apply(entities=[req("R-4")], edges=[edge("depends_on", "R-4", "R-2")])
        assert [one["id"] for one in found.call("kb_query", ids=["R-1"], impact=True)["transitive"]] == ["R-4"]
        past = found.call("kb_query", ids=["R-1"], impact=True, at=1)
        assert (past["seq"], past["transitive"]) == (1, [])
        near = found.call("kb_query", ids=["R-1"], impact=True, depth=1)
        assert (near["transitive"], near["goes_on"]) == ([], True)


def test_an_impact_shows_only_the_fields_and_the_type_that_are_asked_for(linked):
    with agent(linked.root) as found:
        whole = found.call("kb_query", ids=["R-1"], impact=True)
        brief = found.call("kb_query", ids=["R-1"], impact=True, fields=["title"])
        assert (brief["direct"], brief["tests"], brief["people"]) == (
            [{"id": "R-2", "title": whole["direct"][0]["title"]}],
            [{"id": "T-1", "title": "t"}],
            [],
        )
        assert found.call("kb_query", ids=["R-1"], impact=True, fields=["owner"])["people"] == whole["people"] != []
        tests = found.call("kb_query", ids=["R-1"], impact=True, type="test")
        assert (tests["tests"], tests["direct"], tests["totals"]["direct"]) == (whole["tests"], [], 0)
        refused = found.refused("kb_query", ids=["R-1"], impact=True, fields=["titel", "path"])
        assert [one["path"] for one in refused["details"]] == ["$.fields[0]"]
        assert "title" in refused["hint"]
        refused = found.refused("kb_query", ids=["R-1"], impact=True, type="edge")
        assert "not_for_impact" in [one["code"] for one in refused["details"]]


def test_the_impact_of_a_file_or_a_line_is_that_of_its_symbols(project):
    config = '{"extractors": {"code": {"paths": ["src/*.py"]}}}'
    code = "# kb: implements R-1\ndef pay(): pass\n\n\n# kb: implements R-2\ndef refund(): pass\n"
    project.apply(entities=[req("R-1"), req("R-2")])
    project.sync({".kb/config.json": config, "src/pay.py": code})
    with agent(project.root) as found:
        whole = found.call("kb_query", ids=["src/pay.py"], impact=True)
        assert (whole["path"], [one["id"] for one in whole["direct"]]) == ("src/pay.py", ["R-1", "R-2"])
        line = found.call("kb_query", ids=["src/pay.py:6"], impact=True)
        assert (line["entity"]["id"], [one["id"] for one in line["direct"]]) == ("src/pay.py#refund", ["R-2"])
        assert "src/pay.py" in found.refused("kb_query", ids=["lib/pay.py"], impact=True)["hint"]
        folder = found.refused("kb_query", ids=["src"], impact=True)
        assert "'src' is a folder." in folder["message"]
        assert '`where` ["path=src/**"]' in folder["hint"]
        beyond = found.refused("kb_query", ids=["src/pay.py:7"], impact=True)
        assert "has 6 lines: there is no line 7" in beyond["message"]
        assert "at seq 1" in found.refused("kb_query", ids=["src/pay.py"], impact=True, at=1)["message"]
        listed = found.call("kb_query", where=["path=src/**"], type="symbol")
        assert [one["id"] for one in listed["entities"]] == ["src/pay.py#pay", "src/pay.py#refund"]


def test_a_large_impact_is_cut_and_says_so(project):
    ids = [f"R-{number:03}" for number in range(400)]
    project.apply(entities=[req("R"), *map(req, ids)], edges=[edge("depends_on", key, "R") for key in ids])
    with agent(project.root) as found:
        for limit in (50, 1000):
            result = found.result("kb_query", {"ids": ["R"], "impact": True, "limit": limit})
            assert len(text_of(result)) <= 20_000
            answer = result.structured_content
            assert 40 < len(answer["direct"]) < 400
            assert answer["totals"]["direct"] == 400
            assert "`totals`" in answer["note"]
            assert ("A higher `limit`" in answer["note"]) is (limit == 50)
            assert ("No more fits" in answer["note"]) is (limit == 1000)


def test_coverage_is_counted_and_shown_by_requirement(linked):
    with agent(linked.root) as found:
        answer = found.call("kb_query", coverage=True, fields=["title"])
        assert answer["total"] == 3
        assert (answer["coverage"]["requirements"], answer["coverage"]["retired"]) == (2, 1)
        assert answer["coverage"]["verified"] == {"yes": 1, "no": 1, "not_applicable": 0, "percent": 50.0}
        rows = {one["id"]: one["coverage"] for one in answer["entities"]}
        assert rows["R-1"] == {"specified": [], "verified": ["T-1"], "implemented": []}
        assert rows["R-3"] == {"retired": True}
        one = found.call("kb_query", coverage=True, ids=["R-2"])
        assert one["coverage"]["verified"]["percent"] == 0.0
        assert found.call("kb_query", coverage=True, tags=["a"], limit=1)["coverage"]["requirements"] == 2
        assert found.call("kb_query", coverage=True, at=1, status="retired")["coverage"]["retired"] == 1
        lacking = found.call("kb_query", coverage=True, lacks=["verified_by"])
        assert lacking["coverage"]["verified"]["percent"] == 0.0


def test_coverage_of_a_part_of_the_repository_counts_the_requirements_of_its_files(project):
    names = {"a/1": "REQ-1", "a/2": "REQ-2", "b": "REQ-3"}
    project.sync(
        {f"docs/requirements/{name}.md": document(key, title=key, status="open") for name, key in names.items()}
    )
    with direct(project.root) as tools:
        answer = tools.answer("kb_query", coverage=True, where=["path=docs/requirements/a/**"])
    assert answer["coverage"]["requirements"] == 2
    assert len(answer["entities"]) == 2


def test_a_requirement_whose_test_fails_is_said_to_be_so_by_coverage_impact_and_check(linked):
    take(linked, '<testsuite><testcase name="T-1"><failure message="no"/></testcase></testsuite>')
    with agent(linked.root) as found:
        answer = found.call("kb_query", coverage=True, ids=["R-1"])
        assert answer["coverage"]["failing"] == 1
        [failing] = answer["entities"][0]["coverage"]["failing"]
        assert (failing["id"], failing["outcome"], failing["message"]) == ("T-1", "failed", "no")
        impact = found.call("kb_query", ids=["R-1"], impact=True)
        assert [one["id"] for one in impact["failing"]] == ["R-1"]
        assert impact["tests"][0]["verdict"]["outcome"] == "failed"
        assert [one["id"] for one in found.call("kb_check", rules=["failing-test"])["violations"]] == ["R-1"]
        refused = found.refused("kb_upsert", entities=[{"id": "T-1", "attributes": {"test_verdict": "passed"}}])
        assert "kb results" in refused["hint"]


def test_a_body_is_that_of_the_document_and_a_long_one_comes_in_parts(project):
    body = "".join(f"Line {number} of the body.\n" for number in range(2_000))
    head = "---\nid: {}\ntitle: t\nstatus: open\n---\n"
    project.sync(
        {"docs/requirements/a.md": head.format("A") + "Short.\n", "docs/requirements/b.md": head.format("B") + body}
    )
    project.apply(entities=[req("C")])
    with agent(project.root) as found:
        assert found.call("kb_query", ids=["A"], body=True)["entities"][0]["body"] == "Short.\n"
        assert "body" not in found.call("kb_query", ids=["A"])["entities"][0]
        assert found.call("kb_query", ids=["A"], body=True, fields=["body"])["entities"] == [
            {"id": "A", "body": "Short.\n"}
        ]
        assert "body" not in found.call("kb_query", ids=["C"], body=True)["entities"][0]
        text, asked = "", {"ids": ["B"], "body": True, "fields": ["body"]}
        while True:
            answer = found.call("kb_query", **asked)
            text += answer["part"]["text"]
            if not answer["next_cursor"]:
                break
            asked["cursor"] = answer["next_cursor"]
        assert text == body
        cut = found.call("kb_query", ids=["B"], body=True)
        assert [one["field"] for one in cut["cut"]] == ["body"]
        assert '`body` and `fields` ["body"]' in cut["note"]


def test_of_a_page_with_long_bodies_no_more_is_read_than_fits(project):
    head = "---\nid: B-{:02}\ntitle: t\nstatus: open\n---\n"
    texts = {number: f"{number} is here.\n" * 20_000 for number in range(10, 40)}
    project.sync({f"docs/requirements/{number}.md": head.format(number) + text for number, text in texts.items()})
    with agent(project.root) as found:
        found.call("kb_query", type="req", body=True, limit=1)
        tracemalloc.start()
        try:
            answer = found.call("kb_query", type="req", body=True, limit=1000)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert most < sum(map(len, texts.values()))
        assert [one["id"] for one in answer["entities"]] == ["B-10"]
        assert [(one["field"], one["characters"]) for one in answer["cut"]] == [("body", len(texts[10]))]
        assert answer["total"] == 30


def test_bodies_that_fit_are_all_there_also_of_many_rows(project):
    head = "---\nid: S-{:02}\ntitle: t\nstatus: open\n---\n"
    project.sync({f"docs/requirements/{n}.md": head.format(n) + f"{n} is here.\n" * (n % 7) for n in range(10, 90)})
    seen, asked = {}, {"type": "req", "body": True, "fields": ["title", "body"], "limit": 70}
    with agent(project.root) as found:
        while True:
            answer = found.call("kb_query", **asked)
            seen |= {one["id"]: one["body"] for one in answer["entities"]}
            if not answer["next_cursor"]:
                break
            asked["cursor"] = answer["next_cursor"]
    assert seen == {f"S-{n}": f"{n} is here.\n" * (n % 7) for n in range(10, 90)}


def test_the_body_is_that_of_the_file_now_and_of_the_record_in_the_past(project):
    head = "---\nid: A\ntitle: t\nstatus: open\n---\n"
    project.sync({"docs/requirements/a.md": head + "Before.\n"})
    project.write({"docs/requirements/a.md": head + "Now.\n"})
    with agent(project.root) as found:
        answer = found.call("kb_query", ids=["A"], body=True)
        assert (answer["entities"][0]["body"], answer["freshness"]) == ("Now.\n", "overlay")
        assert found.call("kb_query", ids=["A"], body=True, at=1)["entities"][0]["body"] is None


@pytest.mark.sliced(4)
@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ({"impact": True}, {"$.ids"}),
        ({"impact": True, "ids": ["A", "B"]}, {"$.ids"}),
        ({"impact": True, "ids": ["R-1"], "tags": ["a"], "edges": True}, {"$.tags", "$.edges"}),
        ({"impact": True, "coverage": True, "ids": ["R-1"]}, {"$.coverage", "$.impact"}),
        ({"coverage": True, "text": "word"}, {"$.text"}),
        ({"coverage": True, "from": "R-1"}, {"$.from"}),
        ({"coverage": True, "type": "test"}, {"$.type"}),
        (
            {"count": True, "body": True, "edges": True, "fields": ["title"], "provenance": True},
            {"$.body", "$.edges", "$.fields", "$.provenance"},
        ),
        ({"fields": ["title"], "provenance": True}, {"$.provenance"}),
        ({"type": "edge", "body": True}, {"$.body"}),
    ],
)
def test_an_argument_that_would_be_passed_over_is_refused(linked, arguments, paths):
    with agent(linked.root) as found:
        assert {one["path"] for one in found.refused("kb_query", **arguments)["details"]} == paths


def test_the_impact_of_what_is_not_there_is_refused_with_what_is_near(linked):
    with agent(linked.root) as found:
        error = found.refused("kb_query", ids=["R-11"], impact=True)
        assert (error["code"], "R-1" in error["hint"]) == ("not_found", True)
        assert found.refused("kb_query", ids=["R-9"], impact=True, at=1)["code"] == "not_found"


def test_the_coverage_of_a_former_id_is_that_of_the_requirement(linked):
    with agent(linked.root) as found:
        found.call("kb_upsert", rename={"R-1": "R-9"})
        answer = found.call("kb_query", coverage=True, ids=["R-1"])
        assert (answer["coverage"]["requirements"], answer["entities"][0]["id"]) == (1, "R-9")
        assert answer["entities"][0]["coverage"]["verified"] == ["T-1"]
        retired = found.call("kb_query", coverage=True, ids=["R-3"])["entities"]
        assert retired == [retired[0] | {"coverage": {"retired": True}}]


def test_an_empty_answer_names_the_filter_that_leaves_nothing(linked):
    with agent(linked.root) as found:
        assert found.call("kb_query", type="req", ids=["T-1"])["note"] == (
            "Without `type` 'req' 1 entity would match. Without `ids` 'T-1' 3 entities would match."
        )
        note = found.call("kb_query", coverage=True, ids=["T-1"])["note"]
        assert "`coverage` is that of requirements: 1 entity would match without it." in note
        assert "'T-2'" in found.call("kb_query", type="test", ids=["T-2"])["note"]


def test_fields_that_name_the_body_without_body_say_how_to_get_it(linked):
    with agent(linked.root) as found:
        assert "`body` true" in found.refused("kb_query", ids=["R-1"], fields=["title", "body"])["hint"]
