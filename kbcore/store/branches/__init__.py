"""The branches of a repository and their stores: the branch that is meant, the origin of its store, and its removal.

A store is never made of half a history, and never removed while its branch exists anywhere: in a ref, in a worktree,
or as the default branch. What is removed goes to a trash folder first.
"""

from __future__ import annotations

from kbcore.storage.trashed import TRASH
from kbcore.store.branches.choosing import Choice, choose
from kbcore.store.branches.creation import (
    Ensured,
    Suspicion,
    copy_from,
    ensure,
    keep,
    note_ref,
    open_branch,
    suspicion,
)
from kbcore.store.branches.lost import error_of, loss_of, losses
from kbcore.store.branches.origins import BranchOrigin, find_origin, left_over
from kbcore.store.branches.reading import for_reading, for_trying, for_writing, open_to_read, open_to_try
from kbcore.store.branches.stores import BranchInfo, listing, living, missing_between, note_gone, stores
from kbcore.store.branches.trash import (
    KEPT_DAYS,
    CollectedStores,
    Emptied,
    Held,
    Restored,
    Trashed,
    collect,
    empty,
    held,
    kept_until,
    moment_of,
    remembered,
    restore,
)

__all__ = [
    "KEPT_DAYS",
    "TRASH",
    "BranchInfo",
    "BranchOrigin",
    "Choice",
    "CollectedStores",
    "Emptied",
    "Ensured",
    "Held",
    "Restored",
    "Suspicion",
    "Trashed",
    "choose",
    "collect",
    "copy_from",
    "empty",
    "ensure",
    "error_of",
    "find_origin",
    "for_reading",
    "for_trying",
    "for_writing",
    "held",
    "keep",
    "kept_until",
    "left_over",
    "listing",
    "living",
    "loss_of",
    "losses",
    "missing_between",
    "moment_of",
    "note_gone",
    "note_ref",
    "open_branch",
    "open_to_read",
    "open_to_try",
    "remembered",
    "restore",
    "stores",
    "suspicion",
]
