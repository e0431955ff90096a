"""The events of a run: as JSON, and those that only come where they are asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from kbcore.dml import Event, Message, ToolSpec, Turn
from tests.support.dml.runs import ran
from tests.support.dml.scripts import Script, call, does, done

Engine = dict[str, str]

CODE = """
tool(look(X, R)) :- exec(fetch(X), R).
agent_main :- user(u), exec(look(1), R), task("t {R}"), push_context, exec(none, _).
"""


class Streaming(Script):
    """A script that also tells the text of its turns in parts."""

    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_text: Callable[[str], Awaitable[None]]
    ) -> Turn:
        """Return the next turn; tell two parts before."""
        for part in ("thin", "king"):
            await on_text(part)
        return await self.complete(messages, tools)


def fetch(x: int) -> int:
    """Return the argument."""
    return x


def test_channels_are_told_where_they_are_asked_for(engine: Engine) -> None:
    def events(**asked: bool) -> list[tuple[str, str, Any]]:
        model = Streaming(does(call("look", arg1="2")), done())
        found = ran(CODE, engine, model=model, tools=[fetch], **asked)
        return [(one.type, one.content, one.data) for one in found.events]

    assert [kind for kind, _, _ in events()] == ["log", "finished"]
    assert [one for one in events(tool_calls=True) if one[0] == "tool_call"] == [
        ("tool_call", "fetch", {"arguments": {"x": 1}}), ("tool_call", "look", {"arguments": {"arg1": "2"}}),
        ("tool_call", "fetch", {"arguments": {"x": 2}}),
    ]  # fmt: skip
    assert [text for kind, text, _ in events(stream=True) if kind == "stream"] == ["thin", "king"] * 2
    traced = [(text, data) for kind, text, data in events(trace=True) if kind == "trace"]
    assert [text for text, _ in traced] == [
        "message", "exec", "exec", "task", "turn", "exec", "turn", "fresh_context", "exec",
    ]  # fmt: skip
    assert [data["tools"] for text, data in traced if text != "turn"] == [[], [], ["look"], [], ["look"], [], []]
    turns = [data for text, data in traced if text == "turn"]
    assert [(data["rounds"], data["input_tokens"] > 0) for data in turns] == [(1, True), (2, True)]
    assert traced[0][1]["request"] == {"kind": "message", "memory": 0, "role": "user", "text": "u"}


def test_an_event_is_a_line_of_json_with_its_type() -> None:
    assert Event("log", "x", code="warning", data={"tool": "t"}).as_json() == {
        "type": "log", "content": "x", "code": "warning", "tool": "t",
    }  # fmt: skip
    assert Event("input_required", prompt="q").as_json() == {"type": "input_required", "prompt": "q"}
    assert Event("finished", outcome="failure", data={"spent": {}}).as_json() == {
        "type": "finished", "outcome": "failure", "spent": {},
    }  # fmt: skip
