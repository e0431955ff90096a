"""Whole programs against a model behind a server on loopback, with a scripted conversation, on each engine."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Sequence
from typing import Any

import pytest

from kbcore.dml import Budget, Event, OpenAIModel, Retries, Run, run_dml
from tests.support.models.chat_server import CANARY, ChatServer, Raw, Reset, Said, error
from tests.support.models.openai_models import TRANSPORTS

RESEARCH = """
tool(double(Number, Twice), "Double a number.") :- Twice is Number * 2.

agent_main(Topic) :-
    system("You are brief."),
    task("Find a number about {Topic}.", integer(Found)),
    task("Double {Found}.", integer(Twice)),
    answer("{Topic}: {Found}, twice that is {Twice}.").
"""
pytestmark = pytest.mark.usefixtures("no_proxy")
SUCCESS = ("finish", {"success": True})


def result(name: str, value: Any) -> tuple[str, dict[str, Any]]:
    return "set_result", {"variable": name, "value": value}


def run(code: str, server: ChatServer, engine: dict[str, str], **options: Any) -> tuple[Run, list[Event]]:
    """Run a program to its end."""

    async def read(found: Run) -> list[Event]:
        return [event async for event in found]

    env = {"KB_DML_API_KEY": CANARY, "KB_DML_MODEL": "a-model", "KB_DML_BASE_URL": server.url}
    model = OpenAIModel(env=env, timeout_s=20.0, retries=Retries(3, 0.001, 0.01))
    found = run_dml(code, model=model, env={**os.environ, **engine}, **options)
    return found, asyncio.run(read(found))


def contents(events: Sequence[Event], type_: str) -> list[str]:
    return [event.content for event in events if event.type == type_]


@TRANSPORTS
def test_a_program_asks_a_model_over_http_and_answers(engine: dict[str, str], streams: bool) -> None:
    script = [
        Said("It is 21.", [result("Found", 21), SUCCESS], usage=(100, 20)),
        Said(None, [("double", {"arg1": "21"})], usage=(200, 10)),
        error(500, "Broken."),
        Said(None, [result("Twice", "42"), SUCCESS], usage=(1, 1)),
        Said(None, [result("Twice", 42), SUCCESS], usage=(1, 1)),
    ]
    with ChatServer(*script) as server:
        found, events = run(RESEARCH, server, engine, params={"Topic": "bees"}, stream=streams, tool_calls=True)
        assert server.has_closed_all()
    assert contents(events, "answer") == ["bees: 21, twice that is 42."]
    assert "".join(contents(events, "stream")) == ("It is 21." if streams else "")
    assert [(event.content, event.data) for event in events if event.type == "tool_call"] == [
        ("double", {"arguments": {"arg1": "21"}})
    ]
    assert events[-1].outcome == "success"
    assert (found.spent.rounds, found.spent.usage.input_tokens, found.spent.usage.output_tokens) == (4, 302, 32)
    assert [asked.tools for asked in server.asked] == [["double", "finish", "set_result"]] * 5
    roles = [[role for role, _ in asked.conversation] for asked in server.asked]
    begin = ["system", "system", "user"]
    assert roles[:2] == [begin, [*begin, "assistant", "tool", "tool", "user"]]
    assert roles[2] == roles[3] == [*roles[1], "assistant", "tool"]
    assert server.asked[3].conversation[-1] == ("tool", "42")
    assert "`Twice` is to be of the type integer" in server.asked[4].conversation[-3][1]


def test_two_calls_in_one_turn_are_both_carried_out_and_answered(engine: dict[str, str]) -> None:
    code = RESEARCH.replace('task("Find a number about {Topic}.", integer(Found)),', "Found = 1,")
    script = [
        Said(None, [("double", {"arg1": "1"}), ("double", {"arg1": "4"})], ids=("one", "two")),
        Said(None, [result("Twice", 2), SUCCESS]),
    ]
    with ChatServer(*script) as server:
        _, events = run(code, server, engine, params={"Topic": "x"})
    sent = server.asked[1].body["messages"]
    assert [one["tool_call_id"] for one in sent if one["role"] == "tool"] == ["one", "two"]
    assert [one["content"] for one in sent if one["role"] == "tool"] == ["2", "8"]
    assert contents(events, "answer") == ["x: 1, twice that is 2."]


def test_a_task_inside_of_a_tool_is_a_conversation_that_a_server_accepts(engine: dict[str, str]) -> None:
    code = """
    tool(look(What, Seen)) :- task("Look at {What}.", string(Seen)).
    agent_main :- task("Use look.", string(All)), answer(All).
    """
    script = [
        Said(None, [("look", {"arg1": "a"}), ("look", {"arg1": "b"})], ids=("first", "second")),
        Said(None, [result("Seen", "A"), SUCCESS]),
        Said(None, [result("Seen", "B"), SUCCESS]),
        Said(None, [result("All", "A B"), SUCCESS]),
    ]
    with ChatServer(*script) as server:
        _, events = run(code, server, engine)
    for asked in server.asked:
        waiting: list[str] = []
        for message in asked.body["messages"]:
            if message["role"] == "tool":
                waiting.remove(message["tool_call_id"])
            else:
                assert waiting == []
                waiting = [call["id"] for call in message.get("tool_calls", [])]
        assert waiting == []
    assert contents(events, "answer") == ["A B"]
    assert "look" not in server.asked[1].tools


def test_arguments_that_cannot_be_read_are_told_to_the_model(engine: dict[str, str]) -> None:
    script = [Said(None, [("finish", '{"success": ')]), Said(None, [SUCCESS])]
    with ChatServer(*script) as server:
        _, events = run('agent_main :- task("Do it."), answer(done).', server, engine)
    assert "cannot be read: they are no JSON" in server.asked[1].conversation[-1][1]
    assert contents(events, "answer") == ["done"]


def test_a_model_that_cannot_be_asked_ends_the_run_with_what_to_do(engine: dict[str, str]) -> None:
    code = 'agent_main :- ( task("Do it.") ; answer("The model said no.") ).'
    with ChatServer(error(401, f"Wrong key {CANARY}.")) as server:
        found, events = run(code, server, engine)
    assert [event.type for event in events] == ["error", "finished"]
    assert events[0].code == "model_unavailable"
    assert "answered with the status 401: Wrong key …." in events[0].content
    assert "KB_DML_API_KEY" in events[0].data["hint"]
    assert found.error is not None


def test_a_program_may_catch_that_its_model_cannot_be_asked(engine: dict[str, str]) -> None:
    code = """
    agent_main :- catch(task("Do it."), error(model_error(Why), _), (log("{Why}"), task("Again."))), answer(done).
    """
    with ChatServer(Reset(), Reset(), Reset(), Said(None, [SUCCESS])) as server:
        _, events = run(code, server, engine)
    assert "closed the connection" in contents(events, "log")[0]
    assert contents(events, "answer") == ["done"]


def test_an_error_of_a_model_that_the_program_raises_itself_is_one_of_the_program(engine: dict[str, str]) -> None:
    with ChatServer() as server:
        found, events = run('agent_main :- throw(error(model_error("mine"), _)).', server, engine)
    assert events[0].code == "program_failed"
    assert "mine" in events[0].content
    assert found.error is not None


def test_what_the_model_says_is_streamed_while_it_comes(engine: dict[str, str]) -> None:
    with ChatServer(Said("one two three", [SUCCESS])) as server:
        _, events = run('agent_main :- task("Do it.").', server, engine, stream=True)
    assert contents(events, "stream") == ["one", " two", " three"]


def test_a_budget_of_tokens_counts_what_the_server_says(engine: dict[str, str]) -> None:
    with ChatServer(*[Said("Hm.", usage=(60, 0))] * 3) as server:
        found, events = run('agent_main :- task("Do it.").', server, engine, budget=Budget(tokens=100))
    assert len(server.asked) == 2
    assert events[0].code == "resource_limit"
    assert found.spent.usage.tokens == 120


@TRANSPORTS
def test_the_key_is_in_no_event_message_error_or_log(
    engine: dict[str, str], streams: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = Raw(json.dumps({"error": {"message": f"{CANARY} is wrong"}}).encode(), 401)
    script = [Said("I look.", [("double", {"arg1": "3"})]), Said("So.", [result("Found", 6), SUCCESS]), echo]
    with ChatServer(*script) as server:
        channels = {"stream": streams, "trace": True, "tool_calls": True}
        found, events = run(RESEARCH, server, engine, params={"Topic": "x"}, **channels)
    assert [asked.headers["authorization"] for asked in server.asked] == [f"Bearer {CANARY}"] * 3
    texts = [json.dumps(event.as_json()) for event in events]
    texts += [repr(found.memory), repr(found.error), str(found.error), repr(vars(found)), caplog.text]
    assert [text for text in texts if CANARY[:12] in text or CANARY[-12:] in text] == []
    assert events[-1].outcome == "error"
