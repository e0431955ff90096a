"""``kb mcp``: serve agents over MCP; the same program as ``kb-mcp``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kbcli.options import session_of

SETTINGS: dict[str, Any] = {"ignore_unknown_options": True}


def run(
    ctx: typer.Context,
    *,
    toolsets: Annotated[
        str | None, typer.Option("--toolsets", metavar="SETS", help="The groups of tools to offer, or all.")
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Offer only what reads.")] = False,
    tool_names: Annotated[
        str | None, typer.Option("--tool-names", metavar="STYLE", help="underscore (kb_query) or dotted (kb.query).")
    ] = None,
) -> int:
    """Serve agents over MCP on standard input and output, until the client closes it."""
    from kbmcp.server import main

    session = session_of(ctx)
    words = ["-C", str(session.start)]
    words += ["--branch", session.branch] if session.branch else []
    words += ["--toolsets", toolsets] if toolsets else []
    words += ["--tool-names", tool_names] if tool_names else []
    words += ["--read-only"] if read_only else []
    return main(words)
