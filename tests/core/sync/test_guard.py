"""The last look at git before a sync is committed."""

from __future__ import annotations

import pytest

from kbcore.errors import BranchMoved
from kbcore.sync.checkout import settled
from tests.support.repository.project import Project
from tests.support.repository.repos import commit_files, git


def test_what_git_does_to_head_between_reading_and_committing_refuses_the_commit(project: Project) -> None:
    commit_files(project.root, {"a.md": "a"})
    git(project.root, "branch", "feature")
    read = settled(project.workspace())
    read.guard()
    git(project.root, "commit", "-q", "--allow-empty", "-m", "another commit on the same branch")
    with pytest.raises(BranchMoved, match="git changed what is checked out of main"):
        read.guard()
    read = settled(project.workspace())
    git(project.root, "switch", "-q", "feature")
    with pytest.raises(BranchMoved, match="HEAD moved from main to feature") as refused:
        read.guard()
    assert refused.value.data == {"old": "main", "new": "feature"}
