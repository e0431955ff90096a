"""Take in reports: read them as streams, match what they have with the tests of the branch, record what changed.

All reports of one command are one changeset: where one of them cannot be used, nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kbcore import limits
from kbcore.errors import InvalidReport, LimitExceeded, Problem, of_problems
from kbcore.errors.remedies import for_shell
from kbcore.extract.code import extractor as code
from kbcore.extract.registry import missing_package
from kbcore.git import revisions
from kbcore.model.verdict import Verdict
from kbcore.results import reading, suggesting
from kbcore.results.collecting import MAX_VERIFIED, CollectedOutcomes, Unmatched
from kbcore.results.matching import KnownTests
from kbcore.results.recording import Flip, Recorded, record, tests_of
from kbcore.results.report_files import ReportFile
from kbcore.results.reported import CoveredLines, ReportedOutcome, ReportFault
from kbcore.results.suggesting import Suggestions
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author
from kbcore.sync.symbol_at import lines_of_file
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import some_of
from kbcore.view.view import View

_NAMED: Final = 3
MAX_LISTED: Final = 1000
"""Tests of one kind that an answer in JSON lists; the rest is counted."""


class ResultsRequest(msgspec.Struct, frozen=True):
    """The reports to take in, and the commit that the tests ran on, "" for none that is known."""

    files: tuple[ReportFile, ...]
    commit: str = ""
    dry_run: bool = False


class ReadReport(msgspec.Struct, frozen=True):
    """A report that was read: its format, and how many tests or source files it has; ``notes`` are on the run."""

    file: str
    format: reading.Format
    tests: int = 0
    source_files: int = 0
    notes: tuple[str, ...] = ()


class ResultsAnswer(msgspec.Struct, frozen=True):
    """The answer: what was read, what was recorded, what no test matches, and what coverage suggests.

    ``tests`` counts the tests of the reports by outcome, ``matched`` those of the branch that have a result.
    ``suggestions`` is None where no report is of coverage or names a requirement.
    """

    recorded: Recorded
    reports: tuple[ReadReport, ...]
    tests: dict[str, int]
    matched: int
    unmatched: tuple[Unmatched, ...]
    unmatched_count: int
    unmatched_failing: int
    unknown_ids: tuple[str, ...]
    commit: str
    suggestions: Suggestions | None = None

    @property
    def new_failures(self) -> list[Flip]:
        """Return the tests that fail now and did not before."""
        return [one for one in self.recorded.flips if one.after.is_failing and not _failed(one)]

    @property
    def other_failures(self) -> list[Flip]:
        """Return the tests that failed before as well, with another outcome or message."""
        return [one for one in self.recorded.flips if one.after.is_failing and _failed(one)]

    @property
    def fixed(self) -> list[Flip]:
        """Return the tests that failed before and do not any more."""
        return [one for one in self.recorded.flips if not one.after.is_failing and _failed(one)]

    def as_json(self) -> dict[str, Any]:
        """Return the answer as plain JSON values."""
        recorded = self.recorded
        found: dict[str, Any] = {
            **recorded.outcome.as_json(),
            "commit": self.commit,
            "reports": [msgspec.to_builtins(one) for one in self.reports],
            "tests": self.tests,
            "matched": self.matched,
            "changed": [_flip_json(one) for one in recorded.flips[:MAX_LISTED]],
            "changed_count": len(recorded.flips),
            "unchanged_count": recorded.unchanged,
            "earlier": list(recorded.earlier[:MAX_LISTED]),
            "stated_by_files": dict([*recorded.stated.items()][:MAX_LISTED]),
            "gone": list(recorded.gone[:MAX_LISTED]),
            "unmatched": {
                "count": self.unmatched_count,
                "failing": self.unmatched_failing,
                "first": [msgspec.to_builtins(one) for one in self.unmatched],
            },
            "unknown_ids": list(self.unknown_ids),
        }
        # The tests that changed are listed with their verdicts; a list of ids beside it would say the same.
        for name in ("created", "updated", "unchanged", "deleted", "edges"):
            found.pop(name)
        if self.suggestions is not None:
            found["suggestions"] = suggesting.as_json(self.suggestions, for_shell)
        return found


def _failed(flip: Flip) -> bool:
    return flip.before is not None and flip.before.is_failing


def _flip_json(flip: Flip) -> dict[str, Any]:
    return {"id": flip.id, "before": flip.before and flip.before.outcome, **flip.after.as_json()}


def commit_named(workspace: Workspace, rev: str) -> str:
    """Return the full hash of a revision of the repository. Raises: ``InvalidReport``; ``GitUnusable``."""
    found = revisions.commit_of(workspace.repo, workspace.machine.env, rev)
    if found is None:
        message = f"{in_quotes(rev)} is no commit of this clone."
        raise InvalidReport(message, hint="Name a commit that `git rev-parse` knows; a shallow clone lacks old ones.")
    return found


def take_results(
    workspace: Workspace, branch: str, author: Author, request: ResultsRequest, *, follows_head: bool
) -> ResultsAnswer:
    """Record the verdicts that reports give the tests of a branch, and suggest edges from coverage.

    Raises: ``InvalidReport`` for reports that cannot be used, with a problem for each; ``LimitExceeded``; what
    ``recording.record`` raises.
    """
    known = workspace.store(branch).read(lambda view: tests_of(view.rows))
    names = KnownTests(known)
    read = _read_all(request, CollectedOutcomes(names))
    collected = read.collected
    verdicts = collected.verdicts(workspace.machine.clock.now(), request.commit)
    message = some_of([one.file for one in read.reports], _NAMED)
    recorded = record(
        workspace, branch, author, verdicts, message=message, follows_head=follows_head, dry_run=request.dry_run
    )
    return ResultsAnswer(
        recorded,
        tuple(read.reports),
        collected.tests,
        len(verdicts),
        tuple(collected.unmatched),
        collected.unmatched_count,
        collected.unmatched_failing,
        tuple(collected.unknown_ids),
        request.commit,
        _suggestions(workspace, branch, read, names, verdicts),
    )


class _Read(msgspec.Struct):
    """The content of the reports."""

    collected: CollectedOutcomes
    reports: list[ReadReport]
    covered: list[CoveredLines]


def _read_all(request: ResultsRequest, collected: CollectedOutcomes) -> _Read:
    """Read every report, and refuse all of them where some cannot be used."""
    found = _Read(collected, [], [])
    problems: list[Problem] = []
    for file in request.files:
        try:
            found.reports.append(_read(file, found))
        except ReportFault as fault:
            place = f"{file.shown}:{fault.line}" if fault.line else file.shown
            message = f"{in_quotes(place)} cannot be used: {fault.message}."
            problems.append(Problem(place, fault.code, message, fault.remedy, file.shown, fault.line))
        except OSError as error:
            message = f"{in_quotes(file.shown)} cannot be read: {error.strerror or error}."
            is_folder = isinstance(error, IsADirectoryError)
            remedy = "Name the reports in it." if is_folder else "Name a report that you may read."
            problems.append(Problem(file.shown, "unreadable", message, remedy, file.shown))
    if problems:
        raise of_problems(InvalidReport, "", problems)
    return found


def _read(file: ReportFile, found: _Read) -> ReadReport:
    with reading.opened(file.path) as report:
        if report.format in reading.OF_COVERAGE:
            before = len(found.covered)
            for one in report.covered:
                found.covered.append(one)
                if len(found.covered) > limits.MAX_REPORTED_FILES:
                    raise _too_many(f"more than {limits.MAX_REPORTED_FILES} source files are in the reports")
            return ReadReport(file.shown, report.format, source_files=len(found.covered) - before)
        tests = found.collected.add(_limited(report.outcomes, found.collected), file.shown)
        return ReadReport(file.shown, report.format, tests, notes=tuple(report.notes))


def _limited(outcomes: Iterator[ReportedOutcome], collected: CollectedOutcomes) -> Iterator[ReportedOutcome]:
    for one in outcomes:
        if collected.count >= limits.MAX_REPORTED_TESTS:
            raise _too_many(f"more than {limits.MAX_REPORTED_TESTS} tests are in the reports")
        yield one
        if len(collected.verified) > MAX_VERIFIED:
            raise _too_many(f"more than {MAX_VERIFIED} pairs of a requirement and a test are in the reports")


def _too_many(what: str) -> LimitExceeded:
    return LimitExceeded(f"{what[0].upper()}{what[1:]}.", hint="Name some of the reports at a time.")


def _suggestions(
    workspace: Workspace, branch: str, read: _Read, names: KnownTests, verdicts: dict[str, Verdict]
) -> Suggestions | None:
    has_coverage = any(one.format in reading.OF_COVERAGE for one in read.reports)
    named = read.collected.verified
    if not (has_coverage or named):
        return None

    def on(view: View) -> Suggestions:
        verified = suggesting.suggest_verified(view.rows, named)
        if not has_coverage:
            return verified
        fault = missing_package(code.EXTRACTOR)
        if fault:
            return verified + Suggestions(fault=fault)
        return verified + suggesting.suggest(
            view.rows,
            read.covered,
            lambda path: lines_of_file(workspace, branch, path),
            root=str(workspace.repo.worktree),
            tests_named=lambda name: names.match(ReportedOutcome(name, "passed")).ids,
            run=verdicts.keys(),
        )

    return workspace.store(branch).read(on)
