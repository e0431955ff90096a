"""The server: tools, resources and prompts on the SDK's low-level server, until its client or a signal ends it.

A call runs in a worker thread that is never abandoned: when a request is cancelled, or its client has disconnected,
its database statement is interrupted, and a write is applied completely or not at all.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, NamedTuple, Never

import anyio
import anyio.to_thread
import mcp_types as types
import msgspec
from anyio.abc import TaskGroup
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.shared.exceptions import MCPError
from mcp_types.methods import CLIENT_REQUESTS
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from kbcore import __version__, gc_pause
from kbcore.clock import SystemClock
from kbcore.errors import ResourceLimit
from kbcore.text.escaping import escape_controls
from kbmcp.protocol.log_messages import ClientLog
from kbmcp.protocol.stdio import END_OF_INPUT, STOP, Pipes
from kbmcp.resources import completion, prompts, resource_list, skills
from kbmcp.resources.prompt_guidance import instructions
from kbmcp.resources.subscriptions import Subscriptions
from kbmcp.tools import tool_list
from kbmcp.tools.call import Client
from kbmcp.tools.elicitation import InputNeeded, Questions
from kbmcp.tools.refusals import must_be
from kbmcp.tools.run_call import McpTool, bug, run_tool
from kbmcp.tools.service import ServerOptions, Service
from kbmcp.tools.type_listing import Listing

__all__ = ["ServerOptions", "serve", "server_for"]


class Live(msgspec.Struct, frozen=True):
    """The state that the handlers of a running server share."""

    service: Service
    subscriptions: Subscriptions
    listing: Listing
    tools: Mapping[str, McpTool]
    """Those that are offered, by name."""
    questions: Questions
    log: ClientLog
    tasks: TaskGroup
    """Tasks that run besides the requests; they end with the server."""


ENDS_S: Final = 1.8
"""The time that the process may take to end after the last message or a signal, whatever runs."""

_WRONG_PARAMS: Final = "The parameters of {} are invalid: {}."
_KINDS: Final = {
    "string_type": "a string",
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
"""By the type of pydantic's error."""

Context = ServerRequestContext[Live, Any]


def serve(options: ServerOptions, reads_fd: int, writes_fd: int) -> Never:
    """Serve one client until it closes its end or a signal comes, then end the process with status 0."""
    # What a request makes holds few cycles, and each collection walks what is kept of the branch.
    gc_pause.raise_threshold()
    _warn_of_libraries(options)
    deadline = _Deadline()
    anyio.run(_serve, options, reads_fd, writes_fd, deadline)
    _end_process()


def _warn_of_libraries(options: ServerOptions) -> None:
    """Name on standard error the libraries of Prolog that were asked for and are not loaded."""
    if "logic" not in options.toolsets:
        return
    from kbcore.logic.engine.libraries import LISTED, chosen

    for name in chosen(options.env, options.libraries).refused:
        why = f"it is not one of those that may be loaded: {', '.join(LISTED)}"
        sys.stderr.write(f"kb-mcp: warning: library({escape_controls(name)}) is not loaded; {why}\n")


def _end_process() -> Never:
    """End the process with status 0, without what Python does last: freeing every object takes 0.4 s of the processor.

    All answers are written and all stores are closed. What libraries registered for the end of the process is called:
    the private folder is removed so. A thread that waits for a client that does not read would keep the process for
    ever, so none is waited for. The deadline ends the process where one of these steps takes too long.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public name for what Python itself calls at its end
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # it is not read any more, or it is closed
            stream.flush()
    os._exit(0)


class _Deadline:
    """Ends the process from within when it should have ended and has not, because a thread cannot be interrupted.

    Its thread is started at once: later the system may make none.
    """

    def __init__(self) -> None:
        self.number = 0
        """The signal that arrived, 0 for none."""
        self._has_begun = threading.Event()
        threading.Thread(target=self._wait, name="kb-mcp deadline", daemon=True).start()

    def begin(self) -> None:
        """Let the time begin, if it has not begun yet."""
        self._has_begun.set()

    def _wait(self) -> None:
        self._has_begun.wait()
        SystemClock().sleep(ENDS_S)
        os._exit(128 + self.number if self.number else 0)


async def _serve(options: ServerOptions, reads_fd: int, writes_fd: int, deadline: _Deadline) -> None:
    server, pipes = server_for(options), Pipes(reads_fd, writes_fd, deadline.begin)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_obey_signals, pipes, tasks.cancel_scope, deadline)
        async with pipes.open() as (incoming, outgoing):
            await server.run(incoming, outgoing, initialization(server))
        tasks.cancel_scope.cancel()


async def _obey_signals(pipes: Pipes, everything: anyio.CancelScope, deadline: _Deadline) -> None:
    """At the first signal finish open requests; at the second wait only for a running commit."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        is_stopping = False
        async for number in signals:
            deadline.number = deadline.number or number
            deadline.begin()
            if is_stopping:
                everything.cancel()
            is_stopping = True
            pipes.stop()


