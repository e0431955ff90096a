"""Stores that are not moved: tracked, not trusted, or only looked at."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.errors import LockTimeout, ReadOnlyStore, StorageError
from kbcore.maintenance.doctor import diagnose
from kbcore.storage import journal
from kbcore.store import branches, unread_stores
from kbcore.store.pool import Machine
from kbcore.store.workspace import Workspace, open_workspace
from tests.core.store.relocated import NO_SYNC, opened, req, status_of
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.older import facts, shown
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import commit_files, git, git_env


@pytest.mark.parametrize("where", ["index", "HEAD"])
def test_stores_that_git_tracks_are_not_read(older: Project, where: str) -> None:
    git(older.root, "add", "--force", ".kb/branches/main")
    if where == "HEAD":
        git(older.root, "commit", "--quiet", "-m", "stores")
        git(older.root, "rm", "-r", "--quiet", "--cached", ".kb/branches")
    workspace = opened(older)
    assert workspace.moved == ""
    assert not workspace.folders.has_store("main")
    assert older.node("A") is None
    found = [one.code for one in unread_stores.find_unread(workspace.folders)]
    assert found[0] == "store_tracked"


def test_a_folder_beside_the_stores_is_not_read(older: Project) -> None:
    saved = shutil.copytree(shown(older), older.root.parent / "saved")
    opened(older)
    shutil.rmtree(shown(older))
    shutil.copytree(saved, shown(older))
    older.apply(entities=[req("NEW")])
    workspace = opened(older)
    assert facts(saved) == facts(shown(older))
    [found] = unread_stores.find_unread(workspace.folders)
    assert found.code == "stores_beside"
    assert "kb doctor --adopt .kb/branches" in found.remedy
    assert status_of(older) == ""


@pytest.mark.parametrize("what", ["link", "pipe", "damage"])
def test_stores_that_cannot_be_trusted_stay_where_they_are_and_are_named(older: Project, what: str) -> None:
    if what == "link":
        (shown(older) / "main/quarantine").symlink_to("/etc")
    elif what == "pipe":
        os.mkfifo(shown(older) / "topic/pipe")
    else:
        path = shown(older) / "topic/journal-0000000001.jsonl"
        path.write_bytes(path.read_bytes().replace(b"Title", b"Tilte", 1))
    before = facts(shown(older))
    with pytest.raises(StorageError, match="cannot be: ") as refused:
        opened(older)
    assert "kb doctor --adopt .kb/branches" in refused.value.hint
    assert facts(shown(older)) == before
    assert not stores_at(older.root).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_stores_of_another_user_are_not_taken_unless_the_repository_is_shared(older: Project) -> None:
    os.chown(shown(older) / "topic/head.json", 12345, -1)
    with pytest.raises(StorageError, match="belongs to another user"):
        opened(older)
    for value in ("0600", "0640", "umask"):
        git(older.root, "config", "core.sharedRepository", value)
        with pytest.raises(StorageError, match="belongs to another user"):
            opened(older)
    git(older.root, "config", "core.sharedRepository", "group")
    assert opened(older).moved


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_repository_is_shared_too_where_the_user_s_settings_say_so(older: Project, tmp_path: Path) -> None:
    os.chown(shown(older) / "topic/head.json", 12345, -1)
    (tmp_path / "user").write_text("[core]\n\tsharedRepository = group\n")
    older.machine = Machine(NO_SYNC, SystemClock(), {**git_env(), "GIT_CONFIG_GLOBAL": str(tmp_path / "user")})
    assert opened(older).moved


def test_an_older_kb_that_writes_is_waited_for(older: Project) -> None:
    older.write({".kb/config.json": '{"lockWaitSeconds": 0.05}'})
    store = shown(older) / "topic"
    with journal.writing(NO_SYNC, store, older.machine.clock, wait_s=0), pytest.raises(LockTimeout):
        opened(older)
    assert opened(older).moved


def test_where_nothing_can_be_written_the_older_stores_wait(older: Project) -> None:
    class ReadOnly(NoSyncFs):
        def mkdir(self, path: Path, mode: int = 0o777) -> None:
            raise OSError(errno.EROFS, "Read-only file system")

    stuck = Project(older.root, fs=ReadOnly(), is_new=False)
    store, choice, ensured = branches.open_to_read(stuck.workspace(), None)
    assert store.read(lambda view: view.rows("select id from node")) == [("A",)]
    assert (choice.branch, ensured.is_new) == ("main", False)
    assert f"The stores are read in {shown(older)}, where they are." in ensured.notice
    before = facts(shown(older))
    with pytest.raises(ReadOnlyStore) as refused:
        stuck.apply(entities=[req("NEW")])
    assert "have to be moved there once" in refused.value.hint
    assert "a writable root of the sandbox" in refused.value.hint
    assert facts(shown(older)) == before
    stuck.close()
    assert "were moved" in opened(older).moved


def test_a_link_that_leads_to_the_stores_another_way_is_no_strange_one(older: Project) -> None:
    commit_files(older.root, {".kb/.gitignore": "/branches\n/cache/\n"})
    opened(older)
    older.close()
    aside = (older.root / ".git").rename(older.root.parent / "git aside")
    (older.root / ".git").symlink_to(aside)
    again = Project(older.root, is_new=False)
    assert again.node("A") is not None
    assert shown(older).readlink() == Path("../.git/kb/branches")
    assert list(unread_stores.find_unread(again.workspace().folders)) == []
    again.close()


def test_a_diagnosis_names_a_settings_folder_that_is_a_link(older: Project) -> None:
    aside = (older.root / ".kb").rename(older.root.parent / "kb aside")
    (older.root / ".kb").symlink_to(aside)
    looking = Workspace(older.pool.repositories.find(older.root), older.machine, older.pool, settles=False)
    [found] = [one for one in diagnose(looking).findings if one.code == "not_initialised"]
    assert "is a link; KB keeps its settings only in a directory of its own" in found.message
    assert found.remedy == "Replace the link with the folder itself."


def test_who_only_looks_moves_nothing(older: Project) -> None:
    workspace = open_workspace(older.root, older.machine, older.pool, settles=False)
    assert not workspace.folders.usual_branches_dir.exists()
    assert [one.code for one in unread_stores.find_unread(workspace.folders)] == ["older_layout", "older_cache"]


def test_who_only_looks_reads_the_stores_where_they_are(older: Project) -> None:
    workspace = open_workspace(older.root, older.machine, older.pool, settles=False)
    assert workspace.store("main").read(lambda view: view.rows("select id from node")) == [("A",)]
    place = workspace.folders.place_of_stores()
    assert (place.place, place.folder) == ("worktree", shown(older))
    assert str(workspace.folders.usual_branches_dir) in place.remedy


def test_a_diagnosis_proves_stores_that_were_not_moved_yet(older: Project) -> None:
    looking = Workspace(older.pool.repositories.find(older.root), older.machine, older.pool, settles=False)
    assert {(one.code, one.branch) for one in diagnose(looking).findings} >= {("sound", "main"), ("sound", "topic")}
    path = shown(older) / "topic/journal-0000000001.jsonl"
    path.write_bytes(path.read_bytes().replace(b"Title of B", b"Title of X"))
    found = {(one.code, one.branch) for one in diagnose(looking).findings}
    assert ("journal_corrupt", "topic") in found
    assert ("sound", "main") in found


def test_stores_that_git_tracks_are_not_read_by_who_only_looks(older: Project) -> None:
    git(older.root, "add", "--force", ".kb/branches/main")
    workspace = open_workspace(older.root, older.machine, older.pool, settles=False)
    assert workspace.folders.branches_dir == stores_at(older.root)
    assert not workspace.folders.has_store("main")
