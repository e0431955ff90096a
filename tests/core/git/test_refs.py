"""The branches and worktrees that gc must never overlook, and the default branch."""

from __future__ import annotations

import shutil

import pytest

from kbcore.errors import GitUnusable, InvalidConfig
from kbcore.git import default_branch, find_repository, local_branches, worktree_heads
from tests.support.repository.repos import (
    add_worktree,
    git,
    git_env,
    make_repository,
    set_trap,
    start_conflicting_rebase,
)

ENV = git_env()


def test_the_configured_default_branch_wins(repo):
    assert default_branch(repo, ENV, "trunk") == "trunk"


def test_a_configured_default_branch_that_git_would_not_take_is_refused(repo):
    with pytest.raises(InvalidConfig, match="defaultBranch"):
        default_branch(repo, ENV, "../../x")


def test_the_default_branch_is_where_origin_points(root, tmp_path):
    git(root, "switch", "--quiet", "-c", "release/next")
    git(tmp_path, "clone", "--quiet", root, "clone")
    clone = tmp_path / "clone"
    git(clone, "switch", "--quiet", "-c", "mine")
    linked = add_worktree(clone, tmp_path / "linked", "theirs")
    assert default_branch(find_repository(clone), ENV) == "release/next"
    assert default_branch(find_repository(linked), ENV) == "release/next"


@pytest.mark.parametrize("content", [None, "ref: refs/heads/x\n", "ref: refs/remotes/origin/../../x\n", "a" * 40])
def test_without_a_usable_origin_the_default_branch_is_main(root, repo, content):
    origin = root / ".git" / "refs" / "remotes" / "origin" / "HEAD"
    if content is not None:
        origin.parent.mkdir(parents=True)
        origin.write_text(content)
    assert default_branch(repo, ENV) == "main"


def test_all_local_branches_are_listed_loose_and_packed(root, repo):
    names = {"main", "feature/a", "feature/b", "größe", "--output=pwn"}
    for name in names - {"main"}:
        git(root, "update-ref", f"refs/heads/{name}", "HEAD")
    assert local_branches(repo, ENV) == names
    git(root, "pack-refs", "--all")
    git(root, "branch", "after")
    git(root, "branch", "-D", "feature/b")
    assert local_branches(repo, ENV) == names - {"feature/b"} | {"after"}


def test_remote_branches_and_tags_are_no_local_branches(root, tmp_path):
    git(root, "branch", "theirs")
    git(tmp_path, "clone", "--quiet", root, "clone")
    git(tmp_path / "clone", "tag", "v1")
    assert local_branches(find_repository(tmp_path / "clone"), ENV) == {"main"}


def test_branches_whose_ref_is_damaged_or_dangling_are_still_listed(root, repo):
    (root / ".git" / "refs" / "heads" / "emptied").write_text("")
    git(root, "symbolic-ref", "refs/heads/dangling", "refs/heads/nowhere")
    assert {"emptied", "dangling"} <= local_branches(repo, ENV)


def test_an_empty_repository_has_no_branches_and_says_so_without_an_error(tmp_path):
    repo = find_repository(make_repository(tmp_path / "project", commits=0))
    assert local_branches(repo, ENV) == set()


def test_a_git_that_refuses_is_an_error_and_never_an_empty_list(root, repo):
    with pytest.raises(GitUnusable, match=r"safe\.directory"):
        local_branches(repo, ENV | {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1"})
    (root / ".git" / "packed-refs").write_text("nonsense\n")
    with pytest.raises(GitUnusable):
        local_branches(repo, ENV)


def test_listing_branches_runs_nothing_that_the_repository_configures(root, repo):
    marker = set_trap(root)
    assert local_branches(repo, ENV) == {"main"}
    assert not marker.exists()


def test_variables_of_another_repository_do_not_lead_git_astray(root, repo, tmp_path):
    other = make_repository(tmp_path / "other", branch="theirs")
    env = ENV | {"GIT_DIR": str(other / ".git"), "GIT_INDEX_FILE": "x", "GIT_COMMON_DIR": str(other / ".git")}
    assert git(root, "for-each-ref", "--format=%(refname)", env=env) == "refs/heads/theirs"
    assert local_branches(repo, env) == {"main"}


def test_git_is_asked_about_the_named_repository_and_not_the_one_its_work_tree_is_in(root, tmp_path):
    git(tmp_path, "init", "--quiet", "--bare", "--initial-branch=own", "dotfiles")
    git(root, "push", "--quiet", tmp_path / "dotfiles", "main:own")
    repo = find_repository(root, git_dir=tmp_path / "dotfiles", work_tree=root)
    assert local_branches(repo, ENV) == {"own"}


def test_every_worktree_is_listed_also_locked_and_missing_ones(root, tmp_path):
    locked = add_worktree(root, tmp_path / "locked", "on-a-stick")
    git(root, "worktree", "lock", locked)
    shutil.rmtree(locked)
    missing = add_worktree(root, tmp_path / "missing", "gone/away")
    shutil.rmtree(missing)
    detached = add_worktree(root, tmp_path / "detached", "left")
    git(detached, "switch", "--quiet", "--detach")
    expected = {root: "main", locked: "on-a-stick", missing: "gone/away"}
    expected[detached] = "detached:" + git(root, "rev-parse", "HEAD")
    for start in (root, detached):
        assert {one.path: one.head.branch for one in worktree_heads(find_repository(start), ENV)} == expected
    listed = git(root, "worktree", "list", "--porcelain")
    assert {line.split()[1] for line in listed.splitlines() if line.startswith("worktree ")} == set(map(str, expected))


def test_the_branch_that_a_worktree_is_rebasing_is_listed_by_its_name(root, tmp_path):
    start_conflicting_rebase(root, "feature/x")
    linked = add_worktree(root, tmp_path / "linked", "other")
    found = worktree_heads(find_repository(linked), ENV)
    assert [(one.head.branch, one.head.kind) for one in found] == [
        ("feature/x", "rebasing"),
        ("other", "branch"),
    ]


def test_the_head_of_a_bare_repository_and_its_worktrees_are_listed(root, tmp_path):
    git(tmp_path, "clone", "--quiet", "--bare", root, "project.git")
    linked = add_worktree(tmp_path / "project.git", tmp_path / "linked", "feature")
    found = worktree_heads(find_repository(linked), ENV)
    assert [(one.path, one.head.branch) for one in found] == [
        (tmp_path / "project.git", "main"),
        (linked, "feature"),
    ]


def test_a_worktree_whose_head_cannot_be_read_is_an_error_and_not_left_out(root, tmp_path, repo):
    add_worktree(root, tmp_path / "linked", "feature")
    admin = root / ".git" / "worktrees" / "linked"
    (admin / "HEAD").write_text("")
    with pytest.raises(GitUnusable, match="HEAD"):
        worktree_heads(repo, ENV)
    (admin / "HEAD").unlink()
    with pytest.raises(GitUnusable, match="no HEAD") as caught:
        worktree_heads(repo, ENV)
    assert "git worktree prune" in caught.value.hint
