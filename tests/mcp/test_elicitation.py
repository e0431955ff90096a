"""Decisions that an agent may not make: a person is asked where the client offers it, and it is refused otherwise."""

from __future__ import annotations

from typing import Any

import mcp_types as types
import msgspec
import pytest

from kbcore.errors import NeedsPerson, StaleBase
from kbcore.sync.overlay import WorktreeFiles
from kbmcp.tools.argument_models import HistoryArguments
from kbmcp.tools.call import Client as ClientName
from kbmcp.tools.history_request import read_request
from kbmcp.tools.undo import revert_records
from tests.mcp.agents import MODES, WAIT_S, Agent, agent, direct, raw
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project


class Person:
    """A person who answers questions in one way, and remembers them."""

    def __init__(self, action: str, content: dict[str, Any] | None = None) -> None:
        self.asked = list[str]()
        self.answer = types.ElicitResult(action=action, content=content)

    async def __call__(self, _: Any, params: Any) -> types.ElicitResult:
        self.asked.append(params.message)
        assert set(params.requested_schema["properties"]) == {"confirm"}
        return self.answer


def confirming() -> Person:
    return Person("accept", {"confirm": True})


@pytest.fixture
def contested(project: Project) -> Project:
    """Return a project in which record 2 cannot be undone without a loss: record 3 changed the same."""
    for title in ("first", "second", "third"):
        project.apply(entities=[{"id": "A", "type": "req", "title": title, "status": "open"}])
    return project


FORCED = {"action": "revert", "seq": 2, "force": True}


def title(found: Agent) -> str:
    return found.call("kb_query", ids=["A"], fields=["title"])["entities"][0]["title"]


@pytest.mark.parametrize("mode", MODES)
def test_newer_values_are_lost_only_where_a_person_confirms_it(contested, mode):
    person = confirming()
    with agent(contested.root, mode=mode, person=person) as found:
        assert found.refused("kb_history", action="revert", seq=2)["code"] == "revert_conflict"
        assert person.asked == []
        assert found.call("kb_history", **FORCED)["updated"] == ["A"]
        assert title(found) == "first"
    [question] = person.asked
    assert question.startswith("tester/1.2 asks to undo record 2 although newer values are lost by it, on the branch")
    assert question.endswith(
        'Record 3 is the last one that changed any of it. Record 3 changed `title` of A from "second" to "third".'
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "person", [Person("decline"), Person("cancel"), Person("accept", {"confirm": False}), Person("accept")],
    ids=["decline", "cancel", "unticked", "empty"],
)  # fmt: skip
def test_nothing_is_written_where_the_person_does_not_confirm(contested, mode, person):
    with agent(contested.root, mode=mode, person=person) as found:
        refused = found.refused("kb_history", **FORCED)
        assert (refused["code"], refused["applied"], refused["retryable"]) == ("needs_person", "no", False)
        assert "did not confirm" in refused["hint"]
        assert title(found) == "third"


@pytest.mark.parametrize("mode", MODES)
def test_a_client_that_cannot_ask_is_told_so_and_how_a_person_does_it(contested, mode):
    with agent(contested.root, mode=mode) as found:
        refused = found.refused("kb_history", **FORCED)
        assert refused["code"] == "needs_person"
        assert "elicitation" in refused["hint"]
        assert "kb revert --help" in refused["hint"]
        assert found.call("kb_history", **FORCED, dry_run=True)["updated"] == ["A"]
        assert title(found) == "third"


def test_a_record_between_question_and_answer_refuses_the_undo_and_stays(contested):
    class Slow(Person):
        async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
            contested.apply(entities=[{"id": "A", "title": f"newer {len(self.asked)}"}])
            return await super().__call__(context, params)

    with agent(contested.root, person=Slow("accept", {"confirm": True})) as found:
        refused = found.refused("kb_history", **FORCED)
        assert (refused["code"], refused["applied"]) == ("stale_base", "no")
        assert "then send the request again" in refused["hint"]
        assert title(found) == "newer 0"


def test_another_loss_with_the_same_words_is_another_question(project):
    """A value that is lost only after the question may take the place of another one that no longer is."""
    first = {"type": "req", "title": "first", "status": "open", "owner": "ann"}
    project.apply(entities=[{"id": "A"} | first])
    project.apply(entities=[{"id": "A", "title": "second", "status": "done", "owner": "bob"}])
    project.apply(entities=[{"id": "A", "title": "third", "owner": "cid"}])

    class Slow(Person):
        async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
            project.apply(entities=[{"id": "A", "title": "second", "status": "blocked"}])
            return await super().__call__(context, params)

    with agent(project.root, person=Slow("accept", {"confirm": True})) as found:
        assert found.refused("kb_history", **FORCED)["code"] == "stale_base"
        assert found.call("kb_query", ids=["A"], fields=["status"])["entities"][0]["status"] == "blocked"


def test_an_unrelated_record_between_question_and_answer_changes_nothing(contested):
    class Slow(Person):
        async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
            contested.apply(entities=[{"id": "B", "type": "req", "title": "other", "status": "open"}])
            return await super().__call__(context, params)

    with agent(contested.root, person=Slow("accept", {"confirm": True})) as found:
        assert found.call("kb_history", **FORCED)["updated"] == ["A"]


