"""D3: a restore brings back every branch of a backup, or leaves what was there."""

from __future__ import annotations

import errno
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbcore.errors import (
    CommitUncertain,
    InvalidQuery,
    KBError,
    StoreWentBack,
)
from kbcore.maintenance import epochs
from kbcore.storage import head, layout
from kbcore.storage.fs import RealFs
from kbcore.store import branches
from kbcore.store.branches import lost
from kbcore.store.branches.stores import repository_lock
from kbcore.store.history.log import log
from tests.fault.backups import backed_up, file, project, restored
from tests.support.disk.damage import entities, is_proven, put, put_back, reset
from tests.support.disk.faultfs import Crash, CrashingFs, FailingFs, LoggingFs, NoSyncFs
from tests.support.effort.scale import tries
from tests.support.repository.project import AUTHOR, Project

__all__ = ["file", "project"]


@pytest.mark.fault("D3")
def test_a_backup_holds_every_branch_and_brings_it_back(project: Project, file: Path, tally) -> None:
    backed_up(project, file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    tally.tried()
    heads = {name: head.read(RealFs(), directory) for name, directory in branches.stores(project.workspace())}
    project.pool.close()
    for _, directory in list(branches.stores(project.workspace())):
        shutil.rmtree(directory)
    done = restored(project, file)
    assert [(one.branch, one.seq) for one in done.branches] == [("main", 5), ("side/one", 6)]
    for name, old in heads.items():
        new = head.read(RealFs(), project.workspace().folders.directory_of(name))
        assert (new.lineage, new.seq) == (old.lineage, old.seq + 1)
        assert new.store_id != old.store_id, "references to records that came later must not find other ones"
        assert new.epoch_of(old.store_id)
        assert is_proven(project, name)
    assert (entities(project), entities(project, "side/one")) == (set("ABCDE"), set("ABCDES"))
    assert "restored from a backup of seq 5" in log(project.view(), limit=1)[0]["repair"]
    tally.done()


@pytest.mark.fault("D3")
def test_a_present_store_is_kept_unless_it_may_be_replaced_and_then_in_the_trash(project, file, tally) -> None:
    backed_up(project, file, "main")
    put(project, "FG")
    before = head.read(RealFs(), project.workspace().folders.directory_of("main"))
    tally.tried()
    with pytest.raises(InvalidQuery, match="main has a store"):
        restored(project, file)
    assert head.read(RealFs(), project.workspace().folders.directory_of("main")) == before
    dry = restored(project, file, dry_run=True)
    assert (dry.branches[0].present_seq, dry.branches[0].is_new_epoch) == (7, True)
    assert head.read(RealFs(), project.workspace().folders.directory_of("main")) == before
    (one,) = restored(project, file, replaces=True).branches
    assert head.read(RealFs(), Path(one.replaced)) == before
    assert entities(project) == set("ABCDE")
    of = head.read(RealFs(), project.workspace().folders.directory_of("main"))
    assert of.epochs[-1].seen == 7
    assert "2 records are lost: 6 to 7" in log(project.view(), limit=1)[0]["repair"]
    branches.restore(project.workspace(), "main")
    project.pool.close()
    assert entities(project) == set("ABCDEFG")
    tally.done()


@pytest.mark.fault("D3")
def test_a_store_that_is_restored_at_its_own_head_keeps_its_id(project, file, tally) -> None:
    backed_up(project, file, "main")
    directory = project.workspace().folders.directory_of("main")
    before = head.read(RealFs(), directory)
    (directory / before.segments[0].file).unlink()
    tally.tried()
    restored(project, file, replaces=True)
    assert head.read(RealFs(), directory) == before
    assert is_proven(project)
    tally.done()


@pytest.mark.sliced(1)
@pytest.mark.fault("D3")
@pytest.mark.parametrize("is_gone", [False, True], ids=["went back", "gone"])
def test_a_backup_that_ends_where_a_store_went_back_to_settles_the_loss(is_gone, project, file, tally) -> None:
    directory = project.workspace().folders.directory_of("main")
    backed_up(project, file, "main")
    older, before = shutil.copytree(directory, file.with_name("older")), head.read(RealFs(), directory)
    put(project, "FG")
    put_back(project, older, directory)
    if is_gone:
        shutil.rmtree(directory)
    tally.tried()
    with pytest.raises(StoreWentBack):
        put(project, "H")
    (dry,) = restored(project, file, dry_run=True, replaces=True).branches
    (one,) = restored(project, file, replaces=True).branches
    assert dry.is_new_epoch, "a dry run says what would be done"
    assert [(row.store_id, row.first, row.last) for row in one.given_up] == [(before.store_id, 6, 7)]
    assert dry.given_up == one.given_up
    of = head.read(RealFs(), directory)
    assert of.store_id != before.store_id, "records 6 and 7 of the old id are other records"
    assert (of.epochs[-1].seq, of.epochs[-1].seen) == (5, 7)
    assert "2 records are lost: 6 to 7. Their changeset ids" in log(project.view(), limit=1)[0]["repair"]
    assert lost.loss_of(Project(project.root, is_new=False).workspace(), "main") is None
    put(project, "H")
    assert entities(project) == set("ABCDEH")
    assert is_proven(project)
    tally.done()


@pytest.mark.sliced
@pytest.mark.fault("D3")
def test_a_backup_from_before_a_new_epoch_ends_the_later_id_too(project, file, tally) -> None:
    directory = project.workspace().folders.directory_of("main")
    backed_up(project, file, "main")
    older = shutil.copytree(directory, file.with_name("older"))
    put(project, "FG")
    put_back(project, older, directory)
    epochs.accept(project.workspace(), "main", AUTHOR)
    put(project, "H")
    later = head.read(RealFs(), directory)
    shutil.rmtree(directory)
    tally.tried()
    restored(project, file)
    of = head.read(RealFs(), directory)
    assert of.epoch_of(later.store_id), "another user's note of the later id is settled as well"
    put(project, "I")
    assert is_proven(project)
    tally.done()


def calls_of_restore(project: Project, file: Path) -> tuple[Path, Path, list[Any]]:
    """Restore a backup over a later store; return the folder of the stores, its copy from before, and the calls."""
    backed_up(project, file, "main")
    put(project, "FG")
    project.pool.close()
    parent = project.workspace().folders.directory_of("main").parent
    saved = file.with_name("saved")
    shutil.copytree(parent, saved)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    restored(project, file, replaces=True)
    return parent, saved, probe.calls


@pytest.mark.sliced(1)
@pytest.mark.fault("D3")
@pytest.mark.parametrize("when", ["before", "after", "half"])
def test_a_restore_that_ends_at_any_call_leaves_the_old_store_or_the_new_one(when, project, file, tally) -> None:
    parent, saved, calls = calls_of_restore(project, file)
    for at in range(0, len(calls), tries(40, 1)):
        reset(project, saved, parent)
        project.machine.fs = dying = CrashingFs(at, when=when, inner=NoSyncFs())
        with pytest.raises(Crash):
            restored(project, file, replaces=True)
        dying.close_all()
        project.machine.fs = NoSyncFs()
        tally.tried()
        project.pool.close()
        with repository_lock(project.workspace()):
            pass  # whoever takes the lock next puts a store back that made room
        found = "".join(sorted(entities(project)))
        if found not in {"ABCDE", "ABCDEFG"} or not is_proven(project):
            tally.violated((when, at, calls[at]), found)
    tally.done(at_least=tries(3, 10))


@pytest.mark.sliced(1)
@pytest.mark.fault("D3")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_restore_in_which_a_call_fails_leaves_the_old_store_or_the_new_one(code, project, file, tally) -> None:
    parent, saved, calls = calls_of_restore(project, file)
    for at in range(0, len(calls), tries(40, 1)):
        reset(project, saved, parent)
        project.machine.fs = failing = FailingFs(at, code, when="half", inner=NoSyncFs())
        tally.tried()
        says_no = False
        try:
            restored(project, file, replaces=True)
        except KBError as error:
            says_no = error.applied == "no"
        failing.close_all()
        project.machine.fs = NoSyncFs()
        project.pool.close()
        with repository_lock(project.workspace()):
            pass  # whoever takes the lock next puts a store back that made room
        found = "".join(sorted(entities(project)))
        if found not in ({"ABCDEFG"} if says_no else {"ABCDE", "ABCDEFG"}) or not is_proven(project):
            tally.violated((code, at, calls[at]), (found, says_no))
    tally.done(at_least=tries(3, 10))


@pytest.mark.sliced
@pytest.mark.fault("D3")
def test_a_store_that_took_its_place_is_said_to_although_the_other_could_not_be_moved(project, file, tally) -> None:
    parent, saved, calls = calls_of_restore(project, file)
    reset(project, saved, parent)
    project.machine.fs = FailingFs(calls.index(("mkdir", ".trash")), errno.EIO, inner=NoSyncFs())
    tally.tried()
    with pytest.raises(CommitUncertain, match="is in place, but the store that was there"):
        restored(project, file, replaces=True)
    project.machine.fs = NoSyncFs()
    project.pool.close()
    with repository_lock(project.workspace()):
        assert (parent / ".trash").is_dir()
    assert entities(project) == set("ABCDE")
    assert is_proven(project)
    tally.done()


@pytest.mark.sliced
@pytest.mark.fault("D3")
def test_two_restores_at_once_leave_one_whole_store(project, file, tally) -> None:
    backed_up(project, file, "main")
    put(project, "F")
    both = [Project(project.root, is_new=False) for _ in range(2)]
    tally.tried()
    threads = [threading.Thread(target=restored, args=(one, file), kwargs={"replaces": True}) for one in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    project.pool.close()
    assert entities(project) == set("ABCDE")
    assert is_proven(project)
    tally.done()


class WritingMeanwhile(NoSyncFs):
    """Has another process write a record while the store from the backup is being built."""

    def __init__(self, write: Callable[[], object]) -> None:
        super().__init__()
        self._write: list[Callable[[], object]] = [write]

    def mkdir(self, path: Path, mode: int = 0o777) -> None:
        super().mkdir(path, mode)
        if path.name.startswith(layout.BUILDING_PREFIX) and self._write:
            self._write.pop()()


@pytest.mark.sliced
@pytest.mark.fault("D3")
def test_a_record_that_is_written_while_a_restore_works_is_known_to_be_gone(project, file, tally) -> None:
    backed_up(project, file, "main")
    before = head.read(RealFs(), project.workspace().folders.directory_of("main"))
    other = Project(project.root, is_new=False)
    project.machine.fs = WritingMeanwhile(lambda: put(other, "H"))
    tally.tried()
    (one,) = restored(project, file, replaces=True).branches
    other.close()
    of = head.read(RealFs(), project.workspace().folders.directory_of("main"))
    assert (one.present_seq, one.is_new_epoch) == (6, True)
    assert of.store_id != before.store_id, "record 6 of the old id is not record 6 of the new one"
    assert of.epochs[-1].seen == 6
    assert is_proven(project)
    tally.done()


@pytest.mark.sliced
@pytest.mark.fault("D3")
def test_a_backup_that_replaces_an_unrelated_store_says_nothing_of_lost_records(project, file, tmp_path, tally) -> None:
    backed_up(project, file, "main")
    other = Project(tmp_path / "other")
    put(other, "QRSTUVWX")
    assert restored(other, file, dry_run=True).branches[0].present_seq == 8
    tally.tried()
    (one,) = restored(other, file, replaces=True).branches
    assert (one.is_same_store, one.is_new_epoch) == (False, True)
    of = head.read(RealFs(), other.workspace().folders.directory_of("main"))
    assert of.epochs[-1].seen == 5
    assert "lost" not in log(other.view(), limit=1)[0]["repair"]
    assert is_proven(other)
    other.close()
    tally.done()
