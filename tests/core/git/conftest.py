"""A repository without commits of a test, and how the core opens it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.git import Repository, find_repository
from tests.support.repository.repos import make_repository


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project")


@pytest.fixture
def repo(root: Path) -> Repository:
    return find_repository(root)
