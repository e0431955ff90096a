"""Pages of what the rules find, and of what changes state differently."""

from __future__ import annotations

from typing import get_args

from kbcore.checks import descriptions
from kbcore.errors import InvalidQuery
from kbcore.rules import Severity
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean
from kbweb.contents import by_rule
from kbweb.server.pages.page import ExportTable, HtmlPage, PageRequest
from kbweb.server.reading import BranchState


def violations(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return what the rules find. Raises: ``InvalidQuery`` for a rule or a severity that does not exist."""
    summary = request.reader.summary(state)
    rule, severity = request.parameters.one("rule"), request.parameters.one("severity")
    for name, value, known in (
        ("rule", rule, [one.id for one in summary.check.rules]),
        ("severity", severity, get_args(Severity)),
    ):
        if value and value not in known:
            raise InvalidQuery(f"There is no {name} {in_quotes(value)}.", hint=did_you_mean(value, known))
    chosen = [
        one
        for one in summary.check.violations
        if (not rule or one.rule == rule) and (not severity or one.severity == severity)
    ]
    rows = chosen[request.offset : request.offset + request.limit]
    values = {
        "overview": summary.overview,
        "violations": by_rule(rows),
        "descriptions": descriptions(state.branch.workspace),
        "total": len(chosen),
        "rules": [one for one in summary.overview.rules if one.violations],
    }
    cells = [(one.rule, one.severity, one.id, one.message, one.hint, one.source, one.line or "") for one in rows]
    names = ("rule", "severity", "id", "message", "hint", "file", "line")
    return HtmlPage("violations", "Violations", values, ExportTable(names, cells))


def conflicts(request: PageRequest, state: BranchState) -> HtmlPage:
    """Return what changes state differently."""
    found = request.reader.summary(state).conflicts
    rows = found[request.offset : request.offset + request.limit]
    cells = [
        (one.name, one.field, value.get("value", ""), ", ".join(c["actor"] for c in value.get("changes", [value])))
        for one in rows
        for value in one.values
    ]
    values = {"conflicts": rows, "total": len(found)}
    return HtmlPage("conflicts", "Conflicts", values, ExportTable(("of", "field", "value", "by"), cells))
