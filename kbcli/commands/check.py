"""``kb check``: run the rules, over what stands or over what a change introduces, and report in some format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from kbcli.options import session_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kbcli.context import Opened, Session
    from kbcli.reports.told import Told
    from kbcore.extract.facts import Facts
    from kbcore.rules import Violation
    from kbcore.rules.registry import FailOn
    from kbcore.sync.overlay import FileState
    from kbcore.view.view import View

    Format = Literal["text", "json", "sarif", "junit", "github"]


def run(
    ctx: typer.Context,
    *,
    rule: Annotated[
        list[str] | None, typer.Option("--rule", metavar="NAME", help="Only this rule; may be repeated.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="REV|SEQ", help="Only what came since a commit, branch, seq or time."),
    ] = None,
    staged: Annotated[bool, typer.Option("--staged", help="Only what a commit of the index would introduce.")] = False,
    format_: Annotated[
        Literal["text", "json", "sarif", "junit", "github"], typer.Option("--format", help="How to write it.")
    ] = "text",
    fail_on: Annotated[
        Literal["error", "warning", "never"], typer.Option("--fail-on", help="What makes the status 1.")
    ] = "error",
    require_synced: Annotated[
        bool, typer.Option("--require-synced", help="End with status 19 when records lack what files say.")
    ] = False,
    recorded: Annotated[bool, typer.Option("--recorded", help="Judge the records alone, not what files say.")] = False,
    explain: Annotated[
        str | None, typer.Option("--explain", metavar="RULE", help="Say all about one rule instead.")
    ] = None,
    test_rules: Annotated[
        bool, typer.Option("--test-rules", help="Run the tests of the project's rules instead.")
    ] = False,
) -> int:
    """Run the rules over the branch, KB's own and the project's, with what its files say now.

    Ends with status 1 when a violation counts as a failure, or when a rule could not run; with status 29 when the files
    cannot be judged, as during a merge.
    """
    from kbcli.bounds import check_format

    session = session_of(ctx)
    check_format(format_, {"text", "json"}, is_json=session.output.is_json)
    asked = _Asked(rule or [], since, staged, format_, fail_on, require_synced, recorded)
    if explain is not None:
        _keep_apart("--explain speaks of one rule as it stands", asked, ["--test-rules"] * test_rules, asked.only)
    if test_rules:
        _keep_apart("--test-rules judges the graphs of tests", asked)
    if recorded and (require_synced or staged):
        other = "--staged" if staged else "--require-synced"
        raise typer.BadParameter(f"--recorded judges no files; leave out --recorded or {other}.")
    if staged and since is not None:
        raise typer.BadParameter("--staged compares with HEAD; leave out --staged or --since.")
    session.output.is_json = session.output.is_json or format_ == "json"
    if explain is not None:
        return _explain(session, explain)
    if test_rules:
        return _test(session, rule or [])
    return _check(session, asked)


class _Asked(NamedTuple):
    """What of a branch to judge, and how to tell it."""

    only: Sequence[str]
    since: str | None
    staged: bool
    format: Format
    fail_on: FailOn
    requires_synced: bool = False
    only_records: bool = False


def _keep_apart(what: str, asked: _Asked, others: Sequence[str] = (), only: Sequence[str] = ()) -> None:
    """Refuse what says how to judge where nothing is judged so. Raises: ``typer.BadParameter``."""
    given = [
        *others,
        *["--rule"] * bool(only),
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
    """Run rules and tell what they found."""
    import msgspec

    from kbcli import exits
    from kbcli.words.options import placed
    from kbcore import relocation
    from kbcore.visible import visible

    if asked.staged:
        from kbcore.sync.run import check_worktree

        check_worktree(session.workspace, session.named_branch)
    opened = session.open_to_read()
    for one in relocation.beside(opened.workspace):
        session.output.warn(visible(str(one)))
    look = _Look(opened, asked.only, has_lines=asked.staged or asked.format not in {"text", "json"})
    with placed(session.output, {"rules": "--rule"}), session.output.waiting("Checking"):
        told, more, files = _judged(opened, look, asked)
    told = msgspec.structs.replace(told, fail_on=asked.fail_on)
    if session.output.is_json:
        shown = {"branch": told.branch, **files.as_json(), **msgspec.to_builtins(told.report), **more}
        session.output.document(shown)
    else:
        _write(session, told, asked.format)
        if not (told.seq or told.pending_files):
            session.output.note("There is nothing to check yet: `kb sync` takes in documents.")
    return exits.DONE if told.report.passes(asked.fail_on) else exits.VIOLATIONS


def _judged(opened: Opened, look: _Look, asked: _Asked) -> tuple[Told, dict[str, Any], FileState]:
    """Return what the rules found, and how it relates to the files.

    Raises: ``FilesUnknown`` where they are asked for and cannot be judged; ``NotSynced``.
    """
    import msgspec

    from kbcore.errors import FilesUnknown, NotSynced
    from kbcore.limits import FILES_CHECK_S
    from kbcore.phrases import counted
    from kbcore.sync.overlay import records_alone

    def on(view: View, files: FileState) -> tuple[Told, dict[str, Any], FileState]:
        if files.freshness == "unknown" and not files.is_asked:
            raise FilesUnknown(f"The files cannot be judged, so no rule was run. {files.reason}")
        if asked.requires_synced and files.freshness != "current":
            why = files.reason or f"{counted(files.pending_files or 0, 'file')} not as recorded."
            raise NotSynced(f"The records of {opened.branch} do not hold what its files say: {why}")
        told, more = look.at(view, asked)
        return msgspec.structs.replace(told, seq=files.seq, pending_files=files.pending_files or 0), more, files

    if asked.staged or asked.only_records:
        reason = "What is staged is judged, not the files." if asked.staged else "The records alone are judged."
        return opened.store.read(lambda view: on(view, records_alone(reason, seq=view.seq)))
    return opened.files.read(opened.workspace, opened.branch, on, time_s=FILES_CHECK_S)


def _explain(session: Session, name: str) -> int:
    """Say all about one rule; ends with status 1 when a test that it brings along fails."""
    import msgspec

    from kbcli import exits
    from kbcli.words.rules import tell_rule
    from kbcore.checks.explain import explain

    opened = session.open_to_read()
    with session.output.waiting("Checking"):
        seq, found = opened.store.read(
            lambda view: (view.seq, explain(opened.workspace, view, name, branch=opened.branch))
        )
    if session.output.is_json:
        session.output.document({"branch": opened.branch, "seq": seq, "rule": msgspec.to_builtins(found)})
    else:
        tell_rule(session.output, f"{opened.branch} at seq {seq}", found)
    return exits.DONE if all(one.ok for one in found.tests) else exits.VIOLATIONS


def _test(session: Session, only: list[str]) -> int:
    """Run the tests of the project's rules; ends with status 1 when one fails."""
    import msgspec

    from kbcli import exits
    from kbcli.words.rules import tell_trials
    from kbcore.checks.explain import try_rules

    with session.output.waiting("Testing the rules"):
        found = try_rules(session.workspace, only)
    is_ok = all(one.ok for one in found)
    if session.output.is_json:
        session.output.document({"ok": is_ok, "tests": msgspec.to_builtins(found)})
    else:
        tell_trials(session.output, found)
    return exits.DONE if is_ok else exits.VIOLATIONS