def initialization(server: Server[Live]) -> InitializationOptions:
    """Return how the server introduces itself to a client with a handshake: it says when the list of tools changes."""
    return server.create_initialization_options(NotificationOptions(tools_changed=True))


def server_for(options: ServerOptions) -> Server[Live]:
    """Return the server, ready to run over any pair of streams."""

    @asynccontextmanager
    async def lifespan(_: Server[Live]) -> AsyncIterator[Live]:
        service = Service(options)
        subscriptions, listing = Subscriptions(service), Listing(options.toolsets)
        service.after_read = listing.note
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(subscriptions.watch)
                yield Live(service, subscriptions, listing, tool_list.by_name(service), Questions(), ClientLog(), tasks)
                tasks.cancel_scope.cancel()
        finally:
            service.close()

    server = Server(
        "kb",
        version=__version__,
        title="KB",
        instructions=instructions(options.toolsets, is_dotted=options.is_dotted, is_read_only=options.is_read_only),
        lifespan=lifespan,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_resource_templates,
        on_read_resource=_read_resource,
        on_subscribe_resource=_subscribe,
        on_unsubscribe_resource=_unsubscribe,
        on_subscriptions_listen=_listen,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
        on_completion=_complete,
    )
    server.middleware.append(partial(_name_wrong_params, server))
    server.extensions[skills.EXTENSION] = {}
    server.add_request_handler("skills/list", types.PaginatedRequestParams, _list_skills)
    server.add_request_handler("skills/get", skills.GetSkillParams, _get_skill)
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, _set_log_level)
    server.add_notification_handler(END_OF_INPUT, types.NotificationParams, _end_streams)
    server.add_notification_handler(STOP, types.NotificationParams, _stop)
    return server


