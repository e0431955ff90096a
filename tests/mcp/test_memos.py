"""Notes and tasks over MCP: remembered in one call each, without a schema and without an id."""

from __future__ import annotations

import pytest

from kbcore.text.tokens import tokens_of
from tests.mcp.agents import MODES, agent


def note(title, **fields):
    return {"type": "note", "title": title, **fields}


def tasks_of(found, **more):
    answer = found.call("kb_query", type="task", where=["status!=done"], sort="order", fields=["title"], **more)
    return [one["title"] for one in answer["entities"]]


@pytest.mark.parametrize("mode", MODES)
def test_a_sentence_is_remembered_by_its_type_and_title_alone(project, mode):
    with agent(project.root, mode=mode) as found:
        answer = found.call("kb_upsert", entities=[note("Sessions end after 30 minutes", attributes={"file": "a.py"})])
        assert (answer["created"], answer["ids"], answer["warnings"]) == (["NOTE-1"], {"entities[0]": "NOTE-1"}, [])
        [shown] = found.call("kb_query", ids=["NOTE-1"])["entities"]
        assert (shown["type"], shown["status"]) == ("note", "active")
        context = found.call("kb_query", context={"paths": ["a.py"]})
        assert [one["fact"] for one in context["facts"]] == ["Sessions end after 30 minutes"]
        assert "unknown" not in context


def test_a_list_of_tasks_takes_one_call_to_add_to_to_read_to_move_and_to_close(project):
    with agent(project.root) as found:
        added = found.call("kb_upsert", entities=[{"type": "task", "title": one} for one in ("A", "B", "C")])
        assert added["ids"] == {f"entities[{at}]": f"TASK-{at + 1}" for at in range(3)}
        assert tasks_of(found) == ["A", "B", "C"]
        found.call("kb_upsert", entities=[{"id": "TASK-3", "attributes": {"order": 1.5}}])
        assert tasks_of(found) == ["A", "C", "B"]
        found.call("kb_upsert", entities=[{"id": "TASK-1", "status": "done"}])
        assert tasks_of(found) == ["C", "B"]
        found.call("kb_upsert", entities=[{"type": "task", "title": "D"}])
        assert tasks_of(found) == ["C", "B", "D"]


def test_an_entity_of_any_type_gets_the_next_id_of_its_type(project):
    with agent(project.root) as found:
        project.apply(entities=[{"id": "R-007", "type": "req", "title": "t", "status": "open"}])
        wanted = {"type": "req", "title": "u", "status": "open"}
        assert found.call("kb_upsert", entities=[wanted], dry_run=True)["created"] == ["R-008"]
        call = {"entities": [wanted, note("n")], "changeset_id": "once"}
        first = found.call("kb_upsert", **call)
        assert first["ids"] == {"entities[0]": "R-008", "entities[1]": "NOTE-1"}
        again = found.call("kb_upsert", **call)
        assert (again["duplicate"], again["ids"]) == (True, first["ids"])


@pytest.mark.parametrize(
    ("entity", "path"),
    [
        ({"title": "t"}, "$.entities[0].id"),
        ({"type": "req", "title": "t"}, "$.entities[0].status"),
        ({"type": "note"}, "$.entities[0].title"),
        ({"type": "noot", "title": "t"}, "$.entities[0].type"),
        ({"type": "note", "title": "t", "status": None}, "$.entities[0].status"),
        ({"type": "task", "title": "t", "attributes": {"order": "first"}}, "$.entities[0].attributes.order"),
        ({"type": "Person", "title": "t"}, "$.entities[0].id"),
    ],
)
def test_what_is_missing_is_named_by_its_place_and_takes_no_id(project, entity, path):
    with agent(project.root) as found:
        refused = found.refused("kb_upsert", entities=[entity])
        assert path in [one["path"] for one in refused["details"]]
        assert found.call("kb_upsert", entities=[note("n")])["created"] == ["NOTE-1"]


@pytest.mark.parametrize(
    ("entity", "hint"),
    [
        ({"title": "t"}, "Add the `id` of what is to be changed; what is new needs a `type`, and KB gives the id."),
        ({"type": "note"}, "Add `title`; a note needs title."),
        ({"type": "req"}, "Add `title`; a req needs title, status."),
        ({"type": "task", "title": "t", "order": 1}, "It is an attribute: put `order` under `attributes`."),
    ],
)
def test_the_remedy_names_what_the_client_has_to_add(project, entity, hint):
    with agent(project.root) as found:
        refused = found.refused("kb_upsert", entities=[entity])
        assert hint in [refused["hint"], *(one.get("hint") for one in refused["details"])]


def test_an_update_names_its_id(project):
    with agent(project.root) as found:
        refused = found.refused("kb_upsert", entities=[note("n")], mode="update")
        assert refused["details"][0]["path"] == "$.entities[0].id"


def test_notes_are_seen_by_kip(project):
    with agent(project.root, "--toolsets", "core,kip") as found:
        found.call("kb_upsert", entities=[note("n"), {"type": "task", "title": "t"}])
        commands = [
            'FIND(?n.attributes.title) WHERE { ?n {type: "WorkNote"} }',
            'FIND(?t.name) WHERE { ?t {type: "WorkItem"} }',
        ]
        answers = found.call("execute_kip_readonly", commands=commands)["result"]
        assert [one["result"] for one in answers] == [["n"], ["TASK-1"]]


def test_a_note_costs_few_tokens(project):
    with agent(project.root) as found:
        found.call("kb_query", count=True)
        result = found.result("kb_upsert", {"entities": [note("The cache may be deleted at any time")]})
        assert tokens_of(result.content[0].text) <= 120
