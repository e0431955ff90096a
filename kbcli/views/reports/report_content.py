"""The content of reports of ``kb check``, for every format: the state, lines of files, words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from kbcore.checks.grouping import is_cut
from kbcore.checks.introduced.symbols import RequirementMention
from kbcore.checks.targets import LAST_STATED, NOT_CHECKED
from kbcore.rules import CheckReport, Violation
from kbcore.rules.registry import FailOn
from kbcore.text.wording import pluralize, some_of

_COMMENTS_SHOWN: Final = 10
_TARGETS_SHOWN: Final = 3


class ReportContent(msgspec.Struct, frozen=True):
    """A report and what belongs to it. Texts are as they were stored: each format makes them safe for its readers."""

    branch: str
    seq: int
    report: CheckReport
    fail_on: FailOn = "error"
    descriptions: Mapping[str, str] = {}
    """The description of each rule, by its name."""
    against: str = ""
    """The state that the report was compared with, as in ``since seq 3``; then only new violations are in it."""
    compared: str = ""
    """The revision that the branch was compared with, as in ``against origin/main``: no more was done then."""
    pending_files: int = 0
    """The number of files that differ from the records; the report is of their content."""
    fixed: int = 0
    """The number of violations that were there and are fixed."""
    targets: tuple[str, ...] = ()
    """The files, folders and ids that were named; none where all of the branch was judged."""
    scope: tuple[str, ...] = ()
    """The globs and folders of the files that are reported on; none for all."""
    stated_last: tuple[str, ...] = ()
    """Those of the targets that are checked by what they stated last, as no fact comes from them any more."""
    not_checked: tuple[str, ...] = ()
    """Those of the targets from which no fact ever came."""
    limit: int | None = None
    """The most violations of each rule; None for the first few."""
    command: str = "kb check"
    """The request, without a rule and a limit."""
    comments: tuple[RequirementMention, ...] = ()
    """Statements of comments in source code that are no facts, as far as a rule counted them."""
    unchecked: tuple[RequirementMention, ...] = ()
    """Comments that name no requirement, in files that no rule looks at."""

    def counts(self, violation: Violation) -> bool:
        """Return whether a violation is at least as bad as what makes the command fail."""
        return self.fail_on != "never" and violation.severity in {"error", self.fail_on}


def summary(content: ReportContent) -> str:
    """Return the last line: where, how many errors and warnings, and how many rules ran."""
    report = content.report
    runs = [run.status for run in report.rules]
    how = f"{pluralize(runs.count('ran'), 'rule')} ran"
    how += f", {runs.count('not_run')} could not run" if "not_run" in runs else ""
    how += f", {runs.count('not_applicable')} not applicable" if "not_applicable" in runs else ""
    errors = sum(one.severity == "error" for one in report.violations)
    warnings = len(report.violations) - errors
    new = "new " if content.against else ""
    found = [pluralize(errors, f"{new}error")] * bool(errors) + [pluralize(warnings, f"{new}warning")] * bool(warnings)
    fixed = f", {content.fixed} fixed" if content.fixed else ""
    fixed += f", {report.in_baseline} in the baseline" if report.in_baseline else ""
    fixed += f", {report.of_other_severity} of another severity not shown" if report.of_other_severity else ""
    fixed += f", {report.suppressed} suppressed" if report.suppressed else ""
    fixed += f", {report.proposed} proposed and not judged" if report.proposed else ""
    where = f"{content.branch} at seq {content.seq}"
    where += f" with {pluralize(content.pending_files, 'pending file')}" if content.pending_files else ""
    where += f", {content.against}" if content.against else ""
    where += f", {content.compared}" if content.compared else ""
    where += f", of what concerns {some_of(content.targets, _TARGETS_SHOWN)}" if content.targets else ""
    where += f", in {some_of(content.scope, _TARGETS_SHOWN)}" if content.scope else ""
    least = "at least " if is_cut(report.violations) else ""
    return f"{where}: {least}{', '.join(found) or f'no {new}violations'}{fixed} ({how})"


def comments_line(content: ReportContent) -> str:
    """Return what was read of comments, where, and that KB does not know it; nothing where nothing was."""
    if not content.comments:
        return ""
    named = some_of([f"{one.file}:{one.line} ({one.id})" for one in content.comments], _COMMENTS_SHOWN)
    verb = "counts" if len(content.comments) == 1 else "count"
    said = f"{pluralize(len(content.comments), 'comment')} `kb: implements` {verb} for this check only: {named}."
    return f"{said} `kb coverage` and `kb impact` do not know of them; an `implements` edge in a manifest is a fact."


def unchecked_line(content: ReportContent) -> str:
    """Return which comments name no requirement and are not checked, and how they would be; "" where there is none."""
    if not content.unchecked:
        return ""
    named = some_of([f"{one.file}:{one.line} ({one.id})" for one in content.unchecked], _COMMENTS_SHOWN)
    many = pluralize(len(content.unchecked), "comment")
    said = f"{many} `kb: implements` {'names' if len(content.unchecked) == 1 else 'name'} no requirement: {named}."
    return f"{said} Only files that `staged.symbols` or a manifest names are checked."


def target_notes(content: ReportContent) -> list[tuple[str, str]]:
    """Return each target from which no fact comes, with the words on how it is checked."""
    said = ((LAST_STATED, content.stated_last), (NOT_CHECKED, content.not_checked))
    return [(path, words) for words, paths in said for path in paths]


def sentences(violation: Violation) -> str:
    """Return what a violation says and the remedy, as sentences that follow each other."""
    said = violation.sentence
    return f"{said}{'' if said.endswith(('.', '!', '?')) else '.'} {violation.hint}".strip()
