"""A report as JUnit XML, as CI servers read it: a suite for each rule, a case for each violation.

Red is what makes the command fail: a violation below ``--fail-on`` is skipped with its message, and a rule that could
not run is an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final
from xml.etree import ElementTree as ET

from kbcli.views.reports.report_content import ReportContent
from kbcore.checks.targets import LAST_STATED, NOT_CHECKED
from kbcore.rules import RuleRun, Violation
from kbcore.text.escaping import escape_controls

_NAME_CHARS: Final = 200
_NO_XML: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML 1.0 cannot represent, even after escaping."""


def text(content: ReportContent) -> str:
    """Return the report as one XML document."""
    suites = _suites(content)
    suites += [_suite("stated-last", list(map(_stated_last, content.stated_last)))] * bool(content.stated_last)
    suites += [_suite("not-checked", list(map(_not_checked, content.not_checked)))] * bool(content.not_checked)
    return _document(suites)


def text_of_many(contents: Mapping[str, ReportContent]) -> str:
    """Return reports as one XML document, in which the name of a suite begins with that of its report."""
    return _document([suite for name, one in contents.items() for suite in _suites(one, f"{name} ")])


def _suites(content: ReportContent, prefix: str = "") -> list[ET.Element]:
    found: dict[str, list[Violation]] = {run.id: [] for run in content.report.rules}
    for one in content.report.violations:
        found[one.rule].append(one)
    return [_suite(_safe(f"{prefix}{run.id}"), _cases(content, run, found[run.id])) for run in content.report.rules]


def _document(suites: list[ET.Element]) -> str:
    top = ET.Element("testsuites", {"name": "kb check", **_totals(suites)})
    top.extend(suites)
    ET.indent(top)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(top, encoding="unicode")}\n'


def _cases(content: ReportContent, run: RuleRun, violations: list[Violation]) -> list[ET.Element]:
    cases = []
    named: Counter[str] = Counter()
    for one in violations:
        name = _safe(one.sentence)[:_NAME_CHARS]
        named[name] += 1
        cases.append(_case(content, one, name if named[name] == 1 else f"{name} ({named[name]})"))
    return cases or [_whole(run)]


def _suite(name: str, cases: list[ET.Element]) -> ET.Element:
    tags = Counter(outcome.tag for case in cases for outcome in case)
    counts = {"tests": len(cases), "failures": tags["failure"], "errors": tags["error"], "skipped": tags["skipped"]}
    suite = ET.Element("testsuite", {"name": name, **{key: str(number) for key, number in counts.items()}})
    suite.set("time", "0")
    suite.extend(cases)
    return suite


def _totals(suites: list[ET.Element]) -> dict[str, str]:
    names = ("tests", "failures", "errors", "skipped")
    totals = {name: str(sum(int(suite.attrib[name]) for suite in suites)) for name in names}
    return totals | {"time": "0"}


def _case(content: ReportContent, one: Violation, name: str) -> ET.Element:
    case = ET.Element("testcase", {"classname": f"kb.{one.rule}", "name": name, "time": "0"})
    if one.source:
        case.set("file", _safe(one.source))
    if one.line:
        case.set("line", str(one.line))
    said = {"message": _safe(one.message), "type": one.severity}
    outcome = ET.SubElement(case, "failure" if content.counts(one) else "skipped", said)
    place = f"{one.source}:{one.line}" if one.line else one.source
    outcome.text = "\n".join(_safe(part) for part in (place, one.sentence, one.hint) if part)
    return case


def _whole(run: RuleRun) -> ET.Element:
    """Return the one case of a rule without violations: it passed, could not run, did not apply, or is off."""
    case = ET.Element("testcase", {"classname": f"kb.{run.id}", "name": run.id, "time": "0"})
    if run.status == "not_run":
        ET.SubElement(case, "error", {"message": _safe(run.reason), "type": "not_run"}).text = _safe(run.reason)
    elif run.status in {"off", "not_applicable"}:
        ET.SubElement(case, "skipped", {"message": _safe(run.reason)})
    return case


def _stated_last(path: str) -> ET.Element:
    """Return the case of a target that is checked by what it stated last; its violations are cases of their rules."""
    case = _target("stated-last", path)
    ET.SubElement(case, "system-out").text = f"{LAST_STATED}."
    return case


def _not_checked(path: str) -> ET.Element:
    """Return the case of a target from which no fact comes."""
    case = _target("not-checked", path)
    ET.SubElement(case, "skipped", {"message": f"{NOT_CHECKED}."})
    return case


def _target(suite: str, path: str) -> ET.Element:
    return ET.Element("testcase", {"classname": f"kb.{suite}", "name": _safe(path), "file": _safe(path), "time": "0"})


def _safe(text: str) -> str:
    return _NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", escape_controls(text))
