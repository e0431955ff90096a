"""The files of a branch, for rules: the worktree that has it checked out here, else its last commit.

Nothing outside of the repository is looked at, whatever a path says or a link leads to.
"""

from __future__ import annotations

import os
import posixpath
import stat
from collections.abc import Collection
from functools import cache
from pathlib import Path

from kbcore.errors import KBError
from kbcore.git import blobs, revisions
from kbcore.git.tracked_paths import kept_of
from kbcore.rules.rule import BranchFiles, NotApplicable
from kbcore.store.workspace import Workspace


def tree_of(workspace: Workspace, branch: str) -> BranchFiles:
    """Return the files of a branch; where they are is looked up when needed."""
    return _BranchTree(workspace, branch)


class _BranchTree:
    """The files of one branch."""

    def __init__(self, workspace: Workspace, branch: str) -> None:
        self._workspace = workspace
        self._branch = branch

    def missing(self, paths: Collection[str]) -> set[str]:
        """Return those of these paths at which there is nothing of the repository.

        Raises: ``NotApplicable``.
        """
        plain = {path: posixpath.normpath(path) for path in paths}
        inside = {name for name in plain.values() if not name.startswith(("/", "../")) and name != ".."}
        gone = self._missing(inside - {"."})
        return {path for path, name in plain.items() if name in gone or name not in inside}

    def _missing(self, names: set[str]) -> set[str]:
        repo = self._workspace.repo
        if not names:
            return names
        if repo.has_worktree and self._workspace.head().branch == self._branch:
            return _missing_below(repo.worktree, names)
        try:
            commit = revisions.tip_of(repo, self._workspace.machine.env, self._branch)
            if commit is not None:
                tree = blobs.tree_of(repo, self._workspace.machine.env, commit)
                return kept_of(repo, self._workspace.machine.env, tree).missing(names)
        except KBError as error:
            raise NotApplicable(f"git does not show the files of {self._branch}: {error.message}") from error
        raise NotApplicable(f"{self._branch} is not checked out here and is no branch of git: it has no files.")


def _missing_below(worktree: Path, names: Collection[str]) -> set[str]:
    root = os.path.realpath(worktree)

    @cache
    def folder(name: str) -> str:
        """Return where a folder really is, "" when that is not in the worktree."""
        real = os.path.realpath(os.path.join(root, name))  # noqa: PTH118 - plain calls: there may be many
        return real if real == root or real.startswith(root + os.sep) else ""

    def is_there(name: str) -> bool:
        above, _, last = name.rpartition("/")
        inside = folder(above)
        try:
            about = os.lstat(os.path.join(inside, last)) if inside else None  # noqa: PTH118 - as above
        except (OSError, ValueError):  # a name that no file can have, or a folder that may not be entered
            return False
        if about is None or not stat.S_ISLNK(about.st_mode):
            return about is not None
        return bool(folder(name)) and os.path.exists(folder(name))  # noqa: PTH110 - as above

    return {name for name in names if not is_there(name)}
