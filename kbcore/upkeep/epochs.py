"""Records about the store itself: of a repair, and of a new epoch, which is the first record under a new store id.

A reference to a record is a store id and a seq. After a loss the same seqs are given to other records, so the store
goes on under another id.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Final

from kbcore import record
from kbcore.clock import moment_after
from kbcore.phrases import counted
from kbcore.record import Record
from kbcore.storage.head import SnapshotRef
from kbcore.storage.journal import Writer
from kbcore.store import Author
from kbcore.workspace import Workspace

REPAIR: Final = "Repair of the store"
NEW_EPOCH: Final = "New epoch of the store"


def append_note(
    workspace: Workspace,
    writer: Writer,
    author: Author,
    sentences: Sequence[str],
    *,
    message: str = REPAIR,
    snapshots: tuple[SnapshotRef, ...] | None = None,
    new_id_seen: int | None = None,
) -> int:
    """Append a record that changes no fact and says in sentences what was done to the store; return its seq.

    ``snapshots`` and ``new_id_seen`` are those of ``Writer.append``: the same step publishes them.

    Raises: as ``Writer.append``.
    """
    at, wall = moment_after(writer.head.head.at, workspace.machine.clock.now())
    noted = Record(
        schema=record.VOCABULARY,
        changeset_id=secrets.token_hex(16),
        digest="",
        at=at,
        actor=author.actor,
        source=author.source,
        tool=author.tool,
        ops=(),
        message=message,
        clock=wall,
        repair=" ".join(sentences),
    )
    return writer.append(record.encode(noted), at, snapshots=snapshots, new_id_seen=new_id_seen).seq


def begin_epoch(workspace: Workspace, writer: Writer, author: Author, why: Sequence[str], *, seen: int = 0) -> int:
    """Give the store a new id, with a record that says why; return the record's seq.

    The record names the old id, the last seq that is there of its time, and the seqs that are lost.

    Args:
        workspace: the repository.
        writer: holds the lock of the branch.
        author: who decided it.
        why: what happened, a sentence each.
        seen: the highest seq that is known to have been acknowledged under the old id; 0 if none is lost.

    Raises: as ``Writer.append``.
    """
    old = writer.head
    sentences = [*why, f"The store id was {old.store_id} up to seq {old.seq} and is another one from here on."]
    if seen > old.seq:
        sentences += [f"{lost_records(old.seq, seen)} {FORGOTTEN}"]
    return append_note(workspace, writer, author, sentences, message=NEW_EPOCH, new_id_seen=seen)


FORGOTTEN: Final = "Their changeset ids are forgotten: a changeset that is sent again is applied again."


def lost_records(seq: int, seen: int) -> str:
    """Return the sentence that names the lost records of a store that ends at ``seq`` and had come to ``seen``."""
    if seen - seq == 1:
        return f"Record {seen} is lost."
    return f"{counted(seen - seq, 'record')} are lost: {seq + 1} to {seen}."
