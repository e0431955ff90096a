"""The changes of a branch that are in no committed file: which a project shares, and which not, and why."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import msgspec

from kbcore.extract.changes import is_pack_file
from kbcore.model.claims.change import Change
from kbcore.share.faults import Fault, fault_of
from kbcore.share.privacy import Privacy, private_changes
from kbcore.share.worktree_changes import NewFiles, new_files
from kbcore.store.workspace import Workspace
from kbcore.view.claim_index import ClaimIndex, HeldChange


class Unshared(msgspec.Struct, frozen=True):
    """A change that no committed file holds. ``file`` is the file of the worktree that holds it, "" for none.

    ``withheld`` says why it is not shared, "" where it is to be; ``place`` what it is about in the change.
    """

    seq: int
    change: Change
    file: str = ""
    withheld: Privacy | Fault | Literal[""] = ""
    place: str = ""


def find_unshared(
    workspace: Workspace,
    branch: str,
    *,
    again: Sequence[HeldChange] = (),
    released: Collection[str] = (),
    since: int = 0,
    new: NewFiles | None = None,
) -> list[Unshared]:
    """Return the changes of a branch that no file of HEAD holds, in the order of their records.

    They were never in a committed file; or they were, and are in a file of the worktree that HEAD lacks, as after
    ``git reset HEAD~1``. A new pack replaces files of HEAD: what these hold is not listed, unless it is redacted.
    Changes that are withdrawn are left out, but for those in ``again``; and those of records up to ``since``, but for
    those that a file of the worktree holds.

    Of the actors in ``released``, changes are shared that were private when they were written and are not any more. So
    is such a change that a file of the worktree holds already, or a committed one held. DuckDB is needed only where
    `share.types` asks for the type of an entity that no change states, and where a change names an entity that a
    private one created.

    ``new`` are the files that ``new_files`` returns, where the caller has read them.

    Raises: ``InvalidConfig``; what reading the journal and git raise.
    """
    new = new or new_files(workspace, branch)
    committed = {change.id: change for change in new.committed_changes()}
    written = {change.id: path for path, changes in new.uncommitted.items() for change in changes}
    others = {change.id: change for changes in new.uncommitted.values() for change in changes}

    def is_news(change: Change) -> bool:
        return change.is_redacted or not is_pack_file(written[change.id])

    def find(index: ClaimIndex, seq: int) -> list[HeldChange]:
        found = {one.change.id: one for one in (*index.unshared(seq, since), *again)}
        seqs = index.seqs_of_known(others.keys() - found.keys(), seq)
        files = index.files_ever_of(seqs)
        found |= {
            key: HeldChange(others[key], number, ())
            for key, number in seqs.items()
            if files.get(key, set()).isdisjoint(new.here if is_news(others[key]) else new.head)
        }
        return [one for key, one in found.items() if key not in committed]

    found = sorted(workspace.changes(branch).read(find), key=lambda one: one.seq)
    public = {*written, *(one.change.id for one in again)}
    reasons = private_changes(
        workspace, branch, found, [*committed.values()], lambda one: one.id in public or one.actor in released
    )
    judged = []
    for one in found:
        reason, place = reasons.get(one.change.id) or fault_of(one.change)
        judged.append(Unshared(one.seq, one.change, written.get(one.change.id, ""), reason, place))
    return judged


def find_withdrawn(workspace: Workspace, branch: str, new: NewFiles | None = None) -> list[HeldChange]:
    """Return the changes of a branch that were in a committed file and that no file holds any more.

    A file that comes, committed or not, or that goes counts before a sync notes it. ``new`` is as in ``find_unshared``.

    Raises: what reading the journal and git raise.
    """
    new = new or new_files(workspace, branch)
    found = workspace.changes(branch).read(lambda index, seq: index.withdrawn(seq, new.gone))
    again = {change.id for files in (new.committed, new.uncommitted) for each in files.values() for change in each}
    return [one for one in found if one.change.id not in again]
