"""A model behind a server on loopback: its turns, as JSON and as a stream, its failures, retries, and the key."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import subprocess
import sys
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.dml.model import Message, ModelFailed, ToolCall, ToolSpec, Turn, Usage
from kbcore.dml.openai_model import OpenAIModel, Retries, without_key
from kbcore.errors import InvalidQuery
from tests.support.models.chat_server import CANARY, Asked, ChatServer, Raw, Reset, Said, Stall, error

QUICK = Retries(attempts=3, first_wait_s=0.001, longest_wait_s=0.01)
ASK = [Message("system", "Be short."), Message("user", "Say it.")]
FINISH = ToolSpec(
    "finish",
    "End the task.",
    {
        "type": "object",
        "properties": {"success": {"type": "boolean"}},
        "required": ["success"],
        "additionalProperties": False,
    },
)
TRANSPORTS = pytest.mark.parametrize("streams", [False, True], ids=["json", "stream"])


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def model_of(server: ChatServer, *, env: Mapping[str, str] | None = None, **settings: Any) -> OpenAIModel:
    found = {"retries": QUICK, "timeout_s": 20.0, "base_url": server.url} | settings
    return OpenAIModel("a-model", env={"KB_DML_API_KEY": CANARY} if env is None else env, **found)


def ask(
    model: OpenAIModel,
    *,
    streams: bool = False,
    messages: list[Message] | None = None,
    parts: list[str] | None = None,
) -> Turn:
    told = [] if parts is None else parts

    async def tell(text: str) -> None:
        told.append(text)

    given = messages or ASK
    return run(model.stream(given, [FINISH], tell) if streams else model.complete(given, [FINISH]))


def run(asked: Coroutine[Any, Any, Turn]) -> Turn:
    return asyncio.run(asked)


def failure_of(model: OpenAIModel, *, streams: bool = False) -> ModelFailed:
    with pytest.raises(ModelFailed) as caught:
        ask(model, streams=streams)
    return caught.value


# Turns


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


# How answers end


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


# Failures


@TRANSPORTS
def test_failures_that_may_pass_are_tried_again(streams: bool) -> None:
    script = [error(500, "broken"), Raw(b"<html>bad gateway</html>", 502, {}, "text/html"), Said("ok")]
    with ChatServer(*script) as server:
        assert ask(model_of(server), streams=streams).text == "ok"
        assert server.has_closed_all()
    assert len(server.asked) == 3


@TRANSPORTS
@pytest.mark.parametrize(
    "first",
    [
        error(429, "Slow down.", retry_after="0"),
        error(429, "Slow down.", retry_after_ms="5"),
        error(408, "Too slow."),
        error(503, "Overloaded."),
        error(529, "Overloaded."),
        Reset(),
        Stall(),
        Said("x", finish="error"),
    ],
    ids=lambda one: str(getattr(one, "status", type(one).__name__)),
)
def test_each_failure_that_may_pass_is_tried_again(streams: bool, first: Any) -> None:
    with ChatServer(first, Said("ok")) as server:
        assert ask(model_of(server, timeout_s=1.0), streams=streams).text == "ok"
        assert server.has_closed_all()


@TRANSPORTS
@pytest.mark.parametrize(
    ("answer", "said", "hint"),
    [
        (error(400, "Bad tools."), "answered with the status 400: Bad tools", "what they refuse"),
        (error(401, "Wrong key."), "answered with the status 401: Wrong key", "KB_DML_API_KEY"),
        (error(403, "Not you."), "answered with the status 403: Not you", "KB_DML_API_KEY"),
        (error(404, "No such model."), "answered with the status 404: No such model", "KB_DML_BASE_URL"),
        (error(402, "Pay."), "answered with the status 402: Pay", "balance"),
        (error(429, "Used up.", code="insufficient_quota"), "answered with the status 429: Used up", "balance"),
        (error(400, "Too long.", code="context_length_exceeded"), "the status 400: Too long", "push_context"),
        (Raw(b"", 307, {"location": "http://127.0.0.1:9/v1"}), "answered with the status 307", "no redirect"),
        (Raw(b"<html>Hi</html>", 200, {}, "text/html"), "The answer begins with: <html>Hi</html>", "/v1"),
        (Raw(b'{"error": {"message": "x"}}'), 'The answer begins with: {"error": {"message": "x"}}', "/v1"),
        (Raw(b'{"choices": []}'), "gave an answer that is no chat completion", "/v1"),
        (Raw(b"x" * (17 << 20)), "sent more than the 16 MiB that an answer may have", "/v1"),
    ],
    ids=lambda one: one[:30] if isinstance(one, str) else "",
)
def test_failures_that_do_not_pass_fail_at_once(streams: bool, answer: Raw, said: str, hint: str) -> None:
    with ChatServer(answer) as server:
        failed = failure_of(model_of(server), streams=streams)
        assert server.has_closed_all()
    assert str(failed).startswith(f"`a-model` at {server.url} ")
    assert said in str(failed)
    assert hint in failed.hint
    assert len(server.asked) == 1


@TRANSPORTS
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (error(500, "Broken."), "answered with the status 500: Broken (after 3 attempts)"),
        (Reset(), "closed the connection: "),
        (Stall(), "gave no complete answer within 0.3 seconds (after 3 attempts)"),
    ],
    ids=["status", "reset", "stall"],
)
def test_the_last_of_all_attempts_says_what_failed(streams: bool, answer: Any, said: str) -> None:
    with ChatServer(answer, answer, answer) as server:
        failed = failure_of(model_of(server, timeout_s=0.3), streams=streams)
        assert server.has_closed_all()
    assert said in str(failed)
    assert len(server.asked) == 3


def test_json_that_breaks_off_is_tried_again_and_then_shown() -> None:
    with ChatServer(*[Raw(b'{"choices": [')] * 3) as server:
        failed = failure_of(model_of(server))
    assert "gave an answer that is not complete" in str(failed)
    assert 'The answer begins with: {"choices": [' in str(failed)
    assert len(server.asked) == 3


@pytest.mark.parametrize("broken", [Said("one two three", cut_after=3), Said("one two", ends_early=True)])
def test_a_stream_that_breaks_off_is_asked_for_again_and_begins_on_a_new_line(broken: Said) -> None:
    parts: list[str] = []
    with ChatServer(broken, Said("all of it")) as server:
        turn = ask(model_of(server), streams=True, parts=parts)
    assert turn.text == "all of it"
    assert "".join(parts) == "one two\nall of it"


def test_a_stream_that_stalls_in_the_middle_is_ended() -> None:
    event = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    first = {**event, "choices": [{"index": 0, "delta": {"role": "assistant", "content": "one"}}]}
    with ChatServer(Stall(b"data: " + json.dumps(first).encode() + b"\n\n"), Said("two")) as server:
        parts: list[str] = []
        assert ask(model_of(server, timeout_s=1.0), streams=True, parts=parts).text == "two"
        assert server.has_closed_all()
    assert parts == ["one", "\n", "two"]


@TRANSPORTS
def test_a_server_that_sends_a_little_again_and_again_is_ended_at_the_longest_time(streams: bool) -> None:
    with ChatServer(Stall(again=b": \n\n"), Said("ok")) as server:
        assert ask(model_of(server, timeout_s=1.0), streams=streams).text == "ok"
        assert server.has_closed_all()


@pytest.mark.parametrize(
    ("code", "said", "attempts"),
    [("server_error", "status 500: It broke", 3), ("invalid_api_key", "It broke", 1), ("odd", "It broke", 3)],
)
def test_an_error_inside_of_a_stream_is_what_it_is_before_one(code: str, said: str, attempts: int) -> None:
    body = b"data: " + json.dumps({"error": {"message": "It broke", "code": code}}).encode() + b"\n\n"
    with ChatServer(*[Raw(body, 200, {}, "text/event-stream")] * 3) as server:
        assert said in str(failure_of(model_of(server), streams=True))
    assert len(server.asked) == attempts


def test_a_server_that_asks_for_a_longer_wait_than_the_longest_one_is_not_asked_again() -> None:
    with ChatServer(error(429, "Slow down.", retry_after="3600")) as server:
        failed = failure_of(model_of(server))
    assert "status 429: Slow down; it asks to wait 3,600 s" in str(failed)
    assert len(server.asked) == 1


def test_a_server_that_is_not_there_is_named() -> None:
    with ChatServer() as server:
        pass
    failed = failure_of(model_of(server))
    assert f"`a-model` at {server.url} could not be reached: " in str(failed)
    assert "(after 3 attempts)" in str(failed)
    assert "whether the server runs" in failed.hint


def test_what_a_server_says_is_escaped_and_cut() -> None:
    with ChatServer(error(400, "\x1b[31mred\n" + "long " * 500)) as server:
        said = str(failure_of(model_of(server)))
    assert "\x1b" not in said
    assert "\\u001b[31mred long long" in said
    assert len(said) < 600


def test_a_task_that_is_cancelled_leaves_no_connection() -> None:
    async def cancelled(model: OpenAIModel, server: ChatServer, *, streams: bool) -> None:
        async def tell(_: str) -> None:
            """Say nothing."""

        asked = model.stream(ASK, [], tell) if streams else model.complete(ASK, [])
        task = asyncio.create_task(asked)
        await asyncio.to_thread(server.was_asked)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.has_closed_all)

    for streams in (False, True):
        with ChatServer(Stall()) as server:
            asyncio.run(cancelled(model_of(server), server, streams=streams))


def test_an_error_of_whoever_is_told_the_parts_passes_through() -> None:
    async def tell(_: str) -> None:
        raise LookupError("mine")

    with ChatServer(Said("one two")) as server:
        with pytest.raises(LookupError, match="mine"):
            run(model_of(server).stream(ASK, [], tell))
        assert server.has_closed_all()
    assert len(server.asked) == 1


def test_many_requests_of_one_model_at_once_do_not_meet() -> None:
    def echo(asked: Asked) -> Said:
        return Said(asked.conversation[-1][1])

    async def all_of(model: OpenAIModel) -> list[str]:
        asked = [model.complete([Message("user", f"number {at}")], []) for at in range(20)]
        return [turn.text for turn in await asyncio.gather(*asked)]

    with ChatServer(*[echo] * 20) as server:
        assert asyncio.run(all_of(model_of(server))) == [f"number {at}" for at in range(20)]
        assert server.has_closed_all()


# The key, and what else the environment says


def test_the_key_is_read_when_the_model_is_asked() -> None:
    env = {"KB_DML_API_KEY": "first-key-1234"}
    with ChatServer(Said("x"), Said("x"), Said("x")) as server:
        model = model_of(server, env=env)
        ask(model)
        env["KB_DML_API_KEY"] = " second-key-1234\n"
        ask(model)
        del env["KB_DML_API_KEY"]
        ask(model)
    sent = [asked.headers.get("authorization") for asked in server.asked]
    assert sent == ["Bearer first-key-1234", "Bearer second-key-1234", None]


def test_variables_of_other_programs_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, CANARY)
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", f"X-Mine: {CANARY}\nAuthorization: Bearer {CANARY}")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with ChatServer(Said("x"), Said("x")) as server:
        ask(model_of(server, env={}))
        ask(model_of(server, env={"KB_DML_API_KEY": "the-right-one"}))
    assert all(CANARY not in json.dumps(dict(asked.headers)) for asked in server.asked)
    assert "authorization" not in server.asked[0].headers
    assert server.asked[1].headers["authorization"] == "Bearer the-right-one"


def test_a_redirect_does_not_take_the_key_along() -> None:
    with ChatServer(Said("x")) as other:
        moved = Raw(b"", 308, {"location": f"{other.url}/chat/completions"})
        with ChatServer(moved) as server:
            failure_of(model_of(server))
    assert other.asked == []


@TRANSPORTS
@pytest.mark.parametrize("shown", [CANARY, CANARY[:14], CANARY[9:], f"{CANARY[:12]}***{CANARY[-8:]}"])
@pytest.mark.parametrize("status", [200, 401, 500])
def test_a_key_that_a_server_repeats_is_in_no_text(
    streams: bool, shown: str, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    body = json.dumps({"error": {"message": f"Incorrect API key provided: {shown}."}}).encode()
    answer = Raw(body, status, {"x-key": "1"})
    with ChatServer(answer, answer, answer) as server:
        model = model_of(server)
        failed = failure_of(model, streams=streams)
    texts = [str(failed), failed.hint, repr(failed), repr(model), str(vars(model).get("_url")), caplog.text]
    error_: BaseException | None = failed.__cause__ or failed.__context__
    assert error_ is None
    pieces = {CANARY[at : at + 8] for at in range(len(CANARY) - 7)}
    assert [piece for text in texts for piece in pieces if piece in text] == []
    assert "Incorrect API key provided: …" in str(failed)


@given(
    key=st.text("abcd-", min_size=4, max_size=20),
    around=st.lists(st.text("abcd- .", max_size=20), min_size=1, max_size=4),
)
def test_no_piece_of_a_key_is_left_in_a_text(key: str, around: list[str]) -> None:
    shown = without_key(key.join(around), key)
    size = min(8, len(key))
    assert not any(key[at : at + size] in shown for at in range(len(key) - size + 1))


@given(text=st.text(max_size=60))
def test_a_text_without_a_piece_of_the_key_stays_as_it_is(text: str) -> None:
    assert without_key(text, "\x00" * 12) == text.replace("\x00" * 8, "…") or "\x00" in text
    assert without_key(text, "abc") == text


@pytest.mark.parametrize("key", ["kéy-of-mine", "a\nb", "x\x00y"])
def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(key: str) -> None:
    with ChatServer() as server:
        failed = failure_of(model_of(server, env={"KB_DML_API_KEY": key}))
    assert key not in str(failed)
    assert "KB_DML_API_KEY holds characters that no key has" in str(failed)
    assert server.asked == []


def test_a_missing_key_is_named_where_a_server_asks_for_one() -> None:
    with ChatServer(error(401, "No key.")) as server:
        assert failure_of(model_of(server, env={})).hint == "Set KB_DML_API_KEY: it is not set."


# What a model is made of


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


@pytest.mark.parametrize("rest", ["?key=", "#"])
def test_a_url_with_a_key_is_refused_without_showing_it(rest: str) -> None:
    for url in (f"https://user:{CANARY}@h/v1", f"https://h/v1{rest}{CANARY}"):
        with pytest.raises(InvalidQuery, match="holds a user, a query or a fragment") as caught:
            OpenAIModel("m", env={}, base_url=url)
        assert CANARY not in str(caught.value)


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
