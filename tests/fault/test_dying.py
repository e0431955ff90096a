"""F2: the process ends before, after or in the middle of each call. What is there then is read and written to."""

from __future__ import annotations

import pytest

from tests.fault.test_power import ROOT, broken, prepared
from tests.fault.workloads import WORKLOADS, Acked, Workload
from tests.support.disk import disk
from tests.support.effort.scale import tries


def lengths(total: int) -> set[int]:
    """Return how many bytes of a write were made: none, one, half, all but one, all, and some in between."""
    steps = tries(0, 100, 1000)
    between = range(0, total, max(1, total // steps)) if steps else ()
    return {0, 1, total // 2, total - 1, total, *between}


@pytest.mark.sliced(4)
@pytest.mark.fault("F2")
@pytest.mark.parametrize("work", WORKLOADS, ids=lambda work: work.name)
def test_the_end_of_the_process_at_any_call_keeps_what_was_acknowledged(work: Workload, tally) -> None:
    fs, acked = prepared(work), Acked()

    def try_all() -> None:
        point = (work.name, len(fs.log))
        states = [(point, disk.copy_of(fs))]
        if fs.coming:
            path, offset, data = fs.coming
            states = [
                ((*point, made), disk.written_in_part(fs, path, offset, data[:made])) for made in lengths(len(data))
            ]
        for at, left in states:
            tally.tried()
            what = broken(left, work, list(acked))
            if what:
                tally.violated(at, what)

    fs.on_change = try_all
    work.run(fs, ROOT, acked)
    try_all()
    tally.done()
