"""``kb log``: what changed, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from kbcore.view.view import View


def run(
    ctx: typer.Context,
    id_: Annotated[str | None, typer.Argument(metavar="ID", help="Only what changed this entity or its edges.")] = None,
    *,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="So many at most.")] = 50,
    actor: Annotated[
        str, typer.Option("--actor", metavar="A", help="Only what this person or agent did.", show_default=False)
    ] = "",
    source: Annotated[
        str,
        typer.Option("--source", metavar="S", help="Only what came through it: cli, mcp, …", show_default=False),
    ] = "",
    since: Annotated[
        str, typer.Option("--since", metavar="T", help="Only what was written since then.", show_default=False)
    ] = "",
) -> None:
    """Show what changed, newest first: when, who, through what, and why."""
    from kbcore.errors import InvalidQuery
    from kbcore.history.log import log

    session = session_of(ctx)
    if limit < 1:
        raise InvalidQuery("The limit must be 1 or more.")
    opened = session.open()

    def read(view: View) -> list[dict[str, Any]]:
        return log(view, id=id_ or "", limit=limit + 1, actor=actor, source=source, since=since)

    found = opened.store.read(read)
    records, has_more = found[:limit], len(found) > limit
    if session.output.is_json:
        session.output.document({"branch": opened.branch, "records": records})
        return
    from kbcli.changes import record_rows
    from kbcli.tables import aligned

    output = session.output
    output.is_paged = True
    if records:
        output.data("\n".join(aligned(*record_rows(records), output.width)) + "\n")
    else:
        output.note("No record matches." if id_ or actor or source or since else "Nothing was written yet.")
    if has_more:
        output.note(f"There are more; --limit {limit * 10} shows them.")
