"""The documents that search keeps for all branches: which of them no branch has any more, and whether they are whole.

They only save time. A branch that cannot be read may have any of them: then all are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kbcore.errors import KBError, ViewDamaged
from kbcore.limits import MIB
from kbcore.maintenance.findings import DoctorFinding
from kbcore.storage import files
from kbcore.store.workspace import Workspace
from kbcore.text.wording import pluralize
from kbcore.view import text_documents
from kbcore.view.database import Room
from kbcore.view.text_index_cache import BODIES


def forget_documents(workspace: Workspace, branches: Iterable[str], *, dry_run: bool = False) -> int:
    """Drop the kept documents that none of these branches holds at its head; return how many those are.

    Their text is missing then in answers from the past, which say so.
    """
    fs, folder = workspace.machine.fs, workspace.folders.cache_dir
    held, stores = set[str](), [workspace.store(branch) for branch in branches]
    try:
        if not stores or files.read_size(fs, folder / BODIES) is None:
            return 0
        for store in stores:
            held |= store.read(text_documents.documents_held)
    except KBError:
        return 0
    return stores[0].texts.forget(held, dry_run=dry_run)


def document_findings(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Look at the documents that are kept. Raises: ``StorageError`` when the cache cannot be read."""
    path = workspace.folders.cache_dir / BODIES
    length_bytes = files.read_size(workspace.machine.fs, path)
    if length_bytes is None:
        return
    try:
        room = Room(folders=(str(path.parent),))
        kept = text_documents.count_kept(str(path), room, length_bytes)
    except ViewDamaged as error:
        message = f"It cannot be read: {str(error).splitlines()[0]}"
        remedy = "Nothing to do: the next search reads the documents again."
        yield DoctorFinding("cache", "warning", "documents_damaged", message, remedy, file=str(path))
        return
    message = (
        f"Search keeps the text of {pluralize(kept, 'document')} for all branches, in {length_bytes / MIB:.1f} MiB."
    )
    yield DoctorFinding("cache", "ok", "documents", message)
