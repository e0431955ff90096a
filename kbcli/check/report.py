"""The report of a check, written in the format that is asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from kbcli.invocation.context import Session
from kbcore.text.escaping import escape_controls

if TYPE_CHECKING:
    from kbcli.check.request import CheckRequest, Format
    from kbcli.invocation.context import Session
    from kbcli.views.reports.report_content import ReportContent

_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""The variable with the file from which GitHub makes the page of a job."""


def show_data(
    session: Session, content: ReportContent, asked: CheckRequest, head: dict[str, Any], more: dict[str, Any]
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


def write(session: Session, content: ReportContent, format_: Format) -> None:
    """Write a report for people, or as another program reads it, with its summary as a note."""
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


def _first(violations: list[dict[str, Any]], limit: int) -> list[dict[str, Any]]:
    """Return the first violations of each rule."""
    seen: dict[str, int] = {}
    kept = []
    for one in violations:
        seen[one["rule"]] = seen.get(one["rule"], 0) + 1
        kept += [one] * (seen[one["rule"]] <= limit)
    return kept


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
    from kbcli.views.reports import github

    _append_to_summary(session, github.markdown(content))
    return github.commands(content)


def _append_to_summary(session: Session, text: str) -> None:
    """Add Markdown to the page of the job, where there is one; a failure is a warning, as the report is there."""
    path = session.env.get(_SUMMARY)
    if not path:
        return
    try:
        with open(os.path.join(session.start, path), "a", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH118, PTH123 - the file is what its name says, whatever bytes that has
            file.write(text)
    except OSError as error:
        session.output.warn(
            escape_controls(f"the summary for {_SUMMARY} cannot be written to {path}: {error.strerror}")
        )
