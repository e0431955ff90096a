"""``kb check``: run the rules, over the current state or over what a change introduces, and report in some format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from kbcli.invocation.context import session_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from kbcli.invocation.context import Opened, Session
    from kbcli.views.reports.report_content import ReportContent
    from kbcore.errors import Problem
    from kbcore.extract.facts import Facts
    from kbcore.rules import CheckReport
    from kbcore.rules.registry import FailOn
    from kbcore.sync.overlay import FileState
    from kbcore.view.view import View

    Format = Literal["text", "short", "json", "sarif", "junit", "github"]
    Severity = Literal["error", "warning"]

_NAMED = 5
"""The number of paths that are named in a note."""
_IDLE = 20
"""The number of suppressions without effect that are listed in words."""


def run(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH|ID]...", help="Only what concerns these files, folders and ids."),
    ] = None,
    *,
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
    cannot be judged, as during a merge.
    """
    from kbcli.invocation.bounds import check_format

    session = session_of(ctx)
    check_format(format_, {"text", "json"}, is_json=session.output.is_json)
    if (actor or session_) and since is None:
        raise typer.BadParameter("--actor and --session select among changes since a point; add --since.")
    asked = _Asked(
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
    )
    _check_limit(asked)
    about_baseline = [*["--write-baseline"] * write_baseline, *["--no-baseline"] * no_baseline]
    if explain is not None:
        others = [*["--test-rules"] * test_rules, *about_baseline]
        _keep_apart("--explain describes one rule", asked, others, asked.only)
    if test_rules:
        _keep_apart("--test-rules judges the graphs of tests", asked, about_baseline)
    _check_states(asked)
    if write_baseline:
        narrowed = asked._replace(fail_on="error", requires_synced=False, only_records=False)
        _keep_apart("--write-baseline accepts all that is there", narrowed, ["--no-baseline"] * no_baseline, asked.only)
    session.output.is_json = session.output.is_json or format_ == "json"
    if no_baseline or write_baseline:
        session.workspace.leave_out_baseline()
    if write_baseline:
        return _write_baseline(session, asked)
    if explain is not None:
        return _explain(session, explain)
    if test_rules:
        return _test(session, rule or [])
    return _check(session, asked)


def _check_limit(asked: _Asked) -> None:
    """Raises: ``InvalidQuery`` for a limit out of bounds; ``typer.BadParameter`` where none has a meaning."""
    from kbcore.errors import InvalidQuery
    from kbcore.limits import MAX_PAGE_ROWS

    if asked.limit is not None and not 1 <= asked.limit <= MAX_PAGE_ROWS:
        message = f"--limit must be from 1 to {MAX_PAGE_ROWS}, not {asked.limit}."
        raise InvalidQuery(message, hint="Leave it out for the first few of each rule, or say --format short for all.")
    if asked.limit is not None and asked.statistics:
        raise typer.BadParameter("--statistics counts every violation; leave out --limit.")
    if (asked.limit is not None or asked.statistics) and asked.format in {"sarif", "junit", "github"}:
        raise typer.BadParameter(f"--format {asked.format} shows all; leave out --limit and --statistics.")


def _check_states(asked: _Asked) -> None:
    """Raises: ``typer.BadParameter`` for options that name different states to judge."""
    if asked.only_records and (asked.requires_synced or asked.staged):
        other = "--staged" if asked.staged else "--require-synced"
        raise typer.BadParameter(f"--recorded judges no files; leave out --recorded or {other}.")
    if asked.staged and asked.requires_synced:
        raise typer.BadParameter("--staged judges what is staged, not the files; leave it out or --require-synced.")
    if asked.staged and asked.since is not None:
        raise typer.BadParameter("--staged compares with HEAD; leave out --staged or --since.")


class _Asked(NamedTuple):
    """The part of a branch to check, and the form of the report."""

    only: Sequence[str]
    since: str | None
    staged: bool
    format: Format
    fail_on: FailOn
    requires_synced: bool = False
    only_records: bool = False
    targets: Sequence[str] = ()
    severity: Severity | None = None
    limit: int | None = None
    statistics: bool = False
    actor: str = ""
    session: str = ""
    no_baseline: bool = False

    def command_on(self, branch: str) -> str:
        """Return the command that asks the same, without rules and limits; ``branch`` as it was named, or ""."""
        import shlex

        words = [
            *self.targets,
            *(["--branch", branch] if branch else []),
            *["--staged"] * self.staged,
            *(["--since", self.since] if self.since else []),
            *(["--actor", self.actor] if self.actor else []),
            *(["--session", self.session] if self.session else []),
            *(["--severity", self.severity] if self.severity else []),
            *["--recorded"] * self.only_records,
            *["--no-baseline"] * self.no_baseline,
        ]
        return " ".join(["kb check", *map(shlex.quote, words)])


