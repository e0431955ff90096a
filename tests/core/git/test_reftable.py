"""Repositories that keep their refs as reftable, with a git that makes and reads them; and one that is too old."""

from __future__ import annotations

import pytest

from kbcore.errors import GitUnusable
from kbcore.git import (
    HeadCache,
    HeadState,
    default_branch,
    find_repository,
    former_names,
    is_in_use,
    local_branches,
    read_head,
    worktree_heads,
)
from tests.support.repository.gits import newer_git
from tests.support.repository.repos import git, git_env, make_repository, run_git, set_trap

NO_GIT = {"PATH": "/nonexistent"}


@pytest.fixture(scope="module")
def env():
    return newer_git("reftable")


@pytest.fixture
def root(tmp_path, env):
    folder = tmp_path / "project"
    git(tmp_path, "init", "--quiet", "--ref-format=reftable", "-b", "main", folder, env=env)
    return folder


@pytest.fixture
def commit(root, env):
    git(root, "commit", "--quiet", "--allow-empty", "-m", "one", env=env)
    return git(root, "rev-parse", "HEAD", env=env)


def head(folder, env, cache=None) -> HeadState:
    return read_head(find_repository(folder), env, cache=cache)


def test_a_head_is_unborn_then_a_branch_then_detached(root, env):
    assert head(root, env) == HeadState(branch="main", kind="unborn", commit=None)
    git(root, "commit", "--quiet", "--allow-empty", "-m", "one", env=env)
    commit = git(root, "rev-parse", "HEAD", env=env)
    assert head(root, env) == HeadState(branch="main", kind="branch", commit=commit)
    git(root, "switch", "--quiet", "--detach", env=env)
    assert head(root, env) == HeadState(branch=f"detached:{commit}", kind="detached", commit=commit)


def test_a_linked_worktree_has_tables_and_a_head_of_its_own(root, env, commit, tmp_path):
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "--quiet", "-b", "feature/x", linked, env=env)
    assert (find_repository(linked).git_dir / "reftable" / "tables.list").is_file()
    assert head(linked, env) == HeadState(branch="feature/x", kind="branch", commit=commit)
    assert head(root, env).branch == "main"
    assert [one.head.branch for one in worktree_heads(find_repository(root), env)] == ["main", "feature/x"]


def test_git_is_asked_once_until_a_ref_of_the_worktree_changes(root, env, commit, tmp_path):
    linked, cache = tmp_path / "linked", HeadCache()
    git(root, "worktree", "add", "--quiet", "-b", "side", linked, env=env)
    for folder, branch in ((root, "main"), (linked, "side")):
        assert head(folder, env, cache).branch == branch
        assert head(folder, NO_GIT, cache).branch == branch
    git(root, "switch", "--quiet", "-c", "other", env=env)
    assert head(root, env, cache).branch == "other"
    git(linked, "commit", "--quiet", "--allow-empty", "-m", "two", env=env)
    assert head(linked, env, cache).commit == git(linked, "rev-parse", "HEAD", env=env) != commit
    git(linked, "branch", "-m", "aside", env=env)
    assert head(linked, env, cache).branch == "aside"
    assert head(linked, NO_GIT, cache).branch == "aside"


def test_a_rebase_that_stopped_names_its_branch(root, env, commit):
    for branch, text in (("feature", "theirs"), ("main", "ours")):
        git(root, "switch", "--quiet", *([] if branch == "main" else ["-c"]), branch, env=env)
        (root / "same.txt").write_text(text)
        git(root, "add", "same.txt", env=env)
        git(root, "commit", "--quiet", "-m", text, env=env)
    assert run_git(root, "rebase", "main", "feature", env=env).returncode != 0
    found = head(root, env)
    assert (found.branch, found.kind) == ("feature", "rebasing")
    assert commit != found.commit


def test_branches_former_names_and_the_default_are_asked_of_git(root, env, commit, tmp_path):
    git(tmp_path, "clone", "--quiet", "--ref-format=reftable", root, "clone", env=env)
    repo = find_repository(tmp_path / "clone")
    assert default_branch(repo, env) == "main"
    git(repo.worktree, "branch", "größe", env=env)
    git(repo.worktree, "branch", "-m", "größe", "maß", env=env)
    assert local_branches(repo, env) == {"main", "maß"}
    assert former_names(repo, env, "maß") == ["größe"]
    assert former_names(repo, env, "nope") == []
    assert [is_in_use(repo, env, name) for name in ("main", "maß", "größe")] == [True, True, False]


def test_nothing_that_the_repository_configures_is_run(root, env, commit):
    git(root, "branch", "-m", "two", env=env)
    (root / ".git/hooks").mkdir(exist_ok=True)
    git(root, "config", "hook.trap.event", "reference-transaction", env=env)
    git(root, "config", "hook.trap.command", "touch hook-was-run", env=env)
    marker = set_trap(root, env)
    assert head(root, env).branch == "two"
    assert former_names(find_repository(root), env, "two") == ["main"]
    assert local_branches(find_repository(root), env) == {"two"}
    assert not marker.exists()
    assert not list(root.rglob("hook-was-run"))


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("fatal: unknown repository extension found:\n\trefstorage", "Install git 2.45 or newer"),
        ("fatal: unknown repository extension found:\n\trelativeworktrees", "Install git 2.48 or newer"),
        ("fatal: unknown repository extensions found:\n\trefstorage\n\trelativeworktrees", "Install git 2.48 or newer"),
        ("fatal: unknown repository extensions found:\n\trefstorage\n\tsomethingnew", "Install a newer git"),
        ("error: invalid value for 'extensions.refstorage': 'later'\nfatal: bad config line 7", "Install a newer git"),
    ],
)
def test_a_git_that_is_too_old_is_said_to_be_in_one_line_with_what_to_install(tmp_path, said, remedy):
    old = make_repository(tmp_path / "project")
    (old / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    (tmp_path / "git").write_text(f'#!/bin/sh\necho "{said}" >&2\nexit 128\n')
    (tmp_path / "git").chmod(0o755)
    with pytest.raises(GitUnusable, match="git is too old for ") as caught:
        head(old, {"PATH": str(tmp_path)})
    assert "\n" not in caught.value.message
    assert caught.value.hint.startswith(remedy)


def test_the_git_at_hand_tells_of_a_format_that_it_does_not_know(tmp_path):
    new = make_repository(tmp_path / "project")
    git(new, "config", "core.repositoryformatversion", "1")
    git(new, "config", "extensions.somethingNew", "some-later-format")
    (new / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
    with pytest.raises(GitUnusable, match=r"git is too old for .*somethingnew"):
        head(new, git_env())
