"""The files of a commit, or of the index, for rules that ask whether a file is there.

A link is followed as in a worktree: what it leads to counts, and nothing outside of the repository does.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Collection, Iterator
from functools import cache
from typing import Final

from kbcore.git import Tree, blobs
from kbcore.workspace import Workspace

_MAX_LINKS: Final = 40


class Kept:
    """The files that git keeps, with their folders. What lies below a submodule is taken to be there."""

    def __init__(self, tree: Tree, text_of: Callable[[str], bytes | None]) -> None:
        """Take a tree, and what returns the content of a blob by its name: a link's is where it leads."""
        self._there = {folder for path in tree for folder in _upwards(path)}
        self._elsewhere = {path: one for path, one in tree.items() if one.mode in {blobs.LINK, blobs.SUBMODULE}}
        self._text_of = cache(text_of)

    def missing(self, paths: Collection[str]) -> set[str]:
        """Return those of these paths, from the root, at which there is neither file nor folder.

        Raises: ``GitUnusable``.
        """
        return {path for path in paths if not self._is_there(posixpath.normpath(path))}

    def _is_there(self, path: str) -> bool:
        for _ in range(_MAX_LINKS):
            at = next((one for one in _upwards(path) if one in self._elsewhere), None)
            if at is None:
                return path == "." or path in self._there
            if self._elsewhere[at].mode == blobs.SUBMODULE:
                return True
            target = os.fsdecode(self._text_of(self._elsewhere[at].id) or b"")
            path = posixpath.normpath(posixpath.join(posixpath.dirname(at), target, path[len(at) + 1 :]))
        return False


def kept_of(workspace: Workspace, tree: Tree) -> Kept:
    """Return the files of a tree of this repository."""
    repo, env = workspace.repo, workspace.machine.env
    return Kept(tree, lambda name: dict(blobs.contents(repo, env, [name]))[name])


def _upwards(path: str) -> Iterator[str]:
    """Yield a path and the folders that it lies in."""
    while path and path != "/":
        yield path
        path = posixpath.dirname(path)
