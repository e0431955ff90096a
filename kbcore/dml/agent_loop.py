"""The loop of one task: a model is asked until it finishes the task, and its tools are called.

The task succeeds with its outputs, or fails; errors of the model, budgets and the engine pass through.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import msgspec

from kbcore.dml.memory import MessageTree
from kbcore.dml.model import Message, ToolCall, ToolSpec, Turn
from kbcore.dml.values import fault_of, is_of_type, schema_of_type, text_of
from kbcore.limits import MAX_TOOL_RESULT_CHARS
from kbcore.text.wording import pluralize

FINISH: Final = "finish"
SET_RESULT: Final = "set_result"
ASK_USER: Final = "ask_user"
OWN_TOOLS: Final = frozenset({FINISH, SET_RESULT, ASK_USER})

INSTRUCTIONS: Final = (
    "You carry out one task of a program. Work with the tools that you are given. Store each output that the task "
    f"names with `{SET_RESULT}`, and end the task with `{FINISH}`: success true when it is done, false when it cannot "
    "be done. What you only say as text ends nothing."
)
_NUDGE: Final = (
    f"The task has not ended. Go on, or call `{FINISH}`: with success true when it is done, with false when it cannot "
    "be done."
)
_RUNNING: Final = "The tool has not ended yet."
"""In the place of a result, for the tasks of a tool that runs: a provider refuses calls without one."""
_ANY_VALUE: Final[dict[str, Any]] = {"description": "The value, of the type that the task names."}


class TaskOutput(msgspec.Struct, frozen=True):
    """An output that a task has to store: its name, and its type (`string`, `list(integer)`, `any`, …)."""

    name: str
    type: str


class Task(msgspec.Struct, frozen=True):
    """A task: the text for the model, and the outputs."""

    text: str
    outputs: tuple[TaskOutput, ...]


class TaskResult(msgspec.Struct, frozen=True):
    """A task that has succeeded: the values of its outputs in their order."""

    values: tuple[Any, ...]


class Failed(msgspec.Struct, frozen=True):
    """A task that has failed, and why."""

    reason: str


class Services(msgspec.Struct, frozen=True):
    """The parts of a run that its loop needs."""

    memory: MessageTree
    tools: Sequence[ToolSpec]
    """The tools that the program defines, as the model may call them here."""
    ask_model: Callable[[Sequence[Message], Sequence[ToolSpec]], Awaitable[Turn]]
    call_tool: Callable[[ToolCall, int], Awaitable[str]]
    """Calls a tool of the program for a conversation (its node), and returns the reply to the model."""
    ask_user: Callable[[str], Awaitable[str]] | None
    most_rounds: int


async def run_task(task: Task, node: int, services: Services) -> tuple[TaskResult | Failed, int]:
    """Return how a task ended, and the conversation then, as a node of the memory."""
    memory = services.memory
    specs = [*services.tools, *_own_tools(task, has_user=services.ask_user is not None)]
    node = memory.add(node, Message("user", _request(task)))
    results: dict[str, Any] = {}
    is_reminded = False
    for _ in range(services.most_rounds):
        messages = [Message("system", INSTRUCTIONS), *memory.conversation(node)]
        turn = await services.ask_model(messages, specs)
        calls = tuple(map(_readable, turn.calls))
        node = memory.add(node, Message("assistant", turn.text, calls))
        if not calls:
            node = memory.add(node, Message("user", _NUDGE))
            continue
        finished: bool | None = None
        for at, call in enumerate(calls):
            if call.problem:
                reply = f"The arguments cannot be read: {call.problem}"
            elif call.name == FINISH:
                success = call.arguments.get("success")
                reply = "" if isinstance(success, bool) else "`success` is true or false."
                finished = success if isinstance(success, bool) else finished
            else:
                reply = await _called(calls[at:], node, task, results, services)
            node = memory.add(node, Message("tool", reply or "ok", (), call.id, call.name))
        if finished is False:
            return Failed("the model gave it up"), node
        if finished:
            missing = [output.name for output in task.outputs if output.name not in results]
            if not missing:
                return TaskResult(tuple(results[output.name] for output in task.outputs)), node
            if is_reminded:
                return Failed(f"the model finished it without {', '.join(missing)}"), node
            is_reminded = True
            named = ", ".join(f"`{name}`" for name in missing)
            node = memory.add(node, Message("user", f"Store {named} with `{SET_RESULT}`, then call `{FINISH}` again."))
    return Failed(f"it took {pluralize(services.most_rounds, 'turn')} of the model, the most that a task may"), node


def _readable(call: ToolCall) -> ToolCall:
    """Return a call; one with a value that no term can have has a problem, and no arguments that are sent again."""
    problem = call.problem or fault_of(call.arguments)
    return msgspec.structs.replace(call, arguments={}, problem=problem) if problem else call


async def _called(calls: Sequence[ToolCall], node: int, task: Task, results: dict[str, Any], services: Services) -> str:
    """Return the reply to the first of the calls that a turn has left: one that can be read, and no `finish`."""
    call = calls[0]
    if call.name == SET_RESULT:
        return _set_result(call.arguments, task, results)
    if call.name == ASK_USER and services.ask_user is not None:
        prompt = call.arguments.get("prompt")
        return await services.ask_user(prompt) if isinstance(prompt, str) else "`prompt` is a text."
    if any(call.name == spec.name for spec in services.tools):
        running = [Message("tool", _RUNNING, (), one.id, one.name) for one in calls]
        return shortened(await services.call_tool(call, services.memory.add(node, *running)))
    return f"There is no tool {call.name}."


def _set_result(arguments: dict[str, Any], task: Task, results: dict[str, Any]) -> str:
    name = arguments.get("variable")
    output = next((one for one in task.outputs if one.name == name), None)
    if output is None:
        names = ", ".join(f"`{one.name}`" for one in task.outputs)
        return f"`variable` is one of {names}." if names else "The task has no outputs."
    if "value" not in arguments:
        return "`value` is missing."
    if not is_of_type(arguments["value"], output.type):
        return (
            f"`{name}` is to be of the type {output.type}; {text_of(arguments['value'])[:200]} is not. Store it again."
        )
    results[output.name] = arguments["value"]
    return ""


def _request(task: Task) -> str:
    """Return the text of the task for the model, with the outputs."""
    if not task.outputs:
        return task.text
    named = "\n".join(f"- `{one.name}`" + ("" if one.type == "any" else f": {one.type}") for one in task.outputs)
    return f"{task.text}\n\nOutputs to store with `{SET_RESULT}`:\n{named}"


def _own_tools(task: Task, *, has_user: bool) -> list[ToolSpec]:
    """Return the tools by which a model ends a task, stores its outputs and asks the user."""
    found = [
        ToolSpec(
            FINISH,
            "End the task.",
            _object(success={"type": "boolean", "description": "Whether the task is done."}),
        )
    ]
    if task.outputs:
        names = [*dict.fromkeys(output.name for output in task.outputs)]
        value = schema_of_type(task.outputs[0].type) if len(names) == 1 else _ANY_VALUE
        found.append(
            ToolSpec(
                SET_RESULT,
                "Store the value of an output of the task.",
                _object(variable={"type": "string", "enum": names}, value=value),
            )
        )
    if has_user:
        found.append(ToolSpec(ASK_USER, "Ask the user, and wait for the answer.", _object(prompt={"type": "string"})))
    return found


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def shortened(text: str) -> str:
    """Return the result of a tool; one that is too long is cut and says so."""
    if len(text) <= MAX_TOOL_RESULT_CHARS:
        return text
    return f"{text[:MAX_TOOL_RESULT_CHARS]}\n[{len(text) - MAX_TOOL_RESULT_CHARS:,} more characters were left out]"
