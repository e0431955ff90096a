"""``kb query``: find entities or edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kbcli.options import session_of
from kbcore.limits import DEFAULT_PAGE_ROWS

if TYPE_CHECKING:
    from kbcli.context import Opened
    from kbcore.errors import Problem
    from kbcore.query import Page, Query
    from kbcore.query.emptied import Filter
    from kbcore.view.view import View

Texts = list[str] | None
Type = Annotated[str | None, typer.Argument(metavar="TYPE", help="An entity type, or `edge` for edges themselves.")]
Ids = Annotated[Texts, typer.Option("--id", metavar="ID", help="Only these; may be repeated.")]
Tags = Annotated[Texts, typer.Option("--tag", metavar="T", help="Has the tag; twice means both.")]
Status = Annotated[str | None, typer.Option("--status", metavar="S", help="Has the status.")]
Where = Annotated[
    Texts, typer.Option("--where", metavar="KEY=VALUE", help="A field or attribute has the value; twice means both.")
]
Has = Annotated[
    Texts,
    typer.Option("--has", metavar="EDGE[:ID]", help="Has such an edge, with ^EDGE the other way; twice means both."),
]
Lacks = Annotated[Texts, typer.Option("--lacks", metavar="EDGE[:ID]", help="Has no such edge; twice means neither.")]
Text = Annotated[str | None, typer.Option("--text", metavar="WORDS", help="Holds the words, best first.")]
From = Annotated[str | None, typer.Option("--from", metavar="ID", help="Can be reached from there.")]
Follow = Annotated[
    Texts,
    typer.Option(
        "--follow", metavar="EDGE[,EDGE]", help="Along these only, or against ^EDGE; with --from; may be repeated."
    ),
]
Depth = Annotated[int, typer.Option("--depth", metavar="N", help="In at most so many steps; with --from.")]
Reverse = Annotated[bool, typer.Option("--reverse", help="The other way along each edge; with --from.")]
Edges = Annotated[bool, typer.Option("--edges", help="Show the edges of what is found.")]
At = Annotated[str | None, typer.Option("--at", metavar="SEQ|TIME", help="As the branch stood then.")]
Sort = Annotated[str | None, typer.Option("--sort", metavar="KEY", help="Order by a field; -KEY descends.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", help="So many at most.")]
Cursor = Annotated[str | None, typer.Option("--cursor", metavar="C", help="Go on where an answer ended.")]
Format = Annotated[
    Literal["table", "json", "jsonl", "csv", "markdown"], typer.Option("--format", help="How to write it.")
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
    from_: From = None,
    follow: Follow = None,
    depth: Depth = 1,
    reverse: Reverse = False,
    edges: Edges = False,
    at: At = None,
    sort: Sort = None,
    limit: Limit = DEFAULT_PAGE_ROWS,
    cursor: Cursor = None,
    format_: Format = "table",
) -> None:
    """Find entities or edges. Every filter conjoins.

    Entities are in the order of ids, or with --text of how well they fit: they hold every word, in a field or in their
    document. One typo in a word is allowed, and the last word may be a beginning.
    """
    from kbcore.query import NO_PAIR, NO_PATTERN, Query, empty_problems, parse_each, parse_pattern, parse_where

    words = {"type": type_, "status": status, "text": text, "from": from_, "at": at, "sort": sort, "cursor": cursor}
    problems = empty_problems({name: word for name, word in words.items() if word is not None})
    wanted = Query(
        type=type_ or "",
        ids=tuple(id_ or ()),
        tags=tuple(tag or ()),
        status=status or "",
        where=parse_each("where", where or (), parse_where, NO_PAIR, problems),
        has=parse_each("has", has or (), parse_pattern, NO_PATTERN, problems),
        lacks=parse_each("lacks", lacks or (), parse_pattern, NO_PATTERN, problems),
        text=text or "",
        from_id=from_ or "",
        follow=tuple(name.strip() for names in follow or () for name in names.split(",")),
        depth=depth,
        reverse=reverse,
        edges=edges,
        sort=sort or "",
        limit=limit,
        cursor=cursor or "",
    )
    _answer(ctx, wanted, at, format_, problems)


def _answer(ctx: typer.Context, wanted: Query, at: str | None, format_: str, problems: list[Problem]) -> None:
    from kbcli.bounds import check_format
    from kbcli.pages.query import document, tell
    from kbcore.errors import InvalidQuery

    session = session_of(ctx)
    check_format(format_, {"table", "json"}, is_json=session.output.is_json)
    if wanted.edges and format_ in {"csv", "markdown"}:
        hint = f"`kb query edge --format {format_}` shows edges."
        raise InvalidQuery(f"--format {format_} has no place for the edges of entities.", hint=hint)
    session.output.is_json = session.output.is_json or format_ == "json"
    opened = session.open_to_read()
    try:
        with session.output.waiting("Searching"):
            page, filters = _page(opened, wanted, at, problems)
    except InvalidQuery as error:
        if session.output.is_json:
            raise
        from kbcli.words.options import in_option_words

        raise in_option_words(error) from error
    if session.output.is_json:
        carrying = {"with_edges": wanted.edges, "is_of_edges": wanted.is_edge}
        session.output.document(document(page, opened.branch, **carrying))
    else:
        tell(session, page, wanted, format_, () if page.total else _nothing(wanted, page.seq, at, filters))


def _nothing(wanted: Query, seq: int, at: str | None, filters: list[Filter]) -> list[str]:
    from kbcli.words.nothing import nothing_matches

    return nothing_matches(wanted, seq, at, filters)


def _page(opened: Opened, wanted: Query, at: str | None, problems: list[Problem]) -> tuple[Page, list[Filter]]:
    """Return the page, and of an empty one what each filter keeps out.

    Raises: ``InvalidQuery`` with every problem, those that are known already among them.
    """
    import msgspec

    from kbcore.query import Known, check, moment_problem
    from kbcore.searching import search
    from kbcore.view.defined import schema_at

    wrong = moment_problem(at) if at else None
    found = [*problems, *([wrong] if wrong else [])]
    project = opened.workspace.schema

    def answer(view: View, seq: int | None) -> tuple[Page, list[Filter]]:
        schema = view.schema(project) if seq is None else schema_at(view.rows, project, seq)
        asked = check(wanted, schema, Known(view.rows, is_edge=wanted.is_edge), found)
        asked = msgspec.structs.replace(asked, at=seq)
        page = search(opened.workspace, opened.store, opened.branch, view, asked)
        if page.total or not page.seq:
            return page, []
        from kbcore.query.emptied import filters_of

        return page, filters_of(view, asked)

    from kbcore.history.moment import read_at, read_head

    if not at or wrong:
        return read_head(opened.store, lambda view: answer(view, None))
    return read_at(opened.store, at, answer, now=opened.workspace.machine.clock.now(), notes=opened.session.notes)
