"""``kb fleet``: ask many repositories at once, in a place to which they export."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

import typer

from kbcli.invocation.command_tree import HelpfulCommand, group_of
from kbcli.invocation.context import session_of
from kbcli.invocation.options import TABLE_FORMAT, Status, Tags
from kbcore.limits import MAX_TRAVERSAL_DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from kbcli.invocation.context import Session
    from kbcore.config.user import UserSettings
    from kbcore.errors import Problem
    from kbcore.fleet.across import Asker
    from kbcore.fleet.asking import Question
    from kbcore.fleet.head import FleetHead
    from kbcore.fleet.local import Answer
    from kbcore.fleet.place import Place
    from kbcore.fleet.ray_engine import RayOptions
    from kbcore.fleet.reading import Failure
    from kbcore.query import Query

app = group_of("Ask many repositories at once, in a place to which they export.")

T = TypeVar("T")

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


class _Fleet(NamedTuple):
    """What a command asks: the place, its heads, those that could not be read, who asks, and by which workers."""

    place: Place
    heads: list[FleetHead]
    failures: list[Failure]
    user: UserSettings
    workers: RayOptions | None = None
    """None for this process."""


@app.command("init", cls=HelpfulCommand)
def init(
    ctx: typer.Context,
    place: Annotated[
        str | None, typer.Argument(metavar="[PLACE]", help="A folder, or a URL as s3://acme-kb/fleet.")
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

    session, shown = _begin(ctx, format_)
    fleet = _find(session, place, repo)
    failures, rows = [*fleet.failures], []
    for head in fleet.heads:
        try:
            for part in (head.settings, *head.parts) if verify else ():
                read_part(fleet.place, part)
            rows.append(as_json(head))
        except KBError as error:
            failures.append(failure_of(head.repo, head.branch, error))
    show(session, shown, ("repo", "branch", "seq", "at", "history", "parts", "bytes"), rows, failures, {})
    return _status(failures)


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
    from kbcore.fleet.merging import report_of

    session, shown = _begin(ctx, format_)
    fleet = _find(session, place, repo, _workers(engine, workers, address, shard))
    with session.output.waiting("Looking for what is in other repositories"):
        elsewhere = find_elsewhere(fleet.place, fleet.heads, _asker(session, fleet, None))
    question = CheckQuestion(tuple(rule or ()), elsewhere)
    if shown in {"sarif", "junit"}:
        answers, failures = _ask(session, fleet, question, list)
        found = report_of(answers)
        session.output.data(report_text(shown, answers, fail_on))
        show_failures(session, failures)
    else:
        found, failures = _ask(session, fleet, question, report_of)
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
    return _status(failures) or (exits.VIOLATIONS if is_failed else exits.DONE)


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

    session, shown = _begin(ctx, format_)
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
    fleet = _find(session, place, repo, _workers(engine, workers, address, shard))
    return _rows(session, shown, fleet, wanted, at, ("repo", "branch", *columns))


@app.command("search", cls=HelpfulCommand)
def search(
    ctx: typer.Context,
    words: Annotated[str, typer.Argument(metavar="WORDS", help="What entities have to hold.")],
    *,
    place: Where = None,
    repo: Repos = None,
    at: At = None,
    limit: Limit = 50,
    engine: Engine = "local",
    workers: Workers = None,
    address: Address = None,
    shard: Shard = None,
    format_: Format = None,
) -> int:
    """Find the entities of all repositories whose fields hold the words, best first.

    Documents are not exported, so that only fields are searched. The score is that of each repository.
    """
    from kbcore.query import Query

    session, shown = _begin(ctx, format_)
    wanted = Query(text=words, limit=limit)
    fleet = _find(session, place, repo, _workers(engine, workers, address, shard))
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

    session, shown = _begin(ctx, format_)
    problems: list[Problem] = []
    conditions = parse_each("where", where or (), parse_where, UNREAD, problems)
    refuse(problems)
    lacked = read_aspects(lacks or ())
    asked = CoverageQuestion(Query(type="req", tags=tuple(tag or ()), where=conditions), _before(session, at))
    fleet = _find(session, place, repo, _workers(engine, workers, address, shard))
    every = fleet if repo is None else _find(session, place, None)
    with session.output.waiting("Counting what other repositories have"):
        counted, more = find_others(every.place, every.heads, _asker(session, fleet, at))
    found, failures = _ask(session, fleet, asked, lambda answers: coverage_of(map(counted, answers), by))
    failures = _each_once([*failures, *every.failures, *more])
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
    return _status(failures)


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
    """Show what a change of an entity affects in all repositories, nearest first: who rests on it.

    Effects go along edges as in `kb impact`, and along those from one repository to another. --repo leaves out what is
    affected in other repositories, and no edge.
    """
    from fnmatch import fnmatchcase

    from kbcli.invocation.bounds import check_bounds
    from kbcli.views.fleet import show
    from kbcore.fleet.across import affected
    from kbcore.limits import MAX_PAGE_ROWS
    from kbcore.text.escaping import escape_controls

    check_bounds("--depth", depth, MAX_TRAVERSAL_DEPTH, MAX_TRAVERSAL_DEPTH)
    check_bounds("--limit", limit, MAX_PAGE_ROWS, _ROWS)
    session, shown = _begin(ctx, format_)
    fleet = _find(session, place, None)
    named = _entity_named(name, fleet)
    with session.output.waiting("Following edges"):
        found = affected(fleet.place, fleet.heads, named, _asker(session, fleet, at), depth=depth)
    rows = [
        row
        for row in found.rows
        if not (elsewhere and row["repo"] == named[0])
        and (repo is None or any(fnmatchcase(row["repo"], one) for one in repo))
    ]
    failures = _each_once([*fleet.failures, *found.failures])
    start = {**found.found.start.as_json(), "repo": named[0], "id": named[1]}
    head: dict[str, Any] = {"entity": start, "total": len(rows)}
    columns = ("part", "repo", "id", "type", "status", "title", "owner", "path")
    show(session, shown, columns, rows[:limit], failures, head | {"goes_on": found.found.goes_on})
    if not session.output.is_json:
        if not rows:
            session.output.note(escape_controls(f"A change of {name} affects nothing that is asked for."))
        elif len(rows) > limit:
            session.output.note(f"{limit} of {len(rows)}: --limit says how many are shown.")
    return _status(failures)


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
    others.
    """
    from kbcli.invocation.bounds import check_bounds
    from kbcli.views.fleet import show
    from kbcore.fleet import local
    from kbcore.limits import MAX_PAGE_ROWS

    check_bounds("--limit", limit, MAX_PAGE_ROWS, _ROWS)
    session, shown = _begin(ctx, format_)
    fleet = _find(session, place, repo, _workers(engine, workers, address, shard))
    before = _before(session, at)
    with session.output.waiting("Asking"):
        if fleet.workers is None:
            asked_by = (session.machine, fleet.user)
            found = local.sql(fleet.place, fleet.heads, statement, limit, before=before, asked_by=asked_by)
        else:
            from kbcore.fleet import ray_engine

            with ray_engine.started(fleet.workers) as asks:
                found = asks.sql(fleet.place, fleet.heads, statement, limit, before=before, user=fleet.user)
    rows = [dict(zip(found.columns, map(_plain, row), strict=True)) for row in found.rows]
    failures = [*fleet.failures, *found.failures]
    show(session, shown, found.columns, rows, failures, {"columns": found.columns, "more": found.is_cut})
    if found.is_cut and not session.output.is_json:
        session.output.note(f"There are more rows than {limit}: --limit says how many are shown.")
    return _status(failures)


