"""F10: one call fails, once or from then on. Every error of a write says truthfully whether it was applied."""

from __future__ import annotations

import errno

import pytest

from kbcore.errors import KBError
from tests.fault.test_power import ROOT, broken, prepared
from tests.fault.workloads import WORKLOADS, Acked, Workload
from tests.support.disk.disk import copy_of
from tests.support.disk.faultfs import FailingFs, LoggingFs
from tests.support.effort.scale import SCALE, tries

CODES = (errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EINTR)
WHEN = ("before", "after", "half")


def calls_of(work: Workload) -> int:
    """Return how many calls a workload makes."""
    fs = LoggingFs(prepared(work))
    work.run(fs, ROOT, [])
    return len(fs.calls)


def outcome(work: Workload, fs: FailingFs, acked: Acked) -> KBError | None:
    """Run a workload on a file system that fails, and return the error that it ended with."""
    try:
        work.run(fs, ROOT, acked)
    except KBError as error:
        return error
    return None


FAILING = tuple(work for work in WORKLOADS if SCALE == "soak" or "long" not in work.name)
"""Only a soak tries records of other lengths: the calls are the same."""


@pytest.mark.fault("F10")
@pytest.mark.parametrize("work", FAILING, ids=lambda work: work.name)
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_a_failing_call_is_answered_with_the_truth(work: Workload, lasting: bool, tally) -> None:
    total, ready = calls_of(work), prepared(work)
    for at in range(0, total, tries(7, 1)):
        for code in CODES[:: tries(3, 1)]:
            for when in WHEN[:: tries(2, 1)]:
                base, acked = copy_of(ready), Acked()
                fs = FailingFs(at, code, when=when, lasting=lasting, inner=base)
                point = (work.name, at, errno.errorcode[code], when)
                tally.tried()
                try:
                    error = outcome(work, fs, acked)
                except (OSError, AssertionError) as raw:
                    tally.violated(point, f"{fs.calls[at]}: {type(raw).__name__}: {raw}")
                    continue
                what = synced_again(fs) or broken(base, work, acked, is_refused=bool(error and error.applied == "no"))
                if what:
                    tally.violated(point, f"{fs.calls[at]}, answered {error!r}: {what}")
    tally.done()


def synced_again(fs: FailingFs) -> str:
    """Say whether a descriptor whose sync failed was synced once more."""
    kind, name = fs.calls[fs.at] if fs.at < len(fs.calls) else ("", "")
    if kind != "fsync":
        return ""
    for later, subject in fs.calls[fs.at + 1 :]:
        if (later, subject) in {("close", name), ("open", name)}:
            return ""
        if (later, subject) == ("fsync", name):
            return f"{name} was synced again after its sync failed"
    return ""
