"""Repositories as an older KB left them: with stores and caches in ``.kb``."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import msgspec

from kbcore.storage import head
from kbcore.storage.fs import RealFs
from kbcore.store import branches
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.places import caches_at, stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import commit_files, git

IGNORED = "/branches/\n/cache/\n"
"""The ignore file of an older KB, whose patterns do not match a link."""


def make_older(root: Path, *, ignored: str = IGNORED) -> None:
    """Turn a repository back into one with the older layout: the marks, the pointer and the place."""
    shown = root / ".kb" / "branches"
    if shown.is_symlink():
        shown.unlink()
    elif shown.is_dir():
        shutil.rmtree(shown)
    (root / ".kb/.gitignore").write_text(ignored)
    for place, name in ((stores_at(root), "branches"), (caches_at(root), "cache")):
        if place.is_dir():
            place.rename(root / ".kb" / name)
        (root / ".kb" / name).mkdir(exist_ok=True)
        (root / ".kb" / name / ".gitignore").write_text("*\n")
    shutil.rmtree(stores_at(root).parent)
    (shown / ".lock").write_text("")
    for path in shown.rglob("head.json"):  # those in the trash too
        of = head.read(RealFs(), path.parent)
        head.publish(RealFs(), path.parent, msgspec.structs.replace(of, features_required=()))


def shown(project: Project) -> Path:
    """Return where an older KB has the stores of a repository, and where this KB shows where they are."""
    return project.root / ".kb/branches"


def facts(root: Path) -> dict[str, bytes]:
    """Return every journal and snapshot of a folder of stores, by its path from there."""
    paths = [path for path in root.rglob("*.jsonl") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def entity(key: str) -> dict[str, str]:
    """Return a requirement for a changeset."""
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open"}


def older_repository(root: Path) -> Path:
    """Make a repository of the older layout: two branches, one in the trash, a cached view, settings in git."""
    project = Project(root)
    project.apply(entities=[entity("A")])
    git(root, "branch", "topic")
    project.apply(branch="topic", entities=[entity("B")])
    git(root, "branch", "gone")
    project.apply(branch="gone", entities=[entity("GONE")])
    git(root, "branch", "-D", "gone")
    branches.collect(project.workspace())
    project.close()
    project.view("main")
    project.close()
    make_older(root)
    commit_files(root, {".kb/config.json": "{}", ".kb/.gitignore": IGNORED})
    return root


class Elsewhere(NoSyncFs):
    """The git directory is on another file system: folders cannot be renamed to it."""

    def replace(self, source: Path, target: Path, *, is_private: bool = False) -> None:
        if ".kb" in source.parts and ".git" in target.parts:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        super().replace(source, target, is_private=is_private)
