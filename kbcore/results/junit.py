"""Reports in JUnit XML, as pytest, Jest, Maven Surefire, Gradle and converters for Go write them.

There is no single standard. What is read is what they have in common: ``testcase`` with ``name``, ``classname``,
``file`` and ``time``; in it ``failure``, ``error`` or ``skipped``, and ``property``. Of a test that a runner repeated,
the outcome is the last one: ``flakyFailure`` and ``rerunFailure`` are of earlier runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from kbcore.model.verdict import Outcome
from kbcore.results.reported import ReportedOutcome, duration_in, first_paragraph, time_in
from kbcore.results.xml_stream import Element

ROOTS: Final = frozenset({"testsuites", "testsuite"})
WITH_TEXT: Final = frozenset({"failure", "error", "skipped", "property"})
ID_PROPERTIES: Final = frozenset({"kb", "kb_id", "test_id", "test_key"})
"""The names of properties whose value is the id of the test, or several."""
REQUIREMENT_PROPERTIES: Final = frozenset({"requirement", "requirements", "verifies"})
"""The names of properties whose value is the id of a requirement that the test verifies, or several."""
_OUTCOMES: Final[dict[str, Outcome]] = {"error": "error", "failure": "failed", "skipped": "skipped"}
_NOT_RUN: Final = frozenset({"notrun", "skipped", "disabled", "suppressed"})
_SAYS_NOTHING: Final = frozenset({"", "failed", "failure", "error"})
_BETWEEN_IDS: Final = re.compile(r"[,\s]+")


def outcomes(found: Iterable[Element]) -> Iterator[ReportedOutcome]:
    """Yield the outcome of each test case, in their order. Raises: what reading the elements raises."""
    suites: list[dict[str, str]] = []
    case: _Case | None = None
    for one in found:
        if one.tag in ROOTS:
            if one.is_end:
                suites.pop()
            else:
                suites.append({**(suites[-1] if suites else {}), **one.attributes})
        elif one.tag == "testcase":
            if one.is_end and case:
                yield case.outcome(suites[-1] if suites else {})
            case = None if one.is_end else _Case(one)
        elif case:
            case.add(one)


class _Case:
    """One test case while its elements are read."""

    def __init__(self, begin: Element) -> None:
        self._attributes = begin.attributes
        self._line = begin.line
        self._inner: list[dict[str, str]] = []
        self._messages: dict[Outcome, str] = {}
        self._ids: list[str] = []
        self._requirements: list[str] = []

    def add(self, one: Element) -> None:
        """Take in an element of the case; what is in another one of it has no outcome."""
        if not one.is_end:
            self._inner.append(one.attributes)
            return
        attributes = self._inner.pop()
        outcome = _OUTCOMES.get(one.tag)
        if outcome and not self._inner:
            said = attributes.get("message", "")
            is_empty = said.strip().lower() in _SAYS_NOTHING
            self._messages.setdefault(outcome, (first_paragraph(one.text) or said) if is_empty else said)
        elif one.tag == "property":
            name = attributes.get("name", "").strip().lower()
            said_ids = [part for part in _BETWEEN_IDS.split(attributes.get("value", one.text)) if part]
            if name in ID_PROPERTIES:
                self._ids += said_ids
            elif name in REQUIREMENT_PROPERTIES:
                self._requirements += said_ids

    def outcome(self, suite: dict[str, str]) -> ReportedOutcome:
        """Return what the report says of the case, in this suite."""
        mine = self._attributes
        found: Outcome = next((one for one in _OUTCOMES.values() if one in self._messages), "passed")
        if not self._messages and {mine.get("status", "").lower(), mine.get("result", "").lower()} & _NOT_RUN:
            found = "skipped"
        return ReportedOutcome(
            name=mine.get("name", ""),
            outcome=found,
            scope=mine.get("classname") or suite.get("name", ""),
            file=mine.get("file") or suite.get("file", ""),
            duration_s=duration_in(mine.get("time", "")),
            message=self._messages.get(found, ""),
            at=time_in(mine.get("timestamp") or suite.get("timestamp", "")),
            ids=tuple(dict.fromkeys(self._ids)),
            requirements=tuple(dict.fromkeys(self._requirements)),
            line=self._line,
        )