def _rows(session: Session, shown: str, fleet: _Fleet, wanted: Query, at: str | None, columns: tuple[str, ...]) -> int:
    from kbcli.invocation.bounds import check_bounds
    from kbcli.views.fleet import asked_line, show
    from kbcore.fleet.asking import RowsQuestion
    from kbcore.fleet.merging import rows_of
    from kbcore.limits import MAX_PAGE_ROWS

    check_bounds("--limit", wanted.limit, MAX_PAGE_ROWS, _ROWS)
    question = RowsQuestion(wanted, _before(session, at))
    (rows, total), failures = _ask(
        session, fleet, question, lambda answers: rows_of(answers, best_first=bool(wanted.text), limit=wanted.limit)
    )
    show(session, shown, columns, rows, failures, {"total": total})
    if not (total or session.output.is_json):
        session.output.note(f"Nothing matches. {asked_line(_asked(fleet, failures), failures)}")
    if total > len(rows) and not session.output.is_json:
        session.output.note(f"{len(rows)} of {total}: --limit says how many are shown.")
    return _status(failures)


def _begin(ctx: typer.Context, format_: str | None) -> tuple[Session, str]:
    """Return the session, and the format to write."""
    from kbcli.invocation.bounds import check_format, table_format

    session = session_of(ctx)
    check_format(format_, {None, "json"}, is_json=session.output.is_json)
    session.output.is_json = session.output.is_json or format_ == "json"
    session.is_read_only = True
    return session, table_format(format_, session.output)


