"""A client for one conversation with an MCP server that it starts: what an agent's program does, for `kb demo`.

The SDK's own client is used, over the server's real standard streams; nothing is shared with the server's process.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types as types
import msgspec
from mcp import Client, StdioServerParameters

TIMEOUT_S: Final = 60.0
"""The time that one answer may take; starting the server counts into the first."""


class Server(msgspec.Struct, frozen=True):
    """The program to start, with its environment, in the folder ``cwd``."""

    command: str
    arguments: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


class ToolCall(msgspec.Struct, frozen=True):
    """One call of a tool."""

    tool: str
    arguments: dict[str, Any]


class ToolAnswer(msgspec.Struct, frozen=True):
    """The result of a call: the JSON document of the answer's text, and whether it is an error."""

    document: Any
    is_error: bool


class ToolConversation(msgspec.Struct, frozen=True):
    """The conversation: the revision of the protocol, the server's tools by name, and the answers in order."""

    protocol: str
    tools: tuple[str, ...]
    answers: tuple[ToolAnswer, ...]


def converse(server: Server, client_name: str, calls: Sequence[ToolCall]) -> ToolConversation:
    """Start the server, list its tools, make the calls one after the other, and let it end."""
    return anyio.run(_converse, server, client_name, calls)


async def _converse(server: Server, client_name: str, calls: Sequence[ToolCall]) -> ToolConversation:
    parameters = StdioServerParameters(
        command=server.command, args=list(server.arguments), env=dict(server.env), cwd=server.cwd
    )
    info = types.Implementation(name=client_name, version="1.0")
    async with Client(parameters, client_info=info, read_timeout_seconds=TIMEOUT_S) as client:
        listed = await client.list_tools()
        answers = [_answer(await client.call_tool(call.tool, call.arguments)) for call in calls]
        return ToolConversation(client.protocol_version, tuple(tool.name for tool in listed.tools), tuple(answers))


def _answer(result: types.CallToolResult) -> ToolAnswer:
    text = "".join(block.text for block in result.content if isinstance(block, types.TextContent))
    return ToolAnswer(json.loads(text), bool(result.is_error))