async def _name_wrong_params(
    server: Server[Live], ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    """Name the wrong parameters of a request in its answer; the SDK's own answer names none.

    What a model finds that is none of those for parameters is no fault of the request, for which the SDK would take it.
    """
    try:
        return await call_next(ctx)
    except ValidationError as error:
        handler = server.get_request_handler(ctx.method)
        checking = (CLIENT_REQUESTS.get((ctx.method, ctx.protocol_version)), handler.params_type if handler else None)
        if error.title not in {model.__name__ for model in checking if model}:
            raise _reported(error) from error
        message = _wrong_params(ctx.method, ctx.params or {}, error)
        raise MCPError(code=types.INVALID_PARAMS, message=message) from error


def _wrong_params(method: str, params: Mapping[str, Any], error: ValidationError) -> str:
    """Return which of a request's parameters is wrong, and how, as the SDK's models have found it."""
    found = [_wrong_member(params, fault) for fault in error.errors(include_url=False, include_input=False)]
    # Of the alternatives of a union, the one that fits most is meant: its fault is the deepest.
    deepest = max(found, key=lambda one: one.path.count(".")).path
    here = [one for one in found if one.path == deepest]
    kinds = [*dict.fromkeys(one.kind for one in here if one.kind)]
    said = [*([must_be(kinds)] if kinds else []), *dict.fromkeys(one.fault for one in here if one.fault)]
    return _WRONG_PARAMS.format(method, f"`{escape_controls(deepest)}` {' or '.join(said)}")


class _WrongMember(NamedTuple):
    """A parameter that is wrong: the kind or value that it may have, or what else is wrong."""

    path: str
    kind: str = ""
    fault: str = ""


def _wrong_member(params: Mapping[str, Any], fault: Any) -> _WrongMember:
    """Return what is wrong with a parameter. Steps that pydantic adds for a union are no part of its path."""
    path = "params"
    value: Any = params
    steps = fault["loc"][fault["loc"][:1] == ("params",) :]
    is_missing = fault["type"] == "missing" and not steps
    for step in steps:
        if isinstance(value, dict) and step in value:
            path, value = f"{path}.{step}", value[step]
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            path, value = f"{path}[{step}]", value[step]
        elif fault["type"] == "missing" and step == steps[-1] and isinstance(value, dict):
            path, is_missing = f"{path}.{step}", True
    if is_missing:
        return _WrongMember(path, fault="is missing")
    if fault["type"] == "literal_error":
        return _WrongMember(path, fault["ctx"]["expected"])
    kind = _KINDS.get(fault["type"], "")
    return _WrongMember(path, kind, "" if kind else f"is wrong: {fault['msg']}")


def _reported(error: Exception) -> MCPError:
    """Return the answer to a request that failed by a bug, which is written to standard error."""
    traceback.print_exception(error, file=sys.stderr)
    data = bug(error)
    return MCPError(code=types.INTERNAL_ERROR, message=data["error"]["message"], data=data)


async def _list_tools(ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    live = ctx.lifespan_context
    try:
        names = await live.listing.names(live.service, live.tasks)
    except ResourceLimit as error:
        raise MCPError(code=types.INTERNAL_ERROR, message=error.message, data={"error": error.as_json()}) from error
    return types.ListToolsResult(tools=tool_list.listed(live.service, names))


async def _call_tool(
    ctx: Context, params: types.CallToolRequestParams
) -> types.CallToolResult | types.InputRequiredResult:
    live = ctx.lifespan_context
    tool = live.tools.get(params.name)
    if tool is None:
        raise MCPError(code=types.INVALID_PARAMS, message=tool_list.why_none(live.service, params.name))
    client = msgspec.structs.replace(_client(ctx), ask=live.questions.asker(ctx, params))
    try:
        answer = await run_tool(live.service, tool, params.arguments or {}, client)
    except InputNeeded as needed:
        return needed.result
    await live.log.note_answer(ctx, params.name, answer.structured_content or {})
    if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS and live.listing.is_changed():
        await ctx.session.send_tool_list_changed()
    return answer


async def _set_log_level(ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    ctx.lifespan_context.log.level = params.level
    return types.EmptyResult()


async def _list_resources(ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=resource_list.listed(ctx.lifespan_context.service))


async def _list_resource_templates(
    _: Context, __: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=resource_list.templates())


async def _read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    return await resource_list.read(ctx.lifespan_context.service, _client(ctx), params.uri, ctx.protocol_version)


async def _list_skills(_: Context, __: types.PaginatedRequestParams) -> skills.ListSkillsResult:
    return skills.listed()


async def _get_skill(_: Context, params: skills.GetSkillParams) -> skills.GetSkillResult:
    return skills.get(params.uri)


async def _subscribe(ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    await ctx.lifespan_context.subscriptions.subscribe(params.uri, ctx.session, ctx.protocol_version)
    return types.EmptyResult()


async def _unsubscribe(ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    ctx.lifespan_context.subscriptions.unsubscribe(params.uri)
    return types.EmptyResult()


async def _listen(ctx: Context, params: types.SubscriptionsListenRequestParams) -> types.SubscriptionsListenResult:
    return await ctx.lifespan_context.subscriptions.listen(ctx, params)


async def _list_prompts(ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=prompts.listed(ctx.lifespan_context.service))


async def _get_prompt(ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    service = ctx.lifespan_context.service
    return await prompts.get(service, _client(ctx), params.name, params.arguments or {})


async def _complete(ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    return await completion.complete(ctx.lifespan_context.service, _client(ctx), params)


async def _stop(ctx: Context, _: types.NotificationParams) -> None:
    ctx.lifespan_context.service.stop()


async def _end_streams(ctx: Context, _: types.NotificationParams) -> None:
    ctx.lifespan_context.subscriptions.end()


def _client(ctx: Context) -> Client:
    params, has_asked = ctx.session.client_params, "progress_token" in (ctx.meta or {})
    report = ctx.session.report_progress if has_asked else None
    info = params.client_info if params else None
    return Client(info.name, info.version, report) if info else Client(report=report)
