"""Reports in TAP: versions 13 and 14, subtests, directives and diagnoses."""

from __future__ import annotations

import io

from kbcore.results.reading import report_of
from kbcore.results.reported import ReportedOutcome

THIRTEEN = """TAP version 13
1..5
ok 1 - the cart is empty
not ok 2 - it has a total
  ---
  message: 'expected 4, got 3'
  severity: fail
  duration_ms: 12.5
  ...
ok 3 - it is slow # SKIP no network
not ok 4 - it is planned # TODO not written
ok 5 it has \\# in its name
"""
FOURTEEN = """TAP version 14
# Subtest: a cart
    # Subtest: with items
        not ok 1 - has a total
          ---
          error: |-
            Expected values to be strictly equal:
            3 !== 4
          ...
        1..1
    not ok 1 - with items
    ok 2 - is empty at first
    1..2
not ok 1 - a cart
ok 2 - alone
1..2
"""


def read(text: str) -> tuple[list[ReportedOutcome], list[str]]:
    report = report_of(io.BytesIO(text.encode()))
    assert report.format == "tap"
    return list(report.outcomes), report.notes


def test_points_have_outcomes_messages_and_durations():
    found, notes = read(THIRTEEN)
    assert [(one.name, one.outcome) for one in found] == [
        ("the cart is empty", "passed"),
        ("it has a total", "failed"),
        ("it is slow", "skipped"),
        ("it is planned", "skipped"),
        ("it has # in its name", "passed"),
    ]
    assert (found[1].message, found[1].duration_s) == ("expected 4, got 3", 0.0125)
    assert found[2].message == "no network"
    assert notes == []


def test_subtests_have_the_names_of_the_tests_around_them_which_are_told_by_them():
    found, notes = read(FOURTEEN)
    assert [(one.scope, one.name, one.outcome) for one in found] == [
        ("a cart with items", "has a total", "failed"),
        ("a cart", "is empty at first", "passed"),
        ("", "alone", "passed"),
    ]
    assert found[0].message == "Expected values to be strictly equal:\n3 !== 4"
    assert notes == []


def test_a_test_that_failed_although_its_subtests_passed_counts_itself():
    found, _ = read("TAP version 14\n    ok 1 - inner\nnot ok 1 - outer\n1..1\n")
    assert [(one.name, one.outcome) for one in found] == [("inner", "passed"), ("outer", "failed")]


def test_a_run_that_was_stopped_or_is_not_as_planned_is_noted():
    _, notes = read("1..3\nok 1 - a\nBail out! no database\n")
    assert notes == ["The run was stopped: no database.", "The plan of the report is 3 tests, and it has 1."]


def test_a_report_that_ends_in_a_diagnosis_has_its_last_test():
    found, _ = read("TAP version 13\nnot ok 1 - a\n  ---\n  message: cut\n")
    assert [(one.name, one.message) for one in found] == [("a", "cut")]
