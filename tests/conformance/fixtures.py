"""Tools that the conformance scenarios call by name, added to KB's own server: here, and nowhere in the product.

Whatever KB has a way for goes that way: the tools that answer, fail and report progress, the prompts and the resources
are put into KB's own tables, and so are listed, found, read, carried out and worded by KB. Only what KB never sends
(pictures, sound, bytes) is answered beside it.
"""

from __future__ import annotations

import base64
import struct
import time
import zlib
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server

from kbcore import progress
from kbcore.errors import NotFound
from kbmcp.resources import prompts, resource_list
from kbmcp.resources.prompts import Argument, Prompt
from kbmcp.resources.resource_list import RequestedResource, Resource
from kbmcp.tools import run_call, tool_list
from kbmcp.tools.call import Call
from kbmcp.tools.run_call import McpTool

TEMPLATE = "test://template/{id}/data"
SUBJECT = "REQ-1"
"""An entity that the server's repository holds."""
STEPS = 4


class Nothing(tool_list.argument_models._Model):
    """No arguments."""


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


_HEADER = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
_PIXEL = b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", _HEADER) + _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
PICTURE = types.ImageContent(
    type="image", data=base64.b64encode(_PIXEL + _chunk(b"IEND", b"")).decode(), mime_type="image/png"
)
_SILENCE = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"
SOUND = types.AudioContent(type="audio", data=base64.b64encode(_SILENCE).decode(), mime_type="audio/wav")
HELD = types.EmbeddedResource(
    type="resource",
    resource=types.TextResourceContents(uri="test://embedded-resource", mime_type="text/plain", text="embedded"),
)
_WORDS = types.TextContent(type="text", text="text beside it")
CONTENTS: dict[str, list[types.ContentBlock]] = {
    "test_image_content": [PICTURE],
    "test_audio_content": [SOUND],
    "test_embedded_resource": [HELD],
    "test_multiple_content_types": [_WORDS, PICTURE, HELD],
}


def _fails(_: Call, __: Any, ___: Any) -> dict[str, Any]:
    raise NotFound("This tool always fails.", hint="Nothing can be done about it.")


def _takes_long(_: Call, __: Any, ___: Any) -> dict[str, Any]:
    for _step in progress.track(range(STEPS), STEPS, "steps taken", every=1):
        time.sleep(3 * run_call.EVERY_S)
    return {"steps": STEPS}


def _tool(name: str, run: Callable[[Call, Any, Any], dict[str, Any]]) -> McpTool:
    return McpTool(name, f"Conformance: {name}.", Nothing, tool_list._reader(Nothing), run)


TOOLS = (
    _tool("test_simple_text", lambda call, _, __: {"branch": call.branch, "text": "This is a simple text response."}),
    _tool("test_error_handling", _fails),
    _tool("test_tool_with_progress", _takes_long),
)


def _prompt(name: str, *arguments: str, subject: str = "") -> Prompt:
    def facts(call: Call, asked: Any, seq: int, _: int) -> dict[str, Any]:
        return {"branch": call.branch, "seq": seq, "asked": dict(asked)}

    reported = tuple(Argument(one, f"the argument {one}", is_required=True) for one in arguments)
    return Prompt(name, name, f"Conformance: {name}.", reported, "A prompt for tests.", facts, subject=subject)


PROMPTS = (
    _prompt("test_simple_prompt"),
    _prompt("test_prompt_with_arguments", "arg1", "arg2"),
    _prompt("test_prompt_with_embedded_resource", "resourceUri", subject="resourceUri"),
)
RESOURCES = {
    "static": Resource(
        "test://static-text", "Static", "Text.", lambda call, _: {"branch": call.branch, "text": "This is static."}
    ),
    "watched": Resource("test://watched-resource", "Watched", "Followed.", lambda call, _: {"branch": call.branch}),
    "template": Resource(TEMPLATE, "Template", "By id.", lambda call, key: {"branch": call.branch, "id": key}),
}


def add_to(server: Server[Any]) -> None:
    """Add everything to a server of KB's, and to the tables that it looks into."""
    run_call.EVERY_S = 0.02
    tool_list.TOOLS = (*tool_list.TOOLS, *TOOLS)
    prompts.PROMPTS = (*prompts.PROMPTS, *PROMPTS)
    resource_list.RESOURCES.update(RESOURCES)  # type: ignore[arg-type]
    _instead(resource_list, "find", _find)
    _instead(
        prompts.prompt_facts, "entity", lambda was, call, key: was(call, SUBJECT if key.startswith("test:") else key)
    )
    _around(server, "tools/list", _list_tools)
    _around(server, "tools/call", _call_tool)
    _around(server, "prompts/list", _list_prompts)
    _around(server, "prompts/get", _get_prompt)
    _around(server, "resources/list", _list_resources)
    _around(server, "resources/read", _read_resource)


Next = Callable[..., Awaitable[Any]]


def _around(server: Server[Any], method: str, instead: Callable[..., Awaitable[Any]]) -> None:
    entry = server.get_request_handler(method)
    assert entry is not None

    async def answer(ctx: Any, params: Any) -> Any:
        return await instead(entry.handler, ctx, params)

    server.add_request_handler(method, entry.params_type, answer)


def _instead(module: Any, name: str, function: Callable[..., Any]) -> None:
    was = getattr(module, name)
    setattr(module, name, lambda *given: function(was, *given))


def _find(was: Callable[..., RequestedResource], uri: str, toolsets: Collection[str]) -> RequestedResource:
    head, tail = TEMPLATE.split("{id}")
    if uri.startswith(head) and uri.endswith(tail):
        return RequestedResource("template", uri.removeprefix(head).removesuffix(tail))  # type: ignore[arg-type]
    return was(uri, toolsets)


async def _list_tools(go_on: Next, ctx: Any, params: Any) -> types.ListToolsResult:
    found = await go_on(ctx, params)
    found.tools += [
        types.Tool(name=name, description=f"Conformance: {name}.", input_schema={"type": "object", "properties": {}})
        for name in CONTENTS
    ]
    return found


async def _call_tool(go_on: Next, ctx: Any, params: Any) -> types.CallToolResult:
    if params.name in CONTENTS:
        return types.CallToolResult(content=CONTENTS[params.name])
    return await go_on(ctx, params)


async def _list_prompts(go_on: Next, ctx: Any, params: Any) -> types.ListPromptsResult:
    found = await go_on(ctx, params)
    found.prompts.append(types.Prompt(name="test_prompt_with_image", description="Conformance: a picture."))
    return found


async def _get_prompt(go_on: Next, ctx: Any, params: Any) -> types.GetPromptResult:
    if params.name == "test_prompt_with_image":
        return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=PICTURE)])
    return await go_on(ctx, params)


async def _list_resources(go_on: Next, ctx: Any, params: Any) -> types.ListResourcesResult:
    found = await go_on(ctx, params)
    found.resources.append(types.Resource(uri="test://static-binary", name="static-binary", description="Bytes."))
    return found


async def _read_resource(go_on: Next, ctx: Any, params: Any) -> types.ReadResourceResult:
    if params.uri == "test://static-binary":
        content = types.BlobResourceContents(uri=params.uri, mime_type="image/png", blob=PICTURE.data)
        return types.ReadResourceResult(contents=[content])
    return await go_on(ctx, params)
