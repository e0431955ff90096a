"""F14: the clock jumps back and forth. Order and time travel do not depend on it, and a wrong clock is on record."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kbcore import replay
from kbcore.clock import SystemClock
from kbcore.history.moment import read_at, seq_at
from kbcore.record import PutNode, Record
from kbcore.storage import journal, verify
from kbcore.store import Author
from kbcore.upkeep.repair import rebuild_head
from kbcore.view.past import state_at
from tests.support.histories import lines_of
from tests.support.project import Project, req
from tests.support.scale import SEED, tries
from tests.support.stores import Stored

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
        if seq % 7 == 0 and view.rows("select count(distinct written_at) from record")[0][0] > 1:
            # What lies before the time of the last record can be added to no more.
            time = view.rows("select max(written_at) from record where written_at < ?", [view.basis.at])[0][0]
            asked[time] = seq_at(view, time)
    _check(made, walls, asked, tally)
    made.close()
    tally.done()


def _check(made: Stored, walls: dict[int, str], asked: dict[str, int], tally: Any) -> None:
    found = records_of(made)
    last = ""
    for seq, record in found.items():
        if record.at < last:
            tally.violated(seq, f"at goes back from {last} to {record.at}")
        is_behind = walls[seq] < last
        # The clock goes on between two looks, so where it was not behind the time is a little later.
        if bool(record.clock) != is_behind or (is_behind and (record.at, record.clock < last) != (last, True)):
            tally.violated(seq, f"clock {record.clock!r} and at {record.at} by a wall clock of {walls[seq]}")
        last = record.at
    store = made.reopen()
    for time, seq in asked.items():
        tally.tried()
        then, now = read_at(store, time, lambda view, at: (at, lines_of(state_at(view, at)))), made.view()
        if then != (seq, lines_of(state_at(now, seq))):
            tally.violated(time, f"once seq {seq}, now {then[0]}")
    if list(found) != list(walls) or not verify.prove(made.fs, made.directory).is_sound:
        tally.violated("the end", "the journal is not sound")


@pytest.mark.fault("F14")
def test_the_record_of_a_repair_says_so_too_when_the_clock_was_behind(tmp_path: Path, tally) -> None:
    project, clock = Project(tmp_path / "repo"), JumpingClock()
    project.machine.clock = clock
    project.sync({"docs/requirements/a.md": req("REQ-1")})
    directory = project.workspace().directory_of("main")
    before = journal.read_head(project.machine.fs, directory).head.at
    (directory / "head.json").unlink()
    clock.time -= timedelta(days=3650)
    repaired = rebuild_head(project.workspace(), "main", Author("tester", "cli", "kb/test"))
    tally.tried()
    store = project.workspace().store("main")
    noted = store.read(lambda view: store.record_at(view, repaired.seq))
    if noted is None or noted.at != before or not noted.clock.startswith("2016"):
        tally.violated("the repair", noted)
    project.close()
    tally.done()
