"""Answers that have what the files of a worktree say."""

from __future__ import annotations

from collections.abc import Callable

from kbcore.sync.overlay import FileState, WorktreeFiles
from kbcore.view.view import View
from tests.support.repository.project import Project

FIRST, SECOND = "docs/requirements/1.md", "docs/requirements/2.md"
TIME_S = 60.0


def ask(
    project: Project, files: WorktreeFiles, use: Callable[[View], object] = lambda _: None
) -> tuple[object, FileState]:
    """Return what ``use`` gives of the view, and how it relates to the files."""
    return files.read(project.workspace(), "main", lambda view, state: (use(view), state), time_s=TIME_S)


def titles(project: Project, files: WorktreeFiles) -> tuple[dict[str, str], str, int | None]:
    """Return the titles of all entities by id, and how the answer relates to the files."""
    found, state = ask(project, files, lambda view: dict(view.rows("select id, title from node order by id")))
    return found, state.freshness, state.pending_files  # type: ignore[return-value]
