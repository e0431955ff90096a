"""A former id means the entity in every tool that reads by id, and the answer says so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mcp.agents import Agent, agent, answer_of
from tests.support.repository.project import Project


def req(key):
    return {"id": key, "type": "req", "title": "T", "status": "open"}


NOW = "'OLD-1' is called 'NEW-1' now."


@pytest.fixture(scope="module")
def renamed(shared: Project) -> Iterator[Agent]:
    """An agent where OLD-1, on which R-2 depends, is called NEW-1: for calls that change nothing."""
    shared.apply(entities=[req("OLD-1"), req("R-2")], edges=[{"type": "depends_on", "from": "R-2", "to": "OLD-1"}])
    with agent(shared.root, "--toolsets", "all") as kb:
        kb.call("kb_upsert", rename={"OLD-1": "NEW-1"})
        yield kb


@pytest.mark.parametrize(
    ("tool", "arguments", "found"),
    [
        ("kb_query", {"ids": ["OLD-1"]}, lambda answer: answer["entities"][0]["id"]),
        ("kb_query", {"where": {"id": "OLD-1"}}, lambda answer: answer["entities"][0]["id"]),
        ("kb_query", {"ids": ["OLD-1"], "impact": True}, lambda answer: answer["entity"]["id"]),
        ("kb_query", {"ids": ["OLD-1"], "coverage": True}, lambda answer: answer["entities"][0]["id"]),
        ("kb_query", {"type": "edge", "where": {"to": "OLD-1"}}, lambda answer: answer["edges"][0]["to"]),
        ("kb_query", {"from": "OLD-1", "reverse": True}, lambda answer: answer["entities"][0]["path"][0]["to"]),
        ("kb_check", {"ids": ["OLD-1"]}, lambda answer: answer["violations"][0]["id"]),
        ("kb_history", {"action": "who", "id": "OLD-1"}, lambda answer: answer["id"]),
        (
            "execute_kip",
            {"command": 'FIND(?a.name) WHERE {?a {id: "OLD-1"}}'},
            lambda answer: answer["result"][0],
        ),
    ],
)
def test_a_former_id_means_the_entity_and_the_answer_says_so(renamed, tool, arguments, found):
    result = renamed.result(tool, arguments)
    assert found(answer_of(result)) == "NEW-1"
    assert [block.text.count(NOW) for block in result.content][-1] == 1


def test_the_history_of_a_renamed_entity_is_whole_under_both_ids(project):
    project.apply(entities=[req("OLD-1")])
    with agent(project.root) as kb:
        kb.call("kb_upsert", rename={"OLD-1": "NEW-1"})
        both = [kb.call("kb_history", action="log", id=one) for one in ("OLD-1", "NEW-1")]
        assert [[one["seq"] for one in answer["records"]] for answer in both] == [[2, 1]] * 2
        assert [answer["total"] for answer in both] == [2, 2]
        page = kb.call("kb_history", action="log", id="NEW-1", limit=1)
        assert kb.call("kb_history", action="log", id="NEW-1", limit=1, cursor=page["next_cursor"])["total"] == 2


@pytest.mark.parametrize(
    "command",
    [
        'UPSERT { CONCEPT ?r { {type: "Requirement", name: "OLD-1"} SET ATTRIBUTES { size: 1 } } }',
        'UPSERT { CONCEPT ?r { {id: "R-2"} SET PROPOSITIONS { ("depends_on", {id: "OLD-1"}) } } }',
        'UPDATE ?r SET ATTRIBUTES { size: 1 } WHERE { ?r {id: "OLD-1"} }',
        'DELETE CONCEPT ?r DETACH WHERE { ?r {name: "OLD-1"} }',
        'DELETE ATTRIBUTES {"title"} FROM ?r WHERE { ?r {name: "OLD-1"} }',
        'DELETE PROPOSITIONS ?l WHERE { ?l ({id: "R-2"}, "depends_on", {id: "OLD-1"}) }',
        'MERGE CONCEPT ?a INTO ?b WHERE { ?a {id: "R-2"} ?b {id: "OLD-1"} }',
        'MERGE CONCEPT ?a INTO ?b WHERE { ?a {type: "Requirement", name: "OLD-1"} ?b {id: "R-2"} }',
    ],
)
def test_a_command_of_kip_that_writes_to_a_former_id_is_refused_with_the_present_one(renamed, command):
    before = renamed.call("kb_query", ids=["NEW-1", "R-2"], edges=True)
    result = renamed.result("execute_kip", {"command": command})
    assert renamed.call("kb_query", ids=["NEW-1", "R-2"], edges=True) == before
    error = answer_of(result)["error"]
    assert result.is_error, result
    assert error["message"].startswith("'OLD-1' is called 'NEW-1' now (line 1, column "), error
    assert (error["code"], error["hint"]) == ("KIP_3002", "Write 'NEW-1'.")


def test_an_id_that_kip_made_of_a_name_is_not_renamed_and_the_name_can_be_changed(project):
    with agent(project.root, "--toolsets", "all") as kb:
        kb.call("execute_kip", command='UPSERT { CONCEPT ?a { {type: "Person", name: "Bo"} } }')
        error = kb.refused("kb_upsert", rename={"Person:Bo": "Person:Robert"})
        assert "made of the type and the name" in error["message"]
        assert "`name`" in error["hint"]
        kb.call("kb_upsert", entities=[{"id": "Person:Bo", "name": "Robert"}])
        found = kb.call("execute_kip", command='FIND(?p.name) WHERE { ?p {type: "Person", name: "Robert"} }')
        assert found["result"] == ["Robert"]
        assert kb.call("kb_upsert", rename={"Person:Bo": "Person:Robert"})["renamed"] == {"Person:Bo": "Person:Robert"}


def test_a_deletion_by_a_former_id_says_the_present_one_in_its_message(project):
    project.apply(entities=[req("OLD-1")])
    with agent(project.root) as kb:
        kb.call("kb_upsert", rename={"OLD-1": "NEW-1"})
        error = kb.refused("kb_delete", entities=[{"id": "OLD-1", "expected_version": 2}])
    assert "'OLD-1' is called 'NEW-1' now" in error["message"]


def test_edges_that_do_not_fit_are_not_said_to_lack_ends(project):
    project.apply(entities=[req("R-1"), {"id": "C-1", "type": "component", "title": "C", "status": "active"}])
    edges = [{"type": "verified_by", "from": "R-1", "to": "C-1"}, {"type": "implements", "from": "R-1", "to": "C-1"}]
    with agent(project.root) as kb:
        error = kb.refused("kb_upsert", edges=edges)
    assert [one["code"] for one in error["details"]] == ["endpoint_type"] * 2
    assert ("missing ends" in error["hint"], "as its `hint` says" in error["hint"]) == (False, True)
