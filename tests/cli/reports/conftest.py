from __future__ import annotations

import pytest

from kbcli.views.reports.report_content import ReportContent
from kbcore.rules import CheckReport, RuleRun, Violation

HOSTILE = "a\x00\x1b[31m\u202e<b>&\"']]>|`::error::\r\n\ud800\ufffe %0A,:#"


@pytest.fixture
def full_report() -> ReportContent:
    """A report with errors, warnings, what no file states, hostile text, and rules that did not run."""
    violations = [
        Violation("links", "error", "REQ-1", "REQ-1 links to GONE.", "Create it.", "docs/a b#1.md", line=12),
        Violation("links", "error", "REQ-2", "links to nothing", "", "", names_id=False),
        Violation("hostile", "error", HOSTILE, HOSTILE, HOSTILE, f"docs/{HOSTILE}.md"),
        Violation("titles", "warning", "REQ-1", "REQ-1 has a title like REQ-2.", "", "docs/a b#1.md"),
        Violation("titles", "warning", "REQ-1", "REQ-1 has a title like REQ-2.", "", "docs/a b#1.md"),
    ]
    runs = [
        RuleRun("links", "error", "ran"),
        RuleRun("hostile", "error", "ran"),
        RuleRun("titles", "warning", "ran"),
        RuleRun("clean", "error", "ran"),
        RuleRun("slow", "error", "not_run", f"too slow {HOSTILE}"),
        RuleRun("idle", "warning", "off", "The configuration turns it off."),
    ]
    report = CheckReport(ok=False, violations=violations, rules=runs)
    return ReportContent(
        "main", 7, report, descriptions={"links": "Links lead somewhere."}, not_checked=("src/a.py", f"src/{HOSTILE}")
    )
