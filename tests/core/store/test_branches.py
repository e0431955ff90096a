"""Stores of branches: made on first use, independent afterwards, and never removed while their branch exists."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kbcore.errors import BranchMoved, NotInitialised, UnknownBranch
from kbcore.store import branches
from kbcore.store.workspace import open_workspace
from tests.core.store.branches.making import req
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import add_worktree, commit_files, git, start_conflicting_rebase


def test_a_branch_begins_with_the_default_branchs_history_and_goes_its_own_way(project: Project) -> None:
    project.apply(entities=[req("A")], changeset_id="once")
    project.switch("feature/login", create=True)
    project.apply(entities=[req("B")])
    assert (project.seq(), project.node("A").created_seq) == (2, 1)
    assert project.apply(entities=[req("A")], changeset_id="once").duplicate
    project.switch("main")
    assert (project.seq(), project.node("B")) == (1, None)
    project.apply(entities=[req("C")])
    project.switch("feature/login")
    assert project.node("C") is None
    listed = {one.name: one for one in branches.listing(project.workspace())}
    assert listed["feature/login"].origin["branch"] == "main"
    assert listed["feature/login"].origin["seq"] == 1
    assert listed["feature/login"].current


def test_the_branch_is_read_afresh_on_every_request(project: Project) -> None:
    git(project.root, "branch", "other")
    project.apply(entities=[req("A")])
    for round_number in range(3):
        project.switch("other")
        project.apply(entities=[req(f"O{round_number}")])
        project.switch("main")
        project.apply(entities=[req(f"M{round_number}")])
    assert project.node("O0") is None
    project.switch("other")
    assert (project.node("M0"), project.node("O2").id) == (None, "O2")


def test_a_move_of_head_before_the_commit_refuses_it(project: Project) -> None:
    workspace = project.workspace()
    store, choice, _ = branches.open_branch(workspace, None)
    guard = workspace.guard(choice.branch)
    project.switch("other", create=True)
    with pytest.raises(BranchMoved) as refused:
        guard()
    assert refused.value.as_json()["old"] == "main"
    assert refused.value.as_json()["new"] == "other"
    assert store.head().seq == 0


def test_a_branch_without_a_default_store_starts_empty_and_says_so(project: Project) -> None:
    project.switch("other", create=True)
    _, _, ensured = branches.open_branch(project.workspace(), None)
    assert ensured.is_new
    assert "starts empty" in ensured.notice


def test_a_named_branch_must_exist_somewhere(project: Project) -> None:
    with pytest.raises(UnknownBranch):
        project.apply(branch="nowhere", entities=[req("A")])
    git(project.root, "branch", "somewhere")
    assert project.apply(branch="somewhere", entities=[req("A")]).branch == "somewhere"
    for name in ("../../etc", "a..b", "--output=x y", "a\nb", ""):
        if name:
            with pytest.raises(UnknownBranch):
                project.apply(branch=name, entities=[req("A")])
    made = {path.name for path in stores_at(project.root).iterdir()}
    assert made <= {"main", "somewhere"}


def test_names_that_a_file_system_would_mix_up_have_stores_of_their_own(project: Project) -> None:
    names = ["Main", "MAIN", "con", "CON", "feature/x", "feature-x", "a.b", "ünï", "x" * 200]
    for name in names:
        git(project.root, "symbolic-ref", "HEAD", f"refs/heads/{name}")
        project.apply(entities=[req(name[:50])])
    listed = {one.name for one in branches.listing(project.workspace())}
    assert set(names) <= listed
    folders = [path.name for path in stores_at(project.root).iterdir()]
    assert len({name.casefold() for name in folders}) == len(folders)


def test_a_detached_head_has_a_throw_away_store(project: Project) -> None:
    project.apply(entities=[req("A")])
    git(project.root, "switch", "--quiet", "--detach")
    outcome = project.apply(entities=[req("B")])
    assert outcome.branch.startswith("detached:")
    assert project.node("A")
    project.switch("main")
    assert project.node("B") is None
    assert branches.collect(project.workspace()).removed == (outcome.branch,)


def test_during_a_rebase_the_branch_being_rebased_is_meant(tmp_path: Path) -> None:
    root = tmp_path / "rebase"
    project = Project(root)
    start_conflicting_rebase(root, branch="topic")
    assert project.apply(entities=[req("A")]).branch == "topic"
    project.close()


def test_gc_keeps_every_branch_that_exists_anywhere(project: Project, tmp_path: Path) -> None:
    commit_files(project.root, {"a.txt": "a"})
    project.apply(entities=[req("A")])
    project.switch("feature/current", create=True)
    project.apply(entities=[req("B")])
    tree = add_worktree(project.root, tmp_path / "tree", "feature/elsewhere")
    linked = Project(tree, is_new=False)
    linked.apply(entities=[req("C")])
    git(project.root, "branch", "feature/idle")
    project.apply(branch="feature/idle", entities=[req("D")])
    git(project.root, "branch", "old/gone")
    project.apply(branch="old/gone", entities=[req("E")])
    git(project.root, "branch", "-D", "old/gone")
    dry = branches.collect(project.workspace(), dry_run=True)
    assert dry.removed == ("old/gone",)
    assert (stores_at(project.root) / "old%2fgone").is_dir()
    done = branches.collect(project.workspace())
    assert done.removed == ("old/gone",)
    assert set(done.kept) == {"main", "feature/current", "feature/elsewhere", "feature/idle"}
    trash = list((stores_at(project.root) / ".trash").iterdir())
    assert len(trash) == 1
    assert next(trash[0].glob("journal-*.jsonl")).read_text().count("\n") == 2, "the trash holds the whole store"
    assert linked.node("C")
    linked.close()


def test_gc_keeps_an_unborn_branch_that_is_checked_out(tmp_path: Path) -> None:
    root = tmp_path / "unborn"
    root.mkdir()
    git(root, "init", "--quiet", "--initial-branch=feature/first")
    stores_at(root).mkdir(parents=True)
    project = Project(root, is_new=False)
    project.apply(entities=[req("A")])
    assert branches.collect(project.workspace()).removed == ()
    project.close()


def test_all_worktrees_share_one_kb_and_each_has_its_own_branch(project: Project, tmp_path: Path) -> None:
    commit_files(project.root, {"a.txt": "a"})
    project.apply(entities=[req("A")])
    tree = add_worktree(project.root, tmp_path / "tree", "topic")
    linked = Project(tree, is_new=False)
    assert linked.apply(entities=[req("B")]).branch == "topic"
    assert not (tree / ".kb").exists()
    assert project.node("B") is None
    linked.close()


def test_a_repository_without_kb_says_so_and_nothing_is_made(tmp_path: Path) -> None:
    root = tmp_path / "plain"
    project = Project(root)
    shutil.rmtree(root / ".kb")
    shutil.rmtree(stores_at(root).parent)
    (root / "sub").mkdir()
    with pytest.raises(NotInitialised):
        open_workspace(root / "sub", project.machine, project.pool)
    assert not (root / ".kb").exists()
    assert not stores_at(root).parent.exists()
    assert not (root / "sub/.kb").exists()


def test_a_fresh_clone_with_tracked_settings_works_at_once(project: Project, tmp_path: Path) -> None:
    commit_files(project.root, {".kb/config.json": "{}", ".kb/.gitignore": "/branches\n/cache/\n"})
    git(tmp_path, "clone", "--quiet", project.root, tmp_path / "clone")
    clone = Project(tmp_path / "clone", is_new=False)
    assert clone.apply(entities=[req("A")]).seq == 1
    clone.close()


def test_a_new_branch_shares_the_sealed_history_and_its_view(project: Project) -> None:
    project.apply(entities=[req("A")])
    project.close()
    project.view()
    project.switch("topic", create=True)
    project.apply(entities=[req("B")])
    first = (caches_at(project.root) / "main/view.duckdb").stat()
    second = (caches_at(project.root) / "topic/view.duckdb").stat()
    assert first.st_ino == second.st_ino
