"""``kb results``: record what reports of test runs say of the tests."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import DryRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbcli.invocation.context import Session
    from kbcore.results.report_files import ReportFile
    from kbcore.results.taking import ResultsAnswer
    from kbcore.watch.reports import ReportEvent


def run(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Reports, or globs of some. [default: `results` of the settings]"),
    ] = None,
    *,
    commit: Annotated[
        str | None, typer.Option("--commit", metavar="C", help="The commit that was tested. [default: HEAD]")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Take them in again whenever one changes, until interrupted.")
    ] = False,
    dry_run: DryRun = False,
) -> int:
    """Record what reports of test runs say of the tests.

    Reads JUnit XML and TAP: the outcome of a test becomes its verdict, and an outcome that is as before leaves no
    record. Of line coverage, in Cobertura XML or lcov, it proposes edges and states none. All reports are one
    changeset; when one cannot be used, nothing is written.
    """
    from kbcli.invocation import exits
    from kbcore.errors import InvalidQuery

    session = session_of(ctx)
    if watch and dry_run:
        raise InvalidQuery("--watch and --dry-run exclude each other.", hint="Leave one of them out.")
    if watch:
        _watch(session, files or [], commit)
        return exits.DONE
    session.writes = not dry_run
    found = _found(session, files or [])
    with session.output.waiting("Reading reports"):
        answer = _take(session, found, commit, dry_run=dry_run)
    _show(session, answer)
    return exits.DONE


def _found(session: Session, texts: Sequence[str], *, may_lack: bool = False) -> list[ReportFile]:
    """Return the reports that are named, or those that the settings mean."""
    from kbcore.errors import InvalidReport
    from kbcore.results.report_files import found_reports, named_reports

    workspace = session.workspace
    root = workspace.repo.worktree
    if texts:
        return named_reports(texts, session.start, root, may_lack=may_lack)
    globs = workspace.renewed().config.results
    if not globs:
        hint = 'Name a report, or set "results" in .kb/config.json to globs of them.'
        raise InvalidReport("No report is named, and the settings mean none.", hint=hint)
    found = found_reports(root, globs)
    if not found and not may_lack:
        hint = "Run the tests first, so that they write their reports, or name a report."
        raise InvalidReport(f"There is no file that `results` of the settings means: {', '.join(globs)}.", hint=hint)
    return found


def _take(session: Session, files: Sequence[ReportFile], commit: str | None, *, dry_run: bool = False) -> ResultsAnswer:
    from kbcore.results.taking import ResultsRequest, commit_named, take_results

    opened = session.open(dry_run=dry_run)
    workspace, branch = opened.workspace, opened.branch
    named = commit_named(workspace, commit) if commit else workspace.head_commit(branch)()
    request = ResultsRequest(tuple(files), named, dry_run)
    return take_results(workspace, branch, session.author, request, follows_head=opened.choice.follows_head)


def _show(session: Session, answer: ResultsAnswer) -> None:
    from kbcli.messages import run_results

    if session.output.is_json:
        session.output.document(answer.as_json())
        return
    for line in run_results.lines(answer):
        session.output.say(line)
    for warning in run_results.warnings(answer):
        session.output.warn(warning)
    for line in run_results.notes(answer):
        session.output.note(line)


def _watch(session: Session, texts: Sequence[str], commit: str | None) -> None:
    """Take the reports in whenever one of them changes, until a signal comes."""
    from kbcli.invocation.signals import Deadline
    from kbcore.process.interrupting import Stopped
    from kbcore.results.report_files import watched_folders
    from kbcore.watch.reports import Folders, ReportWatcher

    _found(session, texts, may_lack=True)  # what is wrong with the command is said before anything is waited for
    ending = Deadline()

    def folders() -> Folders:
        globs = () if texts else session.workspace.renewed().config.results
        return watched_folders(texts, session.start, globs, session.workspace.repo.worktree)

    def take(files: Sequence[ReportFile]) -> ResultsAnswer:
        answer = _take(session, files, commit)
        session.publish_views()
        return answer

    watcher = ReportWatcher(
        session.workspace.machine.clock,
        lambda: _found(session, texts, may_lack=True),
        folders,
        take,
        ending.watching(lambda event: _tell(session, event)),
    )
    with ending.by_signals(watcher.stop), contextlib.suppress(Stopped):
        watcher.run()


def _tell(session: Session, event: ReportEvent) -> None:
    from kbcli.messages import run_results
    from kbcore.text.escaping import json_text
    from kbcore.watch.reports import ReportsRefused, ReportsTaken

    output = session.output
    if output.is_json:
        output.data(json_text(run_results.event_json(event), None) + "\n")
    elif isinstance(event, ReportsTaken):
        _show(session, event.answer)
    elif isinstance(event, ReportsRefused):
        output.warn(run_results.refused(event))
    else:
        output.say(run_results.followed(event))
    output.flush()
