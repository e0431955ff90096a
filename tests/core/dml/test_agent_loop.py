"""The loop of one task, without an engine: outputs, reminders, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from kbcore.dml.agent_loop import Failed, Services, Task, TaskOutput, TaskResult, run_task
from kbcore.dml.memory import ROOT, MessageTree
from kbcore.dml.model import Message, ToolCall, ToolSpec
from tests.support.dml.scripts import GIVES_UP, Script, Step, call, does, done, finish, says, store

TOOL = ToolSpec("look", "Look.", {"type": "object"})


def ended(
    outputs: Sequence[TaskOutput], *steps: Step, rounds: int = 50
) -> tuple[TaskResult | Failed, Script, list[Message]]:
    """Run a task with these turns; return how it ended, the model, and the conversation."""
    memory, model = MessageTree(), Script(*steps)

    async def call_tool(called: ToolCall, node: int) -> str:
        assert memory.conversation(node)[-1].text == "The tool has not ended yet."
        return f"looked at {called.arguments}"

    services = Services(
        memory=memory, tools=[TOOL], ask_model=model.complete, call_tool=call_tool, ask_user=None, most_rounds=rounds
    )
    found, node = asyncio.run(run_task(Task("Do it.", tuple(outputs)), ROOT, services))
    return found, model, memory.conversation(node)


X = TaskOutput("X", "any")


def test_a_finish_without_an_output_is_reminded_of_once_and_then_fails_the_task() -> None:
    found, model, messages = ended([X, TaskOutput("Y", "any")], done(Y=1), done())
    assert found == Failed("the model finished it without X")
    assert messages[-3].text == "Store `X` with `set_result`, then call `finish` again.", messages
    assert len(model.asked) == 2
    assert ended([X], done(), done(X=3))[0] == TaskResult((3,))


@pytest.mark.parametrize(("kind", "good", "bad"), [
    ("string", "a", 1), ("string", "", None), ("integer", 1, True), ("integer", 2**70, "1"), ("integer", -1, 1.5),
    ("number", 2, "2"), ("number", 1.5, False), ("boolean", False, 0), ("boolean", True, "true"), ("object", {}, []),
    ("object", {"A": None}, None), ("list(string)", [], "a"), ("list(string)", ["a"], ["a", 1]),
    ("list(list(integer))", [[1], []], [1]), ("list(any)", [1, None, "x"], {"a": 1}), ("list(object)", [{}], [[]]),
])  # fmt: skip
def test_an_output_of_another_type_is_told_to_the_model_which_may_try_again(kind: str, good: Any, bad: Any) -> None:
    found, model, _ = ended([TaskOutput("X", kind)], does(store("X", bad)), does(store("X", good)), does(finish()))
    assert found == TaskResult((good,))
    assert model.asked[1][-1].text.startswith(f"`X` is to be of the type {kind}; ")
    assert model.asked[1][-1].text.endswith(" is not. Store it again.")
    assert model.asked[2][-1].text == "ok"
    found, _, _ = ended([TaskOutput("X", kind)], does(store("X", bad), finish()), done(X=good))
    assert found == TaskResult((good,))


def test_a_turn_without_a_call_gets_a_reminder_and_counts() -> None:
    found, model, messages = ended([], says("hello"), says(""), done(), rounds=3)
    assert found == TaskResult(())
    assert model.asked[1][-2:] == [Message("assistant", "hello"), messages[2]]
    assert messages[2].text.startswith("The task has not ended. Go on, or call `finish`")
    assert ended([], *[says("x")] * 3, rounds=3)[0] == Failed("it took 3 turns of the model, the most that a task may")
    found, model, _ = ended([], *[says("x")] * 50)
    assert (found, len(model.asked), model.left) == (
        Failed("it took 50 turns of the model, the most that a task may"), 50, 0,
    )  # fmt: skip


def test_calls_that_cannot_be_done_say_why() -> None:
    calls = [
        (finish("yes"), "`success` is true or false."),
        (finish(None), "`success` is true or false."),
        (call("finish"), "`success` is true or false."),
        (call("set_result"), "`variable` is one of `X`, `Y`."),
        (call("set_result", variable="X"), "`value` is missing."),
        (call("set_result", variable="Q", value=1), "`variable` is one of `X`, `Y`."),
        (call("ask_user", prompt="q"), "There is no tool ask_user."),
        (ToolCall("1", "finish", {}, "not JSON"), "The arguments cannot be read: not JSON"),
        (call("look", a=1), "looked at {'a': 1}"),
    ]
    found, model, _ = ended(
        [X, TaskOutput("Y", "any")],
        does(*(one for one, _ in calls)),
        does(store("X", 1), store("Y", 2), store("X", 3), finish()),
    )
    assert found == TaskResult((3, 2))
    assert [one.text for one in model.asked[1] if one.role == "tool"] == [result for _, result in calls]
    found, model, _ = ended([], does(store("X", 1)), done())
    assert model.asked[1][-1].text == "The task has no outputs."


def test_the_last_finish_of_a_turn_counts_and_other_calls_of_it_too() -> None:
    assert ended([X], does(finish(), store("X", 1)))[0] == TaskResult((1,))
    assert ended([X], does(store("X", 1), finish(), finish(success=False)))[0] == Failed("the model gave it up")
    assert ended([], GIVES_UP)[0] == Failed("the model gave it up")
    _, model, messages = ended([], says("text", call("look"), call("look"), finish()))
    assert [one.role for one in messages] == ["user", "assistant", "tool", "tool", "tool"]
    assert [one.call_id for one in messages[2:]] == [one.id for one in messages[1].calls], model


def test_the_tools_that_a_model_is_offered_have_a_schema() -> None:
    _, model, _ = ended([TaskOutput("X", "list(integer)")], GIVES_UP)
    assert model.tool_names(0) == ["look", "finish", "set_result"]
    assert model.offered[0][2].parameters["properties"] == {
        "variable": {"type": "string", "enum": ["X"]}, "value": {"type": "array", "items": {"type": "integer"}},
    }  # fmt: skip
    _, model, _ = ended([], GIVES_UP)
    assert model.tool_names(0) == ["look", "finish"]


def nested(times: int) -> Any:
    value: Any = []
    for _ in range(times):
        value = [value]
    return value


@pytest.mark.parametrize("bad", [nested(300), float("nan"), float("inf"), {"a": nested(300)}])
def test_a_value_that_no_term_can_have_is_answered_with_the_reason(bad: Any) -> None:
    found, model, _ = ended([X], does(store("X", bad)), does(call("look", at=bad)), done(X=1))
    assert found == TaskResult((1,))
    assert [asked[-1].text[:29] for asked in model.asked[1:]] == ["The arguments cannot be read:"] * 2
