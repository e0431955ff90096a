"""The tools: what each is called, says of itself, takes and does.

Nothing that is stored changes a name, a description or a schema beyond the type names of the project's own schema.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import mcp_types as types

from kbcore.errors import Problem
from kbcore.kip.reference import SIMPLE_FIND, SIMPLE_UPSERT
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import nearest
from kbmcp.tools import argument_models, check, history, kip, logic, logic_help, query, sleep, write
from kbmcp.tools.hints import in_words, spelled
from kbmcp.tools.refusals import refused_arguments
from kbmcp.tools.run_call import McpTool, Run
from kbmcp.tools.service import Service


def _reader(model: type[argument_models.M]) -> Callable[[Mapping[str, Any]], tuple[argument_models.M, list[Problem]]]:
    """Return what reads the arguments of a tool that takes no changeset."""

    def read(arguments: Mapping[str, Any]) -> tuple[argument_models.M, list[Problem]]:
        found, problems = argument_models.read(model, arguments)
        if found is None:
            raise refused_arguments(problems)
        return found, problems

    return read


def _prolog_tool(
    key: str, description: str | Mapping[str, str], model: type[argument_models.M], run: Run, **further: Any
) -> McpTool:
    """Return a tool that works on the Prolog workspace."""
    return McpTool(
        key,
        description,
        model,
        _reader(model),
        run,
        toolset="logic",
        finish=logic.finished,
        uses_prolog=True,
        **further,
    )


TOOLS: Final = (
    McpTool(
        "kb.query",
        "Find entities; edges with type `edge`.",
        argument_models.QueryArguments,
        _reader(argument_models.QueryArguments),
        query.query,
    ),
    McpTool(
        "kb.upsert",
        "Create or update, all or nothing; null removes. A note or task needs type and title. KB gives a missing id.",
        argument_models.UpsertArguments,
        write.read_upsert,
        write.apply_request,
        writes="always",
        is_idempotent=True,
    ),
    McpTool(
        "kb.delete",
        "Refused if linked to, unless cascade. {kb_query} has versions.",
        argument_models.DeleteArguments,
        write.read_delete,
        write.apply_request,
        writes="always",
        is_idempotent=True,
    ),
    McpTool(
        "kb.check",
        "What breaks rules.",
        argument_models.CheckArguments,
        _reader(argument_models.CheckArguments),
        check.check,
    ),
    McpTool(
        "kb.history",
        {
            "log": "newest first",
            "show": "one seq",
            "diff": "what changed since",
            "who": "who and why",
            "revert": "undo a seq, or yours since",
            "rollback": "all to a point",
        },
        argument_models.HistoryArguments,
        _reader(argument_models.HistoryArguments),
        history.history,
        writes="sometimes",
        writing=("revert", "rollback", "accept", "reject", "message", "dry_run", "force", "files", "expect_branch"),
    ),
    McpTool(
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
    McpTool(
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
    McpTool(
        "kb.sleep",
        {
            "list": "what the memory needs judgement for (tasks, duplicates, old events, the unsorted, domains), "
            "with the KIP commands that answer it",
            "try": "what a sleep cycle would do",
            "run": "a cycle, which does what needs none",
        },
        argument_models.SleepArguments,
        _reader(argument_models.SleepArguments),
        sleep.work,
        writes="sometimes",
        writing=("run", "force", "expect_branch"),
        toolset="kip",
    ),
    _prolog_tool(
        "clauses",
        "Prolog facts and rules.",
        argument_models.ClausesArguments,
        logic.clauses,
        writes="always",
    ),
    _prolog_tool(
        "files",
        "Imported .pl files.",
        argument_models.FilesArguments,
        logic.files,
        writes="sometimes",
        writing=("import", "unimport"),
    ),
    _prolog_tool(
        "workspace",
        {"snapshot": "all clauses", "reset": "remove them"},
        argument_models.WorkspaceArguments,
        logic.workspace,
        writes="sometimes",
        writing=("reset",),
    ),
    _prolog_tool(
        "query_start",
        "Query the clauses and KB's graph: entity/4, attr/3, edge/3.",
        argument_models.QueryStartArguments,
        logic.query_start,
    ),
    _prolog_tool("query_next", "Next solution.", argument_models.NoArguments, logic.query_next),
    _prolog_tool("query_close", "End it.", argument_models.NoArguments, logic.query_close),
    McpTool(
        "help",
        "About the Prolog workspace.",
        argument_models.HelpArguments,
        _reader(argument_models.HelpArguments),
        logic_help.answer,
        toolset="logic",
        finish=logic_help.finished,
        needs_branch=False,
    ),
)


def listed(service: Service, names: argument_models.SchemaNames) -> list[types.Tool]:
    """Return the tools that this server offers, always in the same order."""
    return [_listed(service, tool, names) for tool in TOOLS if _is_offered(service, tool)]


def _is_offered(service: Service, tool: McpTool) -> bool:
    is_wanted = tool.toolset in service.options.toolsets
    return is_wanted and (tool.writes != "always" or not service.options.is_read_only)


def _listed(service: Service, tool: McpTool, names: argument_models.SchemaNames) -> types.Tool:
    only_reads = tool.writes == "never" or service.options.is_read_only
    nature = types.ToolAnnotations(open_world_hint=False)
    if only_reads:
        nature.read_only_hint = True
    else:
        nature.destructive_hint = True
    if tool.is_idempotent:
        nature.idempotent_hint = True
    is_dotted, hidden = service.options.is_dotted, tool.writing if only_reads else ()
    return types.Tool(
        name=spelled(tool.key, is_dotted=is_dotted),
        description=in_words(_description(tool, hidden), is_dotted=is_dotted),
        input_schema=argument_models.published(tool.model, names, hidden, is_brief=True)
        if tool.model
        else dict(tool.schema),
        annotations=nature,
    )


def _description(tool: McpTool, hidden: Collection[str]) -> str:
    """Return what a tool says of itself, without the actions that are not offered, and its rarely needed arguments."""
    more = argument_models.rare(tool.model, hidden) if tool.model else []
    also = f" Also takes {', '.join(more)}." if more else ""
    if isinstance(tool.description, str):
        return tool.description + also
    return "; ".join(f"{name}: {does}" for name, does in tool.description.items() if name not in hidden) + f".{also}"


def by_name(service: Service) -> dict[str, McpTool]:
    """Return the tools that this server offers, by their names in either spelling."""
    return {name: tool for name, tool in _known().items() if _is_offered(service, tool)}


def why_none(service: Service, name: str) -> str:
    """Return why a name is that of no tool which this server offers."""
    tool = _known().get(name)
    if tool is None:
        offered = [spelled(tool.key, is_dotted=service.options.is_dotted) for tool in by_name(service).values()]
        near = nearest(name, list(dict.fromkeys(offered)))
        return f"Unknown tool: {in_quotes(name[:100])}" + (f" (did you mean {near}?)" if near else "")
    if tool.toolset not in service.options.toolsets:
        return f"{name} is not offered: it is in the toolset {tool.toolset}, which --toolsets leaves out"
    return f"{name} is not offered: this server runs with --read-only"


def _known() -> dict[str, McpTool]:
    return {spelled(tool.key, is_dotted=is_dotted): tool for tool in TOOLS for is_dotted in (False, True)}
