"""The report of a branch as Markdown, for the summary of a job or a comment: at most 100 rows of each table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kbcli.terminal import tables
from kbcli.views.matrix import matrix_row, numbers
from kbcore.model.schema import ASPECTS
from kbcore.pages.branch_report import BranchReport
from kbcore.query.coverage import CoverageGroup, Tally
from kbcore.text.escaping import markdown_text
from kbcore.text.wording import pluralize

BEGINS: Final = re.compile(rb"# [^\n]+ at seq \d+\n\n\d+ entit")
"""The beginning of each report, by which one is recognized."""
_MOST: Final = 100
"""Rows of a table; forges cut a summary at 1 MB."""


def markdown(report: BranchReport) -> Iterator[str]:
    """Yield the report, piece by piece."""
    overview = report.overview
    yield f"# {markdown_text(report.branch)} at seq {report.seq}\n\n"
    yield f"{pluralize(overview.entities, 'entity')}, {pluralize(overview.edges, 'edge')}, "
    yield f"{pluralize(overview.errors, 'error')}, {pluralize(overview.warnings, 'warning')}, "
    yield f"{pluralize(overview.conflicts, 'conflict')}.\n\n"
    yield f"{markdown_text(report.records_only_reason)}\n\n" if report.records_only_reason else ""
    yield "## Coverage\n\n"
    yield from tables.markdown(
        ("", "REQUIREMENTS", *(name.upper() for name in ASPECTS)), [_row("all", overview.requirements)]
    )
    for by, groups in report.groups.items():
        rows = [_row(one.name or "(none)", one) for one in groups]
        if len(groups) > 1:
            yield f"\n## By {by}\n\n"
            yield from _table((by.upper(), "REQUIREMENTS", *(name.upper() for name in ASPECTS)), rows)
    holes = [one for one in report.covered.requirements if any(one.state(name) == "no" for name in ASPECTS)]
    yield "\n## Holes\n\n" if holes else ""
    yield from _table(
        ("ID", "PRIORITY", "LACKS", "TITLE"),
        [
            (one.id, one.priority, ", ".join(name for name in ASPECTS if one.state(name) == "no"), one.title)
            for one in holes
        ],
    )
    for one in report.matrices:
        yield f"\n## {markdown_text(one.asked.title)}\n\n{numbers(one.found)}\n\n"
        yield from _table(("ID", "LEADS TO", "TITLE"), [matrix_row(row) for row in one.found.rows])
    yield "\n## Violations\n\n" if report.check.violations else ""
    yield from _table(
        ("SEVERITY", "RULE", "ID", "MESSAGE"),
        [(one.severity, one.rule, one.subject, one.message) for one in report.check.violations],
    )
    yield "\n## Conflicts\n\n" if report.conflicts else ""
    yield from _table(("OF", "FIELD"), [(one.name, one.field) for one in report.conflicts])
    if report.changes is not None:
        yield f"\n## Changes since {markdown_text(report.since)}\n\n"
        yield from _table(
            ("CHANGE", "ENTITY", "FIELDS"),
            [(one["change"], one["id"], ", ".join(one.get("fields", ()))) for one in report.changes["entities"]],
        )
        yield f"\n{pluralize(len(report.changes['edges']), 'edge')} changed.\n"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    if not rows:
        return
    yield from tables.markdown(head, rows[:_MOST])
    yield f"\nand {len(rows) - _MOST} more.\n" if len(rows) > _MOST else ""


def _row(name: str, group: CoverageGroup) -> tuple[str, ...]:
    return (name, str(group.requirements), *(_share(group.tallies[aspect]) for aspect in ASPECTS))


def _share(tally: Tally) -> str:
    return f"{tally.yes}/{tally.needed} {tally.percent:g} %" if tally.needed else "-"
