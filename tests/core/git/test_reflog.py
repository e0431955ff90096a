"""The names that a branch had, as git's reflog has them."""

from __future__ import annotations

import os

import pytest

from kbcore.git import find_repository, former_names
from tests.support.repository.repos import git, git_env

ENV = git_env()


def names(root, branch):
    return former_names(find_repository(root), ENV, branch)


def test_a_chain_of_renames_is_followed_to_its_beginning(root):
    git(root, "switch", "-q", "-c", "feature/one")
    git(root, "branch", "-m", "feature/two/and a half".replace(" ", "-"))
    git(root, "commit", "-q", "--allow-empty", "-m", "Branch: renamed refs/heads/main to refs/heads/three")
    git(root, "branch", "-m", "three")
    assert names(root, "three") == ["feature/two/and-a-half", "feature/one"]
    assert names(root, "main") == []


def test_a_branch_that_was_renamed_there_and_back_has_had_both_names(root):
    git(root, "branch", "-m", "main", "other")
    git(root, "branch", "-m", "other", "main")
    assert names(root, "main") == ["other", "main"]


def test_a_copied_branch_and_one_made_from_another_had_no_other_name(root):
    git(root, "branch", "-c", "main", "copied")
    git(root, "branch", "derived", "copied")
    assert (names(root, "copied"), names(root, "derived")) == ([], [])


def test_a_name_that_is_used_again_has_no_past(root):
    git(root, "branch", "old")
    git(root, "branch", "-m", "old", "new")
    git(root, "branch", "-D", "new")
    git(root, "branch", "new")
    assert names(root, "new") == []


@pytest.mark.parametrize("name", ["nope", "../../config", "a..b", "", "-x", "detached:" + "a" * 40, "x" * 300])
def test_a_name_without_a_reflog_has_no_past(root, name):
    assert names(root, name) == []


def test_names_that_are_not_utf8_are_followed(root):
    old, new = b"caf\xe9", b"th\xe9"
    git(root, "branch", os.fsdecode(old))
    git(root, "branch", "-m", os.fsdecode(old), os.fsdecode(new))
    assert names(root, r"th\xe9") == [r"caf\xe9"]


def test_what_somebody_wrote_into_a_reflog_is_no_name_unless_git_would_take_it(root):
    log = root / ".git/logs/refs/heads/main"
    head = log.read_bytes().split(b"\t")[0]
    for bad in (b"../../x", b"a\\x2fb", b"a b", b""):
        with log.open("ab") as file:
            file.write(head + b"\tBranch: renamed refs/heads/" + bad + b" to refs/heads/main\n")
    assert names(root, "main") == []


def test_a_pipe_in_the_place_of_a_reflog_is_refused_at_once(root):
    from kbcore.errors import GitUnusable

    log = root / ".git/logs/refs/heads/pipe"
    os.mkfifo(log)
    with pytest.raises(GitUnusable, match="not a regular file"):
        names(root, "pipe")
