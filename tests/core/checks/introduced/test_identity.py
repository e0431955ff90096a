"""Two violations are the same one when they differ in numbers that shift, and in nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.checks.introduced.compare import introduced
from kbcore.checks.introduced.identity import fingerprint, identity, numbers_in
from kbcore.rules import CheckReport, RuleRun, Violation


def violation(message: str, *, rule: str = "rule", key: str = "REQ-1") -> Violation:
    return Violation(rule, "error", key, message, "", "")


def report(*violations: Violation, not_run: str = "") -> CheckReport:
    runs = [RuleRun("rule", "error", "not_run" if not_run else "ran", not_run)]
    return CheckReport(ok=not violations, violations=list(violations), rules=runs)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("docs/a.md:12: not valid YAML", "docs/a.md:7: not valid YAML"),
        ("A → B → (14 more) → A.", "A → B → (9 more) → A."),
        ("It has 3 tests, and 4 are needed.", "It has 2 tests, and 4 are needed."),
        ("REQ-1 has changed at seq 12; it was REQ-2.", "REQ-1 has changed; it was REQ-2."),
    ],
)
def test_a_line_or_a_count_that_shifts_makes_no_other_violation(one, other):
    assert identity(violation(one)) == identity(violation(other))
    assert fingerprint(violation(one)) == fingerprint(violation(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("REQ-1 depends_on REQ-7, but there is no REQ-7.", "REQ-1 depends_on REQ-8, but there is no REQ-8."),
        ("docs/v1.2/a.md: gone", "docs/v1.3/a.md: gone"),
        ("REQ 7a", "REQ 8a"),
    ],
)
def test_a_number_within_a_name_makes_another_violation(one, other):
    assert identity(violation(one)) != identity(violation(other))


def test_a_number_that_names_something_is_no_number():
    old, new = violation("X links to 7."), violation("X links to 8.")
    assert numbers_in([old, new]) == {"7", "8"}
    assert introduced(report(old), report(new)).report.violations == []
    found = introduced(report(old), report(new), {"7", "8"})
    assert (found.report.violations, found.mended) == ([new], (old,))


def test_what_says_the_same_twice_is_new_when_it_stood_once():
    one = violation("docs/a.md:3: bad")
    found = introduced(report(one), report(one, violation("docs/a.md:9: bad")))
    assert found.report.violations == [violation("docs/a.md:9: bad")]
    assert not found.report.ok


def test_what_stands_word_for_word_is_old_before_what_differs_in_a_number():
    old, new = violation("docs/a.md:9: bad"), violation("docs/a.md:3: bad")
    assert introduced(report(old), report(new, old)).report.violations == [new]
    assert introduced(report(new, old), report(old)).mended == (new,)


def test_a_rule_that_could_run_neither_before_nor_now_says_why_it_cannot_now():
    found = introduced(report(not_run="too slow"), report(not_run="no such column"))
    assert found.report.rules[0].reason == "no such column"


def test_a_rule_that_could_not_run_before_is_not_run_and_reports_nothing():
    found = introduced(report(not_run="too slow"), report(violation("X.")))
    assert found.report.violations == []
    assert not found.report.ok
    assert found.report.rules[0].reason == "over the state before the change: too slow"


def valued(message: str, *values: str, line: int = 0) -> Violation:
    return Violation("rule", "error", "REQ-1", message, "", "", field="status", values=values, line=line)


def test_other_values_make_another_violation_even_if_the_words_differ_in_a_number_alone():
    old, new = valued('It has the status "1".', "1"), valued('It has the status "2".', "2")
    found = introduced(report(old), report(new))
    assert (found.report.violations, found.mended) == ([new], (old,))
    assert fingerprint(old) != fingerprint(new)


def test_the_same_values_in_other_words_are_the_same_violation():
    old, new = valued("It has a wrong status.", "x", line=2), valued("Its status is not listed.", "x", line=7)
    assert introduced(report(old), report(new)).report.violations == []
    assert fingerprint(old) == fingerprint(new)


def test_of_those_with_the_same_values_the_one_in_another_line_is_new():
    old, new = valued("Bad.", "x", line=7), valued("Bad.", "x", line=2)
    assert introduced(report(old), report(new, old)).report.violations == [new]


messages = st.lists(st.sampled_from(["a", "b 1", "b 2", "c"]).map(violation), max_size=6)


@given(messages, messages)
def test_what_is_new_and_what_is_mended_account_for_all_that_differs(old, new):
    found = introduced(report(*old), report(*new))
    assert len(new) - len(found.report.violations) == len(old) - len(found.mended)
    assert introduced(report(*new), report(*new)).report.violations == []
    assert {identity(one) for one in found.report.violations}.isdisjoint(identity(one) for one in found.mended)
