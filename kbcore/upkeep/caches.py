"""The cache of one branch as a diagnosis sees it: readable or not, and whether it knows of more than the journal.

A cache is never needed for an answer, so nothing here is worse than a warning, but a view that has seen records
which the journal lacks is the second witness of a loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from kbcore.errors import ViewDamaged
from kbcore.storage import files, journal
from kbcore.upkeep.findings import Finding
from kbcore.viewcache import AHEAD, UNFINISHED, VIEW, is_ahead, open_view
from kbcore.workspace import Workspace


def cache_findings(workspace: Workspace, branch: str) -> Iterator[Finding]:
    """Look at what is cached for a branch.

    Raises: ``Damaged``, ``Incompatible``, ``StorageError`` when its store cannot be read.
    """
    fs, folder = workspace.machine.fs, workspace.cache_of(branch)
    if not files.is_directory(fs, folder):
        return
    with files.explained(folder, "list", reading=True):
        names = sorted(fs.listdir(folder))
    for name in names:
        if name.startswith(AHEAD):
            message = f"{name} had seen records that the journal does not have: an older state was restored, or worse."
            remedy = "If that was meant, delete the file; if not, restore .kb/branches from a backup."
            yield Finding("cache", "warning", "view_ahead", message, remedy, branch, str(folder / name))
    unfinished = [name for name in names if name.startswith(UNFINISHED)]
    if unfinished:
        message = f"{len(unfinished)} unfinished views of processes that ended early."
        remedy = f"Delete {UNFINISHED}* in {folder} while no `kb` runs."
        yield Finding("cache", "note", "unfinished_view", message, remedy, branch, str(folder))
    if VIEW in names:
        yield from _view(workspace, branch)


def _view(workspace: Workspace, branch: str) -> Iterator[Finding]:
    path = workspace.cache_of(branch) / VIEW
    head = journal.read_head(workspace.machine.fs, workspace.directory_of(branch))
    try:
        with open_view(workspace.machine.fs, path) as cached:
            basis, rows = cached.basis, cached.base_rows()
    except ViewDamaged as error:
        reason = str(error).splitlines()[0]
        remedy = "Nothing to do: it is built anew when it is needed."
        yield Finding("cache", "warning", "view_damaged", f"It cannot be read: {reason}", remedy, branch, str(path))
        return
    if is_ahead(basis, head):
        message = f"The cached view has seen record {basis.seq}; the journal ends at {head.seq} without it."
        remedy = "If an older state was restored on purpose, ignore it; if not, restore .kb/branches from a backup."
        yield Finding("cache", "warning", "view_ahead", message, remedy, branch, str(path))
        return
    yield Finding("cache", "ok", "view", f"The view at seq {basis.seq} holds {rows} rows.", "", branch)
