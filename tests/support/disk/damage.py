"""Stores that tests damage, put back to an earlier state, and prove again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

from kbcore.maintenance.compacting import compact
from kbcore.maintenance.proof import verify_branch
from kbcore.storage import head, layout
from kbcore.storage.fs import RealFs
from kbcore.store import branches
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.project import Project

FIRST = layout.segment_name(1)
"""The first file of every journal."""


def requirement(key: str, **more: object) -> dict[str, object]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **more}


def put(project: Project, keys: Iterable[str], branch: str | None = None) -> None:
    """Write a record for each key."""
    for key in keys:
        project.apply(branch=branch, entities=[requirement(key)])


def filled(project: Project, keys: str, *, seal_after: str = "") -> Path:
    """Write a record for each key, with a changeset id of its own; return the store's directory."""
    for key in keys:
        project.apply(entities=[requirement(key)], changeset_id=f"for-{key}")
        if key == seal_after:
            compact(project.workspace(), "main")
    return project.workspace().folders.directory_of("main")


def forget(project: Project) -> None:
    """Close what is open, and remove the cached view of main."""
    project.pool.close()
    shutil.rmtree(project.workspace().folders.cache_of("main"), ignore_errors=True)


def put_back(project: Project, saved: Path, directory: Path) -> None:
    """Replace a folder by an earlier copy of it, as a person would; the second witness is left as it is."""
    project.pool.close()
    shutil.rmtree(directory)
    shutil.copytree(saved, directory)


def reset(project: Project, saved: Path, directory: Path) -> None:
    """Replace a folder of one store or of all by an earlier copy, and let the second witness know nothing else."""
    project.machine.fs = NoSyncFs()
    put_back(project, saved, directory)
    for name, store in branches.stores(project.workspace()):
        project.workspace().witness(name).accept(head.read(RealFs(), store))


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file in place, as a failing disk does: all of its names see it."""
    data = change(path.read_bytes())
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


def flip(path: Path, inside: bytes) -> None:
    """Change the last byte of a text in a file."""
    edit(path, lambda data: data.replace(inside, inside[:-1] + b"?"))


def contents(directory: Path) -> dict[str, bytes]:
    """Return the content of each file of a store but its lock."""
    files = (path for path in directory.iterdir() if path.is_file() and path.name != layout.LOCK)
    return {path.name: path.read_bytes() for path in files}


def entities(project: Project, branch: str | None = None) -> set[str]:
    """Return the ids of all entities."""
    return {key for (key,) in project.view(branch).rows("select id from node")}


def is_proven(project: Project, branch: str = "main") -> bool:
    """Tell whether `kb verify` finds the store and its view sound."""
    return verify_branch(project.workspace(), branch, with_view=True).is_sound
