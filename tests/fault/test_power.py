"""F4: the power goes at any moment. Every state that the disk may be in is read, written to and proven.

F4m: each sync is left out in turn, and some state of the disk then breaks a promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kbcore.errors import KBError
from tests.fault.workloads import CONTROLLED, SOAKED, WORKLOADS, Acked, Workload, check
from tests.support.disk import disk
from tests.support.disk.disk import MemoryDisk
from tests.support.effort.scale import SCALE, SEED, tries

ROOT = Path("/store")
BROKEN = (KBError, AssertionError, OSError, ValueError, KeyError)
"""Signs of a broken promise: the store refuses, or ``check`` finds that something is not as it must be."""

LeftOut = Callable[[MemoryDisk], bool]


def nothing(fs: MemoryDisk) -> bool:
    """Leave no sync out."""
    return False


class Sync:
    """Leaves out the sync of a number, counted from 0."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.seen = 0
        self.at = 0

    def __call__(self, fs: MemoryDisk) -> bool:
        """Say whether the sync that is being made is the one."""
        self.seen += 1
        if self.seen != self.number + 1:
            return False
        self.at = len(fs.log)
        return True


def prepared(work: Workload) -> MemoryDisk:
    fs = MemoryDisk()
    fs.mkdir(ROOT)
    fs.fsync_dir(Path("/"))
    work.prepare(fs, ROOT)
    fs.log.clear()
    return fs


def moments(work: Workload, is_left_out: LeftOut = nothing) -> Iterator[tuple[int, MemoryDisk, Acked]]:
    """Return the disk before each call that changes or syncs something, and after the last, with what was acked."""
    fs, found, acked = prepared(work), list[tuple[int, MemoryDisk, Acked]](), Acked()
    fs.is_left_out = is_left_out
    fs.on_change = lambda: found.append((len(fs.log), disk.copy_of(fs), list(acked)))
    work.run(fs, ROOT, acked)
    fs.on_change()
    return iter(found)


def broken(fs: MemoryDisk, work: Workload, acked: Acked, *, is_refused: bool = False) -> str:
    """Return how a disk breaks the promise, or the empty text."""
    try:
        check(work, fs, ROOT, acked, is_refused=is_refused)
    except BROKEN as error:
        return f"{type(error).__name__}: {error}"
    return ""


@pytest.mark.sliced(4)
@pytest.mark.fault("F4")
@pytest.mark.parametrize("work", SOAKED if SCALE == "soak" else WORKLOADS, ids=lambda work: work.name)
def test_a_loss_of_power_at_any_moment_keeps_what_was_acknowledged(work: Workload, tally) -> None:
    seen: set[int] = set()
    for at, fs, acked in moments(work):
        for loss, left in disk.losses(fs, tries(40, 32_768, 400_000), SEED + at):
            key = hash((disk.content(left), tuple(acked)))
            if key in seen:
                continue
            seen.add(key)
            tally.tried()
            what = broken(left, work, acked)
            if what:
                tally.violated((work.name, at, loss), what)
    tally.done()


def syncs(work: Workload) -> int:
    """Return how many syncs a workload makes."""
    fs = prepared(work)
    work.run(fs, ROOT, [])
    return sum(kind.startswith("fsync") for kind, _ in fs.log)


CONTROLS = [
    pytest.param(work, number, id=f"{work.name}-{number}") for work in CONTROLLED for number in range(syncs(work))
]


@pytest.mark.sliced(20)
@pytest.mark.fault("F4m")
@pytest.mark.parametrize(("work", "number"), CONTROLS)
def test_no_sync_can_be_left_out(work: Workload, number: int, tally) -> None:
    out, seen = Sync(number), set[int]()
    for at, fs, acked in moments(work, out):
        if at < out.at:
            continue
        for _, left in disk.losses(fs, 200, SEED + at):
            key = hash((disk.content(left), tuple(acked)))
            if key in seen:
                continue
            seen.add(key)
            tally.tried()
            if broken(left, work, acked):
                tally.done()
                return
    pytest.fail(f"{work.name}: no state of the disk shows that sync {number} is left out")
