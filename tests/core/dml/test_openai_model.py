"""A model on a server on loopback: its turns, as JSON and as a stream, how answers end, and what a model is made of."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys

import pytest

from kbcore.dml.model import Message, ToolCall, ToolSpec, Turn, Usage
from kbcore.dml.openai_model import OpenAIModel
from kbcore.errors import InvalidQuery
from tests.support.models.chat_server import Asked, ChatServer, Said
from tests.support.models.openai_models import ASK, FINISH, TRANSPORTS, ask, failure_of, model_of, run

pytestmark = pytest.mark.usefixtures("no_proxy")


@TRANSPORTS
def test_text_calls_and_usage_of_an_answer_are_a_turn(streams: bool) -> None:
    with ChatServer(Said("I am done.", [("finish", {"success": True}), ("look", {"At": [1, None, "ü"]})])) as server:
        turn = ask(model_of(server), streams=streams)
        assert server.has_closed_all()
    assert turn == Turn(
        "I am done.",
        (ToolCall("call_0", "finish", {"success": True}), ToolCall("call_1", "look", {"At": [1, None, "ü"]})),
        Usage(10, 5, None),
    )
    asked = server.asked[0]
    assert (asked.path, asked.body["model"], asked.body["stream"]) == ("/v1/chat/completions", "a-model", streams)
    assert asked.conversation == [("system", "Be short."), ("user", "Say it.")]
    assert asked.body["tools"] == [
        {
            "type": "function",
            "function": {"name": "finish", "description": "End the task.", "parameters": FINISH.parameters},
        }
    ]


def test_the_parts_of_a_stream_are_told_in_their_order() -> None:
    parts: list[str] = []
    with ChatServer(Said("one two three")) as server:
        turn = ask(model_of(server), streams=True, parts=parts)
    assert parts == ["one", " two", " three"]
    assert turn.text == "one two three"


def test_a_conversation_with_calls_is_sent_as_it_was() -> None:
    calls = (ToolCall("a", "look", {"x": "ü"}), ToolCall("b", "look", {}, "they are no JSON"))
    messages = [
        *ASK,
        Message("assistant", "", calls),
        Message("tool", "seen", (), "a", "look"),
        Message("tool", "not read", (), "b", "look"),
        Message("assistant", ""),
        Message("assistant", "So."),
        Message("user", "Go on."),
    ]
    with ChatServer(Said("ok")) as server:
        ask(model_of(server), messages=messages)
    sent = server.asked[0].body["messages"][2:]
    assert [(one["role"], one.get("content")) for one in sent] == [
        ("assistant", None),
        ("tool", "seen"),
        ("tool", "not read"),
        ("assistant", "So."),
        ("user", "Go on."),
    ]
    given = [
        (one["id"], one["function"]["name"], json.loads(one["function"]["arguments"])) for one in sent[0]["tool_calls"]
    ]
    assert given == [("a", "look", {"x": "ü"}), ("b", "look", {})]
    assert [one["tool_call_id"] for one in sent[1:3]] == ["a", "b"]


def test_a_call_without_a_result_is_sent_with_one_that_says_so() -> None:
    calls = (ToolCall("a", "one", {}), ToolCall("b", "two", {}))
    messages = [*ASK, Message("assistant", "", calls), Message("tool", "1", (), "a", "one"), Message("user", "Inner.")]
    with ChatServer(Said("ok"), Said("ok")) as server:
        ask(model_of(server), messages=messages)
        ask(model_of(server), messages=messages[:3])
    inner, pending = (asked.body["messages"][3:] for asked in server.asked)
    unknown = "The result of this call is not known yet."
    assert [(one["role"], one["content"]) for one in inner] == [("tool", "1"), ("tool", unknown), ("user", "Inner.")]
    assert [(one["tool_call_id"], one["content"]) for one in pending] == [("a", unknown), ("b", unknown)]


@TRANSPORTS
@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        ("[1]", "they are of the type list, and no object of JSON"),
        ("null", "they are of the type NoneType, and no object of JSON"),
        ('{"a": NaN}', "they are no JSON (NaN is no value of JSON)"),
        ('{"a": "\\ud800"}', "they hold half of a surrogate pair"),
        ("[" * 3000, "it is nested more than 200 times"),
        ('{"a": 1e400}', "it is a number that JSON does not have"),
        ('{"a": %s}' % ("9" * 4100), "it is a number with more than 4,000 digits"),
        ('{"a": %s}' % ("9" * 9999), "it is a number with more than 4,000 digits"),
        ('{"a":' * 300 + "1" + "}" * 300, "it is nested more than 200 times"),
        ('{"a": ', "they are no JSON"),
    ],
)
def test_arguments_that_are_no_object_are_a_problem_of_their_call(streams: bool, sent: str, problem: str) -> None:
    with ChatServer(Said(None, [("look", sent), ("finish", {"success": True})])) as server:
        first, second = ask(model_of(server), streams=streams).calls
    assert (first.arguments, first.problem[: len(problem)]) == ({}, problem)
    assert (second.arguments, second.problem) == ({"success": True}, "")


@TRANSPORTS
def test_a_call_without_arguments_has_none(streams: bool) -> None:
    with ChatServer(Said(None, [("look", "")])) as server:
        assert ask(model_of(server), streams=streams).calls == (ToolCall("call_0", "look", {}),)


@TRANSPORTS
def test_calls_without_an_id_get_ids_of_their_own(streams: bool) -> None:
    with ChatServer(Said(None, [("look", {}), ("look", {})], ids=("", ""))) as server:
        first, second = ask(model_of(server), streams=streams).calls
    assert first.id
    assert second.id
    assert first.id != second.id


@TRANSPORTS
def test_halves_of_surrogate_pairs_in_a_text_become_the_replacement_character(streams: bool) -> None:
    with ChatServer(Said("\ud83d\ude00 \ud800")) as server:
        assert ask(model_of(server), streams=streams).text == "😀 \ufffd"


@TRANSPORTS
@pytest.mark.parametrize("name", ["größe", "a tool", "x" * 65, "a.b"])
def test_a_tool_whose_name_servers_refuse_is_sent_under_another_one(streams: bool, name: str) -> None:
    def call_first(asked: Asked) -> Said:
        return Said(None, [(asked.tools[0], {})])

    async def tell(_: str) -> None:
        """Say nothing."""

    tools = [ToolSpec(name, "It has a name.", {"type": "object", "properties": {}})]
    with ChatServer(call_first, Said("ok")) as server:
        model = model_of(server)
        turn = run(model.stream(ASK, tools, tell) if streams else model.complete(ASK, tools))
        run(
            model.complete(
                [*ASK, Message("assistant", "", turn.calls), Message("tool", "1", (), "call_0", name)], tools
            )
        )
    assert turn.calls == (ToolCall("call_0", name, {}),)
    sent = server.asked[0].tools[0]
    assert re.fullmatch("[A-Za-z0-9_-]{1,64}", sent)
    assert server.asked[1].body["messages"][2]["tool_calls"][0]["function"]["name"] == sent


@TRANSPORTS
@pytest.mark.parametrize("finish", ["stop", "weird", "function_call"])
def test_a_finish_reason_that_nobody_knows_is_as_good_as_stop(streams: bool, finish: str) -> None:
    with ChatServer(Said("x", finish=finish)) as server:
        assert ask(model_of(server), streams=streams).text == "x"


@TRANSPORTS
def test_an_empty_answer_is_a_turn_without_text(streams: bool) -> None:
    with ChatServer(Said(None)) as server:
        assert ask(model_of(server), streams=streams) == Turn("", (), Usage(10, 5))


@TRANSPORTS
def test_a_text_that_was_cut_off_is_a_turn_and_calls_that_were_cut_off_say_so(streams: bool) -> None:
    cut = Said("So f", [("look", '{"a": 1}'), ("look", '{"a": '), ("look", "")], finish="length")
    with ChatServer(cut) as server:
        turn = ask(model_of(server), streams=streams)
    assert turn.text == "So f"
    assert [one.arguments for one in turn.calls] == [{"a": 1}, {}, {}]
    assert [one.problem for one in turn.calls] == ["", *["the answer was cut off before they ended"] * 2]


@TRANSPORTS
def test_an_answer_that_is_cut_off_before_it_says_anything_fails_at_once(streams: bool) -> None:
    with ChatServer(Said(None, finish="length")) as server:
        failed = failure_of(model_of(server), streams=streams)
    assert "used all tokens that its answer may have before it said anything" in str(failed)
    assert len(server.asked) == 1


@TRANSPORTS
def test_a_content_filter_fails_at_once_and_a_refusal_is_what_the_model_says(streams: bool) -> None:
    with ChatServer(Said("x", finish="content_filter"), Said(refusal="I will not.")) as server:
        assert "content filter" in str(failure_of(model_of(server), streams=streams))
        assert ask(model_of(server), streams=streams).text == "I will not."


@TRANSPORTS
def test_an_answer_without_usage_counts_no_tokens(streams: bool) -> None:
    with ChatServer(Said("x", usage=None)) as server:
        assert ask(model_of(server), streams=streams).usage == Usage(0, 0, None)


def test_an_answer_has_a_cost_only_where_the_url_is_that_of_a_provider_with_a_price() -> None:
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.usage import RequestUsage

    from kbcore.dml.openai_client import _usage

    def cost(url: str, name: str = "gpt-4o") -> float | None:
        usage = RequestUsage(input_tokens=1_000_000, output_tokens=0)
        return _usage(
            ModelResponse([], usage=usage, model_name=name, provider_url=url, provider_name="server")
        ).cost_usd

    assert (cost("https://api.openai.com/v1") or 0) > 0
    assert cost("https://api.openai.com/v1", "no-such-model") is None
    with ChatServer(Said("x")) as server:
        assert ask(OpenAIModel("gpt-4o", env={}, base_url=server.url)).usage == Usage(10, 5, None)


def test_many_requests_of_one_model_at_once_do_not_meet() -> None:
    def echo(asked: Asked) -> Said:
        return Said(asked.conversation[-1][1])

    async def all_of(model: OpenAIModel) -> list[str]:
        asked = [model.complete([Message("user", f"number {at}")], []) for at in range(20)]
        return [turn.text for turn in await asyncio.gather(*asked)]

    with ChatServer(*[echo] * 20) as server:
        assert asyncio.run(all_of(model_of(server))) == [f"number {at}" for at in range(20)]
        assert server.has_closed_all()


def test_name_and_url_come_from_the_environment_unless_they_are_given() -> None:
    env = {"KB_DML_MODEL": "m", "KB_DML_BASE_URL": "http://localhost:1/v1/"}
    assert repr(OpenAIModel(env=env)) == "OpenAIModel('m', 'http://localhost:1/v1')"
    assert repr(OpenAIModel("n", env=env, base_url="https://h/v1")) == "OpenAIModel('n', 'https://h/v1')"
    assert repr(OpenAIModel("n", env={})) == "OpenAIModel('n', 'https://api.openai.com/v1')"


def test_a_model_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidQuery, match="No model is named") as caught:
        OpenAIModel(env={})
    assert "KB_DML_MODEL" in caught.value.hint


@pytest.mark.parametrize(
    "url", ["h", "ftp://h/v1", "http://", "http://[::1", "http://h:99999/v1", "http://h\n/v1", "https://h/v1\x7f"]
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidQuery, match="is no URL of a server of models"):
        OpenAIModel("m", env={}, base_url=url)


def test_the_library_is_imported_only_when_a_model_is_asked() -> None:
    program = (
        "import asyncio, sys\n"
        "from kbcore.dml import Message, ModelFailed, OpenAIModel, Retries\n"
        "model = OpenAIModel('m', env={}, base_url='http://127.0.0.1:9/v1', retries=Retries(1))\n"
        "heavy = ('pydantic_ai', 'openai', 'httpx2')\n"
        "assert not [name for name in heavy if name in sys.modules]\n"
        "try:\n"
        "    asyncio.run(model.complete([Message('user', 'x')], []))\n"
        "except ModelFailed as failed:\n"
        "    print(failed)\n"
        "assert all(name in sys.modules for name in heavy)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "could not be reached" in done.stdout


def test_a_missing_extra_is_named_with_how_to_install_it() -> None:
    program = (
        "import asyncio, sys; sys.modules['pydantic_ai'] = None\n"
        "from kbcore.dml import Message, ModelFailed, OpenAIModel\n"
        "try:\n"
        "    asyncio.run(OpenAIModel('m', env={}).complete([Message('user', 'x')], []))\n"
        "except ModelFailed as failed:\n"
        "    print(failed); print(failed.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "what asks a model is not installed" in done.stdout
    assert 'pip install "kb-memory[dml]"' in done.stdout
