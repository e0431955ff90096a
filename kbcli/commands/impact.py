"""``kb impact``: what a change of an entity affects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kbcli.options import session_of
from kbcore.limits import DEFAULT_PAGE_ROWS

if TYPE_CHECKING:
    from kbcore.analysis.impact import Impact
    from kbcore.view.view import View

_DEPTH = 50


def run(
    ctx: typer.Context,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The entity that is to change.")],
    *,
    depth: Annotated[int, typer.Option("--depth", metavar="N", help="In at most so many steps.")] = _DEPTH,
    at: Annotated[str | None, typer.Option("--at", metavar="SEQ|TIME", help="As the branch stood then.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="So many of each part at most.")
    ] = DEFAULT_PAGE_ROWS,
    format_: Annotated[
        Literal["table", "json", "markdown"], typer.Option("--format", help="How to write it.")
    ] = "table",
) -> None:
    """Show what a change of an entity affects, and which tests to run.

    Effects go along edges of every type, as `kb schema` says of each, directly and through others. Also shows which
    decisions bind what is affected, and whom to ask.
    """
    from kbcli.asof import read_as_of
    from kbcli.bounds import check_bounds, check_format
    from kbcli.pages.impact import document, tell
    from kbcore.limits import MAX_PAGE_ROWS, MAX_TRAVERSAL_DEPTH
    from kbcore.query import empty_problems, refuse

    session = session_of(ctx)
    check_format(format_, {"table", "json"}, is_json=session.output.is_json)
    refuse(empty_problems({"id": id_, **({"at": at} if at is not None else {})}))
    check_bounds("--depth", depth, MAX_TRAVERSAL_DEPTH, _DEPTH)
    check_bounds("--limit", limit, MAX_PAGE_ROWS, DEFAULT_PAGE_ROWS)
    session.output.is_json = session.output.is_json or format_ == "json"
    opened = session.open_to_read()
    project = opened.workspace.schema

    def answer(view: View, seq: int) -> Impact:
        from kbcli.asof import entity_at
        from kbcore.analysis.impact import impact

        start = entity_at(view, seq, id_)
        return impact(view.rows, view.schema(project), start, at=None if seq == view.seq else seq, depth=depth)

    found, files = read_as_of(opened, at, answer)
    if session.output.is_json:
        shown = document(found, depth=depth, limit=limit)
        session.output.document({"branch": opened.branch} | files.as_json() | shown)
    else:
        tell(session, found, depth=depth, limit=limit, format_=format_)
        session.tell_files(opened.branch, files)
