"""The index, and what git leaves out of the worktree or ignores."""

from __future__ import annotations

from kbcore.git import find_repository, staging
from tests.support.repository.repos import commit_files, git, git_env

ENV = git_env()


def test_what_git_ignores_is_what_it_does_not_keep(root):
    commit_files(root, {".gitignore": "docs/\n"})
    (root / "docs").mkdir()
    (root / "docs/kept.md").write_text("x")
    git(root, "add", "--force", "docs/kept.md")
    repo = find_repository(root)
    assert staging.ignored(repo, ENV, ["docs/kept.md", "docs/other.md", "src/x"]) == {"docs/other.md"}
    assert staging.ignored(repo, ENV, []) == set()
