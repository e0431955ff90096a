"""``kb fleet``: ask many repositories at once, in a place to which they export."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from kbcli.fleet.asking import (
    FoundFleet,
    answered,
    ask,
    asker_of,
    begin,
    each_once,
    entity_named,
    find,
    instant_before,
    status_of,
    workers_of,
)
from kbcli.invocation.command_tree import HelpfulCommand, group_of
from kbcli.invocation.context import session_of
from kbcli.invocation.options import TABLE_FORMAT, Status, Tags
from kbcore.limits import MAX_TRAVERSAL_DEPTH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kbcli.invocation.context import Session
    from kbcore.errors import Problem
    from kbcore.query import Query

app = group_of("Ask many repositories at once, in a place to which they export.")

Texts = list[str] | None
Where = Annotated[
    str | None,
    typer.Option("--place", metavar="PLACE", help="A folder or a URL. [default: KB_FLEET, else `fleet.place`]"),
]
Repos = Annotated[
    Texts, typer.Option("--repo", metavar="GLOB", help="Only these repositories, as acme/*; may be repeated.")
]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help="As everything was then.")]
Format = Annotated[
    Literal["table", "tsv", "json", "jsonl", "csv", "markdown"] | None, typer.Option("--format", help=TABLE_FORMAT)
]
Engine = Annotated[
    Literal["local", "ray"], typer.Option("--engine", help="What asks: this process, or workers of Ray.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", metavar="N", help="Workers of Ray. [default: one for each processor]")
]
Address = Annotated[
    str | None, typer.Option("--address", metavar="ADDRESS", help="A cluster of Ray, in place of workers here.")
]
Shard = Annotated[
    int | None, typer.Option("--shard", metavar="N", help="At most so many branches a worker. [default: 200]")
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", help="At most so many rows.")]
_ROWS = 1000
_ROWS_FOUND = 50


@app.command("init", cls=HelpfulCommand)
def init(
    ctx: typer.Context,
    place: Annotated[
        str | None, typer.Argument(metavar="PLACE", help="A folder, or a URL as s3://acme-kb/fleet.")
    ] = None,
    *,
    repo: Annotated[
        str | None,
        typer.Option("--repo", metavar="NAME", help="The name of the repository there. [default: OWNER/NAME]"),
    ] = None,
) -> int:
    """Set the place to which `kb export --fleet` exports, in the settings of the repository, and say who may read it.

    A setting that is there stays. Nothing is exported yet, and a place that cannot be reached from here is set too.
    """
    import msgspec

    from kbcli.messages.fleet import set_up_lines
    from kbcore.fleet.setting_up import set_up
    from kbcore.text.escaping import escape_controls

    session = session_of(ctx)
    workspace = session.workspace
    found = set_up(workspace, place, repo, session.start)
    if session.output.is_json:
        session.output.document(msgspec.to_builtins(found))
        return 0
    if found.fault:
        session.output.warn(escape_controls(f"The place was not reached: {found.fault}"))
    for line in set_up_lines(found, workspace.config.share, f"{workspace.settings_name}/config.json"):
        session.output.say(escape_controls(line))
    return 0


@app.command("status", cls=HelpfulCommand)
def status(
    ctx: typer.Context,
    *,
    place: Where = None,
    repo: Repos = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read every part, and compare it with its digest.")] = False,
    format_: Format = None,
) -> int:
    """List what is in the place: repositories, branches, their last record, and how much there is.

    Ends with the status of a storage error where a head cannot be read or, with --verify, a part is missing or damaged.
    """
    from kbcli.views.fleet import show
    from kbcore.errors import KBError
    from kbcore.fleet.head import as_json
    from kbcore.fleet.place import read_part
    from kbcore.fleet.reading import failure_of

    session, shown = begin(ctx, format_)
    fleet = find(session, place, repo)
    failures, rows = [*fleet.failures], []
    for head in fleet.heads:
        try:
            for part in (head.settings, *head.parts) if verify else ():
                read_part(fleet.place, part)
            rows.append(as_json(head))
        except KBError as error:
            failures.append(failure_of(head.repo, head.branch, error))
    show(session, shown, ("repo", "branch", "seq", "at", "history", "parts", "bytes"), rows, failures, {})
    return status_of(failures)


@app.command("check", cls=HelpfulCommand)
def check(
    ctx: typer.Context,
    *,
    place: Where = None,
    repo: Repos = None,
    rule: Annotated[Texts, typer.Option("--rule", metavar="NAME", help="Only this rule; may be repeated.")] = None,
    fail_on: Annotated[
        Literal["error", "warning", "never"], typer.Option("--fail-on", help="What makes the status 1.")
    ] = "error",
    engine: Engine = "local",
    workers: Workers = None,
    address: Address = None,
    shard: Shard = None,
    format_: Annotated[
        Literal["table", "tsv", "json", "jsonl", "csv", "markdown", "sarif", "junit"] | None,
        typer.Option("--format", help=TABLE_FORMAT),
    ] = None,
) -> int:
    """Run the rules over each repository: KB's own, and its own by the settings that it exported.

    References to other repositories must lead to something there. What needs the files of a repository is not checked:
    whether files exist. Ends with status 1 when a violation counts as a failure, or when a rule could not run.
    """
    from kbcli.invocation import exits
    from kbcli.views.fleet import asked_line, report_text, show, show_failures
    from kbcore.fleet.across import find_elsewhere
    from kbcore.fleet.asking import CheckQuestion
    from kbcore.fleet.merging import merged_report

    session, shown = begin(ctx, format_)
    fleet = find(session, place, repo, workers_of(engine, workers, address, shard))
    with session.output.waiting("Looking for what is in other repositories"):
        elsewhere = find_elsewhere(fleet.place, fleet.heads, asker_of(session, fleet, None))
    question = CheckQuestion(tuple(rule or ()), elsewhere)
    if shown in {"sarif", "junit"}:
        answers, failures = ask(session, fleet, question, list)
        found = merged_report(answers)
        session.output.data(report_text(shown, answers, fail_on))
        show_failures(session, failures)
    else:
        found, failures = ask(session, fleet, question, merged_report)
        columns = ("repo", "branch", "severity", "rule", "id", "message")
        head = {"repositories": found.branches, "not_run": found.not_run}
        show(session, shown, columns, found.violations, failures, head)
    rows, not_run = found.violations, found.not_run
    if not session.output.is_json:
        for run in not_run:
            session.output.warn(f"{run['repo']} at {run['branch']}: {run['id']} could not run: {run['reason']}")
        session.output.note(asked_line(found.branches, failures))
    counted = {"error": {"error"}, "warning": {"error", "warning"}, "never": set[str]()}[fail_on]
    is_failed = not_run or any(row["severity"] in counted for row in rows)
    return status_of(failures) or (exits.VIOLATIONS if is_failed else exits.DONE)


@app.command("query", cls=HelpfulCommand)
def query(
    ctx: typer.Context,
    type_: Annotated[
        str | None, typer.Argument(metavar="TYPE", help="An entity type, or `edge` for edges themselves.")
    ] = None,
    *,
    place: Where = None,
    repo: Repos = None,
    tag: Tags = None,
    status_: Status = None,
    where: Annotated[
        Texts, typer.Option("--where", metavar="KEY=VALUE", help="As `kb query --where`; twice means both.")
    ] = None,
    has: Annotated[
        Texts,
        typer.Option(
            "--has", metavar="EDGE[:ID]", help="Has such an edge, with ^EDGE an incoming one; twice means both."
        ),
    ] = None,
    lacks: Annotated[
        Texts, typer.Option("--lacks", metavar="EDGE[:ID]", help="Has no such edge; twice means neither.")
    ] = None,
    at: At = None,
    limit: Limit = _ROWS,
    engine: Engine = "local",
    workers: Workers = None,
    address: Address = None,
    shard: Shard = None,
    format_: Format = None,
) -> int:
    """Find entities or edges of all repositories. Every filter conjoins. The order is that of repositories and ids."""
    from kbcore.query import NO_PATTERN, UNREAD, Query, parse_each, parse_pattern, parse_where, refuse

    session, shown = begin(ctx, format_)
    problems: list[Problem] = []
    wanted = Query(
        type=type_ or "",
        tags=tuple(tag or ()),
        status=status_ or "",
        where=parse_each("where", where or (), parse_where, UNREAD, problems),
        has=parse_each("has", has or (), parse_pattern, NO_PATTERN, problems),
        lacks=parse_each("lacks", lacks or (), parse_pattern, NO_PATTERN, problems),
        limit=limit,
    )
    refuse(problems)
    columns = ("from", "type", "to", "source") if wanted.is_edge else ("id", "type", "status", "title")
    fleet = find(session, place, repo, workers_of(engine, workers, address, shard))
    return _rows(session, shown, fleet, wanted, at, ("repo", "branch", *columns))


@app.command("search", cls=HelpfulCommand)
def search(
    ctx: typer.Context,
    words: Annotated[str, typer.Argument(metavar="WORDS", help="What entities have to hold.")],
    *,
    place: Where = None,
    repo: Repos = None,
    at: At = None,
    limit: Limit = _ROWS_FOUND,
    engine: Engine = "local",
    workers: Workers = None,
    address: Address = None,
    shard: Shard = None,
    format_: Format = None,
) -> int:
    """Find the entities of all repositories whose fields hold the words, best first.

    Documents are not exported, so that only fields are searched. The score is that of each repository.
    """
    from kbcore.errors import InvalidQuery
    from kbcore.query import Query

    session, shown = begin(ctx, format_)
    if not words.strip():
        raise InvalidQuery("WORDS is empty.", hint="`kb fleet query` finds all entities.")
    wanted = Query(text=words, limit=limit)
    fleet = find(session, place, repo, workers_of(engine, workers, address, shard))
    return _rows(session, shown, fleet, wanted, at, ("repo", "branch", "score", "id", "title"))


@app.command("coverage", cls=HelpfulCommand)
def coverage(
    ctx: typer.Context,
    *,
    place: Where = None,
    repo: Repos = None,
    by: Annotated[
        Literal["requirement", "repo", "owner", "tag"], typer.Option("--by", help="What makes a row.")
    ] = "repo",
    tag: Tags = None,
    where: Annotated[
        Texts, typer.Option("--where", metavar="KEY=VALUE", help="As `kb query --where`; twice means both.")
    ] = None,
    lacks: Annotated[
        Texts,
        typer.Option("--lacks", metavar="ASPECT", help="Only rows that lack it, twice both; totals stay those of all."),
    ] = None,
    at: At = None,
    engine: Engine = "local",
    workers: Workers = None,
    address: Address = None,
    shard: Shard = None,
    format_: Format = None,
) -> int:
    """Show which requirements of all repositories are specified, verified and implemented.

    What another repository has counts where an edge of any repository says so. An owner is who the field `owner` names.
    """
    from kbcli.input.thresholds import read_aspects
    from kbcli.views.fleet import show
    from kbcore.fleet.across import find_others
    from kbcore.fleet.asking import CoverageQuestion
    from kbcore.fleet.merging import coverage_of, lacking_rows
    from kbcore.model.schema import ASPECTS
    from kbcore.query import UNREAD, Query, parse_each, parse_where, refuse

    session, shown = begin(ctx, format_)
    problems: list[Problem] = []
    conditions = parse_each("where", where or (), parse_where, UNREAD, problems)
    refuse(problems)
    lacked = read_aspects(lacks or ())
    asked = CoverageQuestion(Query(type="req", tags=tuple(tag or ()), where=conditions), instant_before(session, at))
    fleet = find(session, place, repo, workers_of(engine, workers, address, shard))
    every = fleet if repo is None else find(session, place, None)
    with session.output.waiting("Counting what other repositories have"):
        counted, more = find_others(every.place, every.heads, asker_of(session, fleet, at))
    found, failures = ask(session, fleet, asked, lambda answers: coverage_of(map(counted, answers), by))
    failures = each_once([*failures, *every.failures, *more])
    rows = lacking_rows(found.rows, lacked)
    head = {"by": by, "total": found.total, "retired": found.retired}
    if session.output.is_json:
        columns: tuple[str, ...] = ()
    elif by == "requirement":
        columns = ("repo", "branch", "id", *ASPECTS, "priority", "title")
        rows = [row | row["states"] for row in rows]
    else:
        columns = ("name", "requirements", *ASPECTS)
        named = [*rows, {**found.total, "name": "TOTAL"}]
        rows = [{**row, "name": row["name"] or "(none)"} | {one: _share(row[one]) for one in ASPECTS} for row in named]
    show(session, shown, columns, rows, failures, head)
    return status_of(failures)


@app.command("impact", cls=HelpfulCommand)
def impact(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="REPO:ID", help="The entity that is to change, as acme/pay:REQ-1.")],
    *,
    place: Where = None,
    repo: Repos = None,
    depth: Annotated[int, typer.Option("--depth", metavar="N", help="In at most so many steps.")] = MAX_TRAVERSAL_DEPTH,
    elsewhere: Annotated[
        bool, typer.Option("--elsewhere", help="Leave out what is in the repository of the entity itself.")
    ] = False,
    at: At = None,
    limit: Limit = _ROWS,
    format_: Format = None,
) -> int:
    """Show what a change of an entity affects in all repositories, nearest first: what depends on it.

    Effects go along edges as in `kb impact`, and along those from one repository to another. --repo leaves out what is
    affected in other repositories, and no edge.
    """
    from kbcli.invocation.bounds import check_bounds
    from kbcli.views.fleet import show
    from kbcore.fleet.across import affected
    from kbcore.fleet.reading import is_named
    from kbcore.limits import MAX_PAGE_ROWS
    from kbcore.text.escaping import escape_controls

    check_bounds("--depth", depth, MAX_TRAVERSAL_DEPTH, MAX_TRAVERSAL_DEPTH)
    check_bounds("--limit", limit, MAX_PAGE_ROWS, _ROWS)
    session, shown = begin(ctx, format_)
    fleet = find(session, place, None)
    named = entity_named(name, fleet)
    with session.output.waiting("Following edges"):
        found = affected(fleet.place, fleet.heads, named, asker_of(session, fleet, at), depth=depth)
    rows = [
        row
        for row in found.rows
        if not (elsewhere and row["repo"] == named[0]) and (repo is None or is_named(repo, row["repo"]))
    ]
    failures = each_once([*fleet.failures, *found.failures])
    start = {**found.found.start.as_json(), "repo": named[0], "id": named[1]}
    head: dict[str, Any] = {"entity": start, "total": len(rows)}
    columns = ("part", "repo", "id", "type", "status", "title", "owner", "path")
    show(session, shown, columns, rows[:limit], failures, head | {"goes_on": found.found.goes_on})
    if not session.output.is_json:
        if not rows:
            session.output.note(escape_controls(f"A change of {name} affects nothing that is asked for."))
        elif len(rows) > limit:
            session.output.note(f"{limit} of {len(rows)}: --limit says how many are shown.")
    return status_of(failures)


@app.command("sql", cls=HelpfulCommand)
def sql(
    ctx: typer.Context,
    statement: Annotated[str, typer.Argument(metavar="STATEMENT", help="One statement that reads.")],
    *,
    place: Where = None,
    repo: Repos = None,
    at: At = None,
    limit: Limit = _ROWS,
    engine: Engine = "local",
    workers: Workers = None,
    address: Address = None,
    shard: Shard = None,
    format_: Format = None,
) -> int:
    """Run one statement of SQL over the facts of all repositories.

    The relations are those of rules in SQL, such as entity and edge, each with the columns repo and branch before the
    others. The engine ray runs the statement in one worker.
    """
    from kbcli.invocation.bounds import check_bounds
    from kbcli.views.fleet import show
    from kbcore.fleet import local
    from kbcore.limits import MAX_PAGE_ROWS

    check_bounds("--limit", limit, MAX_PAGE_ROWS, _ROWS)
    session, shown = begin(ctx, format_)
    fleet = find(session, place, repo, workers_of(engine, workers, address, shard))
    asker = asker_of(session, fleet, at)
    with session.output.waiting("Asking"):
        if fleet.workers is None:
            found = local.sql(fleet.place, fleet.heads, statement, limit, asker)
        else:
            from kbcore.fleet import ray_engine

            with ray_engine.started(fleet.workers) as asks:
                found = asks.sql(fleet.place, fleet.heads, statement, limit, before=asker.before, user=fleet.user)
    rows = [dict(zip(found.columns, map(_plain, row), strict=True)) for row in found.rows]
    failures = [*fleet.failures, *found.failures]
    show(session, shown, found.columns, rows, failures, {"columns": found.columns, "more": found.is_cut})
    if found.is_cut and not session.output.is_json:
        session.output.note(f"There are more rows than {limit}: --limit says how many are shown.")
    return status_of(failures)


def _rows(
    session: Session, shown: str, fleet: FoundFleet, wanted: Query, at: str | None, columns: tuple[str, ...]
) -> int:
    from kbcli.invocation.bounds import check_bounds
    from kbcli.views.fleet import asked_line, show
    from kbcore.fleet.asking import RowsQuestion
    from kbcore.fleet.merging import merged_rows
    from kbcore.limits import MAX_PAGE_ROWS

    check_bounds("--limit", wanted.limit, MAX_PAGE_ROWS, _ROWS_FOUND if wanted.text else _ROWS)
    question = RowsQuestion(wanted, instant_before(session, at))
    (rows, total), failures = ask(
        session, fleet, question, lambda answers: merged_rows(answers, best_first=bool(wanted.text), limit=wanted.limit)
    )
    show(session, shown, columns, rows, failures, {"total": total})
    if not (total or session.output.is_json):
        asked = answered(fleet, failures)
        session.output.note(f"{'Nothing matches. ' if asked else ''}{asked_line(asked, failures)}")
    if total > len(rows) and not session.output.is_json:
        session.output.note(f"{len(rows)} of {total}: --limit says how many are shown.")
    return status_of(failures)


def _share(tally: Mapping[str, Any]) -> str:
    needed = tally["yes"] + tally["no"]
    return f"{tally['yes']}/{needed} {tally['percent']:g}%" if needed else "-"


def _plain(value: Any) -> Any:
    """Return a value of the database as JSON has it."""
    import datetime as dt
    import decimal

    if isinstance(value, dt.datetime | dt.date | dt.time | dt.timedelta | decimal.Decimal | bytes):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return {str(key): _plain(one) for key, one in value.items()} if isinstance(value, dict) else value
