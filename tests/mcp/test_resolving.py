"""Contested values of two branches, settled by ``kb_upsert`` and by ``execute_kip`` over the wire."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kbcore.ids import link_id
from kbcore.share.merging import merge
from kbcore.storage.fs import RealFs
from tests.mcp.agents import MODES, Agent, agent
from tests.support.repository.project import AUTHOR, Project

A = {"id": "A", "type": "symbol", "title": "None", "status": "active"}
B = {**A, "id": "B"}
EDGE = {"type": "relates_to", "kind": "see_also", "from": "A", "to": "B"}
LINK = link_id("relates_to", "see_also", "A", "B")
KIP = 'UPSERT { CONCEPT { {type: "Symbol", name: "A"} '


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A repository whose branches main and topic give four fields other values; main has what topic has."""
    made = Project(tmp_path / "a project", fs=RealFs())
    made.apply(entities=[A, B], edges=[EDGE])
    for branch, side, number in (("topic", "Theirs", 0.2), ("main", "Ours", 0.9)):
        made.switch(branch, create=branch == "topic")
        fields = {"title": side, "owner": side, "attributes": {"tier": side}}
        made.apply(entities=[{"id": "A", **fields}], edges=[{**EDGE, "confidence": number}])
        if branch == "topic":
            made.switch("main")
    merge(made.workspace(), "main", "topic", AUTHOR)
    yield made
    made.close()


@pytest.fixture
def mode() -> str:
    return "legacy"


@pytest.fixture
def found(project: Project, mode: str) -> Iterator[Agent]:
    with agent(project.root, "--toolsets", "core,kip", mode=mode) as one:
        yield one


def entity(found: Agent) -> dict[str, Any]:
    [shown] = found.call("kb_query", ids=["A"])["entities"]
    return dict(shown)


def edge(found: Agent) -> dict[str, Any]:
    [shown] = found.call("kb_query", type="edge", where=["kind=see_also"])["edges"]
    return dict(shown)


def number_of(element: dict[str, Any], field: str, value: Any) -> int:
    listed = [one["value"] for one in element["contested"][field]]
    return listed.index(value) + 1


def contested(found: Agent) -> set[str]:
    return {*entity(found).get("contested", {}), *edge(found).get("contested", {})}


ALL = {"title", "owner", "attributes.tier", "confidence"}


def holds_on_topic(project: Project, **fields: Any) -> None:
    """Insist that the decision came after both: topic has it, and no conflict, once it has what main has."""
    merge(project.workspace(), "topic", "main", AUTHOR)
    [node] = project.view("topic").nodes(["A"])
    assert {name: node.fields.get(name) for name in fields} == fields
    assert not [name for name in node.fields if name.removeprefix("contested.") in fields and "contested" in name]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("value", ["Theirs", "Ours"])
def test_a_number_takes_a_value(project: Project, found: Agent, value: str) -> None:
    assert contested(found) == ALL
    number = number_of(entity(found), "title", value)

    answer = found.call("kb_upsert", entities=[{"id": "A", "resolve": {"title": number}}])

    assert answer["updated"] == ["A"]
    assert entity(found)["title"] == value
    assert contested(found) == ALL - {"title"}
    holds_on_topic(project, title=value)


@pytest.mark.parametrize("value", ["Both", "Theirs", "Ours"])
def test_a_value_is_written_with_the_seq_that_shows_the_conflict(project: Project, found: Agent, value: str) -> None:
    seq = found.call("kb_query", ids=["A"])["seq"]
    item = {"id": "A", "title": value, "attributes": {"tier": value}}

    error = found.refused("kb_upsert", entities=[item])
    assert {one["path"] for one in error["details"]} == {"$.entities[0].title", "$.entities[0].attributes.tier"}
    assert {one["code"] for one in error["details"]} == {"contested"}
    assert found.refused("kb_upsert", entities=[item], expected_seq=seq - 1)["code"] == "stale_base"
    found.call("kb_upsert", entities=[item], expected_seq=seq)

    assert (entity(found)["title"], entity(found)["attributes"]["tier"]) == (value, value)
    assert contested(found) == {"owner", "confidence"}
    holds_on_topic(project, **{"title": value, "attributes.tier": value})