def _keep_apart(what: str, asked: _Asked, others: Sequence[str] = (), only: Sequence[str] = ()) -> None:
    """Refuse what says how to judge where nothing is judged so. Raises: ``typer.BadParameter``."""
    given = [
        *others,
        *["--rule"] * bool(only),
        *["PATH or ID"] * bool(asked.targets),
        *["--severity"] * (asked.severity is not None),
        *["--limit"] * (asked.limit is not None),
        *["--statistics"] * asked.statistics,
        *["--since"] * (asked.since is not None),
        *["--staged"] * asked.staged,
        *[f"--format {asked.format}"] * (asked.format not in {"text", "json"}),
        *[f"--fail-on {asked.fail_on}"] * (asked.fail_on != "error"),
        *["--require-synced"] * asked.requires_synced,
        *["--recorded"] * asked.only_records,
    ]
    if given:
        raise typer.BadParameter(f"{what}; leave out {' and '.join(given)}.")


def _check(session: Session, asked: _Asked) -> int:
    """Run rules and report what they found."""
    import msgspec

    from kbcli.invocation import exits
    from kbcli.messages.options import placed
    from kbcli.views.reports.report_content import comments_line
    from kbcore.checks import IDLE_ID
    from kbcore.store import unread
    from kbcore.sync.pending import nothing_read
    from kbcore.text.escaping import escape_controls, escaped_sentence, problem_line
    from kbcore.text.wording import more_without_effect

    if asked.staged:
        from kbcore.sync.run import check_worktree

        check_worktree(session.workspace, session.named_branch)
    opened = session.open_to_read()
    session.show_settings(opened.workspace)
    for one in unread.find_unread(opened.workspace.folders):
        session.output.warn(escape_controls(str(one)))
    look = _Look(opened, asked)
    idle: list[Problem] = []
    with placed(session.output, {"rules": "--rule"}), session.output.waiting("Checking"):
        content, more, files = _judged(opened, look, asked, idle)
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
        command=asked.command_on(session.branch),
    )
    if session.output.is_json or asked.statistics:
        _show_data(session, content, asked, {"branch": content.branch, **files.as_json()}, more)
    else:
        _write(session, content, asked.format)
        if said := comments_line(content):
            session.output.note(escaped_sentence(said))
        if not (content.seq or content.pending_files):
            empty_note = nothing_read(opened.workspace) if files.freshness == "current" else ""
            session.output.note(
                escape_controls(empty_note) or "There is nothing to check yet: `kb sync` reads documents."
            )
    return exits.DONE if content.report.passes(asked.fail_on) else exits.VIOLATIONS


def _judged(
    opened: Opened, look: _Look, asked: _Asked, idle: list[Problem] | None = None
) -> tuple[ReportContent, dict[str, Any], FileState]:
    """Return what the rules found, and how it relates to the files; ``idle`` collects suppressions without effect.

    Raises: ``FilesUnknown`` where they are asked for and cannot be judged; ``NotSynced``.
    """
    import msgspec

    from kbcore.checks import idle_suppressions
    from kbcore.errors import FilesUnknown, NotSynced
    from kbcore.limits import FILES_CHECK_S
    from kbcore.sync.overlay import records_alone
    from kbcore.text.wording import pluralize

    def on(view: View, files: FileState) -> tuple[ReportContent, dict[str, Any], FileState]:
        if files.freshness == "unknown" and not (asked.staged or asked.only_records):
            hint = "`--recorded` checks only the records." if files.is_asked else ""
            raise FilesUnknown(f"The files cannot be judged, so no rule was run. {files.reason}", hint=hint)
        if asked.requires_synced and files.freshness != "current":
            why = files.reason or f"{pluralize(files.pending_files or 0, 'file')} not as recorded."
            raise NotSynced(f"The records of {opened.branch} differ from its files: {why}")
        content, more = look.at(view, asked)
        if idle is not None and not (asked.targets or asked.staged or asked.since):
            idle[:] = idle_suppressions(opened.workspace, view)
            named = [{"path": one.path, "code": one.code, "message": one.message, "hint": one.hint} for one in idle]
            more["idle_suppressions"] = named
        return msgspec.structs.replace(content, seq=files.seq, pending_files=files.pending_files or 0), more, files

    if asked.staged or asked.only_records:
        reason = "What is staged is checked, not the files." if asked.staged else "Only the records are checked."
        return opened.store.read(lambda view: on(view, records_alone(reason, seq=view.seq)))
    return opened.files.read(opened.workspace, opened.branch, on, time_s=FILES_CHECK_S)


