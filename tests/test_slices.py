"""The slices of the everyday tests: those of all days together are what ``make fault`` runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.effort import scale
from tests.support.effort.scale import DAYS, share, turn

ROOT = Path(__file__).resolve().parents[1]
FILE = "tests/cli/test_points.py"


def collected(*options: str, **variables: str) -> set[str]:
    """Return the tests of a file that a run has."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KB_FAULT", "PYTEST"))}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *options, FILE]
    variables = {"KB_TEST_NAMED": "", **variables}
    ended = subprocess.run(
        command, cwd=ROOT, env=environment | variables, capture_output=True, text=True, check=True
    )  # fmt: skip
    return {line for line in ended.stdout.splitlines() if line.startswith(FILE)}


def test_the_slices_of_all_days_are_all_tests_and_make_fault_runs_what_some_day_leaves_out():
    days = [collected(KB_FAULT="slice", KB_TEST_DAY=str(day)) for day in range(DAYS)]
    whole = collected(KB_FAULT="merge")
    assert set.union(*days) == whole
    assert all(day < whole for day in days)
    every_day = set.intersection(*days)
    assert every_day, "a test without a mark runs every day"
    [of_fault] = re.findall(r"-m '(fault or .*?)'", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert whole - every_day <= collected("-m", of_fault, KB_FAULT="merge")


@pytest.mark.parametrize(("count", "most"), [(1, 1), (5, 2), (6, 3), (7, 4), (127, 32), (3, 9)])
def test_each_case_is_in_the_share_of_one_of_some_days_and_no_share_is_larger_than_asked(monkeypatch, count, most):
    found: list[int] = []
    for day in range(-(-count // most)):
        monkeypatch.setattr(scale, "DAY", day)
        today = share("a test", range(count), most)
        assert len(today) <= most
        found += today
    assert sorted(found) == [*range(count)]


def test_each_test_of_a_file_that_is_named_runs_every_day():
    def tests_of(found: set[str]) -> set[str]:
        return {name.partition("[")[0] for name in found}

    whole = tests_of(collected(KB_FAULT="merge"))
    for day in range(DAYS):
        assert tests_of(collected(KB_FAULT="slice", KB_TEST_DAY=str(day), KB_TEST_NAMED="yes")) == whole


def test_a_test_has_each_number_in_turn(monkeypatch):
    numbers = []
    for day in range(DAYS):
        monkeypatch.setattr(scale, "DAY", day)
        numbers.append(turn("a test", DAYS))
    assert sorted(numbers) == [*range(DAYS)]
