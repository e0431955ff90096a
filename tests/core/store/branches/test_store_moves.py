"""A store that makes room for another is lost to nobody, wherever the process ends."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kbcli.invocation.read_only import ReadOnlyFs
from kbcore.errors import KBError, StorageFull
from kbcore.storage import branchdir, journal
from kbcore.store import branches
from kbcore.store.branches import store_moves
from tests.core.store.branches.making import req
from tests.support.disk.faultfs import Crash, CrashingFs, FailingFs, LoggingFs, NoSyncFs
from tests.support.effort.scale import spread
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import git

NO_SYNC = NoSyncFs()
CHANGING = {"replace", "mkdir", "rmdir", "fsync_dir"}


def replace(project: Project) -> object:
    return branches.copy_from(project.workspace(), "topic", "main", replaces=True)


def restore(project: Project) -> object:
    return branches.restore(project.workspace(), "topic")


def collect(project: Project) -> object:
    return branches.collect(project.workspace())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a project on branch topic, whose store has facts of its own, as have one in the trash and that of gone."""
    project = Project(tmp_path_factory.mktemp("made") / "project")
    project.apply(entities=[req("A")])
    project.switch("topic", create=True)
    project.apply(entities=[req("TRASHED")])
    replace(project)
    project.apply(entities=[req("MINE"), req("MORE")])
    git(project.root, "branch", "gone")
    project.apply(branch="gone", entities=[req("GONE")])
    git(project.root, "branch", "-D", "gone")
    project.close()
    return project.root


@pytest.fixture
def topic(made: Path, tmp_path: Path) -> Iterator[Project]:
    """Give a test a copy of that project."""
    project = Project(shutil.copytree(made, tmp_path / "project"), is_new=False)
    yield project
    project.close()


def tips(project: Project) -> tuple[dict[str, str], set[str]]:
    """Return the last record of each branch's store, and of every store that there is, in use or not."""
    fs, workspace = NO_SYNC, project.workspace()
    found = {name: journal.read_head(fs, directory).hash for name, directory in branches.stores(workspace)}
    trash = stores_at(project.root) / branches.TRASH
    return found, {*found.values(), *(journal.read_head(fs, path).hash for path in trash.iterdir())}


def interrupted(
    topic: Project, act: Callable[[Project], object], fail: Callable[[int], LoggingFs]
) -> Iterator[Project]:
    """Yield a copy of the project once for each change of names by an act, which the process or the act ended with."""
    stores = stores_at(topic.root)
    kept = shutil.copytree(stores, topic.root.parent / "kept")
    probe = LoggingFs(NO_SYNC)
    act(Project(topic.root, fs=probe, is_new=False))
    for at in spread([at for at, (kind, _) in enumerate(probe.calls) if kind in CHANGING], 12):
        shutil.rmtree(stores)
        shutil.copytree(kept, stores)
        fs = fail(at)
        with contextlib.suppress(Crash, KBError):
            act(Project(topic.root, fs=fs, is_new=False))
        fs.close_all()
        yield Project(topic.root, is_new=False)


@pytest.mark.sliced
@pytest.mark.parametrize("act", [replace, restore, collect])
@pytest.mark.parametrize(("kind", "when"), [(CrashingFs, "after"), (FailingFs, "before"), (FailingFs, "after")])
def test_a_move_that_is_interrupted_anywhere_loses_no_store_and_leaves_the_branch_one_of_its_own(
    topic: Project, act: Callable[[Project], object], kind: type[FailingFs], when: str
) -> None:
    before, all_before = tips(topic)
    outcomes = set()
    for found in interrupted(topic, act, lambda at: kind(at, when=when, inner=NO_SYNC)):
        used = branches.open_branch(found.workspace(), None)[2]
        assert not used.is_new, "the branch begins again, without a message"
        branches.collect(found.workspace())
        now, all_now = tips(found)
        assert all_now >= all_before
        assert now["main"] == before["main"]
        outcomes.add(now["topic"] == before["topic"])
        stores = stores_at(found.root)
        assert {path.name for path in stores.iterdir()} == {branches.TRASH, "main", "topic"}
    assert outcomes == ({True} if act is collect else {True, False})


def test_a_replacement_for_which_there_is_no_room_leaves_everything_as_it_was(topic: Project) -> None:
    class Full(NoSyncFs):
        def mkdir(self, path: Path, mode: int = 0o777) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    before = tips(topic)
    with pytest.raises(StorageFull):
        replace(Project(topic.root, fs=Full(), is_new=False))
    assert tips(topic) == before


def test_who_is_writing_ends_before_its_store_makes_room(topic: Project) -> None:
    fs = NO_SYNC
    directory = topic.workspace().folders.directory_of("topic")
    topic.write({".kb/config.json": '{"lockWaitSeconds": 0}'})
    with journal.writing(fs, directory, topic.machine.clock, wait_s=0), pytest.raises(KBError, match="is held by"):
        replace(topic)
    assert topic.node("MINE")
    assert not list(stores_at(topic.root).glob(".tmp-*"))


def test_a_branch_that_begins_again_says_what_the_trash_has_of_it(topic: Project) -> None:
    topic.switch("main")
    git(topic.root, "branch", "-D", "topic")
    branches.collect(topic.workspace())
    topic.switch("topic", create=True)
    reader = Project(topic.root, fs=ReadOnlyFs(NO_SYNC), is_new=False)
    for opened in (
        branches.open_to_read(reader.workspace(), None),
        branches.open_branch(topic.workspace(), None),
    ):
        notice = opened[2].notice
        assert "main" in notice
        assert "The trash holds a store of topic, moved there on 20" in notice
        assert "`kb branch restore topic`" in notice
    assert not branches.open_branch(topic.workspace(), None)[2].notice


def test_an_empty_store_says_as_well_what_the_trash_has_of_its_branch(project: Project) -> None:
    project.apply(entities=[req("A")])
    store_moves.throw_away(project.workspace(), project.workspace().folders.directory_of("main"))
    assert "`kb branch restore main`" in branches.open_branch(project.workspace(), None)[2].notice


def test_who_only_reads_gets_a_notice_of_a_store_that_an_ended_process_left_aside(topic: Project) -> None:
    store_moves.set_aside(topic.workspace(), topic.workspace().folders.directory_of("topic"))
    reader = Project(topic.root, fs=ReadOnlyFs(NO_SYNC), is_new=False)
    assert "was being replaced" in branches.open_to_read(reader.workspace(), None)[2].notice
    assert not branches.open_branch(topic.workspace(), None)[2].is_new
    assert topic.node("MINE")


def test_a_copy_that_an_ended_process_had_ready_is_cleared(topic: Project) -> None:
    parent = stores_at(topic.root)
    branchdir.copy(NO_SYNC, parent / "main", branchdir.building_place(parent / "topic"), branch="topic")
    assert list(parent.glob(".tmp-*"))
    branches.collect(topic.workspace())
    assert not list(parent.glob(".tmp-*"))
