"""The server: tools, resources and prompts on the SDK's low-level server, until its client or a signal ends it.

A call runs in a worker thread that is never abandoned: when a request is cancelled, or its client is gone, what it asks
of the database is interrupted, and a write is carried out whole or not at all.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final, Never

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

from kbcore import __version__, gc_pause
from kbcore.clock import SystemClock
from kbcore.errors import ResourceLimit
from kbmcp.protocol.stdio import END_OF_INPUT, STOP, Pipes
from kbmcp.resources import completion, prompts, resource_list
from kbmcp.resources.instructions import instructions
from kbmcp.resources.subscriptions import Subscriptions
from kbmcp.tools import tool_list
from kbmcp.tools.argument_models import naming_wrong_params
from kbmcp.tools.call import Client, ServerOptions, Service
from kbmcp.tools.run_call import bug
from kbmcp.tools.type_listing import Listing

__all__ = ["ServerOptions", "serve", "server_for"]


class Live(msgspec.Struct, frozen=True):
    """What the handlers of a running server share."""

    service: Service
    subscriptions: Subscriptions
    listing: Listing
    tasks: TaskGroup
    """What goes on beside the requests; it ends with the server."""


ENDS_S: Final = 1.8
"""How long the process may take to end after the last message or a signal, whatever runs."""

Context = ServerRequestContext[Live, Any]


def serve(options: ServerOptions, reads_fd: int, writes_fd: int) -> Never:
    """Serve one client until it closes its end or a signal comes, then end the process with status 0."""
    # What a request makes holds few cycles, and each collection walks what is kept of the branch.
    gc_pause.raise_threshold()
    deadline = _Deadline()
    anyio.run(_serve, options, reads_fd, writes_fd, deadline)
    _end_process()


def _end_process() -> Never:
    """End the process with status 0, without what Python does last: freeing every object takes 0.4 s of the processor.

    All answers are written and all stores are closed. What libraries registered for the end of the process is called:
    the private folder is removed so. A thread that waits for a client that does not read would keep the process for
    ever, so none is waited for. The deadline ends the process where one of these steps takes too long.
    """
    atexit._run_exitfuncs()  # noqa: SLF001 - there is no public name for what Python itself calls at its end
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # nobody reads it any more, or it is closed
            stream.flush()
    os._exit(0)


class _Deadline:
    """Ends the process from within when it should have ended and has not, because a thread cannot be interrupted.

    Its thread is started at once: later the system may make none.
    """

    def __init__(self) -> None:
        self.number = 0
        """The signal that came, 0 for none."""
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
    """At the first signal finish what is in hand; at the second wait for nothing but a commit under way."""
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
                yield Live(service, subscriptions, listing, tasks)
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
    server.add_notification_handler(END_OF_INPUT, types.NotificationParams, _end_streams)
    server.add_notification_handler(STOP, types.NotificationParams, _stop)
    return server


async def _name_wrong_params(
    server: Server[Live], ctx: ServerRequestContext[Any, Any], call_next: CallNext
) -> HandlerResult:
    handler = server.get_request_handler(ctx.method)
    checking = (CLIENT_REQUESTS.get((ctx.method, ctx.protocol_version)), handler.params_type if handler else None)
    models = {model.__name__ for model in checking if model}
    with naming_wrong_params(ctx.method, ctx.params or {}, models, _reported):
        return await call_next(ctx)


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


async def _call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    live = ctx.lifespan_context
    tool = tool_list.find(live.service, params.name)
    if isinstance(tool, str):
        raise MCPError(code=types.INVALID_PARAMS, message=tool)
    answer = await tool_list.answer(live.service, tool, params.arguments or {}, _client(ctx))
    if ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS and live.listing.is_changed():
        await ctx.session.send_tool_list_changed()
    return answer


async def _list_resources(ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=resource_list.listed(ctx.lifespan_context.service))


async def _list_resource_templates(
    _: Context, __: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=resource_list.templates())


async def _read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    return await resource_list.read(ctx.lifespan_context.service, _client(ctx), params.uri, ctx.protocol_version)


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
    ctx.lifespan_context.service.works.stop()


async def _end_streams(ctx: Context, _: types.NotificationParams) -> None:
    ctx.lifespan_context.subscriptions.end()


def _client(ctx: Context) -> Client:
    params, has_asked = ctx.session.client_params, "progress_token" in (ctx.meta or {})
    report = ctx.session.report_progress if has_asked else None
    info = params.client_info if params else None
    return Client(info.name, info.version, report) if info else Client(report=report)
