"""A redaction that ends at any call, or in which one fails, leaves each store whole, and can be repeated."""

from __future__ import annotations

import contextlib
import errno
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kbcore.errors import KBError, NotFound
from kbcore.maintenance import redaction
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.proof import verify_branch
from kbcore.maintenance.redaction import RedactAnswer
from kbcore.maintenance.redaction_preview import Wanted
from kbcore.store import branches
from kbcore.store.branches import lost
from kbcore.view import redacted_changes
from kbcore.view.history import state_at
from tests.support.disk.faultfs import Crash, CrashingFs, FailingFs, LoggingFs, NoSyncFs
from tests.support.disk.secrets import files_with
from tests.support.effort.scale import tries
from tests.support.generators.histories import lines_of
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git

SECRET = "hunter2-Pa$$w0rd"
WANTED = Wanted("pattern", SECRET)
BRANCHES = ("main", "other")


def prepared(root: Path) -> Project:
    """Make two branches with a secret before and after they part, a snapshot, and a store in the trash."""
    project = Project(root / "repo")
    project.apply(entities=[{"id": "N1", "type": "req", "title": f"Use {SECRET}", "status": "open"}])
    project.apply(entities=[{"id": "N2", "type": "req", "title": "Plain", "status": "open"}])
    compact(project.workspace(), "main")
    for name in ("other", "gone"):
        git(project.root, "branch", name)
        project.apply(
            branch=name, entities=[{"id": "N3", "type": "req", "title": f"{name} {SECRET}", "status": "open"}]
        )
    git(project.root, "branch", "-D", "gone")
    branches.collect(project.workspace())
    project.apply(entities=[{"id": "N1", "type": "req", "title": "Use it", "status": "open"}])
    project.close()
    project.view()
    project.close()
    shutil.copytree(stores_at(project.root), root / "stores", symlinks=True)
    shutil.copytree(caches_at(project.root), root / "caches")
    return project


def reset(project: Project, saved: Path) -> None:
    project.close()
    for place, name in ((stores_at(project.root), "stores"), (caches_at(project.root), "caches")):
        shutil.rmtree(place)
        shutil.copytree(saved / name, place, symlinks=True)
    notes = project.workspace().place.folder()
    if notes:
        for path in notes.glob("*.json"):
            path.unlink()
    (stores_at(project.root).parent / redaction.BEGUN).unlink(missing_ok=True)


def redact(project: Project) -> RedactAnswer:
    return redaction.redact(project.workspace(), "main", WANTED, AUTHOR)


def facts(project: Project) -> list[list[bytes]]:
    """Return the state of each branch, without what is taken out."""
    found = []
    for branch in BRANCHES:
        view = project.view(branch)
        lines = lines_of(state_at(view, 3))
        found.append([line.replace(SECRET.encode(), b"[redacted]") for line in lines])
    project.close()
    return found


def wrong(project: Project, expected: list[list[bytes]]) -> str:
    """Return what is wrong with the stores as they are, each redacted or not."""
    found = facts(project)
    if found != expected:
        return "the facts are others"
    for branch in BRANCHES:
        proof = verify_branch(project.workspace(), branch)
        if not proof.is_sound:
            return f"{branch}: {proof.findings}"
    if lost.losses(project.workspace()):
        return f"records are said to be lost: {lost.losses(project.workspace())}"
    return ""


def finish(project: Project) -> str:
    """Give the command again; return what is wrong after that."""
    with contextlib.suppress(NotFound):
        redact(project)
    project.apply(entities=[{"id": "N9", "type": "req", "title": "After", "status": "open"}])
    project.close()
    left = files_with(SECRET, stores_at(project.root).parent)
    return f"the secret is left in {left}" if left else ""


