"""The server: the tools on the SDK's low-level server, over two descriptors, until the client or a signal ends it.

A call runs in a worker thread that is never abandoned: a request that is cancelled, or whose client is gone, is carried
out whole or not at all.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import anyio.to_thread
import mcp_types as types
import msgspec
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from kbcore import __version__
from kbcore.errors import KBError
from kbcore.schema import CORE
from kbmcp import tools
from kbmcp.calls import Client, Options, Service
from kbmcp.instructions import INSTRUCTIONS
from kbmcp.spelling import in_words
from kbmcp.stdio import Pipes
from kbmcp.wire import Names

__all__ = ["Options", "serve", "server_for"]

_CALLS_AT_ONCE: Final = 16
"""Threads for calls. On one branch they take turns, so that most of them only wait; those for another branch need not
wait behind them."""


class Live(msgspec.Struct, frozen=True):
    """What the handlers of a running server share."""

    service: Service
    calls: anyio.CapacityLimiter


Context = ServerRequestContext[Live, Any]


def serve(options: Options, reads_fd: int, writes_fd: int) -> int:
    """Serve one client until it closes its end or a signal comes; return the exit status."""
    is_stuck = anyio.run(_serve, options, reads_fd, writes_fd)
    if is_stuck:
        os._exit(0)  # a thread waits for a client that does not read, and would keep the process for ever
    return 0


async def _serve(options: Options, reads_fd: int, writes_fd: int) -> bool:
    server, pipes = server_for(options), Pipes(reads_fd, writes_fd)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_obey_signals, pipes, tasks.cancel_scope)
        async with pipes.open() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
        tasks.cancel_scope.cancel()
    return pipes.is_writing


async def _obey_signals(pipes: Pipes, everything: anyio.CancelScope) -> None:
    """At the first signal finish what is in hand; at the second wait for nothing but a commit under way."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        is_stopping = False
        async for _ in signals:
            if is_stopping:
                everything.cancel()
            is_stopping = True
            pipes.stop()


def server_for(options: Options) -> Server[Live]:
    """Return the server, ready to run over any pair of streams."""

    @asynccontextmanager
    async def lifespan(_: Server[Live]) -> AsyncIterator[Live]:
        service = Service(options)
        try:
            yield Live(service, anyio.CapacityLimiter(_CALLS_AT_ONCE))
        finally:
            service.close()

    return Server(
        "kb",
        version=__version__,
        title="KB",
        instructions=in_words(INSTRUCTIONS, is_dotted=options.is_dotted),
        lifespan=lifespan,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )


async def _list_tools(ctx: Context, _: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    live = ctx.lifespan_context
    names = await anyio.to_thread.run_sync(_names, live.service, limiter=live.calls)
    return types.ListToolsResult(tools=tools.listed(live.service, names))


def _names(service: Service) -> Names:
    """Return the names of the schema in force, or KB's own where there is none: the tools then say what is wrong."""
    try:
        schema = service.schema()
    except KBError:
        schema = CORE
    return Names(tuple(schema.entities), tuple(schema.edges))


async def _call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    live = ctx.lifespan_context
    tool = tools.find(live.service, params.name)
    if isinstance(tool, str):
        raise MCPError(code=types.INVALID_PARAMS, message=tool)
    given = params.arguments or {}
    return await anyio.to_thread.run_sync(tools.answer, live.service, tool, given, _client(ctx), limiter=live.calls)


def _client(ctx: Context) -> Client:
    params = ctx.session.client_params
    return Client(params.client_info.name, params.client_info.version) if params else Client()
