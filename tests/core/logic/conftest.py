"""Fixtures of a workspace with each engine, and a graph for rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.logic.workspaces import LogicProject, logic_project
from tests.support.repository.repos import git_env
from tests.support.views.graph import Graph, graph_of, link, node


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


@pytest.fixture(scope="module")
def graph() -> Graph:
    """Three entities and two edges."""
    return graph_of(
        [node("A", path="docs/a.md", title="One", status="open"), node("B", owner="ann"), node("C", type="test")],
        [link("A", "depends_on", "B"), link("A", "verified_by", "C")],
    )
