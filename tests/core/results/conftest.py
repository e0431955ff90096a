from __future__ import annotations

import pytest

from tests.core.results.reporting import DOCUMENTS
from tests.support.repository.project import Project


@pytest.fixture
def tested(project: Project) -> Project:
    """A project with a requirement and two tests, of which one verifies it, taken in."""
    project.sync(DOCUMENTS)
    return project
