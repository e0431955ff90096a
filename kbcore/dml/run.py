"""One run of a program: its events, its limits, and how it ends.

Invariant: the last event of a run is `finished`, whatever happens; and when its events are not read any more, nothing
of the run is left, no process and no task.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kbcore.dml.budget import Budget, BudgetExceeded, Spent
from kbcore.dml.engine_thread import EngineThread
from kbcore.dml.events import Event, Outcome, error_event
from kbcore.dml.findings import sentence
from kbcore.dml.memory import ROOT
from kbcore.dml.model import Message, Model
from kbcore.dml.options import OnInput, Options
from kbcore.dml.program import Program, call_of, load_request, program_of
from kbcore.dml.requests import Ended, Requests
from kbcore.dml.tools import Policy, Tool, Toolset
from kbcore.dml.values import NotAValue, term_of
from kbcore.errors import KBError, ModelUnavailable, ProgramFailed, ResourceLimit
from kbcore.limits import MAX_PROGRAM_VALUE_CHARS
from kbcore.logic.engine import EngineEnded
from kbcore.logic.engine.terms import listed, string

_LIMITS: Final = frozenset({"memory", "output_limit", "file_limit"})
"""The kinds of the errors of a program that took more of something than it may."""
_LESS: Final = "Let the program hold less at once."
_QUEUED: Final = 100
"""The events that wait for a reader; a run that has more waits itself."""


def run_dml(  # noqa: PLR0913 - each has a default, and is named by the caller
    code: str,
    *,
    params: Mapping[str, Any] | None = None,
    args: Sequence[Any] = (),
    model: Model | None = None,
    tools: Toolset | Iterable[Tool | Callable[..., Any]] = (),
    policy: Policy | None = None,
    workspace: Path | None = None,
    on_input: OnInput | None = None,
    budget: Budget | None = None,
    stream: bool = False,
    trace: bool = False,
    tool_calls: bool = False,
    file: str = "program",
    env: Mapping[str, str] | None = None,
) -> Run:
    """Return a run of a program, which begins when its events are read (``async for``).

    Args:
        code: the program.
        params: values by name, of JSON types: for the arguments of `agent_main`, and for `param(…)`.
        args: values by position, for the arguments of `agent_main`.
        model: is asked by tasks; a program without tasks needs none.
        tools: what `exec/2` may call; functions become tools by their names, docstrings and annotations.
        policy: which of them it may call; all without one. It takes the place of the policy of a ``Toolset``.
        workspace: the folder whose files the program may read and write; without one it has no files.
        on_input: answers `wait_for_input/2` and the models' questions; may be async.
        budget: the most that the run may use.
        stream: also tell `stream` events, the parts of what a model says.
        trace: also tell `trace` events, the requests of the program and the turns of the model.
        tool_calls: also tell `tool_call` events.
        file: the name of the program in messages.
        env: chooses the engine (``KB_LOGIC_ENGINE``); the environment of the process without one.

    Raises:
        ValueError: two tools have one name, or one has a parameter without a schema.
    """
    toolset = tools if isinstance(tools, Toolset) else Toolset(tools)
    if policy is not None:
        toolset = toolset.under(policy)
    asked = {"stream": stream, "trace": trace, "tool_call": tool_calls}
    options = Options(
        params=params or {},
        args=args,
        model=model,
        tools=toolset,
        workspace=workspace,
        on_input=on_input,
        budget=budget or Budget(),
        channels=frozenset(name for name, is_asked in asked.items() if is_asked),
        file=file,
        env=os.environ if env is None else env,
    )
    return Run(code, options)


class Run:
    """A run. It is read once, by ``async for``; to stop reading ends it."""

    def __init__(self, code: str, options: Options) -> None:
        self._code = code
        self._options = options
        self._budget = options.budget
        self._engine = EngineThread(options.env, options.budget.timeout_s)
        self._events: asyncio.Queue[Event] = asyncio.Queue(_QUEUED)
        self._requests: Requests | None = None
        self._reader: weakref.ref[AsyncGenerator[Event]] | None = None
        """Whoever reads holds the reader: when nobody does any more, the run ends."""
        self._last_node = ROOT
        self.error: KBError | None = None
        """The error that ended the run, where its outcome is `error`."""

    @property
    def memory(self) -> list[Message]:
        """Return the conversation at the end of the run; after an answer, the last message is the last answer."""
        return self._requests.memory.conversation(self._last_node) if self._requests else []

    @property
    def spent(self) -> Spent:
        """Return what the run has used so far."""
        return self._requests.spent if self._requests else Spent(self._budget)

    def __aiter__(self) -> AsyncGenerator[Event]:
        """Begin the run. Raises: ``RuntimeError`` where it was begun before."""
        if self._reader is not None:
            raise RuntimeError("a run is read once")
        reader = self._read()
        self._reader = weakref.ref(reader)
        return reader

    async def aclose(self) -> None:
        """End the run, where it has begun and not ended."""
        reader = self._reader and self._reader()
        if reader:
            await reader.aclose()

    async def _read(self) -> AsyncGenerator[Event]:
        worker = asyncio.create_task(self._work())
        waiting: asyncio.Task[Event] | None = None
        try:
            while True:
                waiting = asyncio.create_task(self._events.get())
                await asyncio.wait({waiting, worker}, return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done() and worker.done() and self._events.empty():
                    worker.result()  # a defect of KB: the worker sent no last event
                event = await waiting
                yield event
                if event.type == "finished":
                    return
        finally:
            worker.cancel()
            if waiting is not None:
                waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(asyncio.gather(worker, *([waiting] if waiting else []), return_exceptions=True))

    async def _work(self) -> None:
        """Run the program and tell its events; the last one says how it ended."""
        try:
            outcome = await self._outcome()
        except KBError as error:
            self.error, outcome = error, "error"
        finally:
            await self._engine.end()
        if self.error is not None:
            await self._events.put(error_event(self.error))
        await self._events.put(Event("finished", outcome=outcome, data={"spent": self.spent.as_json()}))

    async def _outcome(self) -> Outcome:
        """Return how the program ended.

        Raises:
            KBError: it could not be run, ended with an error, or a budget is used up.
        """
        try:
            async with asyncio.timeout(self._budget.timeout_s) as clock:
                return await self._run()
        except TimeoutError:
            if not clock.expired():
                raise
            raise self._exceeded("timeout_s", f"{self._budget.timeout_s:g} seconds") from None
        except BudgetExceeded as exceeded:
            raise self._exceeded(exceeded.name, exceeded.most) from exceeded
        except EngineEnded as ended:
            raise _engine_error(ended) from ended

    async def _run(self) -> Outcome:
        await self._engine.start()
        program = await self._loaded()
        requests = self._requests = Requests(program, self._engine, self._options, self._events.put)
        request = self._run_request(program)
        try:
            reply = await requests.converse(request, "finished")
        except Ended as ended:
            reply = ended.reply
        if reply["status"] != "finished":
            raise _program_error(reply)
        self._last_node = reply["memory"]
        if reply["outcome"] != "error":
            outcome: Outcome = reply["outcome"]
            return outcome
        if reply["kind"] == "inference_limit":
            raise requests.spent.steps_exceeded()
        failure = requests.model_failure
        if reply["kind"] == "model_error" and failure is not None:
            raise ModelUnavailable(f"The model could not be asked: {failure}.", hint=failure.hint)
        raise _program_error(reply)

    async def _loaded(self) -> Program:
        reply = await self._engine.ask(load_request(self._code, self._options.file))
        if reply["status"] == "error":
            raise _program_error(reply)
        return program_of(reply, self._code, self._options.file)

    def _run_request(self, program: Program) -> str:
        """Return the request that runs the program. Raises: ``ProgramFailed`` for what it is given."""
        call = call_of(program, self._options.params, self._options.args)
        try:
            arguments = listed(map(term_of, call.arguments))
            params = listed(f"{string(key)}-{term_of(value)}" for key, value in call.params.items())
        except NotAValue as error:
            raise ProgramFailed(f"A param has no value of JSON: {error}.") from error
        if len(arguments) + len(params) > MAX_PROGRAM_VALUE_CHARS:
            message = f"The params have more than {MAX_PROGRAM_VALUE_CHARS:,} characters."
            raise ProgramFailed(message, hint="Put a large text into a file of the folder of the program.")
        return f"run({arguments},{params},{self._budget.gas}).\n"

    def _exceeded(self, name: str, most: str) -> ResourceLimit:
        """Return the error for a budget that is used up, with what the run has used."""
        return BudgetExceeded(name, most).as_error(self.spent)


def _program_error(reply: Mapping[str, Any]) -> ProgramFailed | ResourceLimit:
    said, remedy = sentence(reply)
    if reply["kind"] in _LIMITS:
        return ResourceLimit(said, hint=remedy or _LESS, data={"kind": reply["kind"]})
    data = {name: reply[name] for name in ("kind", "name", "reason", "predicate") if reply.get(name)}
    where = f" in `{reply['predicate']}`" if reply.get("predicate") else ""
    return ProgramFailed(f"The program ended with an error{where}: {said}", hint=remedy, data=data)


def _engine_error(ended: EngineEnded) -> ResourceLimit | ProgramFailed:
    """Return the error for an engine that is gone."""
    said, remedy = sentence({"kind": ended.reason, "exit_status": ended.status})
    if ended.reason in {"memory", "stack", "timeout"}:
        return ResourceLimit(said, hint=remedy or _LESS, data={"kind": ended.reason})
    return ProgramFailed(f"The run has ended: {said}", hint="Run it again.", data={"kind": ended.reason})
