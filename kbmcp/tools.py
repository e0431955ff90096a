"""The tools: what each is called, says of itself, takes and does; and how a call becomes an answer.

Nothing that is stored changes a name, a description or a schema beyond the type names of the project's own schema.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Literal

import mcp_types as types
import msgspec

from kbcore.errors import InvalidQuery, KBError, LimitExceeded, Problem
from kbcore.limits import MIB
from kbcore.suggest import nearest
from kbmcp import auditing, checking, hints, reading, replies, wire, writing
from kbmcp.calls import Call, Client, Service
from kbmcp.explaining import explain, refused_arguments
from kbmcp.replies import Payload
from kbmcp.spelling import in_words, spelled

MAX_ARGUMENT_BYTES: Final = 4 * MIB


class Tool(msgspec.Struct, frozen=True):
    """One tool.

    ``read`` takes the arguments apart before anything is opened. ``run`` gets what it returns: what is asked, without
    the arguments that are wrong, and what is wrong with those; it adds what it finds itself, and refuses the call.
    """

    key: str
    description: str
    model: type[Any]
    read: Callable[[Mapping[str, Any]], tuple[Any, list[Problem]]]
    run: Callable[[Call, Any, list[Problem]], Payload]
    writes: Literal["never", "sometimes", "always"] = "never"
    writing: tuple[str, ...] = ()
    """What of its arguments, and of their values, only writing needs; not offered where the server only reads."""


def _reader(model: type[wire.M]) -> Callable[[Mapping[str, Any]], tuple[wire.M, list[Problem]]]:
    """Return what reads the arguments of a tool that takes no changeset."""

    def read(arguments: Mapping[str, Any]) -> tuple[wire.M, list[Problem]]:
        found, problems = wire.read(model, arguments)
        if found is None:
            raise refused_arguments(problems)
        return found, problems

    return read


TOOLS: Final = (
    Tool(
        "kb.query",
        "Find entities, or with type `edge` edges. All filters must hold; none lists everything.",
        wire.QueryArguments,
        _reader(wire.QueryArguments),
        reading.query,
    ),
    Tool(
        "kb.upsert",
        "Create or update entities and edges, all or nothing. Fields not named are kept; null removes one.",
        wire.UpsertArguments,
        writing.read_upsert,
        writing.carry_out,
        writes="always",
    ),
    Tool(
        "kb.delete",
        "Remove at most 100 entities and edges; versions come from {kb_query}. Refused while others point there, "
        "unless cascade.",
        wire.DeleteArguments,
        writing.read_delete,
        writing.carry_out,
        writes="always",
    ),
    Tool(
        "kb.check",
        "Run the rules: violations, worst first, and which rules ran.",
        wire.CheckArguments,
        _reader(wire.CheckArguments),
        checking.check,
    ),
    Tool(
        "kb.history",
        "log: records, newest first; show: one with before and after; diff: two seqs compared; revert: undo a record.",
        wire.HistoryArguments,
        _reader(wire.HistoryArguments),
        auditing.history,
        writes="sometimes",
        writing=("revert", "message", "expect_branch"),
    ),
)


def listed(service: Service, names: wire.Names) -> list[types.Tool]:
    """Return the tools that this server offers, always in the same order."""
    return [_listed(service, tool, names) for tool in TOOLS if _is_offered(service, tool)]


def _is_offered(service: Service, tool: Tool) -> bool:
    return tool.writes != "always" or not service.options.is_read_only


def _listed(service: Service, tool: Tool, names: wire.Names) -> types.Tool:
    only_reads = tool.writes == "never" or service.options.is_read_only
    nature = types.ToolAnnotations(read_only_hint=only_reads, open_world_hint=False)
    if not only_reads:
        nature.destructive_hint = True
    if tool.writes == "always":
        nature.idempotent_hint = True
    is_dotted, hidden = service.options.is_dotted, tool.writing if only_reads else ()
    sentences = [part for part in tool.description.split("; ") if part.partition(":")[0] not in hidden]
    return types.Tool(
        name=spelled(tool.key, is_dotted=is_dotted),
        description=in_words("; ".join(sentences), is_dotted=is_dotted),
        input_schema=wire.published(tool.model, names, hidden),
        annotations=nature,
    )


def find(service: Service, name: str) -> Tool | str:
    """Return the tool that a client means by a name, in either spelling, or why there is none."""
    is_dotted = service.options.is_dotted
    known = {spelled(tool.key, is_dotted=way): tool for tool in TOOLS for way in (False, True)}
    tool = known.get(name)
    if tool is None:
        near = nearest(name, [spelled(tool.key, is_dotted=is_dotted) for tool in TOOLS])
        return f"Unknown tool: {name[:100]}" + (f" (did you mean {near}?)" if near else "")
    if not _is_offered(service, tool):
        return f"{name} is not offered: this server runs with --read-only"
    return tool


def answer(service: Service, tool: Tool, arguments: Mapping[str, Any], client: Client) -> types.CallToolResult:
    """Carry out a call and return its result, whatever happens. Runs in a worker thread."""
    around: Payload = {}
    writes = tool.writes == "always"
    try:
        _check_size(arguments)
        asked, problems = tool.read(arguments)
        writes = writes or getattr(asked, "action", "") in tool.writing
        _check_offered(service, writes=writes)
        with service.open(client, getattr(asked, "expect_branch", ""), writes=writes) as call:
            around["branch"] = call.branch
            try:
                payload = tool.run(call, asked, problems)
                news = service.news(call)
            except KBError:
                around |= _noted({}, service.news(call), is_dotted=call.is_dotted)
                with suppress(KBError):  # the store may be what is damaged
                    around["seq"] = call.store.head().seq
                raise
            except Exception:
                call.store.close()  # whatever state its view is in, the next call begins with a fresh one
                raise
    except KBError as error:
        around = around or service.place()
        hint = hints.hint_for(error, tool.key)
        return replies.failure(explain(error, hint, around, writes=writes, is_dotted=service.options.is_dotted))
    except Exception as error:  # noqa: BLE001 - a bug: told to the client as such, and in full on standard error
        traceback.print_exc(file=sys.stderr)
        return replies.failure(_bug(error) | around)
    return replies.success(_noted(payload, news, is_dotted=service.options.is_dotted))


def _noted(payload: Payload, news: str, *, is_dotted: bool) -> Payload:
    """Return the payload with the news before what it notes itself."""
    note = f"{news} {payload.get('note', '')}".strip()
    return payload | {"note": hints.in_tool_words(note, is_dotted=is_dotted)} if note else payload


def _check_offered(service: Service, *, writes: bool) -> None:
    if writes and service.options.is_read_only:
        problem = Problem("$.action", "not_offered", "This server runs with --read-only.", "Use log, show or diff.")
        raise refused_arguments([problem])


def _check_size(arguments: Mapping[str, Any]) -> None:
    try:
        size = len(msgspec.json.encode(arguments))
    except (UnicodeEncodeError, RecursionError) as error:
        raise InvalidQuery("The arguments hold half characters, or are nested too deep.") from error
    if size > MAX_ARGUMENT_BYTES:
        raise LimitExceeded(f"The arguments are {size} bytes; one call takes {MAX_ARGUMENT_BYTES}. Nothing was done.")


def _bug(error: Exception) -> Payload:
    return {
        "error": {
            "code": "internal_error",
            "message": f"KB failed in a way it should not ({type(error).__name__}).",
            "hint": "What KB has acknowledged is safe. The server wrote the details to its log; please report them.",
            "retryable": False,
            "applied": "unknown",
            "details": [],
        }
    }
