"""The index, and what git leaves out of the worktree or ignores."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.git import find_repository, staging
from tests.support.repository.repos import commit_files, git, git_env, make_repository

ENV = git_env()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "repo")


def test_what_git_ignores_is_what_it_does_not_keep(root):
    commit_files(root, {".gitignore": "docs/\n"})
    (root / "docs").mkdir()
    (root / "docs/kept.md").write_text("x")
    git(root, "add", "--force", "docs/kept.md")
    repo = find_repository(root)
    assert staging.ignored(repo, ENV, ["docs/kept.md", "docs/other.md", "src/x"]) == {"docs/other.md"}
    assert staging.ignored(repo, ENV, []) == set()
