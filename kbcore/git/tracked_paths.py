"""Files and folders at the paths of a commit or of the index, links followed.

A link is followed as in a worktree: what it leads to counts, and nothing outside of the repository does.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache, cached_property
from typing import Final

from kbcore.git import blobs
from kbcore.git.blobs import Tree
from kbcore.git.commands import LONG_TIMEOUT_S, run_git
from kbcore.git.repository import Repository
from kbcore.ids import path_text

_ELSEWHERE: Final = frozenset({blobs.LINK, blobs.SUBMODULE})
_MAX_LINKS: Final = 40
"""As many as Linux follows."""

TextOf = Callable[[str], bytes | None]
"""Returns the content of a blob by its name, of a link where it leads; None where it is too large for a document."""


def followed(path: str, tree: Tree, text_of: TextOf) -> str | None:
    """Return the path at which a path leads to something that is no link; None when it leads round in circles.

    What lies in a submodule has its path there: what that holds is not known. Raises: what ``text_of`` raises.
    """
    for _ in range(_MAX_LINKS):
        at = next((one for one in _upwards(path) if one in tree and tree[one].mode in _ELSEWHERE), None)
        if at is None or tree[at].mode == blobs.SUBMODULE:
            return path
        target = path_text(text_of(tree[at].id) or b"")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(at), target, path[len(at) + 1 :]))
    return None


class TrackedFiles:
    """The files that git keeps, with their folders. What lies in a submodule is taken to be there."""

    def __init__(self, tree: Tree, text_of: TextOf) -> None:
        self._tree = tree
        self._modules = {path for path, one in tree.items() if one.mode == blobs.SUBMODULE}
        self._text_of = cache(text_of)

    def missing(self, paths: Collection[str]) -> set[str]:
        """Return those of these paths, from the root, at which there is neither file nor folder.

        Raises: ``GitUnusable``.
        """
        return {path for path in paths if not self._is_there(posixpath.normpath(path))}

    @cached_property
    def _folders(self) -> set[str]:
        holding = {path.rpartition("/")[0] for path in self._tree}
        return {above for folder in holding for above in _upwards(folder)}

    def _is_there(self, path: str) -> bool:
        found = followed(path, self._tree, self._text_of)
        if found is None:
            return False
        if found == "." or found in self._tree or found in self._folders:
            return True
        return any(one in self._modules for one in _upwards(found))


def kept_of(repo: Repository, env: Mapping[str, str], tree: Tree) -> TrackedFiles:
    """Return the files of a tree of this repository."""
    return TrackedFiles(tree, lambda name: dict(blobs.contents(repo, env, [name]))[name])


def listed_paths(repo: Repository, env: Mapping[str, str]) -> list[str]:
    """Return the files of the worktree that git tracks, and those that it neither tracks nor ignores.

    A tracked file need not be there. Raises: ``GitUnusable``.
    """
    asked = ["ls-files", "-z", "--full-name", "--cached", "--others", "--exclude-standard", "--", ":(top)"]
    listed = run_git(repo, env, asked, timeout_s=LONG_TIMEOUT_S).output
    return list(dict.fromkeys(path_text(entry) for entry in listed.split(b"\0") if entry))


def _upwards(path: str) -> Iterator[str]:
    """Yield a path and the folders that it lies in."""
    while path and path != "/":
        yield path
        path = posixpath.dirname(path)
