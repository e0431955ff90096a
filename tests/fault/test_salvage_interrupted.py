"""D2: a salvage that ends at any call, or in which one fails, can be repeated."""

from __future__ import annotations

import errno
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbcore.errors import (
    KBError,
)
from kbcore.maintenance.salvage import salvage
from kbcore.storage import layout
from tests.fault.salvaging import lose_an_end, salvaged
from tests.support.disk.damage import (
    FIRST,
    entities,
    filled,
    flip,
    forget,
    is_proven,
    reset,
)
from tests.support.disk.faultfs import Crash, CrashingFs, FailingFs, LoggingFs, NoSyncFs
from tests.support.effort.scale import tries
from tests.support.repository.project import AUTHOR, Project


def prepared(root: Path) -> tuple[Project, Path, Path]:
    """Return a damaged store, its directory, and a copy of that."""
    project = Project(root / "repo")
    directory = filled(project, "ABCDEFG", seal_after="E")
    flip(directory / FIRST, b"Title of C")
    flip(directory / "journal-0000000006.jsonl", b"Title of G")
    forget(project)
    shutil.copytree(directory, root / "saved")
    return project, directory, root / "saved"


@pytest.mark.sliced(1)
@pytest.mark.fault("D2")
@pytest.mark.parametrize("when", ["before", "after", "half"])
def test_a_salvage_that_ends_at_any_call_can_be_repeated(when: str, tmp_path: Path, tally) -> None:
    project, directory, saved = prepared(tmp_path)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    salvaged(project)
    for at in range(0, len(probe.calls), tries(25, 1)):
        reset(project, saved, directory)
        project.machine.fs = dying = CrashingFs(at, when=when, inner=NoSyncFs())
        with pytest.raises(Crash):
            salvaged(project)
        dying.close_all()
        project.machine.fs = NoSyncFs()
        tally.tried()
        salvaged(project)
        forget(project)
        if entities(project) != set("ABCDEF") or not is_proven(project):
            tally.violated((when, at, probe.calls[at]), entities(project))
    tally.done(at_least=tries(3, 10))


@pytest.mark.sliced
@pytest.mark.fault("D2")
def test_an_accepted_salvage_that_ends_at_any_call_can_be_repeated(tmp_path: Path, tally) -> None:
    project, directory, saved = prepared(tmp_path)
    lose_an_end(project.root)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
    for at in range(0, len(probe.calls), tries(25, 1)):
        reset(project, saved, directory)
        lose_an_end(project.root)
        project.machine.fs = dying = CrashingFs(at, when="half", inner=NoSyncFs())
        with pytest.raises(Crash):
            salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
        dying.close_all()
        project.machine.fs = NoSyncFs()
        tally.tried()
        salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
        forget(project)
        is_settled = project.workspace().loss_of("main") is None
        if entities(project) != set("ABDEF") | {"C"} or not is_proven(project) or not is_settled:
            tally.violated((at, probe.calls[at]), entities(project))
    tally.done(at_least=tries(3, 10))


@pytest.mark.sliced(1)
@pytest.mark.fault("D2")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_salvage_in_which_a_call_fails_says_truly_whether_it_counts(code: int, tmp_path: Path, tally) -> None:
    project, directory, saved = prepared(tmp_path)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    salvaged(project)
    for at in range(0, len(probe.calls), tries(25, 1)):
        reset(project, saved, directory)
        before = (directory / layout.HEAD).read_bytes()
        project.machine.fs = failing = FailingFs(at, code, when="half", lasting=True, inner=NoSyncFs())
        tally.tried()
        try:
            salvaged(project)
        except KBError as error:
            is_old = (directory / layout.HEAD).read_bytes() == before
            if error.applied == "no" and not is_old:
                tally.violated((at, probe.calls[at]), f"{error.code} says that nothing was applied")
        failing.close_all()
        project.machine.fs = NoSyncFs()
        salvaged(project)
        forget(project)
        if entities(project) != set("ABCDEF") or not is_proven(project):
            tally.violated((code, at, probe.calls[at]), entities(project))
    tally.done(at_least=tries(3, 10))


@pytest.mark.fault("D2")
def test_two_salvages_at_once_leave_one(tmp_path: Path, tally) -> None:
    project, directory, saved = prepared(tmp_path)
    for _ in range(tries(2, 10)):
        reset(project, saved, directory)
        tally.tried()
        both = [Project(project.root, is_new=False) for _ in range(2)]
        with ThreadPoolExecutor(2) as pool:
            made = list(pool.map(salvaged, both))
        assert sorted(bool(one[0].copy) for one in made) == [False, True]
        forget(project)
        assert entities(project) == set("ABCDEF")
        assert is_proven(project)
    tally.done()
