"""The user keeps stores in the worktree, by a setting of their own."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.errors import ReadOnlyStore, StorageError, StoreWentBack
from kbcore.maintenance.adopting import adopt
from kbcore.maintenance.doctor import diagnose
from kbcore.storage import head
from kbcore.store import branches, change_files, pointer, settings_edit, unread_stores
from kbcore.store.branches import lost
from kbcore.store.pool import Machine
from kbcore.store.settings_edit import change_settings
from kbcore.store.workspace import Workspace, open_workspace
from tests.core.store.relocated import NO_SYNC, Interrupted, in_worktree, opened, req, status_of
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.older import shown
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import add_worktree, git, git_env, make_repository


def test_a_user_who_keeps_stores_in_the_worktree_uses_the_older_layout_with_an_older_kb(
    older: Project, tmp_path: Path
) -> None:
    project = in_worktree(older.root, tmp_path)
    assert project.apply(entities=[req("NEW")]).seq == 2
    workspace = opened(project)
    assert workspace.moved == ""
    assert workspace.folders.repository_lock == shown(older) / ".lock"
    assert not stores_at(older.root).exists()
    # Both take the same locks, so no mark keeps the older one away.
    git(older.root, "branch", "another")
    project.apply(branch="another", entities=[req("OTHER")])
    for name in ("main", "another"):
        assert head.read(NO_SYNC, shown(older) / name).features_required == ()
    assert list(unread_stores.find_unread(workspace.folders)) == []
    assert status_of(older) == ""
    project.close()


def test_a_store_that_is_made_in_the_worktree_has_no_mark_of_the_git_directory(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "fresh")
    (root / ".kb/branches").mkdir(parents=True)
    project = in_worktree(root, tmp_path)
    project.apply(entities=[req("A")])
    assert head.read(NO_SYNC, root / ".kb/branches/main").features_required == ()
    project.close()


def test_locks_of_files_of_the_worktree_are_with_the_stores_and_not_in_the_cache(
    older: Project, tmp_path: Path
) -> None:
    project = in_worktree(older.root, tmp_path)
    project.apply(entities=[req("NEW")])
    workspace = opened(project)
    with change_files.locked(workspace):
        change_settings(workspace, lambda text: text)
        shutil.rmtree(workspace.folders.cache_dir)
        for name in (change_files.LOCK, settings_edit.LOCK):
            assert workspace.folders.lock_path(name) == shown(older) / f".{name}.lock"
            assert workspace.folders.lock_path(name).is_file()
    assert status_of(older) == ""
    assert {name for name, _ in branches.stores(workspace)} == {"main", "topic"}
    project.close()


def test_without_the_setting_the_stores_of_the_worktree_are_moved(older: Project, tmp_path: Path) -> None:
    project = in_worktree(older.root, tmp_path)
    project.apply(entities=[req("NEW")])
    project.close()
    assert "were moved" in opened(older).moved
    assert older.node("NEW") is not None
    # From then on the setting changes nothing: the git directory has stores.
    assert project.node("NEW") is not None
    assert not opened(project).folders.is_in_worktree
    project.close()


def test_stores_in_the_git_directory_are_named_where_the_user_wants_them_in_the_worktree_and_how_to_move_them(
    older: Project, tmp_path: Path
) -> None:
    opened(older)
    older.apply(entities=[req("NEW")])
    older.close()
    project = in_worktree(older.root, tmp_path)
    for seq in (2, 3):
        place = project.workspace().folders.place_of_stores()
        assert place.place == "git"
        assert f'{tmp_path}/config/kb/config.json says "store": "worktree", but' in place.why
        move, adopt_ = re.findall("`([^`]+)`", place.remedy)
        subprocess.run(move, shell=True, check=True, cwd=older.root)
        for settles in (False, True):
            workspace = open_workspace(older.root, project.machine, project.pool, settles=settles)
            assert workspace.folders.is_in_worktree
            # Both places name the way to go on, and neither begins a store.
            with pytest.raises(StoreWentBack) as refused:
                branches.ensure(workspace, "main")
            assert f"`{adopt_}` takes it over" in refused.value.hint
        assert not stores_at(older.root).exists()
        adopt(Workspace(workspace.repo, project.machine, project.pool), Path(shlex.split(adopt_)[-1]))
        assert project.workspace().folders.place_of_stores()[:2] == ("worktree", shown(older))
        assert project.node("NEW") is not None
        assert lost.losses(project.workspace()) == []
        assert project.apply(entities=[req(f"LATER{seq}")]).seq == seq + 1
        project.close()
        # Without the setting they are moved back; the second time there is a folder from the first one.
        assert "were moved" in opened(older).moved
        assert older.node(f"LATER{seq}") is not None
        older.close()


def test_an_empty_folder_of_stores_in_the_git_directory_decides_nothing(older: Project, tmp_path: Path) -> None:
    stores_at(older.root).mkdir(parents=True)
    (stores_at(older.root) / ".watch-1.lock").touch()
    project = in_worktree(older.root, tmp_path)
    assert project.apply(entities=[req("NEW")]).seq == 2
    assert project.workspace().folders.place_of_stores().place == "worktree"
    project.close()
    (stores_at(older.root) / ".watch-1.lock").unlink()
    assert "were moved" in opened(older).moved
    assert older.node("NEW") is not None


@pytest.mark.parametrize("kind", ["link", "guard", "file", "another link", "another file"])
def test_only_a_pointer_of_kbs_own_makes_room_for_stores_in_the_worktree(
    older: Project, tmp_path: Path, kind: str
) -> None:
    opened(older)
    shutil.rmtree(stores_at(older.root))
    place = shown(older)
    if kind != "guard":
        shutil.rmtree(place)
    if kind.endswith("link"):
        place.symlink_to("../.git/kb/branches" if kind == "link" else "../docs")
    if kind == "file":
        where = "../.git/kb/branches"
        place.write_text(f"The stores of KB are in {where}, seen from the folder .kb; nothing here is read.\n")
    if kind == "another file":
        place.write_text("mine\n")
    project = in_worktree(older.root, tmp_path)
    workspace = project.workspace()
    is_own = not kind.startswith("another")
    assert workspace.folders.is_in_worktree is is_own
    # Who only looks removes nothing, and finds no store.
    assert os.path.lexists(place)
    assert list(branches.stores(workspace)) == []
    assert not workspace.folders.has_store("main")
    assert not [one for one in diagnose(workspace, ()).findings if one.severity in {"error", "not_checked"}]
    said = workspace.folders.place_of_stores()
    assert said.folder == (place if is_own else stores_at(older.root))
    assert (f"{place} is neither a folder nor a pointer that KB made" in said.why) is not is_own
    for name in ("main", "topic"):
        branches.ensure(workspace, name, accepts_loss=True)
    assert (place / "main/head.json").is_file() is is_own
    assert (stores_at(older.root) / "main/head.json").is_file() is not is_own
    project.close()


@pytest.mark.parametrize("kind", ["link", "guard"])
def test_of_two_processes_that_make_room_the_second_keeps_what_the_first_has_written(
    older: Project, tmp_path: Path, kind: str
) -> None:
    opened(older)
    shutil.rmtree(stores_at(older.root))
    shutil.rmtree(tmp_path / "state", ignore_errors=True)
    place = shown(older)
    if kind == "link":
        shutil.rmtree(place)
        place.symlink_to("../.git/kb/branches")
    first, second = in_worktree(older.root, tmp_path), in_worktree(older.root, tmp_path)
    for name in ("main", "topic"):
        first.workspace().place.forget(name)
    seqs = []
    fs = Interrupted(place, lambda: seqs.append(first.apply(entities=[req("FIRST")]).seq))
    second.machine = Machine(fs, second.machine.clock, second.machine.env)
    pointer.make_room(second.workspace().folders, second.workspace().pool)
    assert seqs == [1]
    assert second.apply(entities=[req("SECOND")]).seq == 2
    assert second.node("FIRST") is not None
    assert status_of(older) == ""
    first.close()
    second.close()


def test_the_error_of_a_refused_write_names_the_setting_that_does_not_count(older: Project, tmp_path: Path) -> None:
    class ReadOnly(NoSyncFs):
        def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
            if flags & (os.O_WRONLY | os.O_RDWR):
                raise OSError(errno.EROFS, "Read-only file system")
            return super().open(path, flags, mode)

    opened(older)
    project = in_worktree(older.root, tmp_path)
    project.machine = Machine(ReadOnly(), SystemClock(), project.machine.env)
    with pytest.raises(ReadOnlyStore) as refused:
        project.apply(entities=[req("NEW")])
    assert project.workspace().folders.place_of_stores().sentence() in refused.value.hint
    assert "kb doctor --adopt" in refused.value.hint
    project.close()
    project = Project(older.root, fs=ReadOnly(), is_new=False)
    with pytest.raises(ReadOnlyStore) as refused:
        project.apply(entities=[req("NEW")])
    assert '{"store": "worktree"} in ' in refused.value.hint
    assert "`kb status` says how to move them" in refused.value.hint
    project.close()


def test_a_store_that_was_opened_before_names_the_settings_of_this_moment(older: Project, tmp_path: Path) -> None:
    is_shut = False

    class Shut(NoSyncFs):
        def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
            if is_shut and flags & (os.O_WRONLY | os.O_RDWR):
                raise OSError(errno.EROFS, "Read-only file system")
            return super().open(path, flags, mode)

    opened(older)
    settings = tmp_path / "settings/kb/config.json"
    settings.parent.mkdir(parents=True)
    project = Project(older.root, fs=Shut(), is_new=False)
    env = {**git_env(), "XDG_CONFIG_HOME": str(tmp_path / "settings")}
    project.machine = Machine(project.machine.fs, SystemClock(), env)
    project.apply(entities=[req("NEW")])
    is_shut = True
    for text, said in [
        ("{}", '{"store": "worktree"} in '),
        ('{"store": "worktree"}', "but that counts only where the git directory has no stores yet"),
        ("{}", '{"store": "worktree"} in '),
    ]:
        settings.write_text(text)
        with pytest.raises(ReadOnlyStore) as refused:
            project.apply(entities=[req("NEWER")])
        assert said in refused.value.hint
    project.close()


@pytest.mark.parametrize("name", ["branches", "cache"])
@pytest.mark.parametrize("settles", [True, False])
def test_stores_in_the_worktree_that_git_tracks_are_refused_and_named(
    older: Project, tmp_path: Path, name: str, settles: bool
) -> None:
    project = in_worktree(older.root, tmp_path)
    assert project.node("A") is not None
    git(older.root, "add", "--force", f".kb/{name}/main")
    for _ in range(2):
        with pytest.raises(StorageError, match=rf"git tracks \d files? in \.kb/{name}\. KB reads none") as refused:
            open_workspace(older.root, project.machine, project.pool, settles=settles)
        assert f"git rm -r --cached .kb/{name}" in refused.value.hint
    # A diagnosis looks all the same, and says so.
    as_it_is = Workspace(project.pool.repositories.find(older.root), project.machine, project.pool)
    assert [one.code for one in unread_stores.find_unread(as_it_is.folders)] == ["store_tracked"]
    git(older.root, "rm", "-r", "--quiet", "--cached", f".kb/{name}")
    assert project.node("A") is not None
    project.close()


def test_a_folder_in_a_linked_worktree_is_named_where_stores_are_in_the_main_one(
    older: Project, tmp_path: Path
) -> None:
    tree = in_worktree(add_worktree(older.root, tmp_path / "tree", "other"), tmp_path)
    shutil.copytree(shown(older), tree.root / ".kb/branches")
    [found] = unread_stores.find_unread(opened(tree).folders)
    assert (found.code, found.path) == ("stores_beside", str(tree.root / ".kb/branches"))
    tree.close()


def test_what_is_adopted_into_the_worktree_has_the_marks_of_its_place(older: Project, tmp_path: Path) -> None:
    marked = Project(tmp_path / "marked")
    marked.apply(entities=[req("ELSEWHERE")])
    marked.close()
    project = in_worktree(older.root, tmp_path)
    adopt(opened(project), stores_at(marked.root) / "main", replaces=True)
    assert project.node("ELSEWHERE") is not None
    assert head.read(NO_SYNC, shown(older) / "main").features_required == ()
    opened(older)
    adopt(opened(older), stores_at(marked.root) / "main", replaces=True)
    assert head.read(NO_SYNC, stores_at(older.root) / "main").features_required == (head.GIT_DIRECTORY,)
    project.close()
