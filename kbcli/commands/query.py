"""``kb query``: find entities or edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import TABLE_FORMAT, At, Paths, Status, Tags

if TYPE_CHECKING:
    from collections.abc import Callable

    from kbcli.invocation.context import Opened
    from kbcli.terminal.output import Output
    from kbcli.views.query import QueryAnswer
    from kbcore.errors import Problem
    from kbcore.query import Page, Query
    from kbcore.query.empty_result import Filter
    from kbcore.sync.overlay import FileState
    from kbcore.view.view import View

Texts = list[str] | None
Type = Annotated[str | None, typer.Argument(metavar="TYPE", help="An entity type, or `edge` for edges themselves.")]
Ids = Annotated[Texts, typer.Option("--id", metavar="ID", help="Only these; may be repeated.")]
Where = Annotated[
    Texts,
    typer.Option(
        "--where",
        metavar="KEY=VALUE",
        help="A field or attribute compares so: = != < <= > >= ~ (contains) ^= (begins with). "
        "`A=1 OR B=2` is either; twice means both.",
    ),
]
Has = Annotated[
    Texts,
    typer.Option("--has", metavar="EDGE[:ID]", help="Has such an edge, with ^EDGE an incoming one; twice means both."),
]
Lacks = Annotated[Texts, typer.Option("--lacks", metavar="EDGE[:ID]", help="Has no such edge; twice means neither.")]
Text = Annotated[str | None, typer.Option("--text", metavar="WORDS", help="Contains the words, best first.")]
From = Annotated[str | None, typer.Option("--from", metavar="ID", help="Can be reached from there.")]
Follow = Annotated[
    Texts,
    typer.Option(
        "--follow", metavar="EDGE[,EDGE]", help="Along these only, or against ^EDGE; with --from; may be repeated."
    ),
]
Depth = Annotated[int, typer.Option("--depth", metavar="N", help="In at most so many steps; with --from.")]
Reverse = Annotated[bool, typer.Option("--reverse", help="Against the direction of each edge; with --from.")]
Edges = Annotated[bool, typer.Option("--edges", help="Show the edges of what is found.")]
Sort = Annotated[
    str | None, typer.Option("--sort", metavar="KEY", help="Order by a field, REQ-2 before REQ-12; -KEY descends.")
]
Fields = Annotated[
    Texts,
    typer.Option("--fields", metavar="FIELD[,FIELD]", help="Show only these, in this order; may be repeated."),
]
Count = Annotated[bool, typer.Option("--count", help="Show only the count.")]
Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", help="At most so many. [default: 50 at a terminal, else all]")
]
Cursor = Annotated[str | None, typer.Option("--cursor", metavar="C", help="Continue where an answer ended.")]
Format = Annotated[
    Literal["table", "tsv", "json", "jsonl", "csv", "markdown"] | None,
    typer.Option("--format", help=TABLE_FORMAT),
]


def run(
    ctx: typer.Context,
    type_: Type = None,
    *,
    id_: Ids = None,
    tag: Tags = None,
    status: Status = None,
    where: Where = None,
    has: Has = None,
    lacks: Lacks = None,
    text: Text = None,
    path: Paths = None,
    from_: From = None,
    follow: Follow = None,
    depth: Depth = 1,
    reverse: Reverse = False,
    edges: Edges = False,
    at: At = None,
    sort: Sort = None,
    fields: Fields = None,
    count: Count = False,
    limit: Limit = None,
    cursor: Cursor = None,
    format_: Format = None,
) -> None:
    """Find entities or edges. Every filter conjoins.

    Entities are in the order of ids, at a terminal REQ-2 before REQ-10, or with --text of how well they fit: they hold
    every word, in a field or in their document. One typo in a word is allowed, and the last word may be a beginning.
    """
    from kbcli.views.listing import PAGE_ROWS
    from kbcore.limits import DEFAULT_PAGE_ROWS
    from kbcore.query import NO_PATTERN, UNREAD, Query, empty_problems, parse_each, parse_pattern, parse_where

    output = session_of(ctx).output
    output.is_json = output.is_json or format_ == "json"
    words = {"type": type_, "status": status, "text": text, "from": from_, "at": at, "sort": sort, "cursor": cursor}
    problems = empty_problems({name: word for name, word in words.items() if word is not None}, _named(output))
    wanted = Query(
        type=type_ or "",
        ids=tuple(id_ or ()),
        tags=tuple(tag or ()),
        status=status or "",
        where=parse_each("where", where or (), parse_where, UNREAD, problems),
        has=parse_each("has", has or (), parse_pattern, NO_PATTERN, problems),
        lacks=parse_each("lacks", lacks or (), parse_pattern, NO_PATTERN, problems),
        text=text or "",
        path=tuple(path or ()),
        from_id=from_ or "",
        follow=tuple(name.strip() for names in follow or () for name in names.split(",")),
        depth=depth,
        reverse=reverse,
        edges=edges,
        sort=sort or ("id" if output.is_terminal and not (text or from_ or type_ == "edge" or count) else ""),
        fields=tuple(name.strip() for names in fields or () for name in names.split(",")),
        count=count,
        limit=limit if limit is not None else DEFAULT_PAGE_ROWS if output.is_terminal else PAGE_ROWS,
        cursor=cursor or "",
    )
    _answer(ctx, wanted, at, format_, problems, limit)


def _answer(
    ctx: typer.Context,
    wanted: Query,
    at: str | None,
    format_: str | None,
    problems: list[Problem],
    limit: int | None,
) -> None:
    from kbcli.invocation.bounds import check_format, table_format
    from kbcli.messages.empty_results import nothing_matches
    from kbcli.messages.options import placed
    from kbcli.views.query import show, write_document
    from kbcore.errors import InvalidQuery
    from kbcore.text.escaping import escaped_sentence

    session = session_of(ctx)
    check_format(format_, {None, "json"}, is_json=session.output.is_json)
    if wanted.edges and format_ in {"csv", "markdown"}:
        hint = f"`kb query edge --format {format_}` shows edges."
        raise InvalidQuery(f"--format {format_} has no place for the edges of entities.", hint=hint)
    opened, instants = session.open_to_read(), list[str]()
    with placed(session.output), session.output.waiting("Searching"):
        (answer, filters), files = _read(opened, wanted, at, problems, limit, instants)
    if session.output.is_json:
        head = {"branch": opened.branch} | ({"points": instants} if instants else {}) | files.as_json()
        write_document(session.output, answer, head)
        session.show_settings(opened.workspace)
    else:
        for said in instants:
            session.output.note(f"note: {escaped_sentence(said)}")
        sync = session.sync_command()
        nothing = () if answer.first.total else nothing_matches(wanted, answer.first.seq, at, filters, sync)
        show(session, answer, table_format(format_, session.output), nothing)
        session.show_files(opened.branch, files)


def _named(output: Output) -> Callable[[str], str]:
    """Return how messages name an argument: as its option, or for a program as in an answer."""
    from kbcli.messages.options import option

    return str if output.is_json else option


def _read(
    opened: Opened, wanted: Query, at: str | None, problems: list[Problem], limit: int | None, instants: list[str]
) -> tuple[tuple[QueryAnswer, list[Filter]], FileState]:
    """Return the answer, of an empty one with what each filter keeps out, and how it relates to the files.

    ``instants`` gets which instants the times of conditions are.

    Raises: ``InvalidQuery`` with every problem, those that are known already among them.
    """
    from functools import partial

    import msgspec

    from kbcli.invocation.points import read_as_meant
    from kbcli.views.query import read_answer
    from kbcore.errors import InvalidQuery, Problem
    from kbcore.limits import FILES_S
    from kbcore.query import DataNames, check
    from kbcore.query.conditions import said_times
    from kbcore.query.former_ids import with_present_ids
    from kbcore.store.history.when import span_meant
    from kbcore.sync.paths import folder_in
    from kbcore.sync.searching import search
    from kbcore.view.branch_definitions import schema_at

    found, point = [*problems], None
    if at:
        try:
            point = opened.point(at)
        except InvalidQuery as error:
            found.append(Problem("$.at", "bad_value", error.message, error.remedy))
    times = partial(span_meant, now=opened.session.machine.clock.now(), is_local=True)
    project, root = opened.workspace.schema, opened.workspace.repo.worktree
    start = folder_in(opened.session.start, root) if opened.workspace.repo.has_worktree else ""
    is_whole = limit is None and not opened.session.output.is_terminal

    def answer(view: View, seq: int | None) -> tuple[QueryAnswer, list[Filter]]:
        schema = view.schema(project) if seq is None else schema_at(view.rows, project, seq)
        asked = check(
            wanted,
            schema,
            DataNames(view.rows, is_edge=wanted.is_edge, owners=opened.code_owners),
            found,
            root=str(root),
            start=start,
            named=_named(opened.session.output),
            times=times,
        )
        instants[:] = said_times(asked.where)
        asked, former = with_present_ids(view, asked, seq)
        opened.session.show_called(former, seq)
        asked = msgspec.structs.replace(asked, at=seq)

        def page_of(query: Query) -> Page:
            return search(opened.workspace, opened.store, opened.branch, view, query)

        result = read_answer(asked, page_of, is_whole=is_whole, is_limited=limit is not None)
        is_found = bool(result.first.total or not result.first.seq)
        if is_found and not (asked.lacks or len(asked.ids) > 1):
            return result, []
        from kbcore.query.empty_result import filters_of, unknown_ids

        if is_found:
            opened.session.called.update(dict.fromkeys(unknown_ids(view, asked)))
            return result, []
        return result, filters_of(view, asked)

    if point is None:
        return opened.files.read_page(
            opened.workspace,
            opened.branch,
            lambda view: answer(view, None),
            lambda found: found[0].first.seq,
            time_s=FILES_S,
        )
    return read_as_meant(opened, point, answer)