def test_a_value_is_taken_away_with_the_seq(project: Project, found: Agent) -> None:
    seq = found.call("kb_query", ids=["A"])["seq"]

    found.call("kb_upsert", entities=[{"id": "A", "owner": None, "attributes": {"tier": None}}], expected_seq=seq)

    assert contested(found) == {"title", "confidence"}
    holds_on_topic(project, **{"owner": None, "attributes.tier": None})


def test_what_is_shown_as_taken_away_is_taken_away_with_the_seq(found: Agent, project: Project) -> None:
    found.call("kb_upsert", entities=[{"id": "A", "resolve": {"owner": 1, "attributes.tier": 1}}])
    merge(project.workspace(), "topic", "main", AUTHOR)
    for branch, value in (("topic", None), ("main", "New")):
        project.switch(branch)
        project.apply(entities=[{"id": "A", "owner": value, "attributes": {"tier": value}}])
    merge(project.workspace(), "main", "topic", AUTHOR)
    answer = found.call("kb_query", ids=["A"])
    gone = {"id": "A", "owner": None, "attributes": {"tier": None}}
    assert found.refused("kb_upsert", entities=[gone])["details"][0]["code"] == "contested"

    found.call("kb_upsert", entities=[gone], expected_seq=answer["seq"])

    assert contested(found) == {"title", "confidence"}
    holds_on_topic(project, **{"owner": None, "attributes.tier": None})


@pytest.mark.parametrize(
    ("choices", "code", "said"),
    [
        ({"title": 3}, "out_of_range", "There is no value 3 of 'title' of 'A'; there are 2."),
        ({"title": 0}, "out_of_range", "There is no value 0"),
        ({"title": -1}, "out_of_range", "There is no value -1"),
        ({"title": "keep"}, "out_of_range", "There is no value 'keep'"),
        ({"status": 1}, "not_contested", "'status' of 'A' is not contested."),
        ({"deleted": "keep"}, "not_contested", "'deleted' of 'A' is not contested."),
        ({"title": "Ours"}, "wrong_type", "`resolve` must map fields to numbers of values."),
        ({"title": True}, "wrong_type", "`resolve` must map"),
        (["title"], "wrong_type", "`resolve` must map"),
    ],
)
def test_a_choice_that_there_is_not_is_refused(found: Agent, choices: Any, code: str, said: str) -> None:
    seq = found.call("kb_query", limit=1)["seq"]

    error = found.refused("kb_upsert", entities=[{"id": "A", "resolve": choices}])

    [problem] = error["details"]
    assert (problem["code"], said in error["message"]) == (code, True), error
    field = "" if code == "wrong_type" else f".{next(iter(choices))}"
    assert problem["path"] == f"$.entities[0].resolve{field}"
    assert "kb resolve" not in error["hint"]
    assert found.call("kb_query", limit=1)["seq"] == seq


def test_a_new_entity_has_nothing_to_choose(found: Agent) -> None:
    error = found.refused("kb_upsert", entities=[{**A, "id": "C", "resolve": {"title": 1}}])
    assert [one["code"] for one in error["details"]] == ["not_contested"]


def test_a_field_is_not_written_and_chosen_at_once(found: Agent) -> None:
    for field in ({"title": "Both"}, {"owner": None}):
        item = {"id": "A", **field, "resolve": dict.fromkeys(field, 1)}
        for frame in ({}, {"expected_seq": found.call("kb_query", limit=1)["seq"]}):
            error = found.refused("kb_upsert", entities=[item], **frame)
            assert "contradiction" in {one["code"] for one in error["details"]}


def test_a_choice_for_one_field_does_not_settle_another_one_that_is_written(found: Agent) -> None:
    error = found.refused("kb_upsert", entities=[{"id": "A", "owner": "me", "resolve": {"title": 1}}])
    assert [one["path"] for one in error["details"]] == ["$.entities[0].owner"]
    found.call("kb_upsert", entities=[{"id": "A", "status": "active", "tags": ["x"], "resolve": {"title": 1}}])
    assert contested(found) == ALL - {"title"}


