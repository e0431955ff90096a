"""Bring changes into the store of a branch that no file holds, with who made them, as from another branch's store.

The changes stay what they are, so merging twice is merging once, in any direction and order. What the two sides state
differently is contested afterwards; what was taken back on this side stays so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import msgspec

from kbcore import gc_pause, limits
from kbcore.errors import InvalidQuery
from kbcore.errors.remedies import kb
from kbcore.model.claims.change import Change
from kbcore.model.record import MERGE
from kbcore.model.state import Draft, Stamp
from kbcore.store.answers import Outcome
from kbcore.store.branch_store import BranchStore
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author, Request
from kbcore.sync.comparison import follows_from_changes
from kbcore.sync.shared_changes import ChangesInFiles, SharedChanges, newly_contested, plan_changes
from kbcore.view.claim_index import WrittenAt
from kbcore.view.view import View

_SAME: Final = "{branch} cannot be merged into itself."


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
    known = known_changes(ours, [one.id for one in there])
    return [one for one in there if one.id not in known]


def known_changes(store: BranchStore, ids: Collection[str]) -> set[str]:
    """Return those of these changes that are in the journal of a store, in a file, or were in a committed file once.

    One that was only seen in a file which was not committed, and is gone, is none of them.

    Raises: what reading the journal raises.
    """
    index, seq = store.claims(), store.head().seq
    return {*index.seqs_of_known(ids, seq), *index.files_of(ids, seq)}


def merge(
    workspace: Workspace, branch: str, other: str, author: Author, *, message: str = "", dry_run: bool = False
) -> Merged:
    """Bring what clients wrote on another branch into the store of a branch, as one record.

    Raises: ``InvalidQuery`` for the branch itself; ``UnknownBranch``; as ``BranchStore.commit``.
    """
    if branch == other:
        raise InvalidQuery(
            _SAME.format(branch=branch), hint=f"Name another one: {kb('branch', 'list')} lists those that have a store."
        )
    ours, theirs = workspace.store(branch), workspace.store(other)
    return take_over(
        workspace,
        branch,
        msgspec.structs.replace(author, source=MERGE),
        lambda _, __: missing(ours, theirs),
        origins_of=lambda found: theirs.claims().written_at(one.id for one in found),
        request=Request(
            digest=hashlib.sha256(other.encode()).hexdigest(), message=message or f"merge {other}", dry_run=dry_run
        ),
    )


def take_over(
    workspace: Workspace,
    branch: str,
    author: Author,
    find: Callable[[View, Stamp], Sequence[Change]],
    *,
    origins_of: Callable[[Sequence[Change]], Mapping[str, WrittenAt]] = lambda _: {},
    request: Request,
) -> Merged:
    """Bring changes that no file has into the store of a branch, as one record, which ``find`` gets state and stamp of.

    ``origins_of`` returns where they were written, as far as that is known, by their ids.

    Raises: what ``find`` raises; as ``BranchStore.commit``.
    """
    store = workspace.store(branch)
    found: list[Change] = []
    drafts: list[Draft] = []

    def plan(view: View, stamp: Stamp) -> Draft:
        found[:] = find(view, stamp)
        changes = ChangesInFiles({}, (), (), found, origins_of(found))
        is_first = bool(found) and not follows_from_changes(view)
        schema = view.schema(workspace.schema)
        shared = SharedChanges(store.claims(), view.recorded_seq, changes, view=view, schema=schema, is_first=is_first)
        drafts.append(plan_changes(view, stamp, shared))
        return drafts[-1]

    limits_of_store = {"limit_bytes": limits.MAX_RECORD_BYTES, "lock_wait_s": workspace.config.lock_wait_s}
    request = msgspec.structs.replace(request, plans_ahead=True, **limits_of_store)
    commit = workspace.head_commit(branch)
    with gc_pause.paused():
        outcome = store.commit(author, request, plan, guard=None, head_commit=commit, branch=branch)
    contested = newly_contested(drafts[-1].changes) if drafts else ()  # nothing is planned for a retry
    return Merged(outcome, tuple(found), len(contested))
