"""``kb impact``: what a change of an entity affects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import TABLE_FORMAT, At
from kbcore.limits import MAX_TRAVERSAL_DEPTH

if TYPE_CHECKING:
    from kbcore.query.impact import Impact
    from kbcore.view.view import View


def run(
    ctx: typer.Context,
    id_: Annotated[
        str,
        typer.Argument(metavar="ID|PATH[:LINE]", help="The entity that is to change, or the file, or a line of one."),
    ],
    *,
    depth: Annotated[int, typer.Option("--depth", metavar="N", help="In at most so many steps.")] = MAX_TRAVERSAL_DEPTH,
    at: At = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", metavar="N", help="So many of each part at most. [default: 50 at a terminal, else all]"
        ),
    ] = None,
    format_: Annotated[
        Literal["table", "tsv", "json", "markdown"] | None,
        typer.Option("--format", help=TABLE_FORMAT),
    ] = None,
) -> None:
    """Show what a change affects, and which tests to run.

    A file means all symbols and documents in it, a line for the innermost symbol around it.
    Effects go along edges of every type, as `kb schema` says of each, directly and through others. Also shows which
    decisions bind what is affected, and whom to ask.
    """
    from kbcli.invocation.bounds import check_bounds, check_format, rows_of, table_format
    from kbcli.invocation.points import read_as_of
    from kbcli.views.impact import show
    from kbcore.errors import InvalidQuery
    from kbcore.limits import MAX_AFFECTED
    from kbcore.query import empty_problems, refuse
    from kbcore.query.impact import impact_json

    session = session_of(ctx)
    check_format(format_, {None, "json"}, is_json=session.output.is_json)
    if not id_.strip():
        raise InvalidQuery("The id is empty.", hint="Name an entity or a file.")
    refuse(empty_problems({"at": at} if at is not None else {}))
    check_bounds("--depth", depth, MAX_TRAVERSAL_DEPTH, MAX_TRAVERSAL_DEPTH)
    shown_rows = rows_of(limit, session.output) or MAX_AFFECTED
    session.output.is_json = session.output.is_json or format_ == "json"
    opened = session.open_to_read()
    project, of_files = opened.workspace.schema, opened.code_owners()

    def answer(view: View, seq: int) -> Impact:
        from kbcli.invocation.points import entity_at, file_at
        from kbcore.query.impact import impact, impact_of_path

        past, schema = None if seq == view.seq else seq, view.schema(project)
        found = file_at(opened, view, seq, id_, is_now=at is None)
        if found is not None and len(found.subjects) > 1:
            return impact_of_path(
                view.rows, schema, found.place.as_text(), found.subjects, at=past, depth=depth, of_files=of_files
            )
        start = found.subjects[0] if found else entity_at(session, view, seq, id_)
        return impact(view.rows, schema, start, at=past, depth=depth, of_files=of_files)

    found, files = read_as_of(opened, at, answer)
    if session.output.is_json:
        shown = impact_json(found, depth=depth, limit=shown_rows)
        session.output.document({"branch": opened.branch} | files.as_json() | shown)
    else:
        show(session, found, depth=depth, limit=shown_rows, format_=table_format(format_, session.output))
        session.show_files(opened.branch, files)
