"""F13: the lock of a process that died, was stopped or has forked, and who waits for it."""

from __future__ import annotations

import os
import signal
import statistics
import time
from pathlib import Path

import pytest

from tests.fault.crowded import of_readers, project, readers
from tests.support.crowd.crowd import Crowd
from tests.support.effort.scale import tries
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project

SOON_S = 0.1
"""The usual time from the death of its holder until a lock has a new one; one moment of a busy machine is longer."""


LATE_S = 8.0


__all__ = ["project"]


@pytest.mark.sliced
@pytest.mark.fault("F13")
def test_the_lock_of_a_holder_that_died_is_taken_at_once(crowd: Crowd, tmp_path: Path, tally) -> None:
    path, count = str(tmp_path / "lock"), tries(6, 200)
    waiter = crowd.member("crowd_jobs:taking", path=path)
    waits = []
    for number in range(count):
        how = ("holds", "starts")[number % 2]
        holder = crowd.member("crowd_jobs:holding", path=path, how=how)
        children = holder.heard()["children"]
        waiter.send(wait_s=10)
        waiter.heard()
        time.sleep(0.002 * (number % 10))
        died_s = time.monotonic()
        holder.kill()
        said = waiter.heard()
        waits.append(said.get("taken_s", float("inf")) - died_s)
        tally.tried()
        if not 0 <= waits[-1] <= LATE_S:
            tally.violated((how, number), f"{said}, {waits[-1]:.3f} s after the death")
        for child in children:
            os.kill(child, signal.SIGKILL)
    if statistics.median(waits) > SOON_S:
        tally.violated("all", f"the median is {statistics.median(waits):.3f} s")
    waiter.dismissed()
    tally.done()


@pytest.mark.fault("F13")
def test_a_stopped_holder_is_named_and_never_robbed(crowd: Crowd, tmp_path: Path, tally) -> None:
    path, count, wait_s = str(tmp_path / "lock"), tries(6, 200), 0.02
    waiter = crowd.member("crowd_jobs:taking", path=path)
    holder = None
    for number in range(count):
        if holder is None:
            holder = crowd.member("crowd_jobs:holding", path=path, how="holds")
            holder.heard()
        holder.signal(signal.SIGSTOP)
        waiter.send(wait_s=wait_s)
        waiter.heard()
        said = waiter.heard()
        tally.tried()
        is_named = said.get("pid") == holder.pid and f"held by kb sync (process {holder.pid} on " in said["message"]
        if not is_named or not wait_s <= said["refused_after_s"] <= wait_s + LATE_S:
            tally.violated(number, said)
        if number % 5 == 4:
            # Awake again it still has the lock, and can leave it.
            holder.signal(signal.SIGCONT)
            holder.send(leave=True)
            holder.heard()
            waiter.send(wait_s=10)
            waiter.heard()
            if "taken_s" not in (said := waiter.heard()):
                tally.violated(number, said)
            holder.dismissed()
            holder = None
    waiter.dismissed()
    tally.done()


@pytest.mark.fault("F13")
def test_a_stopped_waiter_blocks_nobody(crowd: Crowd, tmp_path: Path, tally) -> None:
    path = str(tmp_path / "lock")
    waiter = crowd.member("crowd_jobs:taking", path=path)
    for number in range(tries(3, 60)):
        holder = crowd.member("crowd_jobs:holding", path=path, how="holds")
        holder.heard()
        stopped = crowd.member("crowd_jobs:taking", path=path)
        stopped.send(wait_s=30)
        stopped.heard()
        time.sleep(0.05 + 0.002 * (number % 10))
        stopped.signal(signal.SIGSTOP)
        waiter.send(wait_s=10)
        waiter.heard()
        time.sleep(0.1)
        holder.send(leave=True)
        left_s = holder.heard()["left_s"]
        said = waiter.heard()
        tally.tried()
        if not said.get("taken_s", float("inf")) - left_s <= 0.5 + LATE_S:
            tally.violated(number, said)
        stopped.signal(signal.SIGCONT)
        if "taken_s" not in (said := stopped.heard()):
            tally.violated(number, said)
        holder.dismissed()
        stopped.dismissed()
    waiter.dismissed()
    tally.done()


@pytest.mark.fault("F13")
def test_a_forked_child_does_not_keep_the_lock_that_its_parent_has_left(crowd: Crowd, tmp_path: Path, tally) -> None:
    path = str(tmp_path / "lock")
    waiter = crowd.member("crowd_jobs:taking", path=path)
    for number in range(tries(4, 200)):
        holder = crowd.member("crowd_jobs:holding", path=path, how="forks")
        [child] = holder.heard()["children"]
        waiter.send(wait_s=10)
        waiter.heard()
        holder.send(leave=True)
        left_s = holder.heard()["left_s"]
        said = waiter.heard()
        tally.tried()
        if not said.get("taken_s", float("inf")) - left_s <= LATE_S:
            tally.violated(number, said)
        os.kill(child, signal.SIGKILL)
        holder.dismissed()
    waiter.dismissed()
    tally.done()


@pytest.mark.sliced(1)
@pytest.mark.fault("F13")
def test_readers_answer_while_a_writer_is_stopped_with_the_lock(crowd: Crowd, project: Project, tally) -> None:
    path = str(stores_at(project.root) / "main/lock")
    holder = crowd.member("crowd_jobs:holding", path=path, how="holds")
    holder.heard()
    holder.signal(signal.SIGSTOP)
    watching = readers(crowd, project, 2, pause_s=0)
    time.sleep(0.2)
    said = [message for member in watching for message in member.dismissed()]
    for what in of_readers(tally, said):
        tally.violated("stopped", what)
    holder.kill()
    tally.done(at_least=2)
