"""Commands to a GitHub workflow: no stored text ends one, or begins another."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from kbcli.views.reports import github
from kbcli.views.reports.report_content import ReportContent
from kbcore.rules import CheckReport, RuleRun, Violation
from tests.cli.reports.conftest import HOSTILE

COMMAND = re.compile(r"::(error|warning) ((?:[a-z]+=[^:,\r\n]*,?)+)::([^\r\n]*)")


def unescaped(text: str) -> str:
    for code, sign in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, sign)
    return text


def test_each_violation_is_an_annotation_at_its_line(full_report):
    lines = github.commands(full_report).splitlines()
    assert lines[0] == "::error file=docs/a b#1.md,line=12,title=links::REQ-1 links to GONE. Create it."
    assert lines[1] == "::error title=links::REQ-2: links to nothing."
    assert lines[3].startswith("::warning file=docs/a b#1.md,title=titles::")
    assert lines[5].startswith("::error title=slow::The rule slow could not run: too slow")
    assert lines[6] == "::notice file=src/a.py::Not checked, as no fact comes from it: 'src/a.py'."
    assert len(lines) == 8


def test_properties_and_messages_are_escaped_as_github_documents(full_report):
    line = github.commands(full_report).splitlines()[2]
    found = COMMAND.fullmatch(line)
    assert found
    assert "%250A%2C%3A#" in found[2]
    assert "%250A,:#" in found[3]


@given(st.text(max_size=40))
def test_a_violation_is_one_command_whatever_it_says(text):
    one = Violation("rule", "error", text, text, text, text)
    report = CheckReport(False, [one], [RuleRun("rule", "error", "ran")])
    [line] = github.commands(ReportContent("main", 1, report)).split("\n")[:-1]
    assert line.startswith("::error ")
    assert COMMAND.fullmatch(line)


def test_the_summary_shows_text_and_nothing_else(full_report):
    text = github.markdown(full_report)
    assert "| error | links | docs/a b&#35;1.md&#58;12 | REQ&#45;1 links to GONE. Create it. |" in text
    assert "- The rule slow could not run" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert all(line.count("|") == 5 for line in rows)
    assert not re.search(r"<|\]\(|`|@", text.replace("&#64;", ""))
    assert HOSTILE not in text


def test_a_long_summary_is_cut_and_says_so(full_report):
    many = [Violation("rule", "error", f"REQ-{n}", "bad", "", "") for n in range(250)]
    text = github.markdown(ReportContent("main", 1, CheckReport(False, many, [RuleRun("rule", "error", "ran")])))
    assert "50 more are not shown." in text
    assert text.count("\n| error |") == 200
