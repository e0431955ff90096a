"""Bring the changes of another branch's store into this one: what clients wrote there, with who did, and no files.

The changes stay what they are, so merging twice is merging once, in any direction and order. What the two sides state
differently is contested afterwards; what was taken back on this side stays so.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from kbcore import limits
from kbcore.errors import InvalidQuery
from kbcore.model.claims.change import Change
from kbcore.model.record import MERGE
from kbcore.model.state import Draft, Stamp
from kbcore.store.answers import Outcome
from kbcore.store.branch_store import BranchStore
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Request
from kbcore.sync.shared_changes import ChangesInFiles, SharedChanges, newly_contested, plan_changes
from kbcore.view.view import View

_SAME: Final = "Name another branch: {branch} has all that it has."


class Merged(msgspec.Struct, frozen=True):
    """The result of a merge: the record, or what it would be, and the changes that were taken over."""

    outcome: Outcome
    changes: tuple[Change, ...]
    contested: int
    """The number of fields that are contested now and were not before."""


def missing(ours: BranchStore, theirs: BranchStore) -> list[Change]:
    """Return the changes that the other store has and this one never had, which no file of the other one holds.

    Raises: what reading the journals raises.
    """
    there = [one.change for one in theirs.claims().unshared(theirs.head().seq)]
    known = ours.claims().bodies([one.id for one in there])
    return [one for one in there if one.id not in known]


def merge(
    workspace: Workspace, branch: str, other: str, author: Author, *, message: str = "", dry_run: bool = False
) -> Merged:
    """Bring what clients wrote on another branch into the store of a branch, as one record.

    Raises: ``InvalidQuery`` for the branch itself; ``UnknownBranch``; as ``BranchStore.commit``.
    """
    if branch == other:
        raise InvalidQuery(_SAME.format(branch=branch), hint="`kb branch` lists those that have a store.")
    ours, theirs = workspace.store(branch), workspace.store(other)
    found: list[Change] = []
    drafts: list[Draft] = []

    def plan(view: View, stamp: Stamp) -> Draft:
        found[:] = missing(ours, theirs)
        shared = SharedChanges(ours.claims(), view.recorded_seq, ChangesInFiles({}, (), (), found))
        drafts.append(plan_changes(view, stamp, shared))
        return drafts[-1]

    request = Request(
        digest=hashlib.sha256(other.encode()).hexdigest(),
        message=message or f"merge {other}",
        dry_run=dry_run,
        limit_bytes=limits.MAX_RECORD_BYTES,
        lock_wait_s=workspace.config.lock_wait_s,
        plans_ahead=True,
    )
    author = msgspec.structs.replace(author, source=MERGE)
    outcome = ours.commit(author, request, plan, guard=None, head_commit=workspace.head_commit(branch), branch=branch)
    return Merged(outcome, tuple(found), len(newly_contested(drafts[-1].changes)))
