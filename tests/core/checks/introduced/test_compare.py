"""Two violations are the same one when rule, id, code, field and values are the same, whatever the message says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcore.checks.introduced.compare import introduced
from kbcore.rules import CheckReport, RuleRun, Violation
from kbcore.rules.accepted import key_of


def violation(message: str, *values: str, line: int = 0) -> Violation:
    return Violation("rule", "error", "REQ-1", message, "", "", field="status", values=values, line=line)


def report(*violations: Violation, not_run: str = "") -> CheckReport:
    runs = [RuleRun("rule", "error", "not_run" if not_run else "ran", not_run)]
    return CheckReport(ok=not violations, violations=list(violations), rules=runs)


def test_another_message_makes_no_other_violation():
    old, new = violation("It has a wrong status.", "x", line=2), violation("Its status is not listed.", "x", line=7)
    found = introduced(report(old), report(new))
    assert (found.report.violations, found.fixed) == ([], ())


def test_other_values_make_another_violation_even_if_the_message_is_the_same():
    old, new = violation("It has a wrong status.", "1"), violation("It has a wrong status.", "2")
    found = introduced(report(old), report(new))
    assert (found.report.violations, found.fixed) == ([new], (old,))


def test_a_second_violation_of_one_key_is_new():
    one, other = violation("Bad.", line=3), violation("Bad.", line=9)
    found = introduced(report(one), report(one, other))
    assert found.report.violations == [other]
    assert not found.report.ok


def test_of_violations_with_one_key_the_one_in_another_line_is_new():
    old, new = violation("Bad.", "x", line=7), violation("Bad.", "x", line=2)
    assert introduced(report(old), report(new, old)).report.violations == [new]
    assert introduced(report(new, old), report(old)).fixed == (new,)


def test_a_violation_of_what_was_renamed_is_the_same_one():
    old, new = violation("It leads to REQ-2.", "REQ-2"), violation("It leads to REQ-9.", "REQ-9")
    assert introduced(report(old), report(new), lambda _: {"REQ-2": "REQ-9"}).report.violations == []


def test_a_rule_that_could_run_neither_before_nor_now_says_why_it_cannot_now():
    found = introduced(report(not_run="too slow"), report(not_run="no such column"))
    assert found.report.rules[0].reason == "no such column"


def test_a_rule_that_could_not_run_before_is_not_run_and_reports_nothing():
    found = introduced(report(not_run="too slow"), report(violation("X.")))
    assert found.report.violations == []
    assert not found.report.ok
    assert found.report.rules[0].reason == "over the state before the change: too slow"


def test_a_rule_that_was_not_run_after_the_change_has_nothing_fixed():
    after = CheckReport(ok=True, violations=[], rules=[RuleRun("rule", "error", "not_applicable", "no edge")])
    assert introduced(report(violation("X.")), after).fixed == ()


reports = st.lists(st.sampled_from("abc").map(lambda value: violation("Bad.", value)), max_size=6)


@given(reports, reports)
def test_what_is_new_and_what_is_corrected_account_for_all_that_differs(old, new):
    found = introduced(report(*old), report(*new))
    assert len(new) - len(found.report.violations) == len(old) - len(found.fixed)
    assert introduced(report(*new), report(*new)).report.violations == []
    assert {*map(key_of, found.report.violations)}.isdisjoint(map(key_of, found.fixed))
