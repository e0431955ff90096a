"""``context`` of ``kb_query``, and the resource of the same: facts that bind, never more than the budget."""

from __future__ import annotations

import json

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from kbcore.limits import CONTEXT_TOKENS, FILE_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS, MIN_CONTEXT_TOKENS
from kbcore.text.tokens import tokens_of
from tests.mcp.agents import agent, spawned, text_of
from tests.support.repository.repos import git

CONFIG = '{"extractors": {"code": {"paths": ["src/*.py"]}}}'
CODE = "# kb: implements R-1\ndef pay(): pass\n\n\n# kb: implements R-2\ndef refund(): pass\n"


def entity(key, type_, title="", **fields):
    return {"id": key, "type": type_, "title": title or f"Title of {key}", "status": "agreed", **fields}


def edge(name, from_id, to_id):
    return {"type": name, "from": from_id, "to": to_id}


@pytest.fixture
def paid(project):
    """Two functions, each of which implements a requirement; R-1 has scenarios, a test, a decision and a flag."""
    criteria = [entity(f"S-{at}", "scenario", f"Somebody pays in the way {at}") for at in range(30)]
    project.apply(
        entities=[
            *(entity("R-1", "req", "Whoever pays gets a receipt"), entity("R-2", "req"), *criteria),
            *(entity("T-1", "test"), entity("F-1", "flag"), entity("A-1", "adr", "Pay once", status="proposed")),
            entity("R-0", "req", "An old one", status="superseded"),
        ],
        edges=[
            *(edge("specified_by", "R-1", one["id"]) for one in criteria),
            *(edge("verified_by", "R-1", "T-1"), edge("guards", "F-1", "R-1"), edge("depends_on", "R-1", "R-0")),
        ],
    )
    project.sync({".kb/config.json": CONFIG, "src/pay.py": CODE})
    project.apply(edges=[edge("constrained_by", "src/pay.py#pay", "A-1")])
    return project


def size(result):
    return tokens_of(text_of(result))


def commit_all(root):
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "all")


def read(found, uri):
    return found._portal.call(found._client.read_resource, uri).contents[0].text


@pytest.mark.parametrize("start", [agent, spawned])
def test_one_call_gives_what_binds_a_file_in_at_most_400_tokens(paid, start):
    with start(paid.root) as found:
        result = found.result("kb_query", {"context": {"paths": ["src/pay.py"]}})
        assert size(result) <= FILE_CONTEXT_TOKENS == 400
        answer = json.loads(text_of(result))
        first = answer["facts"][0]
        assert next(iter(first)) == "fact"
        assert first == {
            "fact": "Pay once",
            "id": "A-1",
            "type": "adr",
            "status": "proposed",
            "tie": "src/pay.py#pay constrained_by",
            "by": first["by"],
            "source": first["source"],
            "at": first["at"],
        }
        assert first["by"]
        assert len(first["at"]) == len("2026-01-31")
        assert {one["id"] for one in answer["facts"]} >= {"A-1", "R-1", "R-2"}
        assert answer["omitted"]["scenario"] > 20
        assert answer["omitted"]["retired fact"] == 1


def test_an_entity_comes_with_its_acceptance_criteria_in_at_most_800_tokens(paid):
    with agent(paid.root) as found:
        result = found.result("kb_query", {"context": {"ids": ["R-1"]}})
        assert size(result) <= CONTEXT_TOKENS == 800
        facts = json.loads(text_of(result))["facts"]
        assert facts[0]["id"] == "R-1"
        assert {one["type"] for one in facts} >= {"req", "scenario", "test", "flag", "symbol"}


@pytest.mark.parametrize("budget", [MIN_CONTEXT_TOKENS, 137, 300, MAX_CONTEXT_TOKENS])
def test_an_answer_is_never_above_its_budget_and_counts_what_is_left_out(paid, budget):
    with agent(paid.root) as found:
        whole = found.call("kb_query", context={"paths": ["src/pay.py"], "budget": MAX_CONTEXT_TOKENS})
        result = found.result("kb_query", {"context": {"paths": ["src/pay.py"], "budget": budget}})
        assert size(result) <= budget
        answer = json.loads(text_of(result))
        left = sum(answer["omitted"].values()) - answer["omitted"]["retired fact"]
        assert len(answer["facts"]) + left == len(whole["facts"])


def test_a_line_means_the_symbol_around_it_and_a_changed_one_means_it_in_the_diff(paid):
    commit_all(paid.root)
    with agent(paid.root) as found:
        line = found.call("kb_query", context={"paths": ["src/pay.py:6"]})
        assert {one["id"] for one in line["facts"]} == {"R-2", "src/pay.py#refund"}
        assert found.call("kb_query", context={"diff": True})["facts"] == []
        (paid.root / "src/pay.py").write_text(CODE.replace("refund(): pass", "refund(): return 1"))
        changed = found.call("kb_query", context={"diff": True})
        assert {one["id"] for one in changed["facts"]} == {"R-2", "src/pay.py#refund"}
        assert [one["tie"] for one in changed["facts"] if one["type"] == "symbol"] == ["modified"]
        (paid.root / "src/pay.py").unlink()
        gone = found.call("kb_query", context={"diff": True})
        assert {"A-1", "R-1", "R-2"} <= {one["id"] for one in gone["facts"]}


