"""The record that a commit has the change files which were written for it, made without a view of the store.

Of a file that was written from the records of this store, and that no record knows, nothing follows but the record
that it is there and committed. In all other cases a sync finds out what follows, and nothing is written here.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Sequence

from kbcore import limits
from kbcore.clock import moment_after
from kbcore.extract.changes import FOLDER
from kbcore.git import blobs
from kbcore.model import record
from kbcore.model.claims.change import Change, union
from kbcore.model.record import SYNC, Operation, ReadSource, Record, TakeChange
from kbcore.share.worktree_changes import changes_in
from kbcore.storage import journal, known_damage
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author
from kbcore.sync.change_sources import change_mark
from kbcore.view.claim_index import ClaimIndex


def note_committed(
    workspace: Workspace,
    branch: str,
    commit: str,
    paths: Sequence[str],
    author: Author,
    *,
    is_same: Callable[[], bool],
    done: Callable[[], None],
) -> bool:
    """Record that a commit has these change files, which no record knows; return whether that was recorded.

    ``is_same`` says whether the store has the records that the files were written from, and no more; ``done`` is called
    after the record is written. Both are called while the branch is locked. False is returned where more follows from
    the files than that they are there.

    Raises: ``GitUnusable``; what reading and writing the journal raise.
    """
    machine, folders = workspace.machine, workspace.folders
    tree = blobs.tree_below(workspace.repo, machine.env, commit, FOLDER)
    names = {path: tree[path].id for path in paths if path in tree}
    contents = dict(blobs.contents(workspace.repo, machine.env, names.values()))
    found = {path: data for path, name in names.items() if (data := contents[name])}
    if len(found) != len(paths):
        return False
    files = {path: changes_in(path, data) for path, data in found.items()}
    directory, witness = folders.directory_of(branch), workspace.witness(branch)
    claims, wait_s = workspace.changes(branch), workspace.config.lock_wait_s
    if workspace.verdict_on(branch) != "same":
        return False
    witness.prepare()
    with journal.writing(machine.fs, directory, machine.clock, wait_s=wait_s, command=author.tool) as writer:
        head = writer.head
        witness.refuse(head)
        known_damage.refuse(machine.fs, directory, head, folders.cache_of(branch))
        if writer.recovery.sentences() or not is_same() or not _is_all_of(claims.at(head), head.seq, files):
            return False
        now = moment_after(head.head.at, machine.clock.now())
        ops = _operations(found, files)
        written = Record(
            schema=record.vocabulary_of(ops),
            changeset_id=secrets.token_hex(16),
            digest=hashlib.sha256(branch.encode()).hexdigest(),
            at=now.at,
            actor=author.actor,
            source=SYNC,
            tool=author.tool,
            ops=ops,
            message="sync",
            clock=now.wall,
            commit=commit,
            session=author.session,
            epoch=head.store_id,
        )
        raw = record.encode(written)
        if len(raw) > limits.MAX_RECORD_BYTES:
            return False
        witness.note(writer.append(raw, now.at))
        done()
    return True


def _is_all_of(index: ClaimIndex, seq: int, files: dict[str, Sequence[Change]]) -> bool:
    """Tell whether files have only changes of records of this store, which no committed file had, and none redacted.

    Of the first files that a store knows of more may follow (``SharedChanges``).
    """
    if not index.committed_files(seq):
        return False
    copies = [change for group in files.values() for change in group]
    ids = {one.id for one in copies}
    if not all(files.values()) or len(ids) != len(copies) or any(one.is_redacted for one in copies):
        return False
    if index.is_own(ids, seq) != ids or index.once_committed(ids, seq) or ids & index.taken_out.keys():
        return False
    recorded = index.bodies(ids)
    return union([*recorded.values(), *copies]) == recorded


def _operations(found: dict[str, bytes], files: dict[str, Sequence[Change]]) -> tuple[Operation, ...]:
    """Return what a sync would record of these files."""
    mark = change_mark()
    ops: list[Operation] = [
        ReadSource(path, hashlib.sha256(found[path]).hexdigest(), mark, base=0) for path in sorted(found)
    ]
    ops += [TakeChange(one.id, path, is_committed=True) for path in sorted(files) for one in files[path]]
    return tuple(ops)
