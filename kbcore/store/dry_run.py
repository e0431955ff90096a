"""A dry run of several writes: each is planned on, and applied to, a view of their own.

So each write sees what those before it would have left, and a dry run answers what the real run answers.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.clock import moment_after
from kbcore.model.record import Record
from kbcore.store.commit import MadeAt, make_draft, make_record
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Planner, Request
from kbcore.text.cursor import request_mark
from kbcore.view.cache_files import CacheFiles
from kbcore.view.pool import ViewPool
from kbcore.view.record_rows import FoldedRecord
from kbcore.view.view import View

_NOWHERE: Final = ""
"""The file of records that no journal holds."""


def unshared_view(workspace: Workspace, branch: str) -> ViewPool:
    """Return the views of a branch for one user, shared with no other; whoever asked for them closes them."""
    files = CacheFiles(workspace.machine.fs, workspace.folders.cache_of(branch))
    return ViewPool(workspace.machine.fs, workspace.readable_directory_of(branch), files)


def take(view: View, author: Author, request: Request, plan: Planner, now: str) -> bool:
    """Plan a changeset on a view and let the view take it in, as if it were committed; tell whether it changed it.

    Raises: what ``plan`` raises; ``LimitExceeded`` as a commit would.
    """
    at, wall = moment_after(view.basis.at, now)
    stamp, draft = make_draft(view, author, plan, at)
    if not draft.changes:
        return False
    _, record = make_record(author, request, draft, stamp, MadeAt(), clock=wall)
    view.mark_unrecorded(_mark_of(view, record))
    entry = FoldedRecord(stamp.seq, "", record, _NOWHERE, 0, 0)
    view.adopt(entry, draft.changes, msgspec.structs.replace(view.basis, seq=stamp.seq, at=stamp.at))
    return True


def _mark_of(view: View, record: Record) -> str:
    """Return a digest of the changes of a dry run up to a record: the same for the same changes at one head."""
    return request_mark(("dry run", view.recorded.sum, view.overlay_mark, record.ops))
