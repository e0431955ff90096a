"""The tools: what each is called, says of itself, takes and does; and how a call becomes an answer.

Nothing that is stored changes a name, a description or a schema beyond the type names of the project's own schema.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import mcp_types as types
import msgspec

from kbcore.errors import InvalidQuery, LimitExceeded, Problem
from kbcore.kip.reference import SIMPLE_FIND, SIMPLE_UPSERT
from kbcore.limits import MIB
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import nearest
from kbmcp.tools import answers, argument_models, check, history, kip, query, sleep, write
from kbmcp.tools.answers import Payload
from kbmcp.tools.call import Call, Client, Service
from kbmcp.tools.names import in_words, spelled
from kbmcp.tools.refusals import refused_arguments
from kbmcp.tools.run_call import CallResult, Job, run_call

MAX_ARGUMENT_BYTES: Final = 4 * MIB


def _finished(outcome: CallResult) -> types.CallToolResult:
    """Return the result of a call whose answer is a document of KB's own."""
    return answers.failure(outcome.payload) if outcome.error else answers.success(outcome.payload)


class Tool(msgspec.Struct, frozen=True):
    """One tool.

    ``read`` takes the arguments apart before anything is opened. ``run`` gets what it returns: what is asked, without
    the arguments that are wrong, and what is wrong with those; it adds what it finds itself, and refuses the call.
    """

    key: str
    description: str
    model: type[Any] | None
    """The arguments; None where ``schema`` describes them as it is published."""
    read: Callable[[Mapping[str, Any]], tuple[Any, list[Problem]]]
    run: Callable[[Call, Any, list[Problem]], Payload]
    writes: Literal["never", "sometimes", "always"] = "never"
    writing: tuple[str, ...] = ()
    """What of its arguments, and of their values, only writing needs; not offered where the server only reads."""
    is_idempotent: bool = False
    toolset: str = "core"
    schema: Mapping[str, Any] = {}
    finish: Callable[[CallResult], types.CallToolResult] = _finished
    """Makes the result of a call of its outcome."""


def _reader(model: type[argument_models.M]) -> Callable[[Mapping[str, Any]], tuple[argument_models.M, list[Problem]]]:
    """Return what reads the arguments of a tool that takes no changeset."""

    def read(arguments: Mapping[str, Any]) -> tuple[argument_models.M, list[Problem]]:
        found, problems = argument_models.read(model, arguments)
        if found is None:
            raise refused_arguments(problems)
        return found, problems

    return read


TOOLS: Final = (
    Tool(
        "kb.query",
        "Find entities, or with type `edge` edges. All filters must hold; none lists all.",
        argument_models.QueryArguments,
        _reader(argument_models.QueryArguments),
        query.query,
    ),
    Tool(
        "kb.upsert",
        "Create or update entities and edges, all or nothing. Fields not named stay; null removes one.",
        argument_models.UpsertArguments,
        write.read_upsert,
        write.apply_request,
        writes="always",
        is_idempotent=True,
    ),
    Tool(
        "kb.delete",
        "Remove up to 100 items; {kb_query} has versions. Refused while others point there, unless cascade.",
        argument_models.DeleteArguments,
        write.read_delete,
        write.apply_request,
        writes="always",
        is_idempotent=True,
    ),
    Tool(
        "kb.check",
        "Violations, worst first; `limit` lists each.",
        argument_models.CheckArguments,
        _reader(argument_models.CheckArguments),
        check.check,
    ),
    Tool(
        "kb.history",
        "log: newest first; show: one record; diff: two points; who: who wrote it, why; "
        "revert: undo one; rollback: all.",
        argument_models.HistoryArguments,
        _reader(argument_models.HistoryArguments),
        history.history,
        writes="sometimes",
        writing=("revert", "rollback", "message", "dry_run", "files", "expect_branch"),
    ),
    Tool(
        "execute_kip",
        "Run KIP (Knowledge Interaction Protocol 1.x): FIND, UPSERT, UPDATE, MERGE, DELETE, EXPORT, DESCRIBE, SEARCH. "
        "Each command that writes is one changeset, all or nothing. DESCRIBE SYNTAX is the reference, DESCRIBE PRIMER "
        f"the map of what is known. Examples: {SIMPLE_FIND.text} and {SIMPLE_UPSERT.text}",
        None,
        kip.read,
        kip.execute,
        writes="always",
        toolset="kip",
        schema=kip.SCHEMA,
        finish=kip.finished,
    ),
    Tool(
        "execute_kip_readonly",
        "Run KIP commands that only read: FIND, DESCRIBE, SEARCH, EXPORT. DESCRIBE SYNTAX is the reference, "
        f"DESCRIBE PRIMER the map of what is known. Example: {SIMPLE_FIND.text}",
        None,
        kip.read_only,
        kip.execute_readonly,
        toolset="kip",
        schema=kip.READING_SCHEMA,
        finish=kip.finished,
    ),
    Tool(
        "kb.sleep",
        "list: what the memory needs judgement for (tasks, duplicates, old events, the unsorted, domains), with the "
        "KIP commands that answer it; try: what a sleep cycle would do; run: a cycle, which does what needs none.",
        argument_models.SleepArguments,
        _reader(argument_models.SleepArguments),
        sleep.work,
        writes="sometimes",
        writing=("run", "force", "expect_branch"),
        toolset="kip",
    ),
)


