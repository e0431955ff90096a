"""``kb check``: run the rules, over the current state or over what a change introduces, and report in some format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kbcli.invocation.context import session_of
from kbcli.invocation.options import Paths

if TYPE_CHECKING:
    from kbcli.check.request import CheckRequest
    from kbcli.invocation.context import Session
    from kbcore.errors import Problem

_IDLE = 20
"""The number of suppressions without effect that are listed in words."""


def run(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH|ID]...", help="Only what concerns these files, folders and ids."),
    ] = None,
    *,
    path: Paths = None,
    rule: Annotated[
        list[str] | None, typer.Option("--rule", metavar="NAME", help="Only this rule; may be repeated.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="POINT", help="Only what changed since a commit, branch, seq or time."),
    ] = None,
    actor: Annotated[
        str,
        typer.Option("--actor", metavar="A", help="With --since: only of what this actor changed.", show_default=False),
    ] = "",
    session_: Annotated[
        str,
        typer.Option(
            "--session", metavar="S", help="With --since: only of what this session changed.", show_default=False
        ),
    ] = "",
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="REF", help="What a merge with this revision would not bring together."),
    ] = None,
    staged: Annotated[bool, typer.Option("--staged", help="Only what a commit of the index would introduce.")] = False,
    format_: Annotated[
        Literal["text", "short", "json", "sarif", "junit", "github"],
        typer.Option("--format", help="How to write it; short is a line for each violation."),
    ] = "text",
    severity: Annotated[
        Literal["error", "warning"] | None, typer.Option("--severity", help="Only violations of this severity.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", help="At most so many of each rule. [default: the first few]")
    ] = None,
    statistics: Annotated[bool, typer.Option("--statistics", help="Only how often each rule is broken.")] = False,
    write_baseline: Annotated[
        bool, typer.Option("--write-baseline", help="Accept what is there now: write .kb/baseline.json.")
    ] = False,
    no_baseline: Annotated[bool, typer.Option("--no-baseline", help="Report what is in the baseline too.")] = False,
    fail_on: Annotated[
        Literal["error", "warning", "never"], typer.Option("--fail-on", help="What makes the status 1.")
    ] = "error",
    require_synced: Annotated[
        bool, typer.Option("--require-synced", help="End with status 19 when records lack what files say.")
    ] = False,
    recorded: Annotated[bool, typer.Option("--recorded", help="Check only the records, not what files say.")] = False,
    explain: Annotated[str | None, typer.Option("--explain", metavar="RULE", help="Describe one rule instead.")] = None,
    test_rules: Annotated[
        bool, typer.Option("--test-rules", help="Run the tests of the project's rules instead.")
    ] = False,
) -> int:
    """Run the rules over the branch, KB's own and the project's, with what its files say now.

    Ends with status 1 when a violation counts as a failure, or when a rule could not run; with status 29 when the files
    cannot be judged, as during a merge, or where --against cannot compare.
    """
    from kbcli.check.request import CheckRequest, check_limit, check_states, refuse_options
    from kbcli.invocation.bounds import check_format

    session = session_of(ctx)
    check_format(format_, {"text", "json"}, is_json=session.output.is_json)
    if (actor or session_) and since is None:
        raise typer.BadParameter("--actor and --session select among changes since a point; add --since.")
    asked = CheckRequest(
        rule or [],
        since,
        staged,
        format_,
        fail_on,
        require_synced,
        recorded,
        targets or [],
        severity,
        limit,
        statistics,
        actor,
        session_,
        no_baseline,
        against,
        path or [],
    )
    check_limit(asked)
    about_baseline = [*["--write-baseline"] * write_baseline, *["--no-baseline"] * no_baseline]
    if explain is not None:
        others = [*["--test-rules"] * test_rules, *about_baseline]
        refuse_options("--explain describes one rule", asked, others, asked.only)
    if test_rules:
        refuse_options("--test-rules judges the graphs of tests", asked, about_baseline)
    check_states(asked)
    if write_baseline:
        narrowed = asked._replace(fail_on="error", requires_synced=False, only_records=False)
        refuse_options(
            "--write-baseline accepts all that is there", narrowed, ["--no-baseline"] * no_baseline, asked.only
        )
    session.output.is_json = session.output.is_json or format_ == "json"
    if no_baseline or write_baseline:
        session.workspace.leave_out_baseline()
    if write_baseline:
        from kbcli.check import baseline

        return baseline.write(session, asked)
    if explain is not None:
        return _explain(session, explain)
    if test_rules:
        return _test(session, rule or [])
    return _check(session, asked)


def _check(session: Session, asked: CheckRequest) -> int:
    """Run rules and report what they found."""
    import msgspec

    from kbcli.check import report
    from kbcli.check.run import CheckRun, judged
    from kbcli.invocation import exits
    from kbcli.messages.options import placed
    from kbcli.views.reports.report_content import comments_line, unchecked_line
    from kbcore.checks import IDLE_ID
    from kbcore.store import unread_stores
    from kbcore.sync.pending import nothing_read
    from kbcore.text.escaping import escape_controls, escaped_sentence, problem_line
    from kbcore.text.wording import more_without_effect

    if asked.staged:
        from kbcore.sync.run import check_worktree

        check_worktree(session.workspace, session.named_branch)
    opened = session.open_to_read()
    session.show_settings(opened.workspace)
    for cut in opened.workspace.cut_values():
        session.output.warn(problem_line(cut.source, cut.line, cut.message, cut.hint))
    for one in unread_stores.find_unread(opened.workspace.folders):
        session.output.warn(escape_controls(str(one)))
    look = CheckRun(opened, asked)
    idle: list[Problem] = []
    options = {"rules": "--rule", "actor": "--actor", "session": "--session", "path": "--path"}
    with placed(session.output, options), session.output.waiting("Checking"):
        content, more, files = judged(opened, look, asked, idle)
    for fault in idle[:_IDLE]:
        write = session.output.note if fault.code == IDLE_ID else session.output.warn
        write(problem_line(fault.path, 0, fault.message, fault.hint))
    if more_idle := idle[_IDLE:]:
        session.output.note(f"{more_without_effect(len(more_idle))} `kb check --json` lists them all.")
    content = msgspec.structs.replace(
        content,
        fail_on=asked.fail_on,
        limit=asked.limit,
        targets=tuple(asked.targets),
        scope=tuple(asked.scope),
        command=asked.command_on(session.branch),
    )
    if session.output.is_json or asked.statistics:
        report.show_data(session, content, asked, {"branch": content.branch, **files.as_json()}, more)
    else:
        report.write(session, content, asked.format)
        for said in filter(None, (comments_line(content), unchecked_line(content))):
            session.output.note(escaped_sentence(said))
        if not (content.seq or content.pending_files):
            empty_note = nothing_read(opened.workspace) if files.freshness == "current" else ""
            session.output.note(
                escaped_sentence(empty_note)
                or f"There is nothing to check yet: {session.sync_command()} reads documents."
            )
    return exits.DONE if content.report.passes(asked.fail_on) else exits.VIOLATIONS


def _explain(session: Session, name: str) -> int:
    """Say all about one rule; ends with status 1 when a test that it brings along fails."""
    import msgspec

    from kbcli.invocation import exits
    from kbcli.messages.rules import show_rule
    from kbcore.checks.explain import explain
    from kbcore.limits import FILES_CHECK_S

    opened = session.open_to_read()
    with session.output.waiting("Checking"):
        found, files = opened.read(
            lambda view: explain(opened.workspace, view, name, branch=opened.branch), time_s=FILES_CHECK_S
        )
    if session.output.is_json:
        session.output.document({"branch": opened.branch} | files.as_json() | {"rule": msgspec.to_builtins(found)})
    else:
        show_rule(session.output, f"{opened.branch} at seq {files.seq}", found)
        session.show_files(opened.branch, files)
    return exits.DONE if all(one.ok for one in found.tests) else exits.VIOLATIONS


def _test(session: Session, only: list[str]) -> int:
    """Run the tests of the project's rules; ends with status 1 when one fails."""
    import msgspec

    from kbcli.invocation import exits
    from kbcli.messages.rules import show_trials
    from kbcore.checks.explain import try_rules

    with session.output.waiting("Testing the rules"):
        found = try_rules(session.workspace, only)
    is_ok = all(one.ok for one in found)
    if session.output.is_json:
        session.output.document({"ok": is_ok, "tests": msgspec.to_builtins(found)})
    else:
        show_trials(session.output, found)
    return exits.DONE if is_ok else exits.VIOLATIONS
