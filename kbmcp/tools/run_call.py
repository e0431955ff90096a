"""Runs the request of a client in the context of its branch, and converts every outcome to one JSON document.

A failure never ends the server: what KB explains is reported with its remedy; a bug is reported as one, and in full on
standard error. A client that asked for it gets the progress of its call: the latest note, a few times a second at
most, and none after the answer. A client that does not read holds up no work.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Any, Final, Literal

import anyio
import mcp_types as types
import msgspec

from kbcore import progress
from kbcore.errors import Interrupted, InvalidQuery, KBError, LimitExceeded, NeedsPerson, Problem
from kbcore.limits import MIB
from kbcore.process import interrupting
from kbcore.process.interrupting import CurrentWork, Stopped
from kbcore.process.system_limits import check_room, exhausted
from kbmcp.protocol.call_queue import Ticket
from kbmcp.tools import answers, elicitation, hints
from kbmcp.tools.answers import Payload
from kbmcp.tools.call import Client, Report
from kbmcp.tools.refusals import error_json, refused_arguments
from kbmcp.tools.service import Arrival, ServerOptions, Service

MAX_ARGUMENT_BYTES: Final = 4 * MIB
EVERY_S: Final = 0.5
"""The time before the first progress notification of a call, and the interval of further ones."""

_ADVICE_CHARS: Final = 300
"""More than the advice takes."""

Run = Callable[[Any, Any, list[Problem]], Payload]
"""Carries out what was read on the open branch, a ``Call``; None for a tool that needs no branch. It gets what is wrong
with it, adds what it finds itself, and refuses the call."""


class CallResult(msgspec.Struct, frozen=True):
    """The result: the document to send, and the error that it explains, if it explains one."""

    options: ServerOptions
    payload: Payload
    error: Exception | None = None
    writes: bool = False
    """The failed call would write, as far as that is known."""


def _finished(outcome: CallResult) -> types.CallToolResult:
    """Return the result of a call whose answer is a document of KB's own."""
    return answers.failure(outcome.payload) if outcome.error else answers.success(outcome.payload)


class McpTool(msgspec.Struct, frozen=True):
    """One tool.

    ``read`` parses the arguments before anything is opened. ``run`` gets what it returns: what is asked, without
    the arguments that are wrong, and what is wrong with those; it adds what it finds itself, and refuses the call.
    """

    key: str
    description: str | Mapping[str, str]
    """Its effect; of a tool with actions, that of each of them."""
    model: type[Any] | None
    """The arguments; None where ``schema`` describes them as it is published."""
    read: Callable[[Mapping[str, Any]], tuple[Any, list[Problem]]]
    run: Run
    writes: Literal["never", "sometimes", "always"] = "never"
    writing: tuple[str, ...] = ()
    """The arguments, and values of them, that only writing needs; not offered where the server only reads."""
    is_idempotent: bool = False
    toolset: str = "core"
    schema: Mapping[str, Any] = {}
    finish: Callable[[CallResult], types.CallToolResult] = _finished
    """Makes the result of a call of its outcome."""
    needs_branch: bool = True
    """False for a tool whose answer depends on nothing but its arguments: ``run`` gets no call then."""
    uses_prolog: bool = False
    """It works on the Prolog workspace: one call after the other, in the order in which they were sent.

    A call that only reads of a tool that writes sometimes needs no engine, and waits for none.
    """

    def takes_turn(self, arguments: Mapping[str, Any]) -> bool:
        """Tell whether a call has to wait for those before it that work on the Prolog workspace."""
        return self.uses_prolog and (self.writes != "sometimes" or arguments.get("operation") in self.writing)


class ClientRequest(msgspec.Struct, frozen=True):
    """The parsed request of a client, before anything is opened."""

    asked: Any
    problems: list[Problem] = []
    expect_branch: str = ""
    """The branch that it must be, if the client said."""
    writes: bool = False
    dry_run: bool = False
    """The write is only planned: no store is made for it."""


async def run_tool(
    service: Service, tool: McpTool, arguments: Mapping[str, Any], client: Client
) -> types.CallToolResult:
    """Run a call of a tool when it is admitted, and return its result, whatever happens."""
    read = partial(_read_arguments, service, tool, arguments)
    if not tool.needs_branch:
        return tool.finish(_answer_alone(service, tool, read))

    async def run(client: Client) -> CallResult:
        async with service.prolog_turn if tool.takes_turn(arguments) else nullcontext():
            return await run_call(service, client, tool.key, read, tool.run, writes=tool.writes == "always")

    outcome = await run(client)
    if isinstance(outcome.error, NeedsPerson) and client.ask is not None:
        if await client.ask(outcome.error.question):
            outcome = await run(msgspec.structs.replace(client, confirmed=outcome.error.question))
        else:
            outcome.payload["error"]["hint"] = elicitation.NOT_CONFIRMED
    takes_advice = tool.toolset == "core" and not arguments.get("context") and client.author is None
    return tool.finish(_advised(service, outcome) if takes_advice else outcome)


