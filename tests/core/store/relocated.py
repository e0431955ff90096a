"""Projects of the older layout as a command opens them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from kbcore.clock import SystemClock
from kbcore.store.pool import Machine
from kbcore.store.workspace import Workspace
from tests.support.disk.faultfs import NoSyncFs
from tests.support.repository.project import Project
from tests.support.repository.repos import git, git_env

NO_SYNC = NoSyncFs()


def req(key: str) -> dict[str, str]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open"}


def opened(project: Project, fs: Any = None) -> Workspace:
    if fs is not None:
        project = Project(project.root, fs=fs, is_new=False)
    return project.workspace()


def status_of(project: Project) -> str:
    return git(project.root, "status", "--porcelain", "--untracked-files=all")


class Interrupted(NoSyncFs):
    """Lets another process act just before the first change below a folder, or of the folder itself."""

    def __init__(self, folder: Path, other: Callable[[], object]) -> None:
        super().__init__()
        self.folder, self.others = folder, [other]

    def _before(self, path: Path) -> None:
        if self.others and path.is_relative_to(self.folder):
            self.others.pop()()

    def listdir(self, path: Path) -> list[str]:
        self._before(path)
        return super().listdir(path)

    def unlink(self, path: Path) -> None:
        self._before(path)
        super().unlink(path)

    def rmdir(self, path: Path) -> None:
        self._before(path)
        super().rmdir(path)

    def replace(self, source: Path, target: Path, *, is_private: bool = False) -> None:
        self._before(source)
        super().replace(source, target, is_private=is_private)


def in_worktree(root: Path, tmp_path: Path) -> Project:
    """Return a project whose user keeps stores in the worktree."""
    settings = tmp_path / "config/kb/config.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text('{"store": "worktree"}')
    project = Project(root, is_new=False)
    project.machine = Machine(NO_SYNC, SystemClock(), {**git_env(), "XDG_CONFIG_HOME": str(tmp_path / "config")})
    return project