def test_a_record_after_the_last_look_refuses_the_undo_too(contested):
    """Between the look at what is lost and the record of the undo there is no lock."""

    class Files(WorktreeFiles):
        reads = 0

        def read(self, *arguments: Any, **named: Any) -> Any:
            self.reads += 1
            if self.reads == 2:  # the first one is of the look
                contested.apply(entities=[{"id": "A", "title": "newer"}])
            return super().read(*arguments, **named)

    with direct(contested.root) as found:
        service, client = found.service, ClientName("direct", "1")
        with service.open(client, service.arrive(), writes=True, dry_run=False) as call:
            request = read_request(call, HistoryArguments(**FORCED))
            with pytest.raises(NeedsPerson) as asked:
                revert_records(call, request)
            now = msgspec.structs.replace(call, confirmed=asked.value.question, files=Files())
            with pytest.raises(StaleBase, match=r"^'A' changed at seq 4, after 3"):
                revert_records(now, request)
    assert contested.node("A").fields["title"] == "newer"


def test_nobody_is_asked_where_nothing_is_lost(contested):
    person = Person("decline")
    with agent(contested.root, person=person) as found:
        assert found.call("kb_history", action="revert", seq=3, force=True)["applied"] is True
        assert person.asked == []


def test_an_answer_counts_for_the_question_that_was_asked_alone(contested):
    """A client sends the answer with the call; what it says of the question is not believed."""
    answer = {"confirm": {"action": "accept", "content": {"confirm": True}}}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }
    with raw(contested.root) as server:

        def call(key: int, **more: Any) -> dict[str, Any]:
            params = {"name": "kb_history", "arguments": FORCED, "_meta": meta, **more}
            server.send("tools/call", params, key)
            return server.reply(key)["result"]

        forged = call(1, inputResponses=answer, requestState="forged")
        assert forged["resultType"] == "input_required"
        asked = call(2)
        assert list(asked["inputRequests"]) == ["confirm"]
        contested.apply(entities=[{"id": "A", "type": "req", "title": "fourth", "status": "open"}])
        stale = call(3, inputResponses=answer, requestState=asked["requestState"])
        assert stale["resultType"] == "input_required", "the question is another one by now"
        done = call(4, inputResponses=answer, requestState=stale["requestState"])
        assert done["structuredContent"]["updated"] == ["A"]
        again = call(5, inputResponses=answer, requestState=stale["requestState"])
        assert again.get("resultType") != "input_required" or again["requestState"] != stale["requestState"]


def test_a_server_ends_while_a_person_is_being_asked(contested):
    with raw(contested.root) as server:
        client = {"name": "raw", "version": "1"}
        hello = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": client}
        server.send("initialize", hello, "hello")
        server.reply("hello")
        server.send("notifications/initialized")
        server.call(1, "kb_history", FORCED)
        server._next(lambda one: one.get("method") == "elicitation/create", "a question", WAIT_S)
        assert server.close() == 0


SECRET = "the words that must go"


@pytest.fixture
def leaked(project: Project) -> Project:
    """Return a project in which an entity has a text in two records that must go."""
    project.apply(entities=[{"id": "A", "type": "req", "title": SECRET, "status": "open"}])
    project.apply(entities=[{"id": "A", "type": "req", "title": "t", "status": "open"}])
    return project


def journals(project: Project) -> str:
    return "".join(path.read_text() for path in stores_at(project.root).rglob("*.jsonl"))


@pytest.mark.parametrize("mode", MODES)
def test_an_entity_is_purged_from_the_history_only_where_a_person_confirms_it(leaked, mode):
    person, call = confirming(), {"entities": [{"id": "A", "expected_version": 2}], "purge": True}
    with agent(leaked.root, mode=mode, person=person) as found:
        shown = found.call("kb_delete", **call, dry_run=True)
        assert (shown["applied"], shown["deleted"], shown["purge"]["stores"]) == (False, ["A"], 1)
        assert person.asked == []
        done = found.call("kb_delete", **call)
        assert (done["deleted"], done["purge"]["ok"]) == (["A"], True)
        assert found.call("kb_query")["total"] == 0
        assert found.call("kb_upsert", entities=[{"type": "note", "title": "still there"}])["created"] == ["NOTE-1"]
    [question] = person.asked
    assert "to delete 'A' and to take its values out of 2 records of 1 store" in question
    assert SECRET not in journals(leaked)


def test_nothing_is_purged_without_a_person_or_of_several_entities(leaked):
    with agent(leaked.root) as found:
        before = journals(leaked)
        refused = found.refused("kb_delete", entities=[{"id": "A", "expected_version": 2}], purge=True)
        assert refused["code"] == "needs_person"
        stale = found.refused("kb_delete", entities=[{"id": "A", "expected_version": 1}], purge=True)
        assert stale["code"] == "stale_base"
        two = [{"id": key, "expected_version": 1} for key in ("A", "B")]
        assert found.refused("kb_delete", entities=two, purge=True)["details"][0]["path"] == "$.purge"
        assert journals(leaked) == before
        assert SECRET in before