def _advised(service: Service, outcome: CallResult) -> CallResult:
    """Return the outcome with the standing advice, where it is the first answer of the connection that has room for it.

    An answer within a budget of tokens has none, nor has an error, or what a program asks.
    """
    if service.notices.has_advised or outcome.error is not None:
        return outcome
    if answers.length_of(outcome.payload) > answers.PAGE_CHARS - _ADVICE_CHARS:
        return outcome
    advice = service.notices.take_advice()
    return msgspec.structs.replace(outcome, payload=outcome.payload | {"advice": advice}) if advice else outcome


def _answer_alone(service: Service, tool: McpTool, read: Callable[[], ClientRequest]) -> CallResult:
    """Return the result of a call that needs no branch."""
    try:
        request = read()
        return CallResult(service.options, tool.run(None, request.asked, request.problems))
    except KBError as error:
        return _Attempt(service, Client(), tool.key, read, tool.run, writes=False).refused(error, is_in_loop=True)


def _read_arguments(service: Service, tool: McpTool, arguments: Mapping[str, Any]) -> ClientRequest:
    check_size(arguments)
    asked, problems = tool.read(arguments)
    writes = getattr(asked, "writes", tool.writes == "always") or getattr(asked, "action", "") in tool.writing
    if writes and service.options.is_read_only:
        message = "This server runs with --read-only."
        name = "operation" if hasattr(asked, "operation") else "action"
        problem = Problem(f"$.{name}", "not_offered", message, f"Leave `{name}` at one that reads.")
        raise refused_arguments([problem])
    return ClientRequest(asked, problems, getattr(asked, "expect_branch", ""), writes, getattr(asked, "dry_run", False))


def check_size(arguments: Mapping[str, Any]) -> None:
    """Refuse arguments that are too large to be read. Raises: ``InvalidQuery``, ``LimitExceeded``."""
    try:
        size = len(msgspec.json.encode(arguments))
    except (UnicodeEncodeError, RecursionError) as error:
        raise InvalidQuery("The arguments have incomplete characters, or are nested too deep.") from error
    if size > MAX_ARGUMENT_BYTES:
        raise LimitExceeded(f"The arguments are {size} bytes; one call takes {MAX_ARGUMENT_BYTES}.")


async def run_call(
    service: Service, client: Client, key: str, read: Callable[[], ClientRequest], run: Run, *, writes: bool = False
) -> CallResult:
    """Read a request, run it when it is admitted, and return its result, whatever happens.

    Requests of one branch that write are run in the order in which this was called, those that read in parallel to
    them (``CallQueue``). One that waits holds no thread, and one that is cancelled meanwhile gives its place back.

    ``read`` looks at what was asked before anything is opened, and refuses it by raising; ``writes`` says what is
    known before that. ``key`` is the tool that remedies name.
    """
    async with service.queue.arrival() as ticket:
        attempt = _Attempt(service, client, key, read, run, writes=writes)
        work: CurrentWork | None = None
        try:
            async with reporting(client.report):
                with running(service) as work:
                    check_room()
                    while (result := await service.threads.run(partial(attempt.go_on, ticket), work.stop)) is None:
                        await ticket.reached()
                    return result
        except Exception as error:
            # The system made no thread, or gave no memory here.
            known = exhausted(error, may_be_written=work is not None and work.may_have_written)
            if known is None:
                raise
            return attempt.refused(known, is_in_loop=True)