def test_what_is_unknown_is_answered_with_the_nearest(paid):
    with agent(paid.root) as found:
        answer = found.call("kb_query", context={"paths": ["lib/pay.py", "src"], "ids": ["nobody"]})
        assert answer["facts"] == []
        assert answer["unknown"] == [
            {"unknown": "nobody"},
            {"unknown": "lib/pay.py", "nearest": ["src/pay.py"]},
            {"unknown": "src", "nearest": ["src/pay.py"]},
        ]


def test_several_questions_share_a_budget(paid):
    queries = [{"context": {"paths": ["src/pay.py"]}}, {"text": "receipt", "fields": ["title"]}, {"type": "scenario"}]
    with agent(paid.root) as found:
        result = found.result("kb_query", {"queries": queries, "context": {"budget": 700}})
        assert size(result) <= 700
        first, second, third = json.loads(text_of(result))["answers"]
        assert first["facts"]
        assert [one["id"] for one in second["entities"]] == ["R-1"]
        assert third["entities"]
        assert third["next_cursor"]
        refused = found.refused("kb_query", queries=queries, context={"budget": 100})
        assert (refused["code"], refused["details"][0]["path"]) == ("invalid_query", "$.context.budget")
        assert refused["hint"] == "Give at least 200 for each query, or leave `context` out."
        mixed = found.refused("kb_query", queries=queries, context={"paths": ["a"], "budget": 700})
        assert mixed["details"] == [{"path": "$.context.paths", "code": "beside_queries"}]


@pytest.mark.parametrize(
    ("given", "path", "code"),
    [
        ({"context": {"path": ["a"]}}, "$.context.path", "unknown_argument"),
        ({"context": {"paths": "a"}}, "$.context.paths", "wrong_type"),
        ({"context": {"budget": 400}}, "$.context", "missing_argument"),
        ({"context": {"diff": True, "budget": 1}}, "$.context.budget", "out_of_range"),
        ({"context": {"ids": ["x"] * 501}}, "$.context", "too_many"),
        ({"context": {"diff": True}, "type": "req"}, "$.type", "beside_context"),
        ({"context": {}}, "$.context", "empty"),
    ],
)
def test_a_wrong_context_is_refused_with_its_place(kb, given, path, code):
    assert kb.refused("kb_query", **given)["details"] == [{"path": path, "code": code}]


def test_the_resource_answers_as_the_tool_does(paid):
    commit_all(paid.root)
    (paid.root / "src/pay.py").write_text(CODE.replace("refund(): pass", "refund(): return 1"))
    with agent(paid.root) as found:
        listed = found._portal.call(found._client.list_resource_templates).resource_templates
        assert "kb://context{?paths,budget}" in [one.uri_template for one in listed]
        for uri, given in (
            ("kb://context?paths=src%2Fpay.py,R&budget=300", {"paths": ["src/pay.py", "R"], "budget": 300}),
            ("kb://context", {"diff": True}),
            ("kb://context?budget=150", {"diff": True, "budget": 150}),
        ):
            assert read(found, uri) == text_of(found.result("kb_query", {"context": given}))
        for uri in ("kb://context?path=a", "kb://context?budget=x", "kb://context?budget=5"):
            with pytest.raises(MCPError, match=r"URI|budget") as refused:
                read(found, uri)
            assert refused.value.code == types.INVALID_PARAMS


def test_who_wrote_a_fact_and_through_what_are_of_its_last_change(project):
    project.apply(entities=[{"type": "note", "title": "t", "attributes": {"file": "a.py"}}])
    with agent(project.root) as found:
        [before] = found.call("kb_query", context={"paths": ["a.py"]})["facts"]
        found.call("kb_upsert", entities=[{"id": before["id"], "title": "u"}])
        [after] = found.call("kb_query", context={"paths": ["a.py"]})["facts"]
        [row] = found.call("kb_query", ids=[before["id"]])["entities"]
    [record] = project.view().rows("select actor, source from record order by seq desc limit 1")
    assert before["source"] != after["source"]
    assert (after["by"], after["source"]) == record
    assert (row["by"], "source" in row) == (after["by"], False)  # the channel is that of the agent


def test_a_former_id_means_the_entity_under_its_present_one(paid):
    with agent(paid.root) as found:
        found.call("kb_upsert", rename={"R-1": "R-9"})
        assert found.call("kb_query", context={"ids": ["R-1"]})["facts"][0]["id"] == "R-9"
