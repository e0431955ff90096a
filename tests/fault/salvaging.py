"""Salvages of a project, and stores that lost their end or went back."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec

from kbcore.maintenance.salvage import Salvaged, salvage
from kbcore.store import branches
from tests.support.disk.damage import (
    FIRST,
    filled,
    flip,
    forget,
    put_back,
)
from tests.support.disk.damage import (
    put as put_keys,
)
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git


def salvaged(project: Project, branch: str = "main") -> list[Salvaged]:
    project.pool.close()
    return salvage(project.workspace(), branch, AUTHOR)


def lose_an_end(root: Path) -> None:
    """Note three acknowledged records after the last one of main: a store that lacks them went back."""
    workspace = Project(root, is_new=False).workspace()
    seen = workspace.place.read("main")
    assert seen is not None
    later = msgspec.structs.replace(seen, seq=seen.seq + 3, hash="e" * 64, length=seen.length + 900)
    assert workspace.place.write("main", later)


def went_back(project: Project, *, branch: bool = False) -> Path:
    """Fill a store, put an earlier copy of it in its place, and damage a record of that; return its directory."""
    directory = filled(project, "ABCDE")
    shutil.copytree(directory, project.root.with_name("earlier"))
    put_keys(project, "FGH")
    forget(project)
    project.view()  # builds and publishes the view of the head
    if branch:
        git(project.root, "branch", "other")
        branches.ensure(project.workspace(), "other")
        put_keys(project, "OP", "other")
    put_back(project, project.root.with_name("earlier"), directory)
    flip(directory / FIRST, b"Title of C")
    return directory
