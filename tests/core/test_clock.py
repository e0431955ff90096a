"""Times of records: what a clock that jumps makes of them, and the years that they can have."""

from __future__ import annotations

import contextlib
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import kbcore.clock
from kbcore.clock import Flagged, Moment, SystemClock, flagged, moment_after
from kbcore.errors import ClockUnusable, InvalidQuery
from kbcore.maintenance.doctor import diagnose
from kbcore.model.values import normal_time
from kbcore.store.history.log import RecordFilter, log
from kbcore.store.history.moment import read_at, seq_at
from kbcore.store.history.when import when_of
from tests.support.repository.clocks import SetClock
from tests.support.repository.project import Project

NOON = "2026-11-20T12:00:00.000000Z"


@pytest.mark.parametrize(
    ("wall", "at"),
    [
        ("2026-11-20T12:00:00.000001Z", "2026-11-20T12:00:00.000001Z"),
        (NOON, NOON),
        ("2026-11-20T11:59:59.999999Z", NOON),
        ("2026-11-19T12:00:00.000000Z", NOON),
        ("2026-11-19T11:59:59.999999Z", "2026-11-19T11:59:59.999999Z"),
        ("0001-01-01T00:00:00.000000Z", "0001-01-01T00:00:00.000000Z"),
    ],
)
def test_a_time_goes_back_only_by_more_than_a_day(wall: str, at: str) -> None:
    assert moment_after(NOON, wall) == Moment(at, wall if wall < NOON else "")


def test_a_record_with_a_time_of_its_own_flags_the_earlier_ones_with_later_times() -> None:
    days = [f"2026-11-{day}" for day in (10, 20, 20, 12, 12, 15)]
    walls = ["", "", "2026-11-19", "2026-11-12", "2026-11-11", ""]
    assert flagged(zip(range(1, 7), days, walls, strict=True)) == [
        Flagged(2, "2026-11-20", "", is_ahead=True),
        Flagged(3, "2026-11-20", "2026-11-19", is_ahead=True),
        Flagged(5, "2026-11-12", "2026-11-11", is_ahead=False),
    ]


@pytest.mark.parametrize("text", ["10000-01-01", "0000-12-31", "+12026-01-01", "9999-12-31T23:59:59-01:00"])
def test_a_time_in_a_year_that_no_record_can_have_is_refused_with_the_years(text: str, tmp_path: Path) -> None:
    project = Project(tmp_path / "repo")
    project.sync()
    view = project.view()
    with pytest.raises(InvalidQuery) as refused:
        seq_at(view, text)
    assert "0001 to 9999" in refused.value.hint
    project.close()


def test_the_first_and_the_last_year_are_times() -> None:
    assert normal_time("0001-01-01") == "0001-01-01T00:00:00.000000Z"
    assert normal_time("9999-12-31T23:59:59.999999Z") == "9999-12-31T23:59:59.999999Z"


