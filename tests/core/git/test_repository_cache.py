"""A long-lived process finds the repository once, and again whenever it may be another one."""

from __future__ import annotations

import shutil

import pytest

from kbcore.errors import NotARepository
from kbcore.git import RepositoryCache, find_repository
from tests.support.repository.repos import add_worktree, git, make_repository


@pytest.fixture
def root(tmp_path):
    """A repository, by its real path."""
    return make_repository(tmp_path / "a repository").resolve()


def test_what_was_found_is_not_looked_for_again(root):
    cache = RepositoryCache()
    assert cache.find(root) is cache.find(root)
    assert cache.find(root) == find_repository(root)


def made_bare(root, tmp_path):
    git(root, "config", "core.bare", "true")


def made_bare_in_a_file_of_its_own(root, tmp_path):
    git(root, "config", "extensions.worktreeConfig", "true")
    git(root, "config", "--worktree", "core.bare", "true")


def replaced(root, tmp_path):
    shutil.rmtree(root / ".git")
    make_repository(root)


def moved_elsewhere(root, tmp_path):
    (root / ".git").rename(tmp_path / "elsewhere")
    (root / ".git").write_text(f"gitdir: {tmp_path / 'elsewhere'}\n", encoding="utf-8")


def linked_from_elsewhere(root, tmp_path):
    (root / ".git").rename(tmp_path / "elsewhere")
    (root / ".git").symlink_to(tmp_path / "elsewhere")


def through_another_link(root, tmp_path):
    other = make_repository(tmp_path / "other")
    git(other, "config", "core.bare", "true")
    root.rename(tmp_path / "before")
    root.symlink_to(other)


@pytest.mark.parametrize(
    "change",
    [
        made_bare,
        made_bare_in_a_file_of_its_own,
        replaced,
        moved_elsewhere,
        linked_from_elsewhere,
        through_another_link,
    ],
)
def test_a_change_is_seen_at_once(change, root, tmp_path):
    cache = RepositoryCache()
    cache.find(root)
    change(root, tmp_path)
    assert cache.find(root) == find_repository(root)


def test_a_repository_that_is_gone_is_not_found_any_more(root):
    cache = RepositoryCache()
    cache.find(root)
    shutil.rmtree(root / ".git")
    with pytest.raises(NotARepository):
        cache.find(root)


def test_a_folder_below_and_a_linked_worktree_are_looked_up_every_time(root, tmp_path):
    cache = RepositoryCache()
    (root / "below").mkdir()
    linked = add_worktree(root, tmp_path / "linked", "side").resolve()
    for folder in (root / "below", linked):
        assert cache.find(folder) is not cache.find(folder)
    make_repository(root / "below")
    assert cache.find(root / "below").worktree == root / "below"