class _Look:
    """What is looked at of one branch: each way returns what is told, and what JSON says besides."""

    def __init__(self, opened: Opened, only: Sequence[str], *, has_lines: bool) -> None:
        self._opened = opened
        self._only = only
        self._has_lines = has_lines

    def at(self, view: View, asked: _Asked) -> tuple[Told, dict[str, Any]]:
        """Look at what is asked for."""
        if asked.staged:
            return self.staged(view)
        return self.whole(view) if asked.since is None else self.since(view, asked.since)

    def whole(self, view: View) -> tuple[Told, dict[str, Any]]:
        """Look at all that stands."""
        from kbcli.reports.told import Told
        from kbcore.checks import run_checks

        report = run_checks(self._opened.workspace, view, branch=self._opened.branch, only=self._only)
        told = Told(self._opened.branch, view.seq, report, lines=self._lines_now(view, report.violations))
        return told, {}

    def since(self, view: View, text: str) -> tuple[Told, dict[str, Any]]:
        """Look at what came since a point."""
        import msgspec

        from kbcli.reports.told import Told
        from kbcore.introduced.since import check_since

        opened = self._opened
        since = check_since(opened.workspace, view, opened.branch, text, only=self._only)
        report, mended, point = since.found.report, since.found.mended, since.point
        opened.session.notes += point.notes
        lines = self._lines_now(view, report.violations)
        told = Told(opened.branch, view.seq, report, lines=lines, against=point.said, mended=len(mended))
        return told, {"since": {"seq": point.seq, "commit": point.commit}, "mended": msgspec.to_builtins(mended)}

    def staged(self, view: View) -> tuple[Told, dict[str, Any]]:
        """Look at what a commit of the index would introduce."""
        import msgspec

        from kbcli.reports.told import Told
        from kbcore.introduced.staged import check_staged

        opened = self._opened
        found = check_staged(opened.workspace, view, only=self._only)
        report, mended = found.found.report, found.found.mended
        lines = self._lines(report.violations, found.facts)
        against = "staged changes" if found.staged else "nothing is staged"
        told = Told(opened.branch, view.seq, report, lines=lines, against=against, mended=len(mended))
        return told, {"staged": found.staged, "mended": msgspec.to_builtins(mended)}

    def _lines_now(self, view: View, violations: Sequence[Violation]) -> dict[Violation, int]:
        from kbcore.introduced.reading import facts_now

        paths = {one.source for one in violations if one.source}
        return self._lines(violations, facts_now(self._opened.workspace, view, self._opened.branch, paths))

    def _lines(self, violations: Sequence[Violation], facts: Callable[[str], Facts | None]) -> dict[Violation, int]:
        from kbcore.introduced.lines import lines_of

        return lines_of(violations, facts) if self._has_lines else {}


def _write(session: Session, told: Told, format_: Format) -> None:
    output = session.output
    if format_ == "text":
        from kbcli.reports.text import tell

        tell(output, told)
        return
    from kbcli.reports.text import warn_of_rules
    from kbcli.reports.told import summary
    from kbcore.visible import visible

    output.data(_text(session, told, format_))
    warn_of_rules(output, told)
    output.note(visible(summary(told)))


def _text(session: Session, told: Told, format_: Format) -> str:
    """Return the report as another program reads it."""
    import msgspec

    if format_ == "sarif":
        from kbcli.reports import sarif
        from kbcore.checks import descriptions

        return sarif.text(msgspec.structs.replace(told, descriptions=descriptions(session.workspace)))
    if format_ == "junit":
        from kbcli.reports import junit

        return junit.text(told)
    from kbcli import stepsummary
    from kbcli.reports import github

    stepsummary.append(session, github.markdown(told))
    return github.commands(told)