@pytest.mark.parametrize("error", [OverflowError, ValueError])
def test_a_clock_at_a_year_that_no_record_can_have_is_an_error(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhen(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            raise error("year 10000 is out of range")

    monkeypatch.setattr(kbcore.clock, "datetime", Elsewhen)
    with pytest.raises(ClockUnusable, match="0001 to 9999"):
        SystemClock().now()


def test_a_time_that_no_64_bits_hold_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def beyond() -> int:
        raise OverflowError("timestamp too large to convert to C _PyTime_t")

    monkeypatch.setattr("time.time_ns", beyond)
    for ask in (SystemClock().epoch_ns, kbcore.clock.check):
        with pytest.raises(ClockUnusable, match="1678 to 2261") as refused:
            ask()
        assert (refused.value.exit_status, refused.value.applied) == (26, "no")
        assert "`date`" in refused.value.hint


def test_the_log_shows_a_clock_that_was_late_and_doctor_names_the_records(tmp_path: Path) -> None:
    project, clock = Project(tmp_path / "repo"), SetClock()
    project.machine.clock = clock
    times = ["2026-11-20", "2099-01-01", "2026-11-21", "2026-11-22", "2026-11-21", "2026-11-21"]
    for number, day in enumerate(times):
        clock.time = f"{day}T13:00:00.000000Z"
        project.apply(entities=[{"id": f"R{number}", "type": "req", "title": "t", "status": "open"}])
    listed = {one["seq"]: one for one in log(project.view())}
    assert [listed[seq]["at"][:10] for seq in range(1, 7)] == [*times[:4], "2026-11-22", "2026-11-22"]
    assert {seq: one["clock"][:10] for seq, one in listed.items() if "clock" in one} == {5: times[4], 6: times[5]}
    since = RecordFilter(since=when_of("2026-11-21T13:00:00Z"))
    assert [one["seq"] for one in log(project.view(), since)] == [6, 5, 4, 3, 2]
    found = {one.code: one for one in diagnose(project.workspace()).findings if one.code.startswith("clock_")}
    assert {code: one.severity for code, one in found.items()} == {"clock_ahead": "note", "clock_behind": "note"}
    assert found["clock_ahead"].message.startswith("Record 2 was written while the clock of the machine was ahead")
    assert found["clock_behind"].message.startswith("Records 5 to 6 were written")
    project.close()


def test_an_answer_by_time_says_that_a_clock_was_wrong_there(tmp_path: Path) -> None:
    project, clock = Project(tmp_path / "repo"), SetClock()
    project.machine.clock = clock
    times = ["2026-11-20", "2026-11-21", "2026-11-22", "1915-01-01", "2026-11-24", "2026-11-23"]
    asked = ("2026-11-19", "2026-11-21T13:00:00Z", "2026-11-22T14:00:00Z", "2026-11-24T13:00:00Z", "1920-01-01")
    found: list[dict[str, tuple[int, list[str]]]] = []
    for number, day in enumerate(times, 1):
        clock.time = f"{day}T13:00:00.000000Z"
        project.apply(entities=[{"id": f"R{number}", "type": "req", "title": "t", "status": "open"}])
        answers = dict[str, tuple[int, list[str]]]()
        store = project.workspace().store("main")
        for time in asked:
            notes = list[str]()
            answers[time] = -1, notes  # before the first record
            with contextlib.suppress(InvalidQuery):
                answers[time] = read_at(store, time, lambda _, seq: seq, notes=notes), notes
        found.append(answers)
    before, after, last = found[2], found[3], found[5]
    assert before == {
        "2026-11-19": (-1, []),
        "2026-11-21T13:00:00Z": (2, []),
        "2026-11-22T14:00:00Z": (3, []),
        "2026-11-24T13:00:00Z": (3, []),
        "1920-01-01": (-1, []),
    }
    assert [seq for seq, _ in after.values()] == [4, 4, 4, 4, 4]
    assert all(len(said) == 1 and "A clock was wrong" in said[0] for _, said in after.values())
    assert "seq 4; records 1 to 3, before it, have later times" in after["1920-01-01"][1][0]
    assert "seq 4; record 3, before it, has a later time" in after["2026-11-21T13:00:00Z"][1][0]
    assert "clock of that record was more than a day behind that of an earlier" in after["2026-11-22T14:00:00Z"][1][0]
    assert last["2026-11-22T14:00:00Z"] == after["2026-11-22T14:00:00Z"], "what comes later changes no answer"
    assert last["2026-11-24T13:00:00Z"][0] == 6
    assert "at 2026-11-23T13:00:00.000000Z, behind the time of an earlier" in last["2026-11-24T13:00:00Z"][1][0]
    found_by_doctor = {one.code: one.message for one in diagnose(project.workspace()).findings}
    assert "Records 1 to 3 were written while" in found_by_doctor["clock_ahead"]
    assert "or that of a later record was behind" in found_by_doctor["clock_ahead"]
    project.close()


def test_a_time_that_a_record_has_is_not_yet_to_come_by_a_clock_that_is_late(tmp_path: Path) -> None:
    project, clock = Project(tmp_path / "repo"), SetClock()
    project.machine.clock = clock
    for day in ("2026-11-20", "2026-11-22", "1915-01-01"):
        clock.time = f"{day}T13:00:00.000000Z"
        project.apply(entities=[{"id": f"R{day}", "type": "req", "title": "t", "status": "open"}])
    assert seq_at(project.view(), "2026-11-21", now=clock.time) == 3
    with pytest.raises(InvalidQuery, match="yet to come"):
        seq_at(project.view(), "2026-11-23", now=clock.time)
    project.close()
