"""A watcher's worktree: it exists, and no other process watches it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kbcore.errors import AlreadyWatched, GitUnusable, NotARepository
from kbcore.storage import lock
from kbcore.store.branches.stores import make_data_dir
from kbcore.store.workspace import Workspace
from kbcore.sync import stamps


@contextlib.contextmanager
def watch_lock(workspace: Workspace) -> Iterator[None]:
    """Hold the lock of this worktree's watcher. It is with the stores: a cache may be deleted at any time.

    Raises: ``AlreadyWatched``.
    """
    fs, place = workspace.machine.fs, workspace.folders.branches_dir
    make_data_dir(workspace)
    path = place / f".watch-{stamps.mark_of(workspace.repo.worktree)}.lock"
    already = f"{workspace.repo.worktree} is watched already"
    clock = workspace.machine.clock
    with lock.alone(fs, clock, path, command="kb watch", refusal=AlreadyWatched, already=already):
        yield


def is_removed(workspace: Workspace) -> bool:
    """Return whether this worktree is gone; one without permission to read is not."""
    for path in (workspace.repo.worktree / ".git", workspace.repo.git_dir / "HEAD"):
        try:
            path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:  # there is something
            continue
    return False


@contextlib.contextmanager
def explaining_removal(workspace: Workspace) -> Iterator[None]:
    """Raise one error for a worktree that is gone, whatever failed for it.

    Raises: ``NotARepository`` in that case.
    """
    try:
        yield
    except (NotARepository, GitUnusable) as error:
        if not is_removed(workspace):
            raise
        message = f"This worktree was removed or moved: {workspace.repo.worktree}."
        raise NotARepository(message, hint="There is nothing left to watch here.") from error
