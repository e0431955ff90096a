"""A repository with documents, and an edge and a priority that only records have."""

from __future__ import annotations

import pytest

from tests.core.editing.renamed import EDGE, FILES
from tests.support.repository.project import Project


@pytest.fixture
def filled(project: Project) -> Project:
    project.sync(FILES)
    project.apply(entities=[{"id": "REQ-1", "priority": "must"}], edges=[EDGE])
    return project
