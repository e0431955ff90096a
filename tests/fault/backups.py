"""Backups of a project, and what of them is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.maintenance.backup import back_up, restore
from kbcore.maintenance.compacting import compact
from kbcore.store import branches
from tests.support.disk.damage import put
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git

KEYS = "ABCDE"


def with_two_branches(root: Path) -> Project:
    """Return a new repository whose stores are of ``main``, which was compacted, and of ``side/one``."""
    project = Project(root)
    put(project, KEYS[:3])
    compact(project.workspace(), "main")
    put(project, KEYS[3:])
    git(project.root, "branch", "side/one")
    branches.ensure(project.workspace(), "side/one")
    put(project, "S", "side/one")
    return project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return with_two_branches(tmp_path / "repo")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kb.backup"


def backed_up(project: Project, file: Path, *names: str, **options: bool) -> None:
    back_up(project.workspace(), file, names, tool="kb/test", **options)


def restored(project: Project, file: Path, *names: str, **options: bool):
    project.pool.close()
    return restore(project.workspace(), file, AUTHOR, names, **options)
