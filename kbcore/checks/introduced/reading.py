"""The facts of worktree files whose content is the one that the branch has recorded."""

from __future__ import annotations

from collections.abc import Callable, Collection

from kbcore.extract.facts import Facts
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import extractors_of
from kbcore.sync.scan import found_at
from kbcore.view.view import View


def facts_now(workspace: Workspace, view: View, branch: str, paths: Collection[str]) -> Callable[[str], Facts | None]:
    """Return what gives the facts of one of these files; None where it is not what the branch has recorded."""
    if not workspace.repo.has_worktree or workspace.head().branch != branch:
        return lambda _: None
    wants = extractors_of(workspace)
    taken_in = {one.path: one.hash for one in view.sources(sorted(paths))}

    def facts(path: str) -> Facts | None:
        found = found_at(workspace.repo.worktree, wants, path)
        return found.facts if found and taken_in.get(path) == found.hash else None

    return facts
