"""The tools of KIP: what they take, and how an answer in KIP's own shape becomes a result of the protocol.

Every failure is reported in KIP's envelope. What KIP has no place for, the branch and the seq, is next to
the answer in ``_meta``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
import msgspec

from kbcore.errors import KBError, Problem
from kbcore.storage.files import WRITABLE_ROOT
from kbmcp.tools.answers import DATA_NOTE, Payload, text_of
from kbmcp.tools.call import Call
from kbmcp.tools.hints import in_tool_words, unwritable_hint
from kbmcp.tools.run_call import CallResult

if TYPE_CHECKING:
    from kbcore.kip.request import KipRequest

_PLACE: Final = ("repository", "branch", "answered_from", "seq", "freshness", "pending_files", "freshness_reason")
_PARAMETERS: Final = {"type": "object", "description": "values of placeholders: {name: value} for `:name`"}
SCHEMA: Final = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "one KIP command"},
        "commands": {
            "type": "array",
            "maxItems": 256,
            "description": "instead of `command`: several in order, each by itself; the first error stops",
            "items": {
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "properties": {"command": {"type": "string"}, "parameters": _PARAMETERS},
                        "required": ["command"],
                        "additionalProperties": False,
                    },
                ]
            },
        },
        "parameters": _PARAMETERS,
        "dry_run": {"type": "boolean", "description": "check writes in full and write nothing"},
    },
    "additionalProperties": False,
}
READING_SCHEMA: Final = SCHEMA | {
    "properties": {name: part for name, part in SCHEMA["properties"].items() if name != "dry_run"}  # type: ignore[attr-defined]
}


class KipCall(msgspec.Struct, frozen=True):
    """A request as it was read. ``writes`` says whether any of its commands begins as one that writes."""

    request: KipRequest
    writes: bool

    @property
    def dry_run(self) -> bool:
        """Return whether what it would write is only planned."""
        return self.request.dry_run


def read(arguments: Mapping[str, Any]) -> tuple[KipCall, list[Problem]]:
    """Return what ``execute_kip`` is asked. Raises: ``KipRefused``."""
    from kbcore.kip import request

    asked = request.read(dict(arguments))
    return KipCall(asked, asked.writes), []


def read_only(arguments: Mapping[str, Any]) -> tuple[KipCall, list[Problem]]:
    """Return what ``execute_kip_readonly`` is asked; a command that writes is refused when it is reached."""
    asked, problems = read(arguments)
    return KipCall(asked.request, writes=False), problems


def execute(call: Call, asked: KipCall, _: list[Problem]) -> Payload:
    """Run a request; a failure is reported in the answer, and earlier commands stay applied."""
    return _carried_out(call, asked, is_read_only=call.is_read_only)


def execute_readonly(call: Call, asked: KipCall, _: list[Problem]) -> Payload:
    """Carry out a request that only reads."""
    return _carried_out(call, asked, is_read_only=True)


def _carried_out(call: Call, asked: KipCall, *, is_read_only: bool) -> Payload:
    from kbcore.kip.run import KipContext, run
    from kbmcp.tools.kip_fitting import Fitting

    around = KipContext(
        call.workspace,
        call.branch,
        call.author,
        call.follows_head,
        is_read_only,
        call.files,
        say=_say(call.is_dotted, call.is_read_only, call.has_core),
    )
    answer = run(around, asked.request, Fitting(), answers_interruption=True)
    response = answer.response
    if answer.is_error:
        response = _with_place_to_write(response)
    seq = answer.seq
    if seq is None:
        with suppress(KBError):  # the store may be what the command failed of
            seq = call.store.head().seq
    payload = {"response": response, "is_error": answer.is_error, "branch": call.branch, "seq": seq}
    payload |= {
        name: value for name, value in (answer.files.as_json() if answer.files else {}).items() if name != "seq"
    }
    note = " ".join(answer.warnings)
    return payload | ({"note": in_tool_words(note, is_dotted=call.is_dotted, has_core=call.has_core)} if note else {})


def _say(is_dotted: bool, is_read_only: bool, has_core: bool) -> Callable[[str], str]:
    """Return what words a remedy for a client of these tools."""
    return partial(in_tool_words, is_dotted=is_dotted, is_read_only=is_read_only, has_core=has_core)


def _with_place_to_write(response: Payload) -> Payload:
    """Return a response with the remedy of this server where it failed of a folder; of a batch the last one did."""
    if "error" not in response:
        *before, last = response["result"]
        return {"result": [*before, _with_place_to_write(last)]}
    error = response["error"]
    root = error.get("data", {}).get(WRITABLE_ROOT)
    return {"error": error | {"hint": unwritable_hint(root)}} if root else response


def finished(outcome: CallResult) -> types.CallToolResult:
    """Return the result of a call: KIP's answer as text and as structured content.

    What KIP's own shape has no place for (that stored text is data, a warning of a write) is a text after the answer.
    """
    payload = outcome.payload
    response, is_error = payload.get("response"), bool(payload.get("is_error"))
    if response is None:
        response, is_error = _failure(outcome), True
    blocks: list[types.ContentBlock] = [types.TextContent(type="text", text=text_of(response))]
    further = DATA_NOTE | ({"note": str(payload["note"])} if payload.get("note") else {})
    blocks.append(types.TextContent(type="text", text=text_of(further)))
    place = {f"kb/{name}": payload[name] for name in _PLACE if payload.get(name) is not None}
    return types.CallToolResult(content=blocks, structured_content=response, is_error=is_error, _meta=place or None)


def _failure(outcome: CallResult) -> Payload:
    from kbcore.kip.errors import envelope
    from kbcore.kip.kb_errors import bug, in_kip

    error = outcome.error
    if isinstance(error, KBError):
        options = outcome.options
        say = _say(options.is_dotted, options.is_read_only, options.has_core)
        return _with_place_to_write(envelope(in_kip(error, writes=outcome.writes), say))
    return envelope(bug(type(error).__name__))