def _workers(engine: str, workers: int | None, address: str | None, shard: int | None) -> RayOptions | None:
    """Return the workers that are to ask, None for this process. Raises: ``InvalidQuery``."""
    from kbcli.invocation.bounds import check_bounds
    from kbcore.errors import InvalidQuery
    from kbcore.fleet.ray_engine import RayOptions
    from kbcore.limits import FLEET_SHARD, MAX_FLEET_SHARD, MAX_FLEET_WORKERS

    if engine == "local":
        if (workers, address, shard) != (None, None, None):
            message = "--workers, --address and --shard are of the engine ray."
            raise InvalidQuery(message, hint="Add --engine ray, or leave them out.")
        return None
    if workers is not None:
        check_bounds("--workers", workers, MAX_FLEET_WORKERS, os.cpu_count() or 1)
    if shard is not None:
        check_bounds("--shard", shard, MAX_FLEET_SHARD, FLEET_SHARD)
    return RayOptions(workers or 0, address or "", shard or FLEET_SHARD)


def _find(session: Session, place: str | None, repos: Texts, workers: RayOptions | None = None) -> _Fleet:
    """Return what is in the place that is meant. Raises: ``InvalidQuery`` where none is, or nothing is there."""
    from kbcore.errors import NotFound
    from kbcore.fleet import reading
    from kbcore.fleet.place import place_at
    from kbcore.store.settings_files import user_settings
    from kbcore.text.escaping import escape_controls

    named, start = _place(session, place)
    where = place_at(named, start, session.machine.fs, session.machine.clock)
    branch = session.branch or ""  # KB_BRANCH is of one repository
    found = reading.find(where, reading.Selection(tuple(repos or ()), branch))
    if not (found.heads or found.failures):
        message, hint = _nothing(where, escape_controls(named), repos, branch)
        raise NotFound(message, hint=hint)
    return _Fleet(where, found.heads, found.failures, user_settings(session.env), workers)


def _place(session: Session, place: str | None) -> tuple[str, Path]:
    """Return the place that is meant, and the folder that it begins at. Raises: ``InvalidQuery`` where none is."""
    from kbcore.errors import InvalidQuery, NotARepository, NotInitialised
    from kbcore.fleet.setting_up import root_of

    if named := place or session.env.get("KB_FLEET"):
        return named, session.start
    try:
        workspace = session.workspace
        stated = workspace.config.fleet.place
    except (NotARepository, NotInitialised):
        stated = None
    if stated is None:
        hint = "Add --place PLACE, set the variable KB_FLEET, or run `kb fleet init PLACE` in a repository."
        raise InvalidQuery("No place is named.", hint=hint)
    return stated, root_of(workspace)


def _nothing(where: Place, named: str, repos: Texts, branch: str) -> tuple[str, str]:
    """Return what to say where a selection means nothing of a place, and what helps."""
    from kbcore.fleet import reading
    from kbcore.text.escaping import in_quotes
    from kbcore.text.suggest import did_you_mean

    there = reading.find(where, reading.Selection((), "*")).heads
    names = {"repository": {one.repo for one in there}, "branch": {one.branch for one in there}}
    if not there:
        export = f"`kb export --parquet {named}`, or `kb fleet init {named}` and then `kb export --fleet`"
        return f"Nothing was exported to {named}.", f"Run {export}, in each repository."
    asked = [("repository", one) for one in repos or ()] + ([("branch", branch)] if branch else [])
    said = " and ".join(f"the {what} {in_quotes(name)}" for what, name in asked)
    what, name = asked[0]
    return f"Nothing of {said} is in {named}.", did_you_mean(name, names[what]) or "`kb fleet status` lists what is."


