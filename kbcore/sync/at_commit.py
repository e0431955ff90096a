"""Reads a branch as of a point; of a commit at which no record was made, it is what the commit's documents state."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from kbcore import gc_pause
from kbcore.errors import InvalidQuery
from kbcore.git import blobs
from kbcore.store.branch_store import BranchStore
from kbcore.store.history.moment import WITHOUT_RECORD, Meant, read_meant
from kbcore.store.history.when import SHOWN_COMMIT, When
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import extractors_of
from kbcore.sync.documents import RepositoryDocuments
from kbcore.sync.file_dates import dates_of, document_folders
from kbcore.text.escaping import in_quotes
from kbcore.view.scratch_copy import scratch_copy
from kbcore.view.view import View

T = TypeVar("T")


def read_point(
    workspace: Workspace, store: BranchStore, point: When, use: Callable[[View, Meant], T], *, notes: list[str]
) -> T:
    """Return ``use(view, meant)`` as of a point; what is to be said with the answer is added to ``notes``.

    Raises: as ``moment.read_meant``; ``GitUnusable``; ``StorageError`` when there is no room for a copy.
    """
    try:
        return read_meant(store, point, use, notes=notes)
    except InvalidQuery as error:
        if not (point.commit and error.data.get(WITHOUT_RECORD) == point.commit):
            raise
    said = (
        f"{in_quotes(point.text)} is commit {point.commit[:SHOWN_COMMIT]}, at which no record was made. The answer is "
        "what its documents state, without what people and agents added."
    )

    def of_documents(view: View) -> T:
        with gc_pause.paused(), scratch_copy(view, 0) as copy:
            tree = blobs.tree_of(workspace.repo, workspace.machine.env, point.commit)
            dates = partial(
                dates_of, workspace, point.commit, document_folders(extractors_of(workspace)), is_kept=False
            )
            RepositoryDocuments(workspace, store.claims).sync_tree(copy, tree, dates)
            return use(copy, Meant(copy.seq, said, is_of_documents=True))

    return store.read(of_documents)
