"""The states that can be seen while git renames a branch."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kbcore.git import find_repository
from kbcore.git.reflog import is_given_up, is_renaming
from tests.support.repository.repos import git, git_env, make_repository

ENV = git_env()
LATER_NS = 3_000_000_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = make_repository(tmp_path / "project")
    git(made, "branch", "feature/old")
    return made


def between(root: Path, later_ns: int = 0) -> bool:
    return is_renaming(find_repository(root), ENV, time.time_ns() + later_ns)


def given_up(root: Path, branch: str) -> bool:
    return is_given_up(find_repository(root), ENV, branch)


def test_nothing_is_renamed_in_a_repository_where_branches_come_and_go(root: Path) -> None:
    assert not between(root)
    git(root, "branch", "-m", "feature/old", "new")
    git(root, "branch", "-D", "new")
    assert not between(root)
    git(root, "pack-refs", "--all")
    assert not between(root)


def test_a_reflog_that_is_aside_or_has_no_ref_is_of_a_rename(root: Path) -> None:
    log, aside = root / ".git/logs/refs/heads/feature/old", root / ".git/logs/refs/.tmp-renamed-log"
    log.rename(aside)
    assert between(root)
    git(root, "update-ref", "-d", "refs/heads/feature/old")
    assert between(root)
    aside.rename(root / ".git/logs/refs/heads/new")
    assert between(root)
    git(root, "branch", "new")
    assert not between(root)


def test_git_is_not_started_to_see_whether_a_branch_is_renamed(root: Path) -> None:
    git(root, "pack-refs", "--all")
    repo, without_git = find_repository(root), {"PATH": ""}
    assert not is_renaming(repo, without_git, time.time_ns())
    assert not is_given_up(repo, without_git, "feature/old")
    (root / ".git/logs/refs/heads/nobody").write_bytes(b"")
    assert is_renaming(repo, without_git, time.time_ns())


@pytest.mark.parametrize("left", [".tmp-renamed-log", "heads/nobody"])
def test_what_a_git_that_was_killed_left_is_no_rename(root: Path, left: str) -> None:
    (root / ".git/logs/refs" / left).write_bytes(b"")
    assert between(root)
    assert not between(root, LATER_NS)


def test_a_name_is_given_up_when_its_branch_is_called_otherwise(root: Path) -> None:
    git(root, "branch", "-m", "feature/old", "middle")
    git(root, "branch", "-m", "middle", "new")
    assert [name for name in ("feature/old", "middle", "new", "main", "nobody") if given_up(root, name)] == [
        "feature/old",
        "middle",
    ]
    git(root, "branch", "middle")
    assert not given_up(root, "middle")


def test_a_repository_without_commits_has_given_up_nothing(tmp_path: Path) -> None:
    made = make_repository(tmp_path / "project", commits=0)
    assert not between(made)
    assert not given_up(made, "main")
