"""A client of an MCP server that it starts, as the program of an agent is one: for `kb demo` and `kb prove`.

The SDK's own client is used, over the server's real standard streams; nothing is shared with the server's process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import mcp_types as types
import msgspec
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters

TIMEOUT_S: Final = 60.0
"""The time that one answer may take; starting the server counts into the first."""


class ServerProgram(msgspec.Struct, frozen=True):
    """The program to start, with its environment, in the folder ``cwd``."""

    command: str
    arguments: tuple[str, ...]
    env: Mapping[str, str]
    cwd: Path


class ServerCall(msgspec.Struct, frozen=True):
    """One call of a tool."""

    tool: str
    arguments: dict[str, Any]


class ToolAnswer(msgspec.Struct, frozen=True):
    """The result of a call: the text of the answer."""

    text: str
    is_error: bool

    @property
    def document(self) -> Any:
        """Return the JSON document that the text is."""
        return json.loads(self.text)


class ToolConversation(msgspec.Struct, frozen=True):
    """The conversation: the revision of the protocol, the server's tools by name, and the answers in order."""

    protocol: str
    tools: tuple[str, ...]
    answers: tuple[ToolAnswer, ...]


class ServerConnection:
    """A client that is connected to a server."""

    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal = portal
        self._client = client

    @property
    def protocol(self) -> str:
        """Return the revision of the protocol."""
        return self._client.protocol_version

    def tools(self) -> list[types.Tool]:
        """Return the tools that the server lists."""
        return self._portal.call(self._client.list_tools).tools

    def call(self, call: ServerCall) -> ToolAnswer:
        """Call a tool, and wait for its answer."""
        result = self._portal.call(self._client.call_tool, call.tool, call.arguments)
        text = "".join(block.text for block in result.content if isinstance(block, types.TextContent))
        return ToolAnswer(text, bool(result.is_error))


@contextmanager
def connected(server: ServerProgram, client_name: str) -> Iterator[ServerConnection]:
    """Start the server, and let it end when the block is left."""
    parameters = StdioServerParameters(
        command=server.command, args=list(server.arguments), env=dict(server.env), cwd=server.cwd
    )
    info = types.Implementation(name=client_name, version="1.0")
    client = Client(parameters, client_info=info, read_timeout_seconds=TIMEOUT_S)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as opened:
        yield ServerConnection(portal, opened)


def converse(server: ServerProgram, client_name: str, calls: Sequence[ServerCall]) -> ToolConversation:
    """Start the server, list its tools, make the calls one after the other, and let it end."""
    with connected(server, client_name) as client:
        listed = tuple(tool.name for tool in client.tools())
        return ToolConversation(client.protocol, listed, tuple(client.call(call) for call in calls))
