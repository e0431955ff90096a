"""Stores that are gone while a view of them is still cached: the only sign that somebody else took them away.

KB clears what is cached of a store that it puts away itself.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator

from kbcore import ids
from kbcore.branches.stores import stores
from kbcore.errors import KBError
from kbcore.storage import files, journal
from kbcore.viewcache import ViewCache
from kbcore.workspace import CACHE, Workspace


def seen_of(workspace: Workspace, branch: str) -> int:
    """Return the seq that a cached view of a branch without a store had seen; 0 where nothing says that it had one."""
    if workspace.has_store(branch):
        return 0
    basis = ViewCache(workspace.machine.fs, workspace.cache_of(branch)).basis()
    # A branch begins with the view of what it is about to be copied from.
    return basis.seq if basis and basis.store_id not in _store_ids(workspace) else 0


def _store_ids(workspace: Workspace) -> set[str]:
    found = set[str]()
    for _, directory in stores(workspace):
        with contextlib.suppress(KBError):  # a store that cannot be read is told of by whoever reads it
            found.add(journal.read_head(workspace.machine.fs, directory).store_id)
    return found


def sentence(branch: str, seq: int) -> str:
    """Return what to say of a store that is gone and had come to this seq."""
    return (
        f"The store of {branch} is gone: a cached view had seen it at seq {seq}. If nobody removed it on purpose, "
        "restore .kb/branches from a backup before anything else is written."
    )


def lost(workspace: Workspace) -> Iterator[tuple[str, int]]:
    """Yield the branches without a store of which a view is cached, with the seq that it had seen."""
    fs, folder = workspace.machine.fs, workspace.kb_dir / CACHE
    if not files.is_directory(fs, folder):
        return
    with files.explained(folder, "list", reading=True):
        names = sorted(fs.listdir(folder))
    for name in names:
        branch = ids.decode_branch(name) if stat.S_ISDIR(fs.lstat(folder / name).st_mode) else None
        seq = seen_of(workspace, branch) if branch else 0
        if branch and seq:
            yield branch, seq
