"""The floor of a call over MCP: the SDK's low-level server with one tool that answers nothing."""

from __future__ import annotations

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from benchmarks.pipe import EMPTY_TOOL


async def _list(*_: object) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name=EMPTY_TOOL, input_schema={"type": "object"})])


async def _call(*_: object) -> types.CallToolResult:
    return types.CallToolResult(content=[])


async def main() -> None:
    """Serve on standard input and output until the client closes it."""
    server = Server("empty", on_list_tools=_list, on_call_tool=_call)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
