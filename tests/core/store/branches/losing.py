"""Stores that lose records: put back to an earlier copy, replaced, or removed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kbcore.errors import StoreWentBack
from kbcore.maintenance import epochs
from kbcore.storage import head as heads
from kbcore.store.branches import lost
from tests.support.repository.project import AUTHOR, Project


def put(project: Project, *names: str) -> None:
    for name in names:
        project.apply(entities=[{"id": name, "type": "req", "title": "T", "status": "open"}])


def store_of(project: Project, branch: str = "main") -> Path:
    return project.workspace().folders.directory_of(branch)


def copied(project: Project, branch: str = "main") -> Path:
    """Return a copy of the store as it is now."""
    aside = project.root.parent / f"copy of {branch}"
    shutil.rmtree(aside, ignore_errors=True)
    return Path(shutil.copytree(store_of(project, branch), aside))


def put_back(project: Project, copy: Path, branch: str = "main") -> None:
    project.close()
    shutil.rmtree(store_of(project, branch))
    shutil.copytree(copy, store_of(project, branch))


def sentence(project: Project, branch: str = "main") -> str:
    loss = lost.loss_of(project.workspace(), branch)
    return loss.sentence() if loss else ""


def refused(project: Project) -> str:
    with pytest.raises(StoreWentBack) as caught:
        put(project, "LATER")
    return str(caught.value)


def went_back(project: Project) -> str:
    """Write four records, put the store back to two, and return the id of the store."""
    put(project, "A", "B")
    copy = copied(project)
    put(project, "C", "D")
    put_back(project, copy)
    return heads.read(project.machine.fs, store_of(project)).store_id


def accepted(project: Project, branch: str = "main") -> epochs.NewEpoch:
    return epochs.accept(project.workspace(), branch, AUTHOR)


def fresh(project: Project, root: Path | None = None) -> Project:
    """Return the same repository, or one elsewhere, as another process sees it."""
    project.close()
    return Project(root or project.root, is_new=False)
