"""Backups of a project, and what of them is left."""

from __future__ import annotations

from pathlib import Path

from kbcore.maintenance.backup import back_up, restore
from tests.support.repository.project import AUTHOR, Project

KEYS = "ABCDE"


def backed_up(project: Project, file: Path, *names: str, **options: bool) -> None:
    back_up(project.workspace(), file, names, tool="kb/test", **options)


def restored(project: Project, file: Path, *names: str, **options: bool):
    project.pool.close()
    return restore(project.workspace(), file, AUTHOR, names, **options)
