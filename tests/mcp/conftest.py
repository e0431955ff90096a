"""Servers that the tests of one module share: starting one costs more than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mcp.agents import MODES, Agent, agent
from tests.support.repository.project import Project


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A repository on branch main with an empty KB."""
    made = Project(tmp_path_factory.mktemp("shared") / "a project")
    yield made
    made.close()


@pytest.fixture(scope="module", params=MODES)
def each_era(request: pytest.FixtureRequest, shared: Project) -> Iterator[Agent]:
    """An agent of either era on the shared repository."""
    with agent(shared.root, mode=request.param) as found:
        yield found


@pytest.fixture(scope="module")
def kb(shared: Project) -> Iterator[Agent]:
    """An agent on the shared repository."""
    with agent(shared.root) as found:
        yield found
