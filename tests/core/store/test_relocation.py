"""Stores of an older layout are moved into git's directory, whole and once."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from kbcore.errors import FormatTooNew, StorageError
from kbcore.maintenance import repair
from kbcore.maintenance.backup import back_up, restore
from kbcore.maintenance.salvage import salvage
from kbcore.storage import head, verify
from kbcore.storage.fs import RealFs
from kbcore.store import branches, kb_folder, pointer, relocation
from tests.core.store.relocated import NO_SYNC, Interrupted, in_worktree, opened, req, status_of
from tests.support.disk.faultfs import FailingFs, LoggingFs, NoSyncFs
from tests.support.repository.older import Elsewhere, facts, make_older, shown
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import add_worktree, commit_files, git, make_repository


def test_stores_of_an_older_layout_are_moved_whole_and_it_is_said_once(older: Project) -> None:
    before = facts(shown(older))
    workspace = opened(older)
    assert "were moved" in workspace.moved
    assert "2 branches" in workspace.moved
    assert facts(stores_at(older.root)) == before
    assert any("/gone~" in name or ".trash" in name for name in before)
    assert older.node("A") is not None
    assert older.apply(branch="topic", entities=[req("C")]).seq == 3
    assert opened(older).moved == ""
    assert status_of(older) == ""


def test_the_cache_comes_along(older: Project) -> None:
    view = (older.root / ".kb/cache/main/view.duckdb").stat().st_ino
    opened(older)
    assert (caches_at(older.root) / "main/view.duckdb").stat().st_ino == view
    assert not (older.root / ".kb/cache").exists()


def test_what_an_older_kb_meets_after_the_move_refuses_it(older: Project) -> None:
    opened(older)
    for name in ("main", "topic"):
        assert head.read(NO_SYNC, stores_at(older.root) / name).features_required == (head.GIT_DIRECTORY,)
    # An older KB takes the repository lock before it makes a store, by opening this for writing.
    with pytest.raises(IsADirectoryError):
        RealFs().open(shown(older) / ".lock", os.O_RDWR | os.O_CREAT)


def test_a_kb_that_does_not_know_the_mark_refuses_the_store(older: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(older)
    monkeypatch.setattr(head, "KNOWN_FEATURES", frozenset())
    with pytest.raises(FormatTooNew, match="git_directory"):
        head.read(NO_SYNC, stores_at(older.root) / "main")


@pytest.mark.parametrize("ignored", ["/branches\n/cache/\n", "branches\n"])
def test_a_link_is_made_where_git_ignores_one(older: Project, ignored: str) -> None:
    commit_files(older.root, {".kb/.gitignore": ignored})
    opened(older)
    assert str(shown(older).readlink()) == "../.git/kb/branches"
    assert status_of(older) == ""


def test_a_link_is_made_where_the_project_ignores_it_elsewhere(older: Project) -> None:
    opened(older)
    shutil.rmtree(shown(older))
    commit_files(older.root, {".gitignore": ".kb/branches\n"})
    opened(older)
    assert shown(older).is_symlink()


def test_a_line_that_another_one_takes_back_gets_a_guard_instead_of_a_link(older: Project) -> None:
    commit_files(older.root, {".kb/.gitignore": "/branches\n!/branches\n/cache/\n"})
    opened(older)
    assert kb_folder.kind_of(NO_SYNC, shown(older)) == "guard"
    assert status_of(older) == ""


def test_a_link_gives_way_to_a_guard_on_a_branch_that_does_not_ignore_it(older: Project) -> None:
    git(older.root, "branch", "before")
    commit_files(older.root, {".kb/.gitignore": "/branches\n/cache/\n"})
    opened(older)
    assert shown(older).is_symlink()
    older.switch("before")
    opened(older)
    assert kb_folder.kind_of(NO_SYNC, shown(older)) == "guard"
    assert status_of(older) == ""
    older.switch("main")
    opened(older)
    assert shown(older).is_symlink()
    assert status_of(older) == ""


def test_of_two_processes_that_replace_a_guard_by_a_link_neither_removes_the_stores(older: Project) -> None:
    opened(older)
    assert kb_folder.kind_of(NO_SYNC, shown(older)) == "guard"
    (older.root / ".kb/.gitignore").write_text("/branches\n/cache/\n")
    before = facts(stores_at(older.root))
    seen = []
    fs = Interrupted(
        shown(older), lambda: seen.append(kb_folder.kind_of(NO_SYNC, opened(older).folders.shown_branches))
    )
    opened(older, fs)
    assert seen == ["link"]
    assert facts(stores_at(older.root)) == before
    assert shown(older).is_symlink()
    assert [one.name for one in shown(older).parent.iterdir() if one.name.startswith(".branches")] == []


class Linkless(NoSyncFs):
    def symlink(self, target: str, path: Path) -> None:
        raise OSError(errno.EPERM, "no links here")


def test_where_there_are_no_links_a_plain_file_names_the_place(older: Project) -> None:
    commit_files(older.root, {".kb/.gitignore": "/branches\n/cache/\n"})
    opened(older, Linkless())
    assert "../.git/kb/branches" in shown(older).read_text()
    opened(older)
    assert shown(older).is_file()
    assert status_of(older) == ""


def test_a_moved_repository_still_has_the_right_link(older: Project, tmp_path: Path) -> None:
    commit_files(older.root, {".kb/.gitignore": "/branches\n"})
    opened(older)
    moved = Project(older.root.rename(tmp_path / "elsewhere"), is_new=False)
    assert moved.node("A") is not None
    assert shown(moved).resolve() == stores_at(moved.root)
    moved.close()


def test_a_linked_worktree_moves_the_stores_that_all_share(older: Project, tmp_path: Path) -> None:
    tree = Project(add_worktree(older.root, tmp_path / "tree", "other"), is_new=False)
    before = facts(shown(older))
    assert "were moved" in opened(tree).moved
    assert facts(stores_at(older.root)) == before
    assert older.node("A") is not None
    assert status_of(tree) == ""
    assert status_of(older) == ""
    tree.close()


def test_a_bare_repository_has_stores_and_link_inside(tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=main", bare)
    project = Project(bare, is_new=False)
    stores_at(bare).mkdir(parents=True)
    project.apply(branch="main", entities=[req("A")])
    project.close()
    (bare / ".kb").mkdir()
    make_older(bare)
    assert "were moved" in opened(project).moved
    assert str((bare / ".kb/branches").readlink()) == "../kb/branches"
    assert project.view("main").nodes(["A"])
    project.close()


def test_a_submodule_and_a_separate_git_directory_keep_the_stores_in_theirs(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    git(tmp_path, "init", "--quiet", "--initial-branch=main", "--separate-git-dir", tmp_path / "elsewhere.git", root)
    git(root, "config", "core.worktree", str(root))
    project = Project(root, is_new=False)
    (root / ".kb").mkdir()
    stores_at(root).mkdir(parents=True)
    assert stores_at(root) == tmp_path / "elsewhere.git/kb/branches"
    project.apply(entities=[req("A")])
    project.close()
    make_older(root)
    assert "were moved" in opened(project).moved
    assert project.node("A") is not None
    (root / ".kb/.gitignore").write_text("/branches\n")
    opened(project)
    assert (root / ".kb/branches").resolve() == stores_at(root)
    project.close()


@pytest.mark.parametrize("release", sorted((Path(__file__).parents[1] / "golden").glob("[0-9]*")), ids=lambda p: p.name)
def test_the_stores_of_every_release_are_moved_whole(release: Path, tmp_path: Path) -> None:
    root = make_repository(tmp_path / "repo")
    shutil.copytree(release / "kb", root / ".kb")
    before = facts(root / ".kb/branches")
    project = Project(root, is_new=False)
    assert "were moved" in opened(project).moved
    assert facts(stores_at(root)) == before
    names = {name for name, _ in branches.stores(opened(project))}
    assert {"main", "feature/Login-Ü", "pruned", "repaired", "crashed"} <= names
    assert project.apply(branch="main", entities=[req("AFTER")]).seq
    project.close()


def test_a_copy_on_another_file_system_keeps_what_is_shared_shared(older: Project) -> None:
    project = Project(older.root, fs=Elsewhere(), is_new=False)
    before = facts(shown(older))
    assert "were moved" in opened(project).moved
    assert facts(stores_at(older.root)) == before
    assert kb_folder.kind_of(NO_SYNC, shown(older)) == "guard"
    project.close()


@pytest.mark.sliced
def test_a_folder_that_cannot_be_listed_during_the_copy_is_a_storage_error(older: Project) -> None:
    kept, before = shutil.copytree(older.root, older.root.parent / "kept", symlinks=True), facts(shown(older))
    probe = LoggingFs(Elsewhere())
    opened(older, probe)
    begun = next(at for at, (call, _) in enumerate(probe.calls) if call == "replace")
    listed = [at for at, (call, _) in enumerate(probe.calls) if call == "listdir" and at > begun]
    refused = 0
    for at in listed:
        shutil.rmtree(older.root)
        shutil.copytree(kept, older.root, symlinks=True)
        fs = FailingFs(at, inner=Elsewhere())
        try:
            opened(older, fs)
        except StorageError:
            refused += 1
        fs.close_all()
        opened(older)
        assert facts(stores_at(older.root)) == before
    assert refused >= 3, listed


def test_what_a_link_leads_to_that_has_the_name_of_a_copied_folder_is_not_removed(
    older: Project, tmp_path: Path
) -> None:
    opened(older)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").write_text("mine")
    (older.root / ".kb/.moved-branches").symlink_to(tmp_path / "mine")
    (stores_at(older.root).parent / "moving").touch()
    relocation.finish_locked(opened(older).folders)
    assert (tmp_path / "mine/file").read_text() == "mine"


def test_two_processes_that_meet_move_once(older: Project) -> None:
    done: list[str] = []

    class Meeting(NoSyncFs):
        """Lets another process move everything just before this one takes the lock."""

        def mkdir(self, path: Path) -> None:
            super().mkdir(path)
            if path == stores_at(older.root).parent and not done:
                done.append("")
                done.append(opened(Project(older.root, is_new=False)).moved)

    assert opened(older, Meeting()).moved == ""
    assert "were moved" in done[1]
    assert older.node("A") is not None


def test_the_ordinary_request_asks_git_nothing(older: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    commit_files(older.root, {".kb/.gitignore": "/branches\n"})
    opened(older)
    for module in (kb_folder, pointer):
        monkeypatch.setattr(module, "run_git", None)
    opened(Project(older.root, is_new=False))


def test_the_store_of_another_branch_asks_git_nothing_about_a_link_that_is_there(
    older: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_files(older.root, {".kb/.gitignore": "/branches\n"})
    opened(older)
    older.switch("other", create=True)
    for module in (kb_folder, pointer):
        monkeypatch.setattr(module, "run_git", None)
    other = Project(older.root, is_new=False)
    assert other.apply(entities=[req("D")]).branch == "other"
    other.close()


def test_a_repository_that_has_no_store_yet_gets_no_pointer(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "fresh")
    commit_files(root, {".kb/config.json": "{}"})
    project = Project(root, is_new=False)
    opened(project)
    assert not (root / ".kb/branches").exists()
    project.close()


def test_every_store_that_is_made_in_the_git_directory_is_refused_by_an_older_kb(tmp_path: Path) -> None:
    project = Project(tmp_path / "fresh")
    project.apply(entities=[req("A")])
    git(project.root, "branch", "topic")
    project.apply(branch="topic", entities=[req("B")])
    (stores_at(project.root) / "main/head.json").unlink()
    repair.rebuild_head(project.workspace(), "main", AUTHOR)
    project.close()
    # An older KB may meet a copy of them at the old place: from a program that replaces a link by what it leads to.
    for name in ("main", "topic"):
        assert head.read(NO_SYNC, stores_at(project.root) / name).features_required == (head.GIT_DIRECTORY,)
        assert verify.prove(NO_SYNC, stores_at(project.root) / name).is_sound


def test_a_salvaged_store_and_a_restored_one_have_the_mark_of_their_place(older: Project, tmp_path: Path) -> None:
    project, file = in_worktree(older.root, tmp_path), tmp_path / "saved.kb"
    back_up(opened(project), file, tool="kb/test")
    project.close()
    opened(older)
    (stores_at(older.root) / "main/head.json").write_bytes(b"nothing of the old head")
    salvage(opened(older), "main", AUTHOR)
    assert head.read(NO_SYNC, stores_at(older.root) / "main").features_required == (head.GIT_DIRECTORY,)
    restore(opened(older), file, AUTHOR, ["topic"], replaces=True)
    assert head.read(NO_SYNC, stores_at(older.root) / "topic").features_required == (head.GIT_DIRECTORY,)
    assert older.node("A") is not None


def test_a_store_that_comes_back_from_an_older_trash_has_the_mark_of_its_place(older: Project) -> None:
    branches.restore(opened(older), "gone")
    assert head.read(NO_SYNC, stores_at(older.root) / "gone").features_required == (head.GIT_DIRECTORY,)
    assert verify.prove(NO_SYNC, stores_at(older.root) / "gone").is_sound
