"""The cache of one branch as a diagnosis sees it: readable or not, and whether it has more records than the journal.

A cache is never needed for an answer, so nothing here is worse than a warning. A view that has seen records which the
store lacks is reported for as long as it is there: they may be recovered from it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kbcore.errors import Damaged, Incompatible, ViewDamaged
from kbcore.errors.remedies import shell
from kbcore.limits import MIB
from kbcore.maintenance.findings import DoctorFinding
from kbcore.storage import files, journal, layout
from kbcore.store.workspace import Workspace
from kbcore.text.wording import pluralize
from kbcore.view import claim_database, text_index
from kbcore.view.base import open_view
from kbcore.view.cache_files import CLAIMS, TEXT, UNFINISHED, VIEW, CacheFiles, refuse_log
from kbcore.view.opening import is_ahead


def cache_findings(workspace: Workspace, branch: str) -> Iterator[DoctorFinding]:
    """Look at what is cached for a branch.

    Raises: ``StorageError`` when the cache or the head cannot be read, ``UnknownBranch`` when the store went meanwhile.
    """
    fs, folder = workspace.machine.fs, workspace.folders.cache_of(branch)
    if not files.is_directory(fs, folder):
        return
    with files.explained(folder, "list", reading=True):
        names = sorted(fs.listdir(folder))
    yield from views_set_aside(workspace, branch)
    unfinished = [name for name in names if name.startswith(UNFINISHED)]
    if unfinished:
        message = f"{pluralize(len(unfinished), 'unfinished view')} of processes that ended early."
        remedy = f"{shell('gc', lead='Run')} when they are a day old: it removes them."
        yield DoctorFinding("cache", "note", "unfinished_view", message, remedy, branch, str(folder))
    if VIEW in names:
        yield from _view(workspace, branch)
    if TEXT in names:
        yield from _text(workspace, branch)
    if CLAIMS in names:
        yield from _claims(workspace, branch)


def views_set_aside(workspace: Workspace, branch: str) -> Iterator[DoctorFinding]:
    """Find the views that were set aside because they know of what the store of a branch does not have."""
    for kept in CacheFiles(workspace.machine.fs, workspace.folders.cache_of(branch)).kept():
        path = str(kept.path)
        message = f"{path} had seen records up to seq {kept.seq} that the store does not have."
        yield DoctorFinding("cache", "warning", "view_ahead", message, _remedy(workspace, branch), branch, path)


def _remedy(workspace: Workspace, branch: str) -> str:
    restored = layout.restore_command(workspace.folders.directory_of(branch), branch)
    return f"If that was meant, delete the file; if not, bring them back with {restored}."


def _damaged(code: str, error: ViewDamaged, remedy: str, branch: str, path: Path) -> DoctorFinding:
    message = f"It cannot be read: {str(error).splitlines()[0]}"
    return DoctorFinding("cache", "warning", code, message, remedy, branch, str(path))


def _text(workspace: Workspace, branch: str) -> Iterator[DoctorFinding]:
    """Look at the index of text."""
    path = workspace.folders.cache_of(branch) / TEXT
    try:
        refuse_log(workspace.machine.fs, path)
        length_bytes = files.read_size(workspace.machine.fs, path) or 0
        seq, entities = text_index.inspect(str(path))
    except ViewDamaged as error:
        yield _damaged("text_damaged", error, "Nothing to do: it is rebuilt by the next search.", branch, path)
        return
    message = f"The text index at seq {seq} holds {pluralize(entities, 'entity')} in {length_bytes / MIB:.1f} MiB."
    yield DoctorFinding("cache", "ok", "text", message, "", branch)


def _claims(workspace: Workspace, branch: str) -> Iterator[DoctorFinding]:
    """Look at the index of changes."""
    path = workspace.folders.cache_of(branch) / CLAIMS
    try:
        changes = claim_database.inspect(path)
    except ViewDamaged as error:
        yield _damaged("claims_damaged", error, "Nothing to do: it is made again when it is needed.", branch, path)
        return
    yield DoctorFinding(
        "cache", "ok", "claims", f"The index of changes has {pluralize(changes, 'change')}.", "", branch
    )


def _view(workspace: Workspace, branch: str) -> Iterator[DoctorFinding]:
    fs, directory, path = (
        workspace.machine.fs,
        workspace.folders.directory_of(branch),
        workspace.folders.cache_of(branch) / VIEW,
    )
    try:
        with open_view(fs, path) as cached:
            basis, rows = cached.basis, cached.base_rows()
    except ViewDamaged as error:
        yield _damaged("view_damaged", error, "Nothing to do: it is rebuilt when it is needed.", branch, path)
        return
    try:
        head = journal.read_head(fs, directory)
    except (Damaged, Incompatible):  # the journal's own check says so, with its remedy
        message = f"The view at seq {basis.seq} holds {pluralize(rows, 'row')}; there is no head to compare it with."
        yield DoctorFinding("cache", "note", "view", message, branch=branch)
        return
    if is_ahead(basis, head):
        message = f"The cached view has seen record {basis.seq}; the journal ends at {head.seq} without it."
        yield DoctorFinding("cache", "warning", "view_ahead", message, _remedy(workspace, branch), branch, str(path))
        return
    yield DoctorFinding(
        "cache", "ok", "view", f"The view at seq {basis.seq} holds {pluralize(rows, 'row')}.", "", branch
    )
