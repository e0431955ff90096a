"""Projects with a secret in their store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kbcore.maintenance.compacting import compact
from kbcore.store.pool import Machine
from tests.core.maintenance.redaction.redacting import (
    SECRET,
    entity,
)
from tests.support.repository.project import Project
from tests.support.repository.repos import git_env


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A repository of a user with a folder for the notes of the second witness."""
    made = Project(tmp_path / "a project")
    made.machine = Machine(made.machine.fs, made.machine.clock, git_env({"XDG_STATE_HOME": str(tmp_path / "state")}))
    yield made
    made.close()


@pytest.fixture
def filled(project: Project) -> Project:
    """A store with a secret in values of several kinds, a snapshot after some, and cached files."""
    project.apply(changeset_id="one", entities=[entity("REQ-1", title=f"Log in with {SECRET}!")])
    project.apply(
        changeset_id="two",
        message=f"use {SECRET}",
        entities=[entity("REQ-2", tags=["a", SECRET], attributes={"deep": {"list": [1, {SECRET: f"x{SECRET}y"}]}})],
        edges=[{"type": "depends_on", "from": "REQ-2", "to": "REQ-1", "attributes": {"note": SECRET}}],
    )
    compact(project.workspace(), "main")
    project.apply(changeset_id="three", entities=[entity("REQ-3")])
    project.close()  # the next view is built and published
    project.view()
    return project
