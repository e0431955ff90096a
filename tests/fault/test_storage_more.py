"""F10: whatever call fails, the error is one of KB's own and no descriptor stays open."""

from __future__ import annotations

import errno

import pytest

from kbcore.errors import KBError
from tests.fault.test_power import ROOT, prepared
from tests.fault.workloads import WORKLOADS, Acked, Workload
from tests.support.disk.faultfs import FailingFs, LoggingFs
from tests.support.effort.scale import tries

SLICE = {"commit over a torn tail", "prune", "copy a branch", "rebuild the head"}
"""Those that make every kind of call."""


@pytest.mark.fault("F10")
@pytest.mark.parametrize(
    "work", [work for work in WORKLOADS if work.name in SLICE or tries(0, 1)], ids=lambda work: work.name
)
def test_a_failing_call_leaves_no_descriptor_and_no_raw_error(work: Workload, tally) -> None:
    whole = LoggingFs(prepared(work))
    work.run(whole, ROOT, Acked())
    for at, (kind, name) in enumerate(whole.calls):
        base = prepared(work)
        fs, what = FailingFs(at, errno.EIO, inner=base), ""
        try:
            work.run(fs, ROOT, Acked())
        except KBError:
            pass
        except OSError as raw:
            what = f"{type(raw).__name__}: {raw}"
        tally.tried()
        if what or (base._open and kind != "close"):
            tally.violated((work.name, at), f"{kind} {name} failed: {what or 'a descriptor stays open'}")
    tally.done()
