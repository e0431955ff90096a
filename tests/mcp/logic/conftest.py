"""One server of the toolset logic for all tests of a module, on each engine, and one for a single test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.mcp.prolog_agents import PrologAgent, prolog_agent
from tests.support.repository.project import Project


@pytest.fixture(scope="module")
def repository(engine: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A repository with a small graph."""
    made = Project(tmp_path_factory.mktemp("logic") / "a project")
    made.apply(
        entities=[
            {"id": "REQ-1", "type": "req", "title": "Log in", "status": "open", "tags": ["auth"]},
            {"id": "REQ-2", "type": "req", "title": "Log out", "status": "done"},
        ],
        edges=[{"type": "depends_on", "from": "REQ-2", "to": "REQ-1"}],
    )
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(repository: Project, engine: dict[str, str]) -> Iterator[PrologAgent]:
    """A server for all tests of the module."""
    with prolog_agent(repository.root, engine) as found:
        yield found


@pytest.fixture
def prolog(server: PrologAgent) -> PrologAgent:
    """A client with an empty workspace and no open query."""
    server.reset()
    server.call("query_close")
    return server


@pytest.fixture
def own_prolog(project: Project, engine: dict[str, str]) -> Iterator[PrologAgent]:
    """A client of a server that no other test has."""
    with prolog_agent(project.root, engine) as found:
        yield found
