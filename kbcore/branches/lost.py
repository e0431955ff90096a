"""Stores that are gone while a view of them is still cached: the only sign that somebody else took them away.

KB clears what is cached of a store that it puts away itself. The view of any other is kept until a person deletes it.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator

from kbcore import ids
from kbcore.storage import files
from kbcore.view.basis import Basis
from kbcore.viewcache import ViewCache, is_lost
from kbcore.workspace import Workspace


def seen_of(workspace: Workspace, branch: str) -> int:
    """Return the seq that a cached view of a branch without a store had seen; 0 where nothing says that it had one."""
    if workspace.has_store(branch):
        return 0
    cache = _cache_of(workspace, branch)
    # What an earlier try to begin anew has set aside counts as well.
    seen = [one.seq for one in cache.kept() if one.is_of_lost_store]
    basis = _left(workspace, branch, cache)
    return max([*seen, basis.seq] if basis else seen, default=0)


def keep(workspace: Workspace, branch: str) -> str:
    """Set the view aside that is left of a branch's store, and return what to say of the loss; "" where there is none.

    The caller holds the repository lock, and is about to begin a new store.
    """
    seq = seen_of(workspace, branch)
    if not seq:
        return ""
    cache = _cache_of(workspace, branch)
    basis = _left(workspace, branch, cache)
    if basis:
        cache.set_aside_lost(basis)
    kept = ", ".join(str(one.path) for one in cache.kept() if one.is_of_lost_store)
    said = sentence(branch, seq)
    return f"{said} The view is kept as {kept}, until you delete it." if kept else said


def _left(workspace: Workspace, branch: str, cache: ViewCache) -> Basis | None:
    """Return what the published view of a branch stands on, if it is all that is left of a store."""
    basis = cache.basis()
    # A branch may begin with the view of what it is about to be copied from.
    is_left = basis is not None and is_lost(workspace.machine.fs, workspace.directory_of(branch), basis)
    return basis if is_left else None


def _cache_of(workspace: Workspace, branch: str) -> ViewCache:
    return ViewCache(workspace.machine.fs, workspace.cache_of(branch))


def sentence(branch: str, seq: int) -> str:
    """Return what to say of a store that is gone and had come to this seq."""
    return (
        f"The store of {branch} is gone: a cached view had seen it at seq {seq}, and it may have gone on since. "
        "If nobody removed it on purpose, restore its store from a backup before anything else is written."
    )


def lost(workspace: Workspace) -> Iterator[tuple[str, int]]:
    """Yield the branches without a store of which a view is cached, with the seq that it had seen."""
    fs, folder = workspace.machine.fs, workspace.cache_dir
    if not files.is_directory(fs, folder):
        return
    with files.explained(folder, "list", reading=True):
        names = sorted(fs.listdir(folder))
    for name in names:
        branch = ids.decode_branch(name) if stat.S_ISDIR(fs.lstat(folder / name).st_mode) else None
        seq = seen_of(workspace, branch) if branch else 0
        if branch and seq:
            yield branch, seq
