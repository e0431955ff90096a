"""``kb coverage``: which requirements are specified, verified and implemented."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import TABLE_FORMAT, At, Paths, Status, Tags

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbcli.invocation.context import Opened
    from kbcli.views.coverage import CoverageReport
    from kbcore.query import Query
    from kbcore.query.coverage import By, CoverageGroup, Requirement
    from kbcore.text.code_owners import CodeOwners
    from kbcore.view.view import View

Texts = list[str] | None


def run(
    ctx: typer.Context,
    *,
    by: Annotated[
        Literal["requirement", "component", "tag", "priority", "owner", "folder"],
        typer.Option("--by", help="What makes a row."),
    ] = "requirement",
    tag: Tags = None,
    status: Status = None,
    path: Paths = None,
    lacks: Annotated[
        Texts,
        typer.Option("--lacks", metavar="ASPECT", help="Only rows that lack it, twice both; totals stay those of all."),
    ] = None,
    at: At = None,
    fail_under: Annotated[
        Texts,
        typer.Option("--fail-under", metavar="[ASPECT=]PERCENT", help="End with status 1 below; may be repeated."),
    ] = None,
    format_: Annotated[
        Literal["table", "tsv", "json", "markdown", "csv"] | None,
        typer.Option("--format", help=TABLE_FORMAT),
    ] = None,
) -> int:
    """Show which requirements are specified, verified and implemented, and what is not applicable.

    ASPECT is specified, verified or implemented. Percentages are of the requirements to which it applies. Retired
    requirements are left out.
    """
    from kbcli.input.thresholds import read_aspects, read_thresholds, too_low
    from kbcli.invocation import exits
    from kbcli.invocation.bounds import check_format, table_format
    from kbcli.invocation.points import read_as_of
    from kbcli.messages.options import placed
    from kbcli.views.coverage import show
    from kbcore.query import Query, empty_problems, refuse
    from kbcore.text.code_owners import NONE

    session = session_of(ctx)
    check_format(format_, {None, "json"}, is_json=session.output.is_json)
    given = {"status": status, "at": at}
    refuse(empty_problems({name: word for name, word in given.items() if word is not None}))
    lacked, thresholds = read_aspects(lacks or ()), read_thresholds(fail_under or ())
    session.output.is_json = session.output.is_json or format_ == "json"
    opened = session.open_to_read()
    asked = Query(type="req", tags=tuple(tag or ()), status=status or "", path=tuple(path or ()))
    of_files = opened.code_owners() if by == "owner" else NONE
    with placed(session.output):
        report, files = read_as_of(
            opened, at, lambda view, seq: _report(opened, view, seq, by, asked, of_files=of_files, lacked=lacked, at=at)
        )
    if session.output.is_terminal:
        report = _in_natural_order(report)
    show(session, opened.branch, report, files, table_format(format_, session.output))
    low = too_low(report.counts.total, thresholds)
    if thresholds and report.is_filtered and report.is_empty:
        low = ["--fail-under has nothing to compare: no requirement matches."]
    for line in low:
        session.output.warn(line)
    return exits.VIOLATIONS if low else exits.DONE


def _in_natural_order(report: CoverageReport) -> CoverageReport:
    """Return a report with REQ-2 before REQ-10, for who reads it."""
    import msgspec

    from kbcore.query.condition_sql import natural

    return msgspec.structs.replace(report, requirements=sorted(report.requirements, key=lambda one: natural(one.id)))


def _report(
    opened: Opened,
    view: View,
    seq: int,
    by: By,
    asked: Query,
    *,
    of_files: CodeOwners,
    lacked: Sequence[str],
    at: str | None,
) -> CoverageReport:
    """Return the report of the requirements that a query means. Raises: ``InvalidQuery``."""
    import msgspec

    from kbcli.views.coverage import CoverageReport
    from kbcore.query import DataNames, check, coverage
    from kbcore.sync.paths import folder_in

    repo = opened.workspace.repo
    start = folder_in(opened.session.start, repo.worktree) if repo.has_worktree else ""
    known = DataNames(view.rows, is_edge=False)
    asked = check(asked, view.schema(opened.workspace.schema), known, root=str(repo.worktree), start=start)
    as_of = None if seq == view.seq else seq
    counts = coverage.count(view.rows, as_of, asked)
    requirements: list[Requirement] = []
    groups: list[CoverageGroup] = []
    if by != "requirement":
        found = coverage.count_groups(view.rows, as_of, [by], asked, of_files)
        groups = [one for one in found[by] if all(one.tallies[name].no for name in lacked)]
    elif lacked:
        part = coverage.RequirementPart(tuple(lacked))
        requirements, _ = coverage.read_part(view.rows, as_of, asked, part, limit=counts.total.requirements)
    else:
        requirements = coverage.read(view.rows, as_of, asked).requirements
    is_filtered = bool(asked.tags or asked.status or asked.path)
    report = CoverageReport(seq, by, counts, requirements, groups, tuple(lacked), is_filtered, at)
    if not report.is_empty:
        return report
    return msgspec.structs.replace(report, unknown=tuple(coverage.unknown_filters(view.rows, as_of, asked)))
