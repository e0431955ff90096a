"""Fixtures of a workspace with each engine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.logic.workspaces import LogicProject, logic_project
from tests.support.repository.repos import git_env


@pytest.fixture(scope="module")
def shared_logic(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogicProject]:
    """A workspace for all tests of a module."""
    with logic_project(tmp_path_factory.mktemp("logic") / "a project", git_env(engine)) as found:
        yield found


@pytest.fixture
def logic(shared_logic: LogicProject) -> LogicProject:
    """An empty workspace, whose engine goes on from test to test."""
    shared_logic.reset()
    return shared_logic