def _show_data(
    session: Session, content: ReportContent, asked: _Asked, head: dict[str, Any], more: dict[str, Any]
) -> None:
    """Write a report as JSON, or how often each rule is broken."""
    from kbcli.views.reports.report_content import summary
    from kbcli.views.reports.text import warn_of_rules
    from kbcore.checks.grouping import statistics
    from kbcore.text.escaping import escape_controls

    output, report = session.output, content.report.as_json()
    if asked.statistics:
        rows = statistics(content.report.violations)
        if output.is_json:
            del report["violations"]
            found = [{"rule": rule, "severity": severity, "count": count} for rule, severity, count in rows]
            output.document(head | report | {"statistics": found} | more)
            return
        lines = output.list_lines(("RULE", "SEVERITY", "COUNT"), [(*names, str(count)) for *names, count in rows])
        output.stream(f"{line}\n" for line in lines)
        warn_of_rules(output, content)
        output.note(escape_controls(summary(content)))
        return
    if asked.limit is not None:
        report["total"] = len(report["violations"])
        report["violations"] = _first(report["violations"], asked.limit)
    output.document(head | report | more)


def _first(violations: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Return the first violations of each rule."""
    seen: dict[str, int] = {}
    kept = []
    for one in violations:
        seen[one["rule"]] = seen.get(one["rule"], 0) + 1
        kept += [one] * (seen[one["rule"]] <= limit)
    return kept


def _write_baseline(session: Session, asked: _Asked) -> int:
    """Write what is wrong now as the baseline; it keeps what it has of rules that could not run, and they are named.

    Raises: ``InvalidConfig`` where the baseline that is there is needed for that, and cannot be read.
    """
    from kbcli.invocation import exits
    from kbcli.views.reports.text import warn_of_rules
    from kbcore.checks import write_baseline
    from kbcore.store.workspace import BASELINE
    from kbcore.text.escaping import escape_controls
    from kbcore.text.wording import pluralize

    opened = session.open_to_read()
    workspace, output = opened.workspace, session.output
    with output.waiting("Checking"):
        content, _, _ = _judged(opened, _Look(opened, asked), asked)
    path = f"{workspace.settings_name}/{BASELINE}"
    count = write_baseline(workspace, content.report)
    if output.is_json:
        output.document({"path": path, "violations": count})
        return exits.DONE
    warn_of_rules(output, content)
    output.say(
        escape_controls(
            f"{pluralize(count, 'violation')} written to {path}; commit it. `kb check` reports only others."
        )
    )
    return exits.DONE


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


class _Look:
    """The part of one branch that is checked: each method returns the report, and further members for JSON."""

    def __init__(self, opened: Opened, asked: _Asked) -> None:
        self._opened = opened
        self._asked = asked
        self._only = asked.only

    def at(self, view: View, asked: _Asked) -> tuple[ReportContent, dict[str, Any]]:
        """Look at what is asked for."""
        if asked.staged:
            return self.staged(view)
        return self.whole(view) if asked.since is None else self.since(view, asked.since, asked)

    def whole(self, view: View) -> tuple[ReportContent, dict[str, Any]]:
        """Check the whole current state."""
        from kbcli.views.reports.report_content import ReportContent
        from kbcore.checks import run_checks

        ids, _ = self._targets(view)
        report = run_checks(
            self._opened.workspace, view, branch=self._opened.branch, only=self._only, ids=ids, may_be_unknown=True
        )
        report = self._with_lines_now(view, self._of_severity(report))
        return ReportContent(self._opened.branch, view.seq, report), {}

    def since(self, view: View, text: str, asked: _Asked) -> tuple[ReportContent, dict[str, Any]]:
        """Check what changed since a point."""
        from kbcli.views.reports.report_content import ReportContent
        from kbcore.checks.introduced.since import check_since
        from kbcore.store.history.log import Selection

        opened = self._opened
        by = Selection(actor=asked.actor, session=asked.session)
        since = check_since(opened.workspace, view, opened.branch, text, only=self._only, changed_by=by, is_local=True)
        report, mended, point = self._narrowed(view, since.found.report), since.found.mended, since.point
        opened.session.notes += point.notes
        report = self._with_lines_now(view, report)
        content = ReportContent(opened.branch, view.seq, report, against=point.said, mended=len(mended))
        return content, {
            "since": {"seq": point.seq, "commit": point.commit},
            "mended": [one.as_json() for one in mended],
        }

    def staged(self, view: View) -> tuple[ReportContent, dict[str, Any]]:
        """Look at what a commit of the index would introduce."""
        import msgspec

        from kbcli.views.reports.report_content import ReportContent
        from kbcore.checks.introduced.staged import check_staged

        opened = self._opened
        found = check_staged(opened.workspace, view, only=self._only)
        report, mended = self._narrowed(view, found.found.report), found.found.mended
        report = self._with_lines(report, found.facts)
        against = "staged changes" if found.staged else "nothing is staged"
        content = ReportContent(opened.branch, view.seq, report, against=against, mended=len(mended))
        content = msgspec.structs.replace(content, comments=found.comments)
        comments = msgspec.to_builtins(found.comments)
        return content, {"staged": found.staged, "mended": [one.as_json() for one in mended], "comments": comments}

    def _targets(self, view: View) -> tuple[list[str], list[str]]:
        """Return the ids to look at, and the paths of files and folders. Raises: ``NotFound``, ``InvalidQuery``."""
        from kbcore.checks.targets import files_of_repository, targets_of
        from kbcore.text.escaping import in_quotes
        from kbcore.text.wording import some_of

        if not self._asked.targets:
            return [], []
        workspace, start = self._opened.workspace, self._opened.session.start
        root = workspace.repo.worktree if workspace.repo.has_worktree else start

        def files_among(paths: list[str]) -> Collection[str]:
            return paths if self._asked.staged else files_of_repository(workspace, paths)

        found = targets_of(view, self._asked.targets, start, root, files_among)
        if found.unknown and not self._asked.staged:
            named = some_of([in_quotes(path) for path in found.unknown], _NAMED)
            self._opened.session.output.note(f"Not checked, as no fact comes from it: {named}.")
        self._opened.session.show_called(found.called)
        return [*found.ids, *found.unknown], found.paths

    def _narrowed(self, view: View, report: CheckReport) -> CheckReport:
        """Return what of a report concerns the targets and has the severity that is asked for."""
        import msgspec

        from kbcore.rules.registry import is_ok

        ids, paths = self._targets(view)
        if not self._asked.targets:
            return self._of_severity(report)
        kept = [
            one
            for one in report.violations
            if one.id in ids
            or any(not path or one.source == path or one.source.startswith(f"{path}/") for path in paths)
        ]
        report = msgspec.structs.replace(report, violations=kept, ok=is_ok(kept, report.rules))
        return self._of_severity(report)

    def _of_severity(self, report: CheckReport) -> CheckReport:
        from kbcore.rules.registry import of_severity

        return of_severity(report, self._asked.severity) if self._asked.severity else report

    def _with_lines_now(self, view: View, report: CheckReport) -> CheckReport:
        from kbcore.checks.introduced.reading import facts_now

        if self._asked.statistics:
            return report
        paths = {one.source for one in report.violations if one.source}
        return self._with_lines(report, facts_now(self._opened.workspace, view, self._opened.branch, paths))

    def _with_lines(self, report: CheckReport, facts: Callable[[str], Facts | None]) -> CheckReport:
        import msgspec

        from kbcore.checks.introduced.lines import with_lines

        violations = report.violations
        if self._asked.format == "text" and not self._opened.session.output.is_json:
            from kbcli.views.reports.text import shown

            wanted = shown(violations, self._asked.limit)
            found = dict(zip(wanted, with_lines(wanted, facts), strict=True))
            violations = [found.get(one, one) for one in violations]
        else:
            violations = with_lines(violations, facts)
        return msgspec.structs.replace(report, violations=violations)


def _write(session: Session, content: ReportContent, format_: Format) -> None:
    output = session.output
    if format_ == "text":
        from kbcli.views.reports.text import show

        show(output, content)
        return
    if format_ == "short":
        from kbcli.views.reports.text import show_short

        show_short(output, content)
        return
    from kbcli.views.reports.report_content import summary
    from kbcli.views.reports.text import warn_of_rules
    from kbcore.text.escaping import escape_controls

    output.data(_text(session, content, format_))
    warn_of_rules(output, content)
    output.note(escape_controls(summary(content)))


def _text(session: Session, content: ReportContent, format_: Format) -> str:
    """Return the report as another program reads it."""
    import msgspec

    if format_ == "sarif":
        from kbcli.views.reports import sarif
        from kbcore.checks import descriptions

        return sarif.text(msgspec.structs.replace(content, descriptions=descriptions(session.workspace)))
    if format_ == "junit":
        from kbcli.views.reports import junit

        return junit.text(content)
    from kbcli.views import step_summary
    from kbcli.views.reports import github

    step_summary.append(session, github.markdown(content))
    return github.commands(content)
