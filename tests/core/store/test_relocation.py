"""Stores of an older layout are moved once, whole, and what is not theirs is never taken."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbcore.clock import SystemClock
from kbcore.errors import FormatTooNew, LockTimeout, ReadOnlyStore, StorageError, StoreWentBack
from kbcore.maintenance import repair
from kbcore.maintenance.adopting import adopt
from kbcore.maintenance.backup import back_up, restore
from kbcore.maintenance.doctor import diagnose
from kbcore.maintenance.salvage import salvage
from kbcore.storage import head, journal, verify
from kbcore.storage.fs import RealFs
from kbcore.store import branches, kb_folder, pointer, relocation, unread
from kbcore.store.branches import lost
from kbcore.store.pool import Machine
from kbcore.store.workspace import Workspace, open_workspace
from tests.support.disk.faultfs import FailingFs, LoggingFs, NoSyncFs
from tests.support.repository.older import Elsewhere, facts, make_older, shown
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import add_worktree, commit_files, git, git_env, make_repository

NO_SYNC = NoSyncFs()


def req(key: str) -> dict[str, str]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open"}


def opened(project: Project, fs: Any = None) -> Workspace:
    if fs is not None:
        project = Project(project.root, fs=fs, is_new=False)
    return project.workspace()


def status_of(project: Project) -> str:
    return git(project.root, "status", "--porcelain", "--untracked-files=all")


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


class Interrupted(NoSyncFs):
    """Lets another process act just before the first change below a folder, or of the folder itself."""

    def __init__(self, folder: Path, other: Callable[[], object]) -> None:
        super().__init__()
        self.folder, self.others = folder, [other]

    def _before(self, path: Path) -> None:
        if self.others and path.is_relative_to(self.folder):
            self.others.pop()()

    def listdir(self, path: Path) -> list[str]:
        self._before(path)
        return super().listdir(path)

    def unlink(self, path: Path) -> None:
        self._before(path)
        super().unlink(path)

    def rmdir(self, path: Path) -> None:
        self._before(path)
        super().rmdir(path)

    def replace(self, source: Path, target: Path, *, is_private: bool = False) -> None:
        self._before(source)
        super().replace(source, target, is_private=is_private)


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


# What is not moved


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
    found = [one.code for one in unread.beside(workspace.folders)]
    assert found[0] == "store_tracked"


def test_a_folder_beside_the_stores_is_not_read(older: Project) -> None:
    saved = shutil.copytree(shown(older), older.root.parent / "saved")
    opened(older)
    shutil.rmtree(shown(older))
    shutil.copytree(saved, shown(older))
    older.apply(entities=[req("NEW")])
    workspace = opened(older)
    assert facts(saved) == facts(shown(older))
    [found] = unread.beside(workspace.folders)
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
    assert list(unread.beside(again.workspace().folders)) == []
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
    assert [one.code for one in unread.beside(workspace.folders)] == ["older_layout", "older_cache"]


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


# Where the process ends, or a call fails


def test_a_copy_on_another_file_system_keeps_what_is_shared_shared(older: Project) -> None:
    project = Project(older.root, fs=Elsewhere(), is_new=False)
    before = facts(shown(older))
    assert "were moved" in opened(project).moved
    assert facts(stores_at(older.root)) == before
    assert kb_folder.kind_of(NO_SYNC, shown(older)) == "guard"
    project.close()


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


def test_a_repository_that_has_no_store_yet_gets_no_pointer(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "fresh")
    commit_files(root, {".kb/config.json": "{}"})
    project = Project(root, is_new=False)
    opened(project)
    assert not (root / ".kb/branches").exists()
    project.close()


# The marks of stores that were never moved


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


# The user's setting `"store": "worktree"`


def in_worktree(root: Path, tmp_path: Path) -> Project:
    """Return a project whose user keeps stores in the worktree."""
    settings = tmp_path / "config/kb/config.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('{"store": "worktree"}')
    project = Project(root, is_new=False)
    project.machine = Machine(NO_SYNC, SystemClock(), {**git_env(), "XDG_CONFIG_HOME": str(tmp_path / "config")})
    return project


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
    assert list(unread.beside(workspace.folders)) == []
    assert status_of(older) == ""
    project.close()


def test_a_store_that_is_made_in_the_worktree_has_no_mark_of_the_git_directory(tmp_path: Path) -> None:
    root = make_repository(tmp_path / "fresh")
    (root / ".kb/branches").mkdir(parents=True)
    project = in_worktree(root, tmp_path)
    project.apply(entities=[req("A")])
    assert head.read(NO_SYNC, root / ".kb/branches/main").features_required == ()
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
    assert [one.code for one in unread.beside(as_it_is.folders)] == ["store_tracked"]
    git(older.root, "rm", "-r", "--quiet", "--cached", f".kb/{name}")
    assert project.node("A") is not None
    project.close()


def test_a_folder_in_a_linked_worktree_is_named_where_stores_are_in_the_main_one(
    older: Project, tmp_path: Path
) -> None:
    tree = in_worktree(add_worktree(older.root, tmp_path / "tree", "other"), tmp_path)
    shutil.copytree(shown(older), tree.root / ".kb/branches")
    [found] = unread.beside(opened(tree).folders)
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
