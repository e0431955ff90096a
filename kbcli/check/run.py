"""The run of the rules over what is asked for: files over records, the records alone, the index, or since a point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from kbcli.check.request import CheckRequest
    from kbcli.invocation.context import Opened
    from kbcli.views.reports.report_content import ReportContent
    from kbcore.checks.targets import Targets
    from kbcore.errors import Problem
    from kbcore.extract.facts import Facts
    from kbcore.rules import CheckReport
    from kbcore.sync.overlay import FileState
    from kbcore.view.view import View


def judged(
    opened: Opened, look: CheckRun, asked: CheckRequest, idle: list[Problem] | None = None
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
        is_asked_of_files = not (asked.staged or asked.only_records or _is_of_commit(opened, asked))
        if files.freshness == "unknown" and is_asked_of_files:
            hint = "" if files.is_retryable or asked.against is not None else "`--recorded` checks only the records."
            raise FilesUnknown(f"The files cannot be judged, so no rule was run. {files.reason}", hint=hint)
        if asked.requires_synced and files.freshness != "current":
            why = files.reason or f"{pluralize(files.pending_files or 0, 'file')} not as recorded."
            raise NotSynced(f"The records of {opened.branch} differ from its files: {why}")
        content, more = look.at(view, asked)
        is_part = bool(asked.targets or asked.scope)
        if idle is not None and not (is_part or asked.staged or asked.since or asked.against is not None):
            idle[:] = idle_suppressions(opened.workspace, view)
            named = [{"path": one.path, "code": one.code, "message": one.message, "hint": one.hint} for one in idle]
            more["idle_suppressions"] = named
        if asked.scope:
            more["paths"] = list(asked.scope)
        if is_part:
            more |= {"stated_last": list(look.stated_last), "not_checked": list(look.not_checked)}
        violations = [
            msgspec.structs.replace(one, remedy=opened.session.located(one.remedy)) for one in content.report.violations
        ]
        content = msgspec.structs.replace(
            content, report=msgspec.structs.replace(content.report, violations=violations)
        )
        pending = files.pending_files or 0
        content = msgspec.structs.replace(
            content,
            seq=files.seq,
            pending_files=pending,
            stated_last=look.stated_last,
            not_checked=look.not_checked,
        )
        return content, more, files

    if asked.staged or asked.only_records:
        reason = "What is staged is checked, not the files." if asked.staged else "Only the records are checked."
        return opened.store.read(lambda view: on(view, records_alone(reason, seq=view.seq)))
    return opened.files.read(opened.workspace, opened.branch, on, time_s=FILES_CHECK_S)


def _is_of_commit(opened: Opened, asked: CheckRequest) -> bool:
    """Return whether another branch than the one checked out is compared with a revision: as its last commit has it."""
    if asked.against is None:
        return False
    workspace = opened.workspace
    return not workspace.repo.has_worktree or workspace.head().branch != opened.branch


class CheckRun:
    """The part of one branch that is checked: each method returns the report, and further members for JSON."""

    def __init__(self, opened: Opened, asked: CheckRequest) -> None:
        self._opened = opened
        self._asked = asked
        self._only = asked.only
        self.stated_last: tuple[str, ...] = ()
        """The targets that are checked by what they stated last, as no fact comes from them any more."""
        self.not_checked: tuple[str, ...] = ()
        """The targets from which no fact ever came."""

    def at(self, view: View, asked: CheckRequest) -> tuple[ReportContent, dict[str, Any]]:
        """Look at what is asked for."""
        if asked.staged:
            return self.staged(view)
        if asked.against is not None:
            return self.against(view, asked.against)
        return self.whole(view) if asked.since is None else self.since(view, asked.since, asked)

    def whole(self, view: View) -> tuple[ReportContent, dict[str, Any]]:
        """Check the whole current state."""
        from kbcli.views.reports.report_content import ReportContent
        from kbcore.checks import run_checks

        parts = self._parts(view)
        ids = parts[0].looked_at if parts else []
        report = run_checks(
            self._opened.workspace, view, branch=self._opened.branch, only=self._only, ids=ids, may_be_unknown=True
        )
        report = self._with_lines_now(view, self._of_severity(_within(report, parts[bool(self._asked.targets) :])))
        return ReportContent(self._opened.branch, view.seq, report), {}

    def since(self, view: View, text: str, asked: CheckRequest) -> tuple[ReportContent, dict[str, Any]]:
        """Check what changed since a point."""
        from kbcli.views.reports.report_content import ReportContent
        from kbcore.checks.introduced.since import check_since
        from kbcore.store.history.log import RecordFilter

        opened = self._opened
        by = RecordFilter(actor=asked.actor, session=asked.session)
        by.check_known(view)
        since = check_since(opened.workspace, view, opened.branch, text, only=self._only, changed_by=by, is_local=True)
        report, fixed, point = self._narrowed(view, since.found.report), since.found.fixed, since.point
        opened.session.notes += point.notes
        report = self._with_lines_now(view, report)
        against = " ".join(filter(None, [point.said, by.writer.words()]))
        content = ReportContent(opened.branch, view.seq, report, against=against, fixed=len(fixed))
        return content, {
            "since": {"seq": point.seq, "commit": point.commit, **by.writer.as_json()},
            "fixed": [one.as_json() for one in fixed],
        }

    def staged(self, view: View) -> tuple[ReportContent, dict[str, Any]]:
        """Look at what a commit of the index would introduce."""
        import msgspec

        from kbcli.views.reports.report_content import ReportContent
        from kbcore.checks.introduced.staged import check_staged

        opened = self._opened
        found = check_staged(opened.workspace, view, only=self._only)
        report, fixed = self._narrowed(view, found.found.report), found.found.fixed
        report = self._with_lines(report, found.facts)
        against = "staged changes" if found.staged else "nothing is staged"
        content = ReportContent(opened.branch, view.seq, report, against=against, fixed=len(fixed))
        content = msgspec.structs.replace(content, comments=found.comments, unchecked=found.unchecked)
        comments = {"comments": msgspec.to_builtins(found.comments)}
        comments |= {"comments_not_checked": msgspec.to_builtins(found.unchecked)} if found.unchecked else {}
        return content, {"staged": found.staged, "fixed": [one.as_json() for one in fixed], **comments}

    def against(self, view: View, ref: str) -> tuple[ReportContent, dict[str, Any]]:
        """Compare with another revision, before a merge."""
        from kbcli.views.reports.report_content import ReportContent
        from kbcore.checks.against.findings import check_against

        opened = self._opened
        found = check_against(opened.workspace, view, opened.branch, ref, only=self._only)
        content = ReportContent(opened.branch, view.seq, self._narrowed(view, found.report), compared=found.said)
        return content, {"against": {"ref": ref, "commit": found.commit, "bases": list(found.bases)}}

    def _parts(self, view: View) -> list[_Part]:
        """Return what the report is limited to: the targets and the scope, as far as they are asked for.

        What is reported concerns both. Raises: ``NotFound``, ``InvalidQuery``.
        """
        from kbcore.checks.targets import files_of_repository, targets_of

        asked, output = self._asked, self._opened.session.output
        workspace, start = self._opened.workspace, self._opened.session.start
        root = workspace.repo.worktree if workspace.repo.has_worktree else start

        def files_among(paths: list[str]) -> Collection[str]:
            return paths if asked.staged else files_of_repository(workspace, paths)

        parts = list[_Part]()
        for argument, names in (("targets", asked.targets), ("path", asked.scope)):
            if not names:
                continue
            is_scope = argument == "path"
            found = targets_of(view, names, start, root, files_among, argument=argument, may_be_ids=not is_scope)
            if asked.staged:  # what is staged need not be recorded
                found = found._replace(unknown=[])
            for said in found.notes():
                output.note(f"note: {said}")
            self._opened.session.show_called(found.called)
            parts.append(_Part(found, found.inside if is_scope else [*found.ids, *found.unknown]))
        self.stated_last = tuple(path for one in parts for path in one.targets.gone)
        self.not_checked = tuple(path for one in parts for path in one.targets.unknown)
        return parts

    def _narrowed(self, view: View, report: CheckReport) -> CheckReport:
        """Return what of a report concerns the targets and the scope, and has the severity that is asked for."""
        return self._of_severity(_within(report, self._parts(view)))

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


class _Part(NamedTuple):
    """A part of the branch that a report is limited to, and the ids that its violations concern."""

    targets: Targets
    ids: Collection[str]

    @property
    def looked_at(self) -> list[str]:
        """Return the ids that rules look at, for the violations of these ids and of the files."""
        return [*self.targets.ids, *self.targets.unknown]


def _within(report: CheckReport, parts: Sequence[_Part]) -> CheckReport:
    """Return what of a report concerns each of these parts of the branch."""
    from kbcore.checks.targets import concerning

    for one in parts:
        report = concerning(report, one.ids, one.targets.paths, one.targets.globs)
    return report
