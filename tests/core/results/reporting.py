"""Reports, and the command's way to take them in."""

from __future__ import annotations

from pathlib import Path

from kbcore.model.verdict import Verdict, verdict_of
from kbcore.results.report_files import named_reports
from kbcore.results.taking import ResultsAnswer, ResultsRequest, take_results
from kbcore.store import branches
from tests.support.repository.project import AUTHOR, Project, document

COMMIT = "a" * 40
DOCUMENTS = {
    "docs/requirements/a.md": document("REQ-1", title="Totals", status="open", links="[verified_by: T-1]"),
    "docs/tests/a.md": document("T-1", title="adds up", status="active", type="test"),
    "docs/tests/b.md": document("T-2", title="is empty", status="active", type="test"),
}


def junit(*cases: tuple[str, str, str]) -> str:
    """Return a report of tests: name, tag of what happened ("" for nothing), message."""
    inner = "".join(
        f'<testcase name="{name}" time="0.5">' + (f'<{tag} message="{message}"/>' if tag else "") + "</testcase>"
        for name, tag, message in cases
    )
    return f"<testsuites><testsuite>{inner}</testsuite></testsuites>"


def take(project: Project, *texts: str, commit: str = COMMIT, dry_run: bool = False) -> ResultsAnswer:
    """Write reports to the worktree and take them in together."""
    names = [f"build/r{number}.xml" for number in range(len(texts))]
    project.write(dict(zip(names, texts, strict=True)))
    return take_files(project, *names, commit=commit, dry_run=dry_run)


def take_files(project: Project, *names: str, commit: str = COMMIT, dry_run: bool = False) -> ResultsAnswer:
    """Take in reports of the worktree."""
    workspace = project.workspace()
    _, choice, _ = branches.open_branch(workspace, None)
    files = named_reports(names, Path(project.root), Path(project.root))
    request = ResultsRequest(tuple(files), commit, dry_run)
    return take_results(workspace, choice.branch, AUTHOR, request, follows_head=choice.follows_head)


def verdict(project: Project, key: str) -> Verdict | None:
    """Return the verdict that the head has of a test."""
    [found] = project.view().nodes([key])
    return verdict_of(found.fields)
