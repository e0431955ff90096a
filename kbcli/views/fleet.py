"""Answers of a fleet in every format: JSON, lines of JSON, tables, CSV and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from kbcli.terminal import tables
from kbcli.views.query import cell_text
from kbcore.text.escaping import escape_controls, json_text
from kbcore.text.wording import pluralize, some_of, with_full_stop

if TYPE_CHECKING:
    from kbcli.invocation.context import Session
    from kbcore.fleet.local import Answer
    from kbcore.fleet.reading import UnreadRepository
    from kbcore.rules import CheckReport
    from kbcore.rules.registry import FailOn

Format = Literal["table", "tsv", "json", "jsonl", "csv", "markdown"]
Row = Mapping[str, Any]
_NAMED: Final = 5
"""The most repositories that a warning names."""


def show(
    session: Session,
    format_: str,
    columns: Sequence[str],
    rows: Sequence[Row],
    failures: Sequence[UnreadRepository],
    document: Mapping[str, Any],
) -> None:
    """Write rows; ``columns`` are those that tables show, and ``document`` what JSON has beside ``rows``."""
    output = session.output
    output.is_paged = format_ == "table"
    if output.is_json:
        output.document({**document, "rows": rows, "failures": msgspec.to_builtins(failures)})
        return
    if format_ == "jsonl":
        output.stream(f"{json_text(row)}\n" for row in rows)
    elif format_ == "csv":
        cells = ([cell_text(row.get(name)) for name in columns] for row in rows)
        output.stream(tables.comma_separated(columns, cells))
    else:
        head = [name.upper() for name in columns]
        shown = [[cell_text(row.get(name)) for name in columns] for row in rows]
        if format_ == "markdown":
            output.stream(tables.markdown(head, shown))
        elif format_ == "tsv":
            output.stream(f"{line}\n" for line in tables.tab_separated(head, shown))
        elif shown:
            output.data("".join(f"{line}\n" for line in output.table(head, shown)))
    show_failures(session, failures)


def report_text(format_: str, answers: Sequence[Answer], fail_on: FailOn) -> str:
    """Return the answers of a check as SARIF, with a run for each branch, or as JUnit XML."""
    from kbcli.views.reports import junit, sarif
    from kbcli.views.reports.report_content import ReportContent
    from kbcore.rules import RULES

    described = {rule.id: rule.description for rule in RULES}
    contents = {
        f"{one.repo}@{one.branch}": ReportContent(one.branch, one.seq, _report_of(one.value), fail_on, described)
        for one in answers
    }
    return sarif.text_of_many(contents) if format_ == "sarif" else junit.text_of_many(contents)


def _report_of(value: Mapping[str, Any]) -> CheckReport:
    """Return the report that an answer in JSON is of."""
    from kbcore.rules import CheckReport

    found = [
        {("remedy" if name == "hint" else name): cell for name, cell in one.items()} for one in value["violations"]
    ]
    return msgspec.convert({**value, "violations": found}, CheckReport)


def show_failures(session: Session, failures: Sequence[UnreadRepository]) -> None:
    """Warn of the repositories that could not be asked, once of those that say the same."""
    groups: dict[str, list[str]] = {}
    for one in failures:
        why = f"{with_full_stop(one.message)} {one.hint}".rstrip()
        groups.setdefault(why, []).append(f"{one.repo} at {one.branch}")
    for why, names in groups.items():
        verb = "was" if len(names) == 1 else "were"
        session.output.warn(escape_controls(f"{some_of(names, _NAMED)} {verb} not asked: {why}"))


def asked_line(repos: int, failures: Sequence[UnreadRepository]) -> str:
    """Return a sentence on how many branches were asked."""
    failed = f", {len(failures)} failed" if failures else ""
    return f"{pluralize(repos, 'branch')} asked{failed}."