def listed(service: Service, names: argument_models.SchemaNames) -> list[types.Tool]:
    """Return the tools that this server offers, always in the same order."""
    return [_listed(service, tool, names) for tool in TOOLS if _is_offered(service, tool)]


def _is_offered(service: Service, tool: Tool) -> bool:
    is_wanted = tool.toolset in service.options.toolsets
    return is_wanted and (tool.writes != "always" or not service.options.is_read_only)


def _listed(service: Service, tool: Tool, names: argument_models.SchemaNames) -> types.Tool:
    only_reads = tool.writes == "never" or service.options.is_read_only
    nature = types.ToolAnnotations(read_only_hint=only_reads, open_world_hint=False)
    if not only_reads:
        nature.destructive_hint = True
    if tool.is_idempotent:
        nature.idempotent_hint = True
    is_dotted, hidden = service.options.is_dotted, tool.writing if only_reads else ()
    sentences = [part for part in tool.description.split("; ") if part.partition(":")[0] not in hidden]
    return types.Tool(
        name=spelled(tool.key, is_dotted=is_dotted),
        description=in_words("; ".join(sentences), is_dotted=is_dotted),
        input_schema=argument_models.published(tool.model, names, hidden) if tool.model else dict(tool.schema),
        annotations=nature,
    )


def find(service: Service, name: str) -> Tool | str:
    """Return the tool that a client means by a name, in either spelling, or why there is none."""
    is_dotted = service.options.is_dotted
    known = {spelled(tool.key, is_dotted=way): tool for tool in TOOLS for way in (False, True)}
    tool = known.get(name)
    if tool is None:
        offered = [tool for tool in TOOLS if _is_offered(service, tool)]
        near = nearest(name, [spelled(tool.key, is_dotted=is_dotted) for tool in offered])
        return f"Unknown tool: {in_quotes(name[:100])}" + (f" (did you mean {near}?)" if near else "")
    if tool.toolset not in service.options.toolsets:
        return f"{name} is not offered: it is in the toolset {tool.toolset}, which --toolsets leaves out"
    if not _is_offered(service, tool):
        return f"{name} is not offered: this server runs with --read-only"
    return tool


async def answer(service: Service, tool: Tool, arguments: Mapping[str, Any], client: Client) -> types.CallToolResult:
    """Carry out a call when its turn has come, and return its result, whatever happens."""

    def prepare() -> Job:
        _check_size(arguments)
        asked, problems = tool.read(arguments)
        writes = getattr(asked, "writes", tool.writes == "always") or getattr(asked, "action", "") in tool.writing
        _check_offered(service, writes=writes)
        expected, is_dry = getattr(asked, "expect_branch", ""), getattr(asked, "dry_run", False)
        return Job(lambda call: tool.run(call, asked, problems), expected, writes, is_dry)

    outcome = await run_call(service, client, tool.key, prepare, writes=tool.writes == "always")
    return tool.finish(outcome)


def _check_offered(service: Service, *, writes: bool) -> None:
    if writes and service.options.is_read_only:
        message = "This server runs with --read-only."
        problem = Problem("$.action", "not_offered", message, "Leave `action` at one that reads.")
        raise refused_arguments([problem])


def _check_size(arguments: Mapping[str, Any]) -> None:
    try:
        size = len(msgspec.json.encode(arguments))
    except (UnicodeEncodeError, RecursionError) as error:
        raise InvalidQuery("The arguments hold half characters, or are nested too deep.") from error
    if size > MAX_ARGUMENT_BYTES:
        raise LimitExceeded(f"The arguments are {size} bytes; one call takes {MAX_ARGUMENT_BYTES}.")