def test_a_field_of_an_edge_is_settled_by_number_and_by_value(project: Project, found: Agent) -> None:
    number = number_of(edge(found), "confidence", 0.2)
    error = found.refused("kb_upsert", edges=[{**EDGE, "confidence": 0.7}])
    assert error["details"][0]["path"] == "$.edges[0].confidence"
    hint = error["hint"]
    assert f'kb_query with `type` edge and `where` ["id={LINK}"]' in hint
    assert found.call("kb_query", type="edge", where=[f"id={LINK}"])["total"] == 1

    assert found.call("kb_upsert", edges=[{**EDGE, "resolve": {"confidence": number}}])["edges"]["updated"] == 1

    assert (edge(found)["confidence"], contested(found)) == (0.2, ALL - {"confidence"})
    merge(project.workspace(), "topic", "main", AUTHOR)
    [link] = project.view("topic").links([LINK])
    assert [name for name in link.fields if "contested" in name] == []
    assert link.fields["confidence"] == 0.2


def test_an_edge_takes_a_value_with_the_seq(found: Agent) -> None:
    seq = found.call("kb_query", limit=1)["seq"]
    found.call("kb_upsert", edges=[{**EDGE, "confidence": 0.7}], expected_seq=seq)
    assert (edge(found)["confidence"], contested(found)) == (0.7, ALL - {"confidence"})


def test_a_number_is_sent_with_the_seq_of_the_list_that_it_is_from(found: Agent) -> None:
    seq = found.call("kb_query", ids=["A"])["seq"]
    found.call("kb_upsert", entities=[{"id": "A", "tags": ["moved"]}])
    item = {"id": "A", "resolve": {"title": 2}, "owner": "me"}

    assert found.refused("kb_upsert", entities=[item], expected_seq=seq)["code"] == "stale_base"
    assert contested(found) == ALL
    found.call("kb_upsert", entities=[item], expected_seq=seq + 1)

    assert contested(found) == {"attributes.tier", "confidence"}


def test_a_dry_run_answers_as_the_real_one_and_settles_nothing(found: Agent) -> None:
    items = {"entities": [{"id": "A", "resolve": {"title": 2}}], "edges": [{**EDGE, "resolve": {"confidence": 2}}]}

    tried = found.call("kb_upsert", **items, dry_run=True)
    assert contested(found) == ALL
    done = found.call("kb_upsert", **items)

    same = ("created", "updated", "unchanged", "edges")
    assert {name: tried[name] for name in same} == {name: done[name] for name in same}
    assert contested(found) == {"owner", "attributes.tier"}


def test_an_entity_that_one_side_deleted_is_kept(project: Project, found: Agent) -> None:
    merge(project.workspace(), "topic", "main", AUTHOR)
    project.switch("topic")
    project.delete(entities=[{"id": "B"}], cascade=True)
    project.switch("main")
    project.apply(entities=[{"id": "B", "owner": "ann"}])
    merge(project.workspace(), "main", "topic", AUTHOR)
    [shown] = found.call("kb_query", where=["contested=true", "id=B"])["entities"]
    assert [*shown["contested"]] == ["deleted"]
    wrong = found.refused("kb_upsert", entities=[{"id": "B", "resolve": {"deleted": 1}}])
    assert (wrong["details"][0]["code"], "kb_delete" in wrong["hint"]) == ("bad_value", True)

    found.call("kb_upsert", entities=[{"id": "B", "resolve": {"deleted": "keep"}}])

    assert "contested" not in found.call("kb_query", ids=["B"])["entities"][0]


def test_every_hint_names_calls_that_settle(found: Agent) -> None:
    hint = found.refused("kb_upsert", entities=[{"id": "A", "title": "x"}])["hint"]
    assert hint == (
        'Read the values with kb_query with `ids` ["A"], then kb_upsert with '
        '{"entities": [{"id": "A", "resolve": {"title": N}}]}. '
        "Or send the `seq` of the answer with the values as `expected_seq`."
    )
    remedies = {one["hint"] for one in found.call("kb_check", rules=["conflict"], limit=10)["violations"]}
    values = found.call("kb_query", ids=["A"])["entities"][0]["contested"]["title"]
    said = [
        f'kb_upsert with {{"entities": [{{"id": "A", "resolve": {{"title": {number}}}}}]}} takes "{one["value"]}"'
        for number, one in enumerate(values, 1)
    ]
    assert f"Decide: {', '.join(said)}." in remedies
    edge = '{"type": "relates_to", "from": "A", "to": "B", "kind": "see_also", "resolve": {"confidence": 1}}'
    assert any(f'kb_upsert with {{"edges": [{edge}]}} takes 0.' in one for one in remedies)
    hint = found.refused("kb_query", type="conflict")["hint"]
    assert f"`title` of A: {', '.join(said)}." in hint


