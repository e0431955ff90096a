"""The lock of those who change documents: one process at a time in a worktree, from reading a document to its record.

It binds KB's own commands only. A person's editor does not ask for it: a file that was saved after it was read is
refused (``documents.commit``), except in the moment between the last look at it and its replacement.

Order: this lock comes first. While it is held the lock of the repository and that of the branch may be taken; whoever
holds one of those never waits for this one. The lock of the reservations of ids (``store.id_allocation``) is held for
no other lock.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from kbcore.storage import lock
from kbcore.store.branches.stores import make_data_dir
from kbcore.store.workspace import Workspace


@contextlib.contextmanager
def held(workspace: Workspace, *, command: str, dry_run: bool) -> Iterator[None]:
    """Hold the lock of the worktree's documents; a dry run writes none and needs no lock, nor does a bare repository.

    ``command`` names the holder in messages of others.

    Raises: ``LockTimeout`` after the time that the project sets; as ``stores.make_data_dir`` and ``lock.held``.
    """
    if dry_run or not workspace.repo.has_worktree:
        yield
        return
    make_data_dir(workspace)
    machine, wait_s = workspace.machine, workspace.config.lock_wait_s
    with lock.held(machine.fs, machine.clock, _path(workspace), wait_s=wait_s, command=command):
        yield


def _path(workspace: Workspace) -> Path:
    """Return the lock file. It is with the stores: a cache may be deleted at any time.

    The name is made of the place of the worktree's own git directory in the common one, which is the same wherever
    the repository is mounted.
    """
    place = os.path.relpath(workspace.repo.git_dir, workspace.repo.common_dir)
    mark = hashlib.sha256(os.fsencode(place)).hexdigest()[:16]
    return workspace.folders.branches_dir / f".documents-{mark}.lock"