def _ask(
    session: Session, fleet: _Fleet, question: Question, merge: Callable[[Iterator[Answer]], T]
) -> tuple[T, list[Failure]]:
    """Return the answers, merged as they come, and every repository that could not be asked.

    Raises: ``InvalidQuery`` or ``NotFound`` where each one refuses the question for the same reason.
    """
    from contextlib import ExitStack

    from kbcore.errors import InvalidQuery, NotFound
    from kbcore.fleet import local
    from kbcore.fleet.local import Answer

    failures = [*fleet.failures]
    with session.output.waiting("Asking"), ExitStack() as stack:
        if fleet.workers is None:
            found = local.ask(fleet.place, fleet.heads, question, session.machine, fleet.user)
        else:
            from kbcore.fleet import ray_engine

            asks = stack.enter_context(ray_engine.started(fleet.workers))
            found = asks.ask(fleet.place, fleet.heads, question, fleet.user)

        def answers() -> Iterator[Answer]:
            for one in found:
                if isinstance(one, Answer):
                    yield one
                else:
                    failures.append(one)

        merged = merge(answers())
    if not _asked(fleet, failures) and len({(one.code, one.message) for one in failures}) == 1:
        for error in (InvalidQuery, NotFound):
            if failures[0].code == error.code:
                raise error(failures[0].message, hint=failures[0].hint)
    return merged, failures


def _asked(fleet: _Fleet, failures: list[Failure]) -> int:
    """Return how many branches answered."""
    return len(fleet.heads) + len(fleet.failures) - len(failures)


def _asker(session: Session, fleet: _Fleet, at: str | None) -> Asker:
    from kbcore.fleet.across import Asker

    return Asker(session.machine, fleet.user, _before(session, at))


def _entity_named(name: str, fleet: _Fleet) -> tuple[str, str]:
    """Return the repository and the id that an argument names.

    Raises: ``InvalidQuery`` for one of another form; ``StorageError`` for a repository that cannot be read.
    """
    from kbcore.errors import InvalidQuery, StorageError
    from kbcore.text.escaping import in_quotes

    names = [one.repo for one in fleet.heads] + [one.repo for one in fleet.failures]
    known = [one for one in names if name.startswith(f"{one}:")]
    repo = max(known, key=len, default=name.partition(":")[0])
    id_ = name[len(repo) + 1 :]
    if not (repo and id_):
        raise InvalidQuery(f"{in_quotes(name)} is no REPO:ID.", hint="Name repository and id, as acme/pay:REQ-1.")
    if repo not in {one.repo for one in fleet.heads} and (
        failed := next((one for one in fleet.failures if one.repo == repo), None)
    ):
        raise StorageError(f"{repo} could not be read: {failed.message}", hint=failed.hint)
    return repo, id_


def _each_once(failures: list[Failure]) -> list[Failure]:
    """Return the first failure of each branch."""
    return [*{(one.repo, one.branch): one for one in reversed(failures)}.values()][::-1]


def _before(session: Session, at: str | None) -> str:
    """Return the first instant after the time that is meant, "" for now. Raises: ``InvalidQuery`` for no time."""
    from kbcore.errors import InvalidQuery
    from kbcore.store.history.when import span_meant
    from kbcore.text.escaping import in_quotes

    if at is None:
        return ""
    span = span_meant(at, now=session.machine.clock.now(), is_local=True)
    if span is None:
        hint = "Give a time, as 2026-11-20 or `2 days ago`: seqs and commits mean something else in each repository."
        raise InvalidQuery(f"--at: {in_quotes(at)} is no time.", hint=hint)
    return span[1]


def _status(failures: list[Failure]) -> int:
    """Return the status of the first failure, 0 without any."""
    from kbcli.invocation import exits

    return exits.statuses().get(failures[0].code, exits.VIOLATIONS) if failures else exits.DONE


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
