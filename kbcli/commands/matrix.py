"""``kb matrix``: which entities of one type lead to which ones of another, over a path of edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import TABLE_FORMAT, At, Paths, Status, Tags

if TYPE_CHECKING:
    from kbcli.invocation.context import Opened
    from kbcore.query.matrix import Matrix, MatrixRequest
    from kbcore.view.view import View

Texts = list[str] | None


def run(
    ctx: typer.Context,
    type_: Annotated[str, typer.Argument(metavar="TYPE", help="The type of the entities that are rows.")],
    steps: Annotated[
        list[str], typer.Argument(metavar="EDGE...", help="The edges from a row to a column; ^EDGE goes against one.")
    ],
    *,
    to: Annotated[
        str, typer.Option("--to", metavar="TYPE", help="Only columns of this type.", show_default=False)
    ] = "",
    holes: Annotated[bool, typer.Option("--holes", help="Only rows that lead nowhere, and need to.")] = False,
    tag: Tags = None,
    status: Status = None,
    path: Paths = None,
    where: Annotated[
        Texts, typer.Option("--where", metavar="CONDITION", help="As `kb query --help` says; may be repeated.")
    ] = None,
    at: At = None,
    format_: Annotated[
        Literal["table", "tsv", "json", "markdown", "csv"] | None, typer.Option("--format", help=TABLE_FORMAT)
    ] = None,
) -> None:
    """Show which entities lead to which others, and which to none.

    It is a traceability matrix: for each entity of a type, what the edges of a path lead to. A requirement may say with
    a reason that an aspect does not apply to it: its row is then no hole in the matrix of specified_by, verified_by or
    ^implements. Retired entities are left out.
    """
    from kbcli.invocation.bounds import check_format, table_format
    from kbcli.invocation.points import read_as_of, refuse_empty
    from kbcli.messages.options import OPTIONS, placed
    from kbcli.views.matrix import show
    from kbcore.query import UNREAD, Query, parse_each, parse_where, refuse
    from kbcore.query.matrix import ALL_ROWS, MatrixRequest

    session = session_of(ctx)
    refuse_empty(ctx)
    check_format(format_, {None, "json"}, is_json=session.output.is_json)
    session.output.is_json = session.output.is_json or format_ == "json"
    problems: list[Any] = []
    conditions = parse_each("where", where or (), parse_where, UNREAD, problems)
    refuse(problems)
    rows = Query(type=type_, tags=tuple(tag or ()), status=status or "", path=tuple(path or ()), where=conditions)
    wanted = MatrixRequest(rows, tuple(steps), to, ("no",) if holes else (), limit=ALL_ROWS)
    opened = session.open_to_read()
    with placed(session.output, {**OPTIONS, "steps": "EDGE...", "to": "--to"}):
        (found, seq), files = read_as_of(opened, at, lambda view, seq: (_read(opened, view, seq, wanted), seq))
    if session.output.is_json:
        session.output.document({"branch": opened.branch} | files.as_json() | found.as_json())
        return
    show(session.output, wanted, found, table_format(format_, session.output))
    session.show_files(opened.branch, files)
    if not found.rows and not seq:
        from kbcli.messages.empty_results import no_content_message

        session.output.note(no_content_message(at, session.sync_command()))


def _read(opened: Opened, view: View, seq: int, wanted: MatrixRequest) -> Matrix:
    """Return the matrix as of a seq. Raises: ``InvalidQuery``."""
    import msgspec

    from kbcore.query import DataNames, check
    from kbcore.query.matrix import check_matrix, read_matrix
    from kbcore.sync.paths import folder_in

    repo, schema = opened.workspace.repo, view.schema(opened.workspace.schema)
    start = folder_in(opened.session.start, repo.worktree) if repo.has_worktree else ""
    known = DataNames(view.rows, is_edge=False, owners=opened.code_owners)
    rows = check(wanted.rows, schema, known, root=str(repo.worktree), start=start)
    as_of = None if seq == view.seq else seq
    return read_matrix(view.rows, as_of, check_matrix(msgspec.structs.replace(wanted, rows=rows), schema))
