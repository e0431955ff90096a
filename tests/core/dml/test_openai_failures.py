"""A model on a server on loopback that fails: which requests are repeated, what is said, and what is left open."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from kbcore.dml.openai_model import OpenAIModel
from tests.support.models.chat_server import ChatServer, Raw, Reset, Said, Stall, error
from tests.support.models.openai_models import ASK, TRANSPORTS, ask, failure_of, model_of, run

pytestmark = pytest.mark.usefixtures("no_proxy")


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
