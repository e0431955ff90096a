"""The slices of the everyday tests: those of all days together are what ``make fault`` runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.effort import scale
from tests.support.effort.scale import DAYS, of_period, of_today, shares, spread, turn
from tests.support.logic.engines import ENGINES

ROOT = Path(__file__).resolve().parents[1]
FILE = "tests/cli/test_points.py"
SLICES = 4
"""Of the cases of its longest test, two of seven are in a slice."""
QUICK_FILE = "tests/core/test_ids.py"
MIXED_FOLDER = "tests/core/storage"
"""Some of its files are slow as a whole."""
ENGINE_FILE = "tests/core/logic/test_texts.py"
ENGINE_SLICES = 12
"""Of its longest test, so many slices have all cases on both Prolog engines."""
LISTING = """
import json, os, sys
import pytest
class Days:
    def pytest_collection_finish(self, session):
        from tests import conftest
        from tests.support.effort import scale
        found = [[item.nodeid for item in session.items]]
        conftest._engines = lambda: conftest.ENGINES
        for is_named in ("", "yes"):
            os.environ[conftest.NAMED] = is_named
            for scale.DAY in range(int(sys.argv[1])):
                found.append([item.nodeid for item in conftest.kept_today(session.items)])
        print("\\n" + json.dumps(found))
pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *sys.argv[2:]], plugins=[Days()])
"""
"""Prints all tests of files, those of each day, and those of each day where the files are named."""


def listed(*words: str, slices: int = SLICES) -> list[set[str]]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KB_FAULT", "PYTEST"))}
    command = [sys.executable, "-c", LISTING, str(DAYS * slices), *words]
    ended = subprocess.run(
        command, cwd=ROOT, env=environment | {"KB_FAULT": "merge"}, capture_output=True, text=True, check=True
    )  # fmt: skip
    [line] = [line for line in ended.stdout.splitlines() if line.startswith("[[")]
    return [{*found} for found in json.loads(line)]


@pytest.fixture(scope="module")
def collected() -> tuple[set[str], list[set[str]], list[set[str]]]:
    """All tests of two files, what the slices of some days have of them, and what they have where these are named."""
    whole, *days = listed(FILE, QUICK_FILE)
    return whole, days[: DAYS * SLICES], days[DAYS * SLICES :]


def test_the_slices_of_all_days_are_all_tests_and_make_fault_runs_what_some_day_leaves_out(collected):
    [of_fault] = re.findall(r"-m '(fault or .*?)'", (ROOT / "Makefile").read_text(encoding="utf-8"))
    whole, days, _ = collected
    assert set.union(*days) == whole
    assert all(day < whole for day in days)
    assert all(set.union(*days[at : at + DAYS]) < whole for at in range(DAYS)), "each period has a slice of its own"
    of_fault_alone, *_ = listed("-m", of_fault, FILE)
    assert whole - set.intersection(*days) == of_fault_alone


def test_make_quick_runs_each_test_that_is_not_slow():
    [quick] = re.findall(r"-m '(not .*?)'", (ROOT / "Makefile").read_text(encoding="utf-8"))
    found, *_ = listed("-m", quick, MIXED_FOLDER, slices=0)
    of_all_files, *_ = listed("-m", f"({quick})", MIXED_FOLDER, slices=0)
    assert found == of_all_files
    assert found


def test_a_file_without_slow_tests_runs_whole_every_day(collected):
    whole, days, _ = collected
    quick = {name for name in whole if name.startswith(QUICK_FILE)}
    assert quick
    assert all(quick <= day for day in days)


@pytest.mark.parametrize(("count", "most"), [(1, 1), (5, 2), (6, 3), (7, 4), (127, 32), (3, 9)])
def test_each_case_is_in_one_share_and_no_share_is_larger_than_asked(count, most):
    found = shares(range(count), most)
    assert all(1 <= len(one) <= most for one in found)
    assert sorted(number for one in found for number in one) == [*range(count)]


def test_each_part_of_a_test_has_its_days_one_after_the_other(monkeypatch):
    found = []
    monkeypatch.setattr(scale, "DAY", 0)
    first = (DAYS - turn("a test", DAYS)) % DAYS
    for day in range(first, first + 3 * DAYS):
        monkeypatch.setattr(scale, "DAY", day)
        found.append(of_period("a test", "abc"))
    assert all(len({*found[at : at + DAYS]}) == 1 for at in range(0, 3 * DAYS, DAYS))
    assert {*found} == {*"abc"}


def test_a_test_is_on_one_engine_a_day_and_each_case_of_a_slice_has_a_day_on_each_engine():
    def on(engine: str, found: set[str]) -> set[tuple[str, str]]:
        cases = (name.partition("[") for name in found)
        return {(test, case.removeprefix(engine)) for test, _, case in cases if case.startswith(engine)}

    _, *days = listed(ENGINE_FILE, slices=ENGINE_SLICES)
    cases = [{engine: on(engine, day) for engine in ENGINES} for day in days[: DAYS * ENGINE_SLICES]]
    native, wasm = (set.union(*(day[engine] for day in cases)) for engine in ENGINES)
    assert native == wasm
    assert native
    for day in cases:
        assert {test for test, _ in day[ENGINES[0]]}.isdisjoint(test for test, _ in day[ENGINES[1]])


@pytest.mark.parametrize("count", [1, DAYS - 1, DAYS, DAYS + 1, 100])
def test_each_case_of_a_test_has_one_day_of_each_period(monkeypatch, count):
    found: list[int] = []
    for day in range(3, 3 + DAYS):
        monkeypatch.setattr(scale, "DAY", day)
        found += of_today("a test", range(count))
    assert sorted(found) == [*range(count)]


@pytest.mark.parametrize(("count", "of_slice"), [(1, 1), (5, 2), (6, 3), (127, 6), (3, 9)])
def test_each_point_of_an_enumeration_is_tried_on_some_day_and_a_day_has_no_more_than_asked(
    monkeypatch, count, of_slice
):
    monkeypatch.setattr(scale, "SCALE", "slice")
    monkeypatch.setattr(scale, "IS_SLICED", True)
    found = set[int]()
    for day in range(DAYS * count):
        monkeypatch.setattr(scale, "DAY", day)
        points = spread(range(count), of_slice)
        assert 1 <= len(points) <= of_slice
        found |= {*points}
    assert found == {*range(count)}
    monkeypatch.setattr(scale, "IS_SLICED", False)
    whole = spread(range(count), of_slice)
    assert (whole[0], whole[-1]) == (0, count - 1 if of_slice > 1 else 0)


def test_each_test_of_a_file_that_is_named_runs_every_day(collected):
    def tests_of(found: set[str]) -> set[str]:
        return {name.partition("[")[0] for name in found}

    whole, _, named_days = collected
    assert all(tests_of(day) == tests_of(whole) for day in named_days)


def test_a_test_has_each_number_in_turn(monkeypatch):
    numbers = []
    for day in range(DAYS):
        monkeypatch.setattr(scale, "DAY", day)
        numbers.append(turn("a test", DAYS))
    assert sorted(numbers) == [*range(DAYS)]