# Python closes the files that the end of a process leaves open, and no call works then.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.sliced(1)
@pytest.mark.fault("F2")
@pytest.mark.parametrize("when", ["before", "after", "half"])
def test_a_redaction_that_ends_at_any_call_can_be_repeated(when: str, tmp_path: Path, tally) -> None:
    project = prepared(tmp_path)
    expected = facts(project)
    reset(project, tmp_path)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    redact(project)
    for at in range(0, len(probe.calls), tries(60, 7)):
        project.machine.fs = NoSyncFs()
        reset(project, tmp_path)
        project.machine.fs = dying = CrashingFs(at, when=when, inner=NoSyncFs())
        with pytest.raises(Crash):
            redact(project)
        dying.close_all()
        project.machine.fs = NoSyncFs()
        project.close()
        tally.tried()
        what = wrong(project, expected) or finish(project) or wrong(project, expected)
        if what:
            tally.violated((when, at, probe.calls[at]), what)
    tally.done(at_least=tries(3, 10))


def test_a_redaction_that_ends_after_its_changes_are_noted_is_known_as_begun(tmp_path: Path) -> None:
    project = prepared(tmp_path)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    redact(project)
    at = probe.calls.index(("replace", redacted_changes.NOTED))
    project.machine.fs = NoSyncFs()
    reset(project, tmp_path)
    project.machine.fs = dying = CrashingFs(at, when="after", inner=NoSyncFs())
    with pytest.raises(Crash):
        redact(project)
    dying.close_all()
    project.machine.fs = NoSyncFs()
    project.close()
    assert redacted_changes.noted(project.machine.fs, project.workspace().folders.branches_dir)
    assert files_with(SECRET, stores_at(project.root))
    assert redaction.unfinished(project.workspace()) is not None
    assert finish(project) == ""
    assert redaction.unfinished(project.workspace()) is None


@pytest.mark.sliced(1)
@pytest.mark.fault("F10")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_a_redaction_in_which_a_call_fails_says_what_is_left(code: int, lasting: bool, tmp_path: Path, tally) -> None:
    project = prepared(tmp_path)
    expected = facts(project)
    reset(project, tmp_path)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    redact(project)
    for at in range(0, len(probe.calls), tries(80, 13)):
        project.machine.fs = NoSyncFs()
        reset(project, tmp_path)
        project.machine.fs = failing = FailingFs(at, code, when="half", lasting=lasting, inner=NoSyncFs())
        tally.tried()
        try:
            said = redact(project)
        except KBError:
            said = None
        failing.close_all()
        project.machine.fs = NoSyncFs()
        project.close()
        left = files_with(SECRET, stores_at(project.root))
        what = "it says that nothing is left" if said and said.is_whole and left else ""
        what = what or wrong(project, expected) or finish(project) or wrong(project, expected)
        if what:
            tally.violated((code, lasting, at, probe.calls[at]), what)
    tally.done(at_least=tries(3, 10))


@pytest.mark.fault("F3")
def test_two_redactions_and_a_writer_at_once_leave_one_redaction_and_every_record(tmp_path: Path, tally) -> None:
    project = prepared(tmp_path)
    for _ in range(tries(2, 20)):
        reset(project, tmp_path)
        tally.tried()
        three = [Project(project.root, is_new=False) for _ in range(3)]

        def ask(one: Project) -> bool:
            try:
                return redact(one).is_whole
            except NotFound:
                return False

        def write(one: Project) -> bool:
            for number in range(5):
                one.apply(entities=[{"id": f"W{number}", "type": "req", "title": "W", "status": "open"}])
            return True

        with ThreadPoolExecutor(3) as pool:
            done = [pool.submit(ask, three[0]), pool.submit(ask, three[1]), pool.submit(write, three[2])]
            made = [one.result() for one in done]
        for one in three:
            one.close()
        assert sorted(made) == [False, True, True]
        assert {f"W{number}" for number in range(5)} <= state_at(project.view(), project.seq()).nodes.keys()
        assert verify_branch(project.workspace(), "main").is_sound
        assert lost.losses(project.workspace()) == []
        project.close()
        assert files_with(SECRET, stores_at(project.root).parent) == []
    tally.done()
