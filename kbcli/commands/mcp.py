"""``kb mcp``: serve agents over MCP, the same program as ``kb-mcp``; and configure clients to start it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.invocation.command_tree import WITHOUT_COMMAND, HelpfulCommand, group_of
from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbcli.invocation.context import Session

app = group_of("Serve agents over MCP on standard input and output, until the client closes it.")


_TOOLSETS = typer.Option("--toolsets", metavar="SETS", help="The groups of tools to offer, or all.")


@app.callback(**WITHOUT_COMMAND)
def serve(
    ctx: typer.Context,
    *,
    toolsets: Annotated[str | None, _TOOLSETS] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer only what reads.")] = False,
    tool_names: Annotated[
        str | None, typer.Option("--tool-names", metavar="STYLE", help="underscore (kb_query) or dotted (kb.query).")
    ] = None,
    libraries: Annotated[
        str | None, typer.Option("--kb-libraries", "-l", metavar="NAMES", help="Prolog libraries to load, with commas.")
    ] = None,
    roots: Annotated[
        str | None, typer.Option("--kb-roots", metavar="PATHS", help="Folders whose Prolog files may be imported.")
    ] = None,
) -> int:
    """Serve agents over MCP on standard input and output, until the client closes it.

    `kb mcp install` configures a client to start it.
    """
    if ctx.invoked_subcommand:
        if toolsets or read_only or tool_names or libraries or roots:
            _refuse_options(ctx.invoked_subcommand)
        return 0
    from kbmcp.server import main

    session = session_of(ctx)
    session.signals.leave_alone()
    words = ["-C", str(session.start)]
    words += ["--branch", session.branch] if session.branch else []
    words += ["--toolsets", toolsets] if toolsets else []
    words += ["--tool-names", tool_names] if tool_names else []
    words += ["--read-only"] if read_only else []
    words += ["--kb-libraries", libraries] if libraries else []
    words += ["--kb-roots", roots] if roots is not None else []
    return main(words)


def _refuse_options(command: str) -> None:
    """Refuse options of the server in front of a command, where they would do nothing. Raises: ``InvalidQuery``."""
    from kbcore.errors import InvalidQuery

    message = f"Options of the server in front of `{command}` do nothing."
    raise InvalidQuery(
        message, hint=f"Write `kb mcp {command} CLIENT --toolsets SETS`; put others into `args` of the file."
    )


_CLIENT = typer.Argument(
    metavar="CLIENT", help="claude, claude-code, cursor, vscode, zed, windsurf, codex, gemini, opencode or junie."
)
_WRITE = typer.Option("--write", help="Write it into the client's file, and show what changed.")
_SCOPE = typer.Option(
    "--scope", metavar="SCOPE", help="project (its file is shared) or user; by default project, if it has one."
)
_NAME = typer.Option("--name", metavar="NAME", help="What the client calls the server.")


@app.command("install", cls=HelpfulCommand)
def install(
    ctx: typer.Context,
    client: Annotated[str, _CLIENT],
    *,
    write: Annotated[bool, _WRITE] = False,
    scope: Annotated[str, _SCOPE] = "",
    toolsets: Annotated[str | None, _TOOLSETS] = None,
    name: Annotated[str, _NAME] = "kb",
) -> None:
    """Show how a client starts the server, or write it into the client's file.

    Without --write nothing is written. `kb agents install` writes the same entry, and hooks and instructions too.
    """
    from kbcli.clients import kinds, setup
    from kbcli.clients.parts import ServerEntry
    from kbcli.invocation import client_surroundings
    from kbcore.errors import KBError

    session = session_of(ctx)
    session.writes = write
    kind, where = kinds.find(client), kinds.scope_of(client, scope)
    server_name = client_surroundings.checked_name(name)
    around = client_surroundings.of(session, [where], offering=_offering(toolsets), server_name=server_name)
    [target] = setup.targets(around, client, where, only=("server",))
    entry, path = target.part, target.place.path
    assert isinstance(entry, ServerEntry)  # noqa: S101 - it was asked for
    answer: dict[str, Any] = {"client": client, "scope": where, "path": str(path), "entry": entry.entry}
    answer["writable_roots"] = [str(root) for root in entry.roots]
    snippet = entry.put("")
    try:
        done = setup.install(around, target, write=write, replace=True)
    except KBError as error:
        if write:
            raise
        _show_entry(session, {**answer, "state": "unusable", "problem": error.message}, snippet)
        return
    planned = done.change
    answer |= {"state": planned.state, "written": write and planned.state != "current", "diff": planned.diff}
    if not write:
        _show_entry(session, answer, snippet)
        return
    _show_written(session, answer, kind.then)


def _show_entry(session: Session, answer: Mapping[str, Any], snippet: str) -> None:
    from kbcore.text.escaping import escape_controls, escape_lines

    output, path = session.output, escape_controls(answer["path"])
    if output.is_json:
        output.document(answer)
        return
    output.data(escape_lines(snippet))
    if answer["state"] == "unusable":
        output.warn(f"This belongs in {path}, where it cannot be put: {escape_controls(answer['problem'])}")
    else:
        then = "it is there already" if answer["state"] == "current" else "--write puts it there"
        output.note(f"This belongs in {path}; {then}.")


def _show_written(session: Session, answer: Mapping[str, Any], then: str) -> None:
    from kbcore.text.escaping import escape_controls

    output = session.output
    if output.is_json:
        output.document(answer)
    elif not answer["written"]:
        output.say(f"{escape_controls(answer['path'])} has it already.")
    else:
        output.say_difference(answer["diff"])
        output.note(f"Written. {then}")


def _offering(toolsets: str | None) -> list[str]:
    """Return the words that have the server offer these toolsets. Raises: ``InvalidQuery``."""
    from kbcore.errors import InvalidQuery
    from kbmcp.server import TOOLSETS, toolsets_of

    if toolsets is None:
        return []
    try:
        toolsets_of(toolsets)
    except ValueError as error:
        hint = f"For example --toolsets {','.join(TOOLSETS)}."
        raise InvalidQuery(f"The server would refuse to start: {error}.", hint=hint) from None
    return ["--toolsets", toolsets.replace(" ", "")]
