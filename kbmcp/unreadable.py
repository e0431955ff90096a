"""What a client is told of a line that is no message of MCP: an answer where it is a request, and says which one.

Whoever waits for an answer must get one, however broken or deep the request is.
"""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any, Final

import mcp_types as types
import msgspec

MAX_LEVELS: Final = 201
"""How deep the lists and objects of a message may stand in each other, for the parser of pydantic that reads them."""

_UNREADABLE: Final = "The request cannot be read: it must be one line of JSON-RPC 2.0, in whole Unicode characters."
_TOO_DEEP: Final = "The request cannot be read: its lists and objects are nested {} levels deep; at most {} are read."
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_MARK: Final = re.compile(rb'(?P<text>"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z))|(?P<opens>[\[{]+)|[\]}]+', re.DOTALL)
_VALUE: Final = re.compile(rb'\s*:\s*("[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9]{1,300}(?![0-9.eE]))', re.DOTALL)


class _Outline(msgspec.Struct, frozen=True):
    """How deep a line goes, and the members of the outermost object that say which request it is."""

    levels: int
    members: dict[str, Any]


def refusal_of(line: bytes) -> types.JSONRPCError | None:
    """Return the answer to a request that is none of the protocol's; None when it has no id that can be sent back."""
    outline = _outline_of(line)
    if outline.levels > MAX_LEVELS:
        request: Any = outline.members
        message = _TOO_DEEP.format(outline.levels, MAX_LEVELS)
    else:
        try:
            request = json.loads(line)
        except ValueError:
            return None
        message = _UNREADABLE
    key = request.get("id") if isinstance(request, dict) and "method" in request else None
    is_key = not _HALF_PAIR.search(key) if isinstance(key, str) else isinstance(key, int) and not isinstance(key, bool)
    if not is_key:
        return None
    fault = types.ErrorData(code=types.INVALID_REQUEST, message=message)
    return types.JSONRPCError(jsonrpc="2.0", id=key, error=fault)


def _outline_of(line: bytes) -> _Outline:
    """Return the outline of a line, whole or not. No depth is too much for it."""
    level, levels, members = 0, 0, {}
    for mark in _MARK.finditer(line):
        if mark["opens"]:
            level += len(mark[0])
            levels = max(levels, level)
        elif not mark["text"]:
            level -= len(mark[0])
        elif level == 1 and mark[0] in {b'"id"', b'"method"'} and (value := _VALUE.match(line, mark.end())):
            with contextlib.suppress(ValueError):  # a text with escapes that mean nothing is no id
                members[mark[0].decode()[1:-1]] = json.loads(value[1].decode(errors="replace"), strict=False)
    return _Outline(levels, members)
