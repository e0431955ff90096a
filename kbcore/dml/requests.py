"""The requests of a running program, and the answer to each: messages, tasks, tools, input, output and files.

A program waits while its request is answered. A task may call tools of the program meanwhile, which run in the engine
and make requests of their own: so answering and asking go into each other as deeply as the program's tools do.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final

from kbcore.dml.agent_loop import Failed, Services, Task, TaskOutput, run_task
from kbcore.dml.budget import Spent
from kbcore.dml.engine_thread import EngineThread
from kbcore.dml.events import CHANNELS, Event
from kbcore.dml.files import FileRefused, Files
from kbcore.dml.findings import sentence
from kbcore.dml.memory import MessageTree
from kbcore.dml.model import Message, ModelFailed, StreamingModel, ToolCall, ToolSpec, Turn
from kbcore.dml.options import OnInput, Options
from kbcore.dml.program import Program, ProgramTool
from kbcore.dml.tools import Origin, ToolFailed
from kbcore.dml.values import NotAValue, read_number, term_of, text_of
from kbcore.limits import MAX_PROGRAM_VALUE_CHARS
from kbcore.logic.engine.terms import listed, string
from kbcore.text.wording import pluralize, with_full_stop

Emit = Callable[[Event], Awaitable[None]]


class Ended(Exception):
    """The program has ended while a tool of it was waited for; ``reply`` is its last one."""

    def __init__(self, reply: dict[str, Any]) -> None:
        super().__init__()
        self.reply = reply


class Requests:
    """The side of a run that a program asks. One program at a time."""

    def __init__(self, program: Program, engine: EngineThread, options: Options, emit: Emit) -> None:
        self._program = program
        self._engine = engine
        self._model = options.model
        self._tools = options.tools
        self._files = Files(options.workspace)
        self._on_input = options.on_input
        self._budget = options.budget
        self._channels = options.channels
        self._emit = emit
        self._tasks: list[int] = []
        """The numbers of the tasks that are worked on now, the innermost last."""
        self._begun_tasks = 0
        self._actions: Final[dict[str, Callable[[dict[str, Any], int], Awaitable[str]]]] = {
            "message": self._message,
            "fresh_context": self._fresh_context,
            "output": self._output,
            "log": self._log,
            "warning": self._warning,
            "answer": self._answer_given,
            "input": self._input,
            "exec": self._exec,
            "task": self._task,
        }
        self.memory = MessageTree()
        self.spent = Spent(options.budget)
        self.model_failure: ModelFailed | None = None
        """The last failure of the model that was raised in the program."""

    async def converse(self, text: str, last: str) -> dict[str, Any]:
        """Send a request to the engine and answer those of the program, until it replies with the status ``last``.

        Raises:
            Ended: the program has ended before.
            BudgetExceeded: a budget is used up.
            EngineEnded: the engine is gone.
        """
        reply = await self._ask(text)
        while reply["status"] == "request":
            reply = await self._ask(f"{await self._answer(reply)}.\n")
        if reply["status"] != last:
            raise Ended(reply)
        return reply

    async def tell(self, event: Event) -> None:
        """Tell an event, unless it is of a channel that nobody asked for."""
        if event.type not in CHANNELS or event.type in self._channels:
            await self._emit(event)

    async def _ask(self, text: str) -> dict[str, Any]:
        """Send a message to the engine; note what the program has used, and tell what it has printed."""
        reply = await self._engine.ask(text)
        self.spent.inferences = reply.get("inferences", self.spent.inferences)
        if reply.get("output"):
            await self.tell(Event("output", reply["output"]))
        return reply

    async def _answer(self, request: dict[str, Any]) -> str:
        """Return the answer to a request as a term."""
        kind, node = request["kind"], request["memory"]
        await self._trace(request)
        if kind in self._files.kinds:
            try:
                return _done(self._files.answer(request), node)
            except FileRefused as refused:
                return f"raise({refused.formal},{string(refused.message)})"
        return await self._actions[kind](request, node)

    async def _trace(self, request: dict[str, Any]) -> None:
        if "trace" in self._channels:
            unshown = {"status", "output", "inferences", "running"}
            shown = {key: value for key, value in request.items() if key not in unshown}
            await self.tell(Event("trace", request["kind"], data={"request": shown, "tools": _running(request)[::-1]}))

    # Messages, output and input

    async def _message(self, request: dict[str, Any], node: int) -> str:
        return _done("true", self.memory.add(node, Message(request["role"], request["text"])))

    async def _fresh_context(self, _: dict[str, Any], node: int) -> str:
        return _done("true", self.memory.fresh(node))

    async def _output(self, request: dict[str, Any], node: int) -> str:
        await self.tell(Event("output", request["text"]))
        return _done("true", node)

    async def _log(self, request: dict[str, Any], node: int) -> str:
        await self.tell(Event("log", request["text"]))
        return _done("true", node)

    async def _warning(self, request: dict[str, Any], node: int) -> str:
        await self.tell(Event("log", request["message"], code="warning"))
        return _done("true", node)

    async def _answer_given(self, request: dict[str, Any], node: int) -> str:
        await self.tell(Event("answer", request["text"]))
        return _done("true", self.memory.add(node, Message("assistant", request["text"])))

    async def _input(self, request: dict[str, Any], node: int) -> str:
        if self._on_input is None:
            return f"raise(existence_error(input,user),{string('Nobody is there who answers.')})"
        return _done(string(await self._asked(self._on_input, request["prompt"])), node)

    async def _asked(self, on_input: OnInput, prompt: str) -> str:
        """Return what the user says."""
        await self.tell(Event("input_required", prompt=prompt))
        given = on_input(prompt)
        said = await given if inspect.isawaitable(given) else given
        if not isinstance(said, str):  # a defect of the caller
            raise TypeError(f"on_input has to return a text, and returned {type(said).__name__}")
        return said

    # Tools

    async def _exec(self, request: dict[str, Any], node: int) -> str:
        name = request["tool"]
        tool = self._tools.find(name)
        if tool is None and self._program.tool(name):
            return _done("own", node)
        if refusal := self._tools.refusal(name):
            return await self._not_done(name, f"`{name}` is blocked: {refusal}.", "blocked")
        if tool is None:
            return await self._not_done(name, f"There is no tool `{name}`.", "unknown_tool")
        try:
            arguments = tool.bound(request["arguments"], request["named"])
            await self.tell(Event("tool_call", name, data={"arguments": arguments}))
            result = await tool.call(arguments, Origin(self._tasks[-1] if self._tasks else self._begun_tasks))
            return _done(f"value({_bounded(term_of(result))})", node)
        except (ToolFailed, NotAValue) as error:
            return await self._not_done(name, with_full_stop(f"The tool `{name}` failed: {error}"), "tool_failed")

    async def _not_done(self, name: str, why: str, code: str) -> str:
        await self.tell(Event("log", why, code=code, data={"tool": name}))
        return "failed"

    # Tasks

    async def _task(self, request: dict[str, Any], node: int) -> str:
        task = Task(request["text"], tuple(TaskOutput(one["name"], one["type"]) for one in request["outputs"]))
        services = Services(
            memory=self.memory,
            tools=[_spec_of(tool) for tool in self._program.tools if tool.name not in _running(request)],
            ask_model=self._ask_model,
            call_tool=self._call_tool,
            ask_user=partial(self._asked, self._on_input) if self._on_input else None,
            most_rounds=self._budget.task_rounds,
        )
        self._begun_tasks += 1
        self._tasks.append(self._begun_tasks)
        try:
            ended, node = await run_task(task, node, services)
        except ModelFailed as error:
            self.model_failure = error
            return f"raise(model_error({string(str(error))}),task)"
        except _Again as again:
            return f"raise_again({again.number})"
        finally:
            self._tasks.pop()
        if isinstance(ended, Failed):
            await self.tell(Event("log", f"A task failed: {ended.reason}.", code="task_failed"))
            return "failed"
        return _done(listed(map(term_of, ended.values)), node)

    async def _ask_model(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Turn:
        if self._model is None:
            raise ModelFailed("no model is given", hint="Give one to `run_dml` as `model`.")
        self.spent.add_round()
        if "stream" in self._channels and isinstance(self._model, StreamingModel):
            turn = await self._model.stream(messages, tools, self._tell_part)
        else:
            turn = await self._model.complete(messages, tools)
        try:
            self.spent.add_usage(turn.usage)
        finally:
            if "trace" in self._channels:
                said = pluralize(len(turn.calls), "call")
                await self.tell(Event("trace", "turn", data={"text": turn.text, "calls": said, **self.spent.as_json()}))
        return turn

    async def _tell_part(self, text: str) -> None:
        await self.tell(Event("stream", text))

    async def _call_tool(self, call: ToolCall, node: int) -> str:
        """Return the reply to the call of a tool of the program: its result, or why there is none.

        Raises:
            _Again: the tool ended with an error that is not the model's: the goal of the task ends with it.
        """
        names = _input_names(next(tool for tool in self._program.tools if tool.name == call.name))
        if missing := [name for name in names if name not in call.arguments]:
            return f"Missing: {', '.join(missing)}."
        await self.tell(Event("tool_call", call.name, data={"arguments": call.arguments}))
        given = [call.arguments[name] for name in names]
        inputs = listed(term_of(read_number(one) if isinstance(one, str) else one) for one in given)
        reply = await self.converse(f"tool({string(call.name)},{inputs},{node}).\n", "tool")
        if reply["outcome"] == "done":
            return text_of(reply["value"])
        if reply["outcome"] == "failed":
            return "The tool failed."
        if reply["kind"] == "inference_limit":
            raise self.spent.steps_exceeded()
        if reply["kind"] == "model_error" or reply["kind"].endswith("_limit"):
            raise _Again(reply["number"])
        said, _ = sentence(reply)
        await self.tell(Event("log", f"The tool `{call.name}` ended with an error: {said}", code="tool_failed"))
        return f"The tool ended with an error: {said}"


class _Again(Exception):
    """The error of a tool that its engine keeps under a number."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def _done(value: str, node: int) -> str:
    return f"done({value},{node})"


def _bounded(value: str) -> str:
    """Return the result of a tool. Raises: ``ToolFailed`` where it is longer than one may be."""
    if len(value) > MAX_PROGRAM_VALUE_CHARS:
        raise ToolFailed(f"its result has more than {MAX_PROGRAM_VALUE_CHARS:,} characters")
    return value


def _running(request: dict[str, Any]) -> list[str]:
    """Return the tools of the program that run when it makes a request, the innermost first."""
    running: list[str] = request.get("running", [])
    return running


def _input_names(tool: ProgramTool) -> list[str]:
    return [f"arg{at}" for at in range(1, tool.inputs + 1)]


def _spec_of(tool: ProgramTool) -> ToolSpec:
    """Return a tool of the program as a model sees it: its inputs are texts, and its clauses are in the description."""
    names = _input_names(tool)
    parameters = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    return ToolSpec(tool.name, "\n\n".join(filter(None, [tool.description, tool.source])), parameters)