class _Attempt:
    """One request being processed, and what is known of it should it fail. Runs in worker threads."""

    def __init__(
        self, service: Service, client: Client, key: str, read: Callable[[], ClientRequest], run: Run, *, writes: bool
    ) -> None:
        self._service = service
        self._client = client
        self._key = key
        self._read = read
        self._run = run
        self._writes = writes
        self._ready: tuple[ClientRequest, Arrival] | None = None
        """The request and its branch, when they are known."""
        self._around: Payload = {}

    def go_on(self, ticket: Ticket) -> CallResult | None:
        """Do what can be done now: read the request, find its branch, run it; None where it is not admitted yet.

        It is called again when the request is admitted.
        """
        try:
            if self._ready is None:
                request = self._read()
                self._writes = request.writes
                arrival = self._service.arrive(request.expect_branch)
                self._ready = request, arrival
                if not ticket.move(arrival.directory, reads=not request.writes):
                    return None
                return self._carry_out(*self._ready)
            request, arrival = self._ready
            return self._carry_out(request, arrival.renewed())
        except Stopped:
            stopped = _interrupted(may_be_written=interrupting.may_have_written())
            body = {"error": stopped.as_json(writes=self._writes)} | self._around
            return CallResult(self._service.options, body, stopped, self._writes)
        except KBError as error:
            return self.refused(error)
        except Exception as error:  # noqa: BLE001 - a bug: reported to the client as such, and in full on standard error
            known = exhausted(error, may_be_written=interrupting.may_have_written())
            if known:
                return self.refused(known)
            traceback.print_exc(file=sys.stderr)
            return CallResult(self._service.options, bug(error) | self._around, error, self._writes)

    def _carry_out(self, request: ClientRequest, arrival: Arrival) -> CallResult:
        service, around = self._service, self._around
        with service.open(self._client, arrival, writes=request.writes, dry_run=request.dry_run) as call:
            around |= {"repository": call.repository, "branch": call.branch, **call.answered_from}
            try:
                found = self._run(call, request.asked, request.problems)
                payload = {"repository": call.repository} | found | call.answered_from
                if service.after_read and not request.writes:  # after a write, reading would first publish the view
                    service.after_read(call, payload)
                    call.notes.append(service.reads.note(call.branch, call.store, call.author.session, payload))
                news = service.notices.news(call)
            except KBError:
                around |= _noted({}, service.notices.news(call), service.options)
                with suppress(KBError):  # the store may be what is damaged
                    around["seq"] = call.store.head().seq
                raise
        return CallResult(service.options, _noted(payload, news, service.options))

    def refused(self, error: KBError, *, is_in_loop: bool = False) -> CallResult:
        """Return the answer to a request that failed with an error that KB explains.

        The branch is found out by asking git, but not ``is_in_loop``, where that would keep all others waiting.
        """
        options = self._service.options
        around = self._around or ({} if is_in_loop else self._service.place())
        locate = self._service.located
        error.locate_remedies(locate)
        hint = hints.hint_for(error, self._key, is_dotted=options.is_dotted, has_core=options.has_core)
        hint = locate(hint)
        body = error_json(
            error, hint, around, writes=self._writes, is_dotted=options.is_dotted, has_core=options.has_core
        )
        return CallResult(options, body, error, self._writes)


def _interrupted(*, may_be_written: bool) -> Interrupted:
    stopped = Interrupted("The call was interrupted.")
    if may_be_written:
        stopped.applied = "unknown"
    return stopped


def _noted(payload: Payload, news: str, options: ServerOptions) -> Payload:
    """Return the payload with the news before what it notes itself."""
    note = f"{news} {payload.get('note', '')}".strip()
    if not note:
        return payload
    return payload | {"note": hints.in_tool_words(note, is_dotted=options.is_dotted, has_core=options.has_core)}


def bug(error: Exception) -> Payload:
    """Return what a client gets of an error that KB does not explain."""
    return {
        "error": {
            "code": "internal_error",
            "message": f"KB failed unexpectedly ({type(error).__name__}).",
            "hint": "What KB has acknowledged is safe. The server wrote the details to its log; please report them.",
            "retryable": False,
            "applied": "unknown",
            "details": [],
        }
    }


@contextmanager
def running(service: Service) -> Iterator[CurrentWork]:
    """Let what the block does in threads be one work, stopped when the server stops. Gives the work."""
    work = CurrentWork()
    service.running.add(work)
    if service.is_stopped:
        work.stop()
    try:
        with interrupting.done_for(work):
            yield work
    finally:
        service.running.discard(work)


@asynccontextmanager
async def reporting(report: Report | None) -> AsyncIterator[None]:
    """Notify a client of the work that is begun inside the block, which raises nothing but its cancellation."""
    if report is None:
        yield
        return
    course = _Course()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(course.send, report)
        with progress.listener(course.note):
            yield
        tasks.cancel_scope.cancel()


class _Course:
    """The progress of one call: the steps of its work, one after the other, as one count that only grows."""

    def __init__(self) -> None:
        self._step = ("", 0)
        self._before = 0
        """The count of the steps before this one."""
        self._latest: tuple[int, int, str] | None = None

    def note(self, done: int, total: int, what: str) -> None:
        """Note the progress of a step; one that restarts is another step. Runs in the work's thread."""
        if self._latest and (what != self._step[0] or done < self._step[1]):
            self._before = self._latest[0]
        self._step = (what, done)
        self._latest = (self._before + done, self._before + total, f"{what}: {done} of {total}")

    async def send(self, report: Report) -> None:
        """Report the latest note again and again, until cancelled."""
        sent = -1
        while True:
            await anyio.sleep(EVERY_S)
            if self._latest and self._latest[0] > sent:
                sent, total, words = self._latest
                await report(sent, total, words)
