"""JUnit XML as CI servers read it: one suite a rule, red exactly when the command fails."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped

from kbcli.views.reports import junit
from kbcli.views.reports.report_content import ReportContent
from kbcore.rules import CheckReport, RuleRun, Violation


def read(full_report: ReportContent) -> JUnitXml:
    return JUnitXml.fromstring(junit.text(full_report).encode())


def outcomes(xml: JUnitXml) -> dict[str, list[str]]:
    kinds = {Error: "error", Failure: "failure", Skipped: "skipped"}
    return {suite.name: [kinds[type(case.result[0])] if case.result else "passed" for case in suite] for suite in xml}


def test_each_rule_is_a_suite_and_each_violation_a_case(full_report):
    xml = read(full_report)
    assert outcomes(xml) == {
        "links": ["failure", "failure"],
        "hostile": ["failure"],
        "titles": ["skipped", "skipped"],
        "clean": ["passed"],
        "slow": ["error"],
        "idle": ["skipped"],
        "not-checked": ["skipped", "skipped"],
    }
    assert (xml.tests, xml.failures, xml.errors, xml.skipped) == (10, 3, 1, 5)
    suite = next(iter(xml))
    case = next(iter(suite))
    assert (case.classname, case.name) == ("kb.links", "REQ-1 links to GONE.")
    assert case.result[0].message == "REQ-1 links to GONE."
    assert case.result[0].text == "docs/a b#1.md:12\nREQ-1 links to GONE.\nCreate it."
    names = [case.name for suite in xml for case in suite]
    assert len(set(names)) == len(names)


def test_a_target_that_is_checked_by_what_it_stated_last_is_a_case_that_says_so(full_report):
    xml = read(msgspec.structs.replace(full_report, stated_last=("docs/gone.md",)))
    assert outcomes(xml)["stated-last"] == ["passed"]
    [case] = next(suite for suite in xml if suite.name == "stated-last")
    assert (case.name, case.system_out) == (
        "docs/gone.md",
        "Checked by what it stated last, as no fact comes from it any more.",
    )


@pytest.mark.parametrize(
    ("fail_on", "titles", "links"), [("warning", "failure", "failure"), ("never", "skipped", "skipped")]
)
def test_red_is_what_makes_the_command_fail(full_report, fail_on, titles, links):
    found = outcomes(read(msgspec.structs.replace(full_report, fail_on=fail_on)))
    assert (found["titles"][0], found["links"][0]) == (titles, links)


@given(st.text(st.characters(), max_size=30), st.sampled_from(["ran", "not_run", "off"]))
def test_any_text_makes_a_document_that_can_be_read(text, status):
    one = Violation("rule", "error", text, text, text, text)
    report = CheckReport(False, [one] if status == "ran" else [], [RuleRun("rule", "error", status, text)])
    assert read(ReportContent("main", 1, report)).tests == 1
