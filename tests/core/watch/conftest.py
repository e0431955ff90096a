"""A repository that is watched while a test changes it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.core.watch.watching import ONE
from tests.support.repository.project import Project, req
from tests.support.repository.repos import commit_files
from tests.support.repository.watched import Watched


@pytest.fixture
def watched(project: Project) -> Iterator[Watched]:
    """A watcher on a repository with one document and nothing else."""
    commit_files(project.root, {ONE: req("REQ-1")})
    with Watched(project.root) as made:
        yield made