def test_a_server_that_only_reads_asks_the_user(project: Project, mode: str) -> None:
    with agent(project.root, "--read-only", mode=mode) as found:
        remedies = {one["hint"] for one in found.call("kb_check", rules=["conflict"], limit=10)["violations"]}
        assert any('ask the user to run `kb resolve A title --take 1` takes "' in one for one in remedies)


@pytest.mark.parametrize("mode", MODES)
def test_kip_settles_by_version_and_by_number_and_says_how(project: Project, found: Agent) -> None:
    plain = found.result("execute_kip", {"command": KIP + 'SET ATTRIBUTES { title: "Both" } } }'}).structured_content
    assert plain["error"]["code"] == "KIP_2002"
    assert 'WITH METADATA { _resolve: { "title": 1 } }' in plain["error"]["hint"]
    assert "kb resolve" not in plain["error"]["hint"]
    find = {"command": 'FIND(?x.metadata) WHERE { ?x {type: "Symbol", name: "A"} }'}
    [metadata] = found.result("execute_kip_readonly", find).structured_content["result"]
    version, numbers = metadata["_version"], metadata["_contested"]
    assert {*numbers} == ALL - {"confidence"}

    commands = [
        f'{KIP} EXPECT VERSION {version} SET ATTRIBUTES {{ title: "Both" }} }} }}',
        {"command": f"{KIP} }} WITH METADATA {{ _resolve: :choices }} }}", "parameters": {"choices": {"owner": 2}}},
        f'{KIP} }} WITH METADATA {{ _resolve: {{ "attributes.tier": 1 }} }} }}',
    ]
    tried = found.result("execute_kip", {"commands": commands, "dry_run": True}).structured_content["result"]
    assert [one["result"]["dry_run"] for one in tried] == [True] * 3
    assert contested(found) == ALL
    result = found.result("execute_kip", {"commands": commands})

    assert not result.is_error
    assert contested(found) == {"confidence"}
    owner, tier = numbers["owner"][1]["value"], numbers["attributes.tier"][0]["value"]
    assert (entity(found)["title"], entity(found)["owner"], entity(found)["attributes"]) == (
        "Both", owner, {"tier": tier},
    )  # fmt: skip
    holds_on_topic(project, **{"title": "Both", "owner": owner, "attributes.tier": tier})


def test_kip_refuses_a_number_that_there_is_not(found: Agent) -> None:
    command = f"{KIP} }} WITH METADATA {{ _resolve: {{ title: 3 }} }} }}"
    error = found.result("execute_kip", {"command": command}).structured_content["error"]
    assert (error["code"], error["message"][:25]) == ("KIP_2002", "There is no value 3 of 't")
    assert "_contested" in error["hint"]
    assert contested(found) == ALL


def test_things_that_got_one_id_are_separated_once_and_only_as_they_were_read(tmp_path: Path) -> None:
    made = Project(tmp_path / "a project", fs=RealFs())
    made.apply(entities=[A])
    made.switch("topic", create=True)
    made.apply(entities=[{**B, "title": "Theirs"}])
    made.switch("main")
    made.apply(entities=[{**B, "title": "Ours"}])
    merge(made.workspace(), "main", "topic", AUTHOR)
    made.close()
    with agent(made.root, mode="legacy") as one:
        [violation] = one.call("kb_check", rules=["conflict"])["violations"]
        [old] = re.findall(r"`rename` .*\"(B@[0-9a-f]{8})\"", violation["hint"])
        seq = one.call("kb_query", ids=["B"])["seq"]
        assert one.refused("kb_upsert", rename={old: "C"}, expected_seq=seq - 1)["code"] == "stale_base"
        asked = {"rename": {old: "C"}, "expected_seq": seq, "changeset_id": "separate-1"}
        assert one.call("kb_upsert", **asked)["seq"] == seq + 1
        assert one.call("kb_upsert", **asked)["seq"] == seq + 1
        assert one.refused("kb_upsert", **asked | {"expected_seq": seq + 1})["code"] == "changeset_id_reused"
        titles = {found["id"]: found["title"] for found in one.call("kb_query", ids=["B", "C"])["entities"]}
        assert sorted(titles.items()) in ([("B", "Ours"), ("C", "Theirs")], [("B", "Theirs"), ("C", "Ours")])
        assert one.call("kb_check", rules=["conflict"])["violations"] == []
