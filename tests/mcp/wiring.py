"""A server of MCP in this process, for clients that need no process of its own.

It has everything of the program but its start, its signals and its end: the same options, the same messages over
pipes, the same threads. What is about those three starts the program.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import mcp_types as types
from anyio import to_thread
from mcp.shared.message import SessionMessage

from kbmcp import server as program
from kbmcp.protocol.stdio import Pipes
from kbmcp.serving import initialization, server_for
from kbmcp.tools.service import ServerOptions


@asynccontextmanager
async def wired(argv: Sequence[str], env: Mapping[str, str]) -> AsyncIterator[tuple[Any, Any]]:
    """Run a server on two pipes, as ``kbmcp.serving`` does, and give the client's streams of messages."""
    (requests, asks), (answers, replies) = os.pipe(), os.pipe()
    found, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, taken = anyio.create_memory_object_stream[SessionMessage](0)

    async def serve() -> None:
        server = server_for(_options(argv, env))
        try:
            async with Pipes(requests, replies).open() as (reported, says):
                await server.run(reported, says, initialization(server))
        finally:
            os.close(replies)

    async def ask() -> None:
        try:
            async with taken:
                async for item in taken:
                    line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
                    await to_thread.run_sync(_write_all, asks, line)
        finally:
            os.close(asks)

    async def hear() -> None:
        rest = b""
        async with found:
            while chunk := await _read_chunk(answers):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    message = SessionMessage(types.jsonrpc_message_adapter.validate_json(line))
                    with suppress(anyio.BrokenResourceError):  # a client that has closed hears no more
                        await found.send(message)
        assert not rest, "the server ended within a message"

    async with anyio.create_task_group() as tasks:
        for task in (serve, ask, hear):
            tasks.start_soon(task)
        yield incoming, outgoing
        await outgoing.aclose()
        incoming.close()
    os.close(requests)
    os.close(answers)


def _options(argv: Sequence[str], env: Mapping[str, str]) -> ServerOptions:
    """Return what the program makes of its command line and its environment."""
    given = program._parse(argv, env)
    return ServerOptions(
        start=given.start,
        branch=given.branch,
        is_dotted=given.tool_names == "dotted",
        is_read_only=given.read_only,
        env=env,
        toolsets=given.toolsets,
        libraries=tuple(given.kb_libraries),
        roots=tuple(given.kb_roots),
    )


async def _read_chunk(fd: int) -> bytes:
    await anyio.wait_readable(fd)
    return os.read(fd, 1 << 20)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]
