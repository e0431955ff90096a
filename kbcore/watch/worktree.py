"""What a watcher needs of its worktree: that it is there, and that nobody else watches it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kbcore.errors import AlreadyWatched, GitUnusable, LockTimeout, NotARepository
from kbcore.storage import files, lock
from kbcore.sync import stamps
from kbcore.workspace import CACHE, Workspace


@contextlib.contextmanager
def alone(workspace: Workspace) -> Iterator[None]:
    """Hold the lock of this worktree's watcher.

    Raises: ``AlreadyWatched``.
    """
    fs, cache = workspace.machine.fs, workspace.kb_dir / CACHE
    for folder in (cache.parent, cache):
        if not files.is_directory(fs, folder):
            with files.explained(folder, "make"), contextlib.suppress(FileExistsError):
                fs.mkdir(folder)
    path = stamps.path_of(cache, workspace.repo.worktree).with_suffix(".watch")
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(lock.held(fs, workspace.machine.clock, path, wait_s=0, command="kb watch"))
        except LockTimeout as held:
            holder = lock.read_holder(fs, path) or "another process"
            message = f"{workspace.repo.worktree} is watched already, by {holder}."
            raise AlreadyWatched(message, data=held.data) from held
        yield


@contextlib.contextmanager
def in_its_place(workspace: Workspace) -> Iterator[None]:
    """Say of a worktree that is gone just that, whatever it was that failed for it.

    Raises: ``NotARepository`` in that case.
    """
    repo = workspace.repo
    try:
        yield
    except (NotARepository, GitUnusable) as error:
        if (repo.worktree / ".git").exists() and (repo.git_dir / "HEAD").exists():
            raise
        message = f"This worktree was removed: {repo.worktree}."
        raise NotARepository(message, hint="There is nothing left to watch.") from error
