"""Fixtures that many tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.project import Project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A repository on branch main with an empty KB; its path holds a space."""
    made = Project(tmp_path / "a project")
    yield made
    made.close()
