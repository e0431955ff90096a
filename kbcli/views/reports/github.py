"""A report as commands to a GitHub workflow, which shows them next to the lines of a change, and as a job's summary.

Escaping is as GitHub documents it for workflow commands: stored text ends neither a command nor one of its properties.
"""

from __future__ import annotations

import re
from typing import Final

from kbcli.views.reports.report_content import ReportContent, sentences, summary, target_notes
from kbcore.rules import RuleRun, Violation
from kbcore.text.escaping import escape_controls, in_quotes

_MAX_ROWS: Final = 200
_MARKED: Final = re.compile(r"([\\`*_{}\[\]<>()#+\-!|~@:])")


def commands(content: ReportContent) -> str:
    """Return one workflow command a line: an annotation for each violation, and for each rule that could not run."""
    lines = [_command(one) for one in content.report.violations]
    lines += [_of_rule(run) for run in content.report.rules if run.status == "not_run"]
    lines += [
        f"::notice file={_property(path)}::{words}: {_data(in_quotes(path))}." for path, words in target_notes(content)
    ]
    return "".join(f"{line}\n" for line in lines)


def _of_rule(run: RuleRun) -> str:
    return f"::error title={_property(run.id)}::{_data(f'The rule {run.id} could not run: {run.reason}')}"


def _command(one: Violation) -> str:
    properties = {"file": one.source, "line": str(one.line or ""), "title": one.rule}
    listed = ",".join(f"{name}={_property(value)}" for name, value in properties.items() if value)
    return f"::{one.severity} {listed}::{_data(sentences(one))}"


def _data(text: str) -> str:
    return escape_controls(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def markdown(content: ReportContent) -> str:
    """Return the report as Markdown, for the summary of a job."""
    report = content.report
    rows = [_row(one) for one in report.violations[:_MAX_ROWS]]
    parts = [f"### kb check\n\n{_marked(summary(content))}\n"]
    if rows:
        head = "| | rule | place | what |\n|---|---|---|---|\n"
        parts.append(head + "".join(rows))
    if len(report.violations) > len(rows):
        parts.append(f"{len(report.violations) - len(rows)} more are not shown.\n")
    broken = [run for run in report.rules if run.status == "not_run"]
    parts += ["".join(f"- {_marked(f'The rule {run.id} could not run: {run.reason}')}\n" for run in broken)] * bool(
        broken
    )
    return "\n".join(parts) + "\n"


def _row(one: Violation) -> str:
    place = f"{one.source}:{one.line}" if one.line else one.source
    cells = (one.severity, one.rule, place, sentences(one))
    return f"| {' | '.join(map(_marked, cells))} |\n"


def _marked(text: str) -> str:
    """Return text that Markdown shows as it is: no link, no HTML, no name that is notified."""
    return _MARKED.sub(lambda found: f"&#{ord(found[0])};", escape_controls(text).replace("&", "&amp;"))
