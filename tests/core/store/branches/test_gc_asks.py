"""A branch that is alive again while gc removes its store: the store is where readers look for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.clock import SystemClock
from kbcore.store import branches
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.places import stores_at
from tests.support.repository.project import Project
from tests.support.repository.repos import git


class Alive(NoSyncFs):
    """Makes a branch in git just before the lock of its store is opened, or once that was moved; keeps the renames."""

    def __init__(self, moment: str) -> None:
        super().__init__()
        self.moment = moment
        self.repository: Path | None = None
        self.renamed: list[str] = []

    def come_alive(self, moment: str) -> None:
        if self.repository and moment == self.moment:
            git(self.repository, "branch", "back")
            self.repository = None

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        if path.name == "lock" and path.parent.name == "back":
            self.come_alive("before")
        return super().open(path, flags, mode)

    def replace(self, source: Path, target: Path, *, is_private: bool = False) -> None:
        super().replace(source, target, is_private=is_private)
        self.renamed.append(source.name)
        if source.name == "back":
            self.come_alive("after")


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_store_whose_branch_is_alive_again_is_not_moved_or_comes_back_at_once(tmp_path: Path, moment: str) -> None:
    fs = Alive(moment)
    project = Project(tmp_path / "project", fs=fs)
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    git(project.root, "branch", "back")
    project.view("back")
    git(project.root, "branch", "-D", "back")
    fs.repository = project.root
    fs.renamed.clear()
    done = branches.collect(project.workspace())
    project.close()
    assert (done.removed, done.kept) == ((), ("back", "main"))
    assert done.reasons == {"back": "its branch exists again", "main": "the default branch"}
    assert ("back" in fs.renamed) == (moment == "after")
    assert (stores_at(project.root) / "back/head.json").exists()


class Hurried(SystemClock):
    """A clock on which each look at it takes a second and a half."""

    def __init__(self) -> None:
        self.time_s = 0.0

    def monotonic_s(self) -> float:
        self.time_s += 1.5
        return self.time_s


def test_what_only_dead_stores_have_is_counted_for_a_limited_time(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    project.apply(entities=[{"id": "A", "type": "req", "title": "A", "status": "open"}])
    for name in ("one", "two"):
        git(project.root, "branch", name)
        project.apply(branch=name, entities=[{"id": "B", "type": "req", "title": "B", "status": "open"}])
        git(project.root, "branch", "-D", name)
    found = branches.collect(project.workspace(), dry_run=True).trash
    assert [(one.name, one.facts) for one in found] == [("one", 1), ("two", 1)]
    project.machine.clock = Hurried()
    found = branches.collect(project.workspace(), dry_run=True).trash
    project.close()
    assert [(one.name, one.facts) for one in found] == [("one", 1), ("two", None)]
