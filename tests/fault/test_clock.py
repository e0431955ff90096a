"""F14: the clock jumps back and forth. Order and time travel do not depend on it, and a wrong clock is on record."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.clock import SystemClock, flagged
from kbcore.maintenance.repair import rebuild_head
from kbcore.model.record import PutNode, Record
from kbcore.storage import journal, verify
from kbcore.store.history.moment import read_at, seq_at
from kbcore.store.write_request import Author
from kbcore.view import replay
from kbcore.view.history import state_at
from tests.fault.conftest import Tally
from tests.support.effort.scale import SEED, tries
from tests.support.generators.histories import lines_of
from tests.support.repository.project import Project, req
from tests.support.repository.repos import git_env, make_repository
from tests.support.repository.stores import Stored

BEGIN = datetime(2026, 11, 20, 12, tzinfo=UTC)
JUMPS = {
    "a second back": timedelta(seconds=-1),
    "a day back": timedelta(days=-1),
    "ten years back": timedelta(days=-3650),
    "a year forward": timedelta(days=365),
    "a day forward": timedelta(days=1),
}


class JumpingClock(SystemClock):
    """A clock that goes on by a millisecond at each look, and that a test sets."""

    def __init__(self) -> None:
        self.time = BEGIN

    def now(self) -> str:
        self.time += timedelta(milliseconds=1)
        return self.time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def records_of(made: Stored) -> dict[int, Record]:
    head = journal.read_head(made.fs, made.directory)
    return {entry.seq: entry.record for entry in replay.entries(made.fs, made.directory, head)}


def jumps(count: int) -> Iterator[tuple[int, str]]:
    """Yield when the clock jumps and how: once each way, then forward and back at random."""
    drawn = random.Random(SEED)
    for at in sorted(drawn.sample(range(2, count), max(len(JUMPS), count // 12))):
        yield at, drawn.choice(list(JUMPS))


@pytest.mark.sliced(1)
@pytest.mark.fault("F14")
@pytest.mark.parametrize("back", list(JUMPS)[:3])
def test_a_clock_that_goes_back_changes_no_order_and_no_answer_about_the_past(back: str, tmp_path: Path, tally) -> None:
    clock, count = JumpingClock(), tries(50, 350, 1000)
    made = Stored(tmp_path, clock=clock)
    when = {at: jump for at, jump in jumps(count) if at != count // 2} | {count // 2: back}
    walls: dict[int, str] = {}
    asked: dict[str, int] = {}
    for seq in range(1, count + 1):
        clock.time += JUMPS.get(when.get(seq, ""), timedelta())
        tally.tried()
        walls[seq] = clock.time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        made.commit([PutNode(id=f"R{seq % 9}", base=0, set={"type": "req", "title": str(seq)})])
        view = made.view()
        if seq % 7 == 0:
            # No later record gets a time before that of the last record, unless a jump back flags what was asked for.
            time = view.rows("select max(written_at) from record where written_at < ?", [view.basis.at])[0][0]
            if time is not None:  # None after a jump back to before all other records
                asked[time] = seq_at(view, time)
    _check(made, walls, asked, tally)
    made.close()
    tally.done()


DAY = timedelta(days=1)


def _check(made: Stored, walls: dict[int, str], asked: dict[str, int], tally: Any) -> None:
    found = records_of(made)
    last = BEGIN_AT
    for seq, record in found.items():
        behind = read(last) - read(walls[seq])
        if record.at < last and behind < DAY - LATER:
            tally.violated(seq, f"at goes back from {last} to {record.at} by a clock at {walls[seq]}")
        # The clock goes on between two looks, so where it was not behind the time is a little later.
        if behind > LATER and not record.clock:
            tally.violated(seq, f"nothing says that the clock, at {walls[seq]}, was behind {last}")
        if record.clock and not walls[seq] <= record.clock < last:
            tally.violated(seq, f"clock {record.clock!r} by a wall clock of {walls[seq]} after {last}")
        if record.clock and record.at != (record.clock if read(last) - read(record.clock) > DAY else last):
            tally.violated(seq, f"at {record.at} and clock {record.clock} after {last}")
        last = record.at
    _check_times(made, found, tally)
    store = made.reopen()
    resets = [(seq, one.at) for seq, one in found.items() if one.clock == one.at]
    for time, seq in asked.items():
        if any(later > seq and at <= time for later, at in resets):
            continue  # whoever asks now passes over a time that was flagged since
        tally.tried()
        then, now = read_at(store, time, lambda view, at: (at, lines_of(state_at(view, at)))), made.view()
        if then != (seq, lines_of(state_at(now, seq))):
            tally.violated(time, f"once seq {seq}, now {then[0]}")
    if list(found) != list(walls) or not verify.prove(made.fs, made.directory).is_sound:
        tally.violated("the end", "the journal is not sound")


BEGIN_AT = (BEGIN + timedelta(milliseconds=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
"""The first time of the clock, for the store itself."""

LATER = timedelta(seconds=1)
"""The most that a clock goes on within one commit."""


def read(time: str) -> datetime:
    return datetime.fromisoformat(time)


def _check_times(made: Stored, found: dict[int, Record], tally: Any) -> None:
    """Ask for the time of each record that no later one flags: it is that record, or the last one at the same time."""
    view, resets = made.view(), [(seq, one.at) for seq, one in found.items() if one.clock == one.at]
    ahead = {seq for seq, one in found.items() if any(seq < later and one.at > at for later, at in resets)}
    reported = {one.seq for one in flagged((seq, one.at, one.clock) for seq, one in found.items()) if one.is_ahead}
    if reported != ahead:
        tally.violated("the flags", reported ^ ahead)
    last = dict[str, int]()
    for seq, one in found.items():
        if seq not in ahead:
            last[one.at] = seq
    if list(last) != sorted(last):
        tally.violated("the order", "times that nobody flags go back")
    for time, seq in last.items():
        tally.tried()
        if seq_at(view, time) != seq:
            tally.violated(time, f"it is the time of {seq}, and means {seq_at(view, time)}")


@pytest.mark.fault("F14")
def test_one_commit_in_2099_moves_no_later_time_there(tmp_path: Path, tally) -> None:
    clock = JumpingClock()
    made = Stored(tmp_path, clock=clock)
    made.put("A")
    clock.time = datetime(2099, 1, 1, tzinfo=UTC)
    made.put("B")
    clock.time = BEGIN + timedelta(hours=1)
    made.put("C")
    found = records_of(made)
    tally.tried(3)
    years = [one.at[:4] for one in found.values()]
    if years != ["2026", "2099", "2026"]:
        tally.violated("the years", years)
    if (found[3].clock, found[2].clock) != (found[3].at, ""):
        tally.violated("the flags", [found[2].clock, found[3].clock])
    if [seq_at(made.view(), time) for time in (found[1].at, "2026-12-01", "2098-12-31")] != [1, 3, 3]:
        tally.violated("--at", "the record in 2099 was counted with")
    made.close()
    tally.done()


@pytest.mark.sliced
@pytest.mark.fault("F14")
@given(st.lists(st.integers(-90, 90) | st.integers(-90_000, 90_000), min_size=1, max_size=12))
def test_after_any_jumps_each_time_that_nobody_flags_means_its_record(
    tmp_path_factory: pytest.TempPathFactory, minutes: list[int]
) -> None:
    clock, tally = JumpingClock(), Tally("F14")
    made = Stored(tmp_path_factory.mktemp("jumps"), clock=clock)
    asked: dict[str, int] = {}
    walls: dict[int, str] = {}
    for seq, jump in enumerate(minutes, 1):
        clock.time += timedelta(minutes=jump)
        walls[seq] = clock.time.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        made.put(f"R{seq}")
        view = made.view()
        first = view.rows("select min(written_at) from record")[0][0]
        asked |= {time: seq_at(view, time) for time in (walls[seq], view.basis.at) if first <= time < walls[seq]}
    _check(made, walls, asked, tally)
    made.close()
    tally.done()


@pytest.mark.fault("F14")
def test_the_record_of_a_repair_says_so_too_when_the_clock_was_late(tmp_path: Path, tally) -> None:
    project, clock = Project(tmp_path / "repo"), JumpingClock()
    project.machine.clock = clock
    project.sync({"docs/requirements/a.md": req("REQ-1")})
    directory = project.workspace().folders.directory_of("main")
    before = journal.read_head(project.machine.fs, directory).head.at
    (directory / "head.json").unlink()
    clock.time -= timedelta(days=3650)
    repaired = rebuild_head(project.workspace(), "main", Author("tester", "cli", "kb/test"))
    tally.tried()
    store = project.workspace().store("main")
    noted = store.read(lambda view: store.record_at(view, repaired.seq))
    if noted is None or noted.at >= before or not noted.clock.startswith("2016") or noted.at != noted.clock:
        tally.violated("the repair", noted)
    project.close()
    tally.done()


BEYOND = """
import sys, time
def beyond(*_):
    raise OverflowError("timestamp too large to convert to C _PyTime_t")
time.time = time.time_ns = beyond  # as in the year 2263; logging, for one, asks when it is imported
program, *words = sys.argv[1:]
if program == "kb":
    from kbcli.app import main
else:
    from kbmcp.server import main
sys.exit(main(words))
"""
PROGRAMS = ["kb status", "kb query --json", "kb log", "kb init", "kb doctor", "kb mcp", "kb-mcp"]


@pytest.mark.sliced(2)
@pytest.mark.fault("F14")
@pytest.mark.parametrize("words", PROGRAMS)
def test_a_clock_that_python_cannot_tell_ends_every_program_with_the_remedy(words: str, tmp_path: Path, tally) -> None:
    root = make_repository(tmp_path / "repo")
    tally.tried()
    ran = subprocess.run(
        [sys.executable, "-c", BEYOND, *words.split()],
        cwd=root,
        env=git_env(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 26, ran
    said = ran.stdout + ran.stderr
    assert "1678 to 2261" in said
    assert "`date`" in said
    if "--json" in words:
        assert json.loads(ran.stdout)["error"]["code"] == "clock_unusable"
    assert not (root / ".git" / "kb").exists()
    tally.done()
