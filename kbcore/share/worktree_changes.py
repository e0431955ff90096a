"""The change files of a worktree: their paths, contents and changes, and which of them HEAD has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from kbcore.extract.changes import CHANGE_FILE, FOLDER
from kbcore.git import blobs
from kbcore.git.worktree_content import Unfit, read
from kbcore.model.claims import change_file
from kbcore.model.claims.change import Change
from kbcore.store.workspace import Workspace
from kbcore.sync.change_sources import change_paths


class NewFiles(msgspec.Struct, frozen=True):
    """The change files of a worktree that are not known as committed, with their changes as far as they are whole.

    HEAD has those in ``committed``: a sync will note it. It lacks those in ``uncommitted``. ``head`` are the paths of
    all change files of HEAD, ``here`` those of them that the worktree has. ``gone`` are those that are known as
    committed and that neither HEAD nor the worktree has: a sync will note that too.
    """

    committed: dict[str, Sequence[Change]] = {}
    uncommitted: dict[str, Sequence[Change]] = {}
    head: frozenset[str] = frozenset()
    here: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()

    def committed_changes(self) -> list[Change]:
        """Return the changes that HEAD has and that no sync has noted."""
        return [change for changes in self.committed.values() for change in changes]


def new_files(workspace: Workspace, branch: str) -> NewFiles:
    """Return the new change files of the worktree; none for a branch that is not checked out there.

    Raises: ``GitUnusable``; what reading the journal raises.
    """
    head = workspace.head()
    if not workspace.repo.has_worktree or branch != head.branch:
        return NewFiles()
    paths = change_paths(workspace.repo.worktree)
    known = workspace.changes(branch).read(lambda index, seq: index.committed_files(seq))
    if not paths and not known:
        return NewFiles()
    there = _paths_at(workspace, head.commit) if head.commit else frozenset[str]()

    def read_all(some: Iterable[str]) -> dict[str, Sequence[Change]]:
        return {path: changes_in(path, content_of(workspace, path)) for path in sorted(some)}

    here = there & paths
    return NewFiles(read_all(here - known), read_all(paths - there), there, here, frozenset(known - paths - there))


def changes_of_head(workspace: Workspace) -> list[Change]:
    """Return the changes in all files of the worktree that HEAD has. Raises: ``GitUnusable``."""
    commit = workspace.head().commit
    paths = change_paths(workspace.repo.worktree) & _paths_at(workspace, commit) if commit else set[str]()
    return [change for path in sorted(paths) for change in changes_in(path, content_of(workspace, path))]


def _paths_at(workspace: Workspace, commit: str) -> frozenset[str]:
    """Return the paths of the change files of a commit; those of the last commit that was asked for are kept."""
    cache, key = workspace.pool.change_paths, workspace.repo.common_dir
    kept = cache.get(key)
    if kept is None or kept[0] != commit:
        found = blobs.paths_below(workspace.repo, workspace.machine.env, commit, FOLDER)
        kept = cache[key] = commit, frozenset(found)
    return kept[1]


def content_of(workspace: Workspace, path: str) -> bytes:
    """Return the content of a change file of the worktree; nothing of one that cannot be read."""
    try:
        return read(str(workspace.repo.worktree / path), CHANGE_FILE)[0]
    except (Unfit, OSError):
        return b""


def changes_in(path: str, data: bytes) -> Sequence[Change]:
    """Return the changes of a file by its path and content; none of one that is refused, which a sync reports."""
    return change_file.decode(data, path.removeprefix(f"{FOLDER}/")).changes
