"""Notices to a client: advice in its first answer, what others changed of what it read, log messages."""

from __future__ import annotations

import json

import pytest

from kbcore.text.tokens import tokens_of
from tests.mcp.agents import MODES, agent, raw, text_of
from tests.mcp.test_subscriptions import follower


def entity(key, **fields):
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def advice_of(found, name, **arguments):
    return found.result(name, arguments).structured_content.get("advice")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("options", [[], ["--read-only"], ["--tool-names", "dotted"]])
def test_the_first_answer_of_a_connection_and_no_other_has_advice_of_60_tokens_at_most(project, mode, options):
    project.apply(entities=[entity("A")])
    with agent(project.root, *options, mode=mode) as found:
        assert found.result("kb_query", {"typ": "x"}).is_error
        context = found.result("kb_query", {"context": {"ids": ["A"], "budget": 100}})
        assert tokens_of(text_of(context)) <= 100
        said = advice_of(found, "kb_query")
        assert said
        assert tokens_of(f',"advice":{json.dumps(said)}') <= 60
        assert ("kb.query" if options[-1:] == ["dotted"] else "kb_query") in said
        assert ("kb_upsert" in said) is (options == [])
        assert advice_of(found, "kb_query") is None


def test_a_server_without_the_five_tools_advises_none_of_them(project):
    with agent(project.root, "--toolsets", "kip") as found:
        result = found.result("execute_kip_readonly", {"command": "DESCRIBE PRIMER"})
        assert "advice" not in result.structured_content


@pytest.mark.parametrize("mode", MODES)
def test_what_others_changed_of_what_was_read_is_said_once(project, mode):
    project.apply(entities=[entity("A"), entity("B"), entity("C")])
    with agent(project.root, mode=mode) as found:
        found.call("kb_query", ids=["A"])
        found.call("kb_query", context={"ids": ["B"]})
        found.call("kb_upsert", entities=[entity("A", owner="me")])
        project.apply(entities=[entity("C", owner="ann")])
        assert "note" not in found.call("kb_query", count=True), "its own changes, and what it has not read"
        project.apply(entities=[entity("A", owner="ann")])
        project.delete(entities=[{"id": "B"}])
        note = found.call("kb_query", count=True)["note"]
        assert (
            note == "Others changed what you have read: 'A' (at seq 4 by 'tester'), 'B' (deleted at seq 5 by 'tester')."
        )
        assert "note" not in found.call("kb_query", count=True)


def test_what_was_read_of_another_branch_or_of_the_past_counts_for_nothing_here(project):
    project.apply(entities=[entity("A")])
    project.apply(entities=[entity("A", owner="ann")])
    with agent(project.root) as found:
        found.call("kb_query", ids=["A"], at=1)
        project.switch("other", create=True)
        project.apply(entities=[entity("A", owner="bob")])
        assert "Others" not in found.call("kb_query", count=True).get("note", "")


def test_many_changes_are_counted(project):
    keys = [f"R-{number}" for number in range(8)]
    project.apply(entities=[entity(key) for key in keys])
    with agent(project.root) as found:
        found.call("kb_query", queries=[{"type": "req"}])
        project.apply(entities=[entity(key, owner="ann") for key in keys])
        assert "3 more" in found.call("kb_query", count=True)["note"]


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr("kbmcp.resources.subscriptions.LOOK_S", 0.01)


@pytest.mark.parametrize("mode", MODES)
def test_who_follows_what_was_read_is_notified_of_each_entity_that_changes(project, mode, fast):
    project.apply(entities=[entity("A"), entity("B")])
    with follower(project.root, mode) as found, found.following("kb://read"):
        found.call("kb_query", ids=["A"])
        project.apply(entities=[entity("B", owner="ann")])
        found.call("kb_query", count=True)
        changed = "kb://entity/A" if mode == "legacy" else "kb://read"
        for number in range(200):  # the entity is marked by the next look after it was read
            project.apply(entities=[entity("A", owner=f"ann {number}")])
            if not found._received.empty():
                break
        assert found.received(1) == [changed]


def test_the_resource_has_what_others_changed(project):
    project.apply(entities=[entity("A")])
    with raw(project.root) as server:
        server.greet()
        server.call(1, "kb_query", {"ids": ["A"]})
        server.answer(1)
        project.apply(entities=[entity("A", owner="ann")])
        server.send("resources/read", {"uri": "kb://read"}, 2)
        held = json.loads(server.reply(2)["result"]["contents"][0]["text"])
        assert (held["read"], held["changed"]) == (1, [{"id": "A", "seq": 2, "by": "tester"}])


def logged(server):
    said = [json.loads(line) for line in [*server.lines]]
    return [one["params"] for one in said if one.get("method") == "notifications/message"]


def test_a_client_that_asks_for_it_gets_log_messages_from_its_level_on(project):
    project.apply(entities=[entity("A")])
    with raw(project.root) as server:
        assert server.greet()["result"]["capabilities"]["logging"] == {}
        server.call(1, "kb_query", {"typ": 1})
        server.reply(1)
        assert logged(server) == []
        server.send("logging/setLevel", {"level": "warning"}, 2)
        assert server.reply(2)["result"] == {}
        server.call(3, "kb_query", {"type": "rq"})
        server.reply(3)
        server.call(4, "kb_query", {"ids": ["Z"]})  # has a note, which is less severe
        server.reply(4)
        [message] = logged(server)
        assert (message["level"], message["logger"]) == ("warning", "kb")
        assert message["data"] == {
            "tool": "kb_query",
            "code": "invalid_query",
            "message": "There is no entity type 'rq'.",
        }
        server.send("logging/setLevel", {"level": "loud"}, 5)
        assert server.reply(5)["error"]["code"] == -32602


def test_a_request_of_the_newer_era_asks_for_its_own_messages(project):
    project.apply(entities=[entity("A")])
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    with raw(project.root) as server:
        for key, more in ((1, {}), (2, {"io.modelcontextprotocol/logLevel": "notice"})):
            params = {"name": "kb_query", "arguments": {"ids": ["Z"]}, "_meta": meta | more}
            server.send("tools/call", params, key)
            assert server.reply(key)["result"]["structuredContent"]["note"]
        assert [one["level"] for one in logged(server)] == ["notice"]
