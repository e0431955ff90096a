"""Records about the store itself: of a repair, and of a new epoch, which is the first record under a new store id.

A reference to a record is a store id and a seq. After a loss the same seqs are given to other records, so the store
gets another id.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kbcore import git
from kbcore.clock import moment_after
from kbcore.errors import InvalidQuery, JournalCorrupt, JournalTruncated
from kbcore.errors.remedies import for_shell, shell
from kbcore.maintenance.findings import damaged_journals, of_proof
from kbcore.model import record
from kbcore.model.record import EPOCH, REDACTION, REPAIR, SALVAGE, UNPROVEN, Operation, Record, Redaction, Unproven
from kbcore.process import interrupting
from kbcore.storage import journal, known_damage, verify
from kbcore.storage.head import Epoch, Head, SnapshotRef, with_epoch
from kbcore.storage.journal import Writer
from kbcore.storage.loss import Loss
from kbcore.storage.places import MissingRecords
from kbcore.storage.witness import BranchWitness
from kbcore.store import branches
from kbcore.store.branches import lost
from kbcore.store.branches.stores import repository_lock
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author
from kbcore.text.wording import pluralize
from kbcore.view.base import published_stamp
from kbcore.view.cache_files import CacheFiles

_MESSAGES: Final = {
    REPAIR: "Repair of the store",
    EPOCH: "New epoch of the store",
    SALVAGE: "Salvage of the store",
    UNPROVEN: "Salvage of the store",
    REDACTION: "Redaction of the store",
}
"""The messages of records about the store, by their source."""
ACCEPTED: Final = "A person accepted the loss."
"""The note of a loss in a record where a person was asked about it, or consented with ``--yes``."""


class NoteContent(msgspec.Struct, frozen=True):
    """Further content of a record about the store: only that of a salvage or a redaction has any of it."""

    ops: tuple[Operation, ...] = ()
    holes: tuple[MissingRecords, ...] = ()
    unproven: Unproven | None = None
    redaction: Redaction | None = None


def append_note(
    workspace: Workspace,
    writer: Writer,
    author: Author,
    sentences: Sequence[str],
    *,
    source: str = REPAIR,
    content: NoteContent = NoteContent(),  # noqa: B008 - frozen
    snapshots: tuple[SnapshotRef, ...] | None = None,
    ended: Sequence[Epoch] = (),
) -> int:
    """Append a record that says in sentences what was done to the store; return its seq.

    ``source`` says what for, ``snapshots`` is that of ``Writer.append``, and ``ended`` are the epochs that end before
    the record: the same step publishes them.

    Raises: as ``Writer.append``.
    """
    at, wall = moment_after(writer.head.head.at, workspace.machine.clock.now())
    of = functools.reduce(with_epoch, ended, writer.head)
    noted = Record(
        schema=record.vocabulary_of(content.ops),
        changeset_id=secrets.token_hex(16),
        digest="",
        at=at,
        actor=author.actor,
        source=source,
        tool=author.tool,
        ops=content.ops,
        message=_MESSAGES[source],
        clock=wall,
        repair=for_shell(" ".join(sentences)),
        holes=content.holes,
        unproven=content.unproven,
        redaction=content.redaction,
        session=author.session,
        epoch=of.store_id,
    )
    interrupting.note_change()
    return writer.append(record.encode(noted), at, snapshots=snapshots, epochs_of=of).seq


def forgotten(*, is_one: bool = False) -> str:
    """Return the sentence on the changeset ids of lost records."""
    whose = "Its changeset id is" if is_one else "Their changeset ids are"
    return f"{whose} forgotten: a changeset that is sent again is applied again."


def ending(
    of: Head,
    why: Sequence[str],
    now: str,
    *,
    seen: int = 0,
    lost_id: str = "",
    kept: int | None = None,
    is_first_known: bool = True,
) -> tuple[list[str], Epoch]:
    """Return the end of an epoch of a store, and what the record that ends it says: a sentence each.

    Where the epoch is that of the store's own id, the store has a new id from that record on. The sentences name the
    old id, the last seq that is there of its time, and the seqs that are lost.

    Args:
        of: the head before that record.
        why: what happened, a sentence each.
        now: the time.
        seen: the highest seq that is known to have been acknowledged under that id; 0 if none is lost.
        lost_id: the id of records that are missing here; by default the id of the store itself.
        kept: the last record before the lost ones; by default the last one that the store has under that id.
        is_first_known: whether it is known that no record after ``kept`` is there.
    """
    store_id = lost_id or of.store_id
    past = of.epoch_of(store_id)
    if store_id == of.store_id:
        seq, hash_ = of.seq, of.hash
        sentences = [*why, f"The store id was {of.store_id} up to seq {of.seq} and is another one from here on."]
    else:
        seq, hash_ = (past.seq, past.hash) if past else (0, of.lineage)
        sentences = [*why]
    ended = Epoch(store_id, seq, hash_, max(seen, seq, past.seen if past else 0), now)
    before = seq if kept is None else kept
    if seen > before:
        is_one = is_first_known and seen - before == 1
        if is_first_known:
            sentences.append(lost_records(before, seen))
        else:
            sentences.append(f"Records up to {seen} are lost; the first of them is not known.")
        if store_id != of.store_id:
            sentences.append(f"{'It was a record' if is_one else 'They were records'} of the store {store_id}.")
        sentences.append(forgotten(is_one=is_one))
    return sentences, ended


def ending_with(of: Head, why: Sequence[str], loss: Loss, now: str) -> tuple[list[str], tuple[Epoch, ...]]:
    """Return the ends of all epochs of which records are lost, and what is said of them.

    ``why`` says what is lost, and who decided to go on without it: ``ACCEPTED`` where a person was asked.
    """
    sentences = [*why]
    if loss.kind != "replaced":
        said, ended = ending(of, sentences, now, seen=loss.seen, lost_id=loss.store_id)
        return said, (ended,)
    epochs = list[Epoch]()
    for row in loss.by_id:
        said, ended = ending(
            of,
            [],
            now,
            seen=row.last,
            lost_id=row.store_id,
            kept=row.first - 1,
            is_first_known=loss.is_first_known,
        )
        sentences += said
        epochs.append(ended)
    return sentences, tuple(epochs)


def begin_epoch(
    workspace: Workspace, writer: Writer, author: Author, sentences: Sequence[str], ended: Sequence[Epoch]
) -> int:
    """Append the record that ends epochs, as ``ending`` or ``ending_with`` returns them; return the record's seq.

    Raises: as ``Writer.append``.
    """
    return append_note(workspace, writer, author, sentences, source=EPOCH, ended=ended)


class NewEpoch(msgspec.Struct, frozen=True):
    """A new epoch: its first record, or seq 0 where the branch has no store and git has no such branch any more."""

    branch: str
    seq: int
    done: tuple[str, ...]
    """Actions, a sentence each."""

    def as_json(self) -> dict[str, Any]:
        """Return what was done as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


@interrupting.maintenance()
def accept(workspace: Workspace, branch: str, author: Author) -> NewEpoch:
    """Go on without the records that are missing from a store, or give a copied store an id of its own.

    The store gets a new id, and a record that says why. Where there is no store, one is made as on first use. The view
    that has seen the missing records is kept.

    Raises: ``JournalCorrupt``, ``JournalTruncated`` for a damaged journal: a salvage comes first; ``InvalidQuery``
    when nothing is missing any more, because another process has accepted it meanwhile; as
    ``branches.ensure`` and ``journal.writing``.
    """
    machine, directory = workspace.machine, workspace.folders.directory_of(branch)
    witness, loss = workspace.witness(branch), lost.loss_of(workspace, branch)
    reasons = _reasons(witness, loss)
    _refuse_damage(workspace, branch, loss)
    _keep_view(workspace, branch, loss)
    if not workspace.folders.has_store(branch):
        if loss and not _is_wanted(workspace, branch):
            return _given_up(workspace, branch)
        branches.ensure(workspace, branch, accepts_loss=True)
    witness.prepare()
    wait_s = workspace.config.lock_wait_s
    with journal.writing(machine.fs, directory, machine.clock, wait_s=wait_s, command=author.tool) as writer:
        loss = _still(witness.check(writer.head), loss)
        _insist(workspace, branch, writer.head, had=reasons, has=_reasons(witness, loss))
        known_damage.refuse(machine.fs, directory, writer.head, workspace.folders.cache_of(branch))
        of, now, recovered = writer.head, machine.clock.now(), writer.recovery.sentences()
        if loss:
            said, ended = ending_with(of, [*recovered, loss.sentence(), ACCEPTED], loss, now)
        else:
            said, own = ending(of, [*recovered, *witness.copies], now)
            ended = (own,)
        seq = begin_epoch(workspace, writer, author, said, ended)
        witness.accept(writer.head)
    done = [f"The store of {branch} has begun a new epoch with record {seq}."]
    if loss:
        done += [f"{_lost_of(loss)} {forgotten(is_one=loss.is_of_one)}"]
    return NewEpoch(branch, seq, tuple(done))


def _still(now: Loss | None, before: Loss | None) -> Loss | None:
    """Return what is missing now, as it was said before where that is of the same record: a store was made since."""
    is_same = now and before and (now.store_id, now.seen) == (before.store_id, before.seen)
    return before if is_same else now


def _given_up(workspace: Workspace, branch: str) -> NewEpoch:
    """Forget what was noted of a branch that has no store any more, and that git does not have either.

    Where the folder of the stores is missing, the lock in it is not taken: the folder is not made either.
    """
    with repository_lock(workspace) if workspace.folders.has_branches_dir() else contextlib.nullcontext():
        loss = lost.loss_of(workspace, branch)
        if loss is None or workspace.folders.has_store(branch):
            raise _nothing(branch)
        workspace.place.forget(loss.directory.name)
    return NewEpoch(branch, 0, (f"{loss.sentence()} It is not looked for any more: git has no such branch.",))


def _insist(workspace: Workspace, branch: str, of: Head, *, had: Sequence[str], has: Sequence[str]) -> None:
    """Refuse a new epoch for which another process has just taken the reason away, or which was begun just now.

    Raises: ``InvalidQuery``; what reading the last record raises.
    """
    if has:
        return
    if had or _begins_epoch(workspace, branch, of):
        raise _nothing(branch)


def _begins_epoch(workspace: Workspace, branch: str, of: Head) -> bool:
    """Tell whether the last record of a store is the first of an epoch."""
    last = None
    for last in journal.scan(  # noqa: B007 - the last one is wanted
        workspace.machine.fs, workspace.folders.directory_of(branch), of, after=of.active.start
    ):
        continue
    return last is not None and record.decode(last.frame.rec, seq=last.frame.seq).source == EPOCH


def _nothing(branch: str) -> InvalidQuery:
    return InvalidQuery(
        f"Nothing is missing from the store of {branch} any more: there is nothing to accept. Nothing was changed.",
        hint=f"{shell('log')} shows the record with which the last epoch began, and why.",
    )


@interrupting.maintenance()
def question(workspace: Workspace, branch: str) -> str:
    """Return what a person is asked before a new epoch begins.

    Raises: ``InvalidQuery`` where an epoch has just begun, and there is nothing to accept; as ``accept`` for a damaged
    journal; what reading raises.
    """
    witness, loss = workspace.witness(branch), lost.loss_of(workspace, branch)
    _refuse_damage(workspace, branch, loss)
    if workspace.folders.has_store(branch):
        of = journal.read_head(workspace.machine.fs, workspace.folders.directory_of(branch))
        _insist(workspace, branch, of, had=(), has=_reasons(witness, loss))
    said = " ".join(_reasons(witness, loss)) or f"Nothing is known to be missing from the store of {branch}."
    consequence = f" {forgotten(is_one=loss.is_of_one)}" if loss else ""
    return f"{said}{consequence} Give the store a new id and go on as it is now?"


def _refuse_damage(workspace: Workspace, branch: str, loss: Loss | None) -> None:
    """Refuse to begin an epoch in a damaged journal: the record would follow records that a salvage may give up.

    Raises: ``JournalCorrupt``, ``JournalTruncated``.
    """
    if not workspace.folders.has_store(branch):
        return
    fs, directory = workspace.machine.fs, workspace.folders.directory_of(branch)
    found = of_proof(verify.prove(fs, directory), directory, branch, loss)
    damaged = damaged_journals(found, branch)
    known_damage.renew(fs, directory, workspace.folders.cache_of(branch), damaged)
    if damaged:
        kind = JournalTruncated if damaged[0][0] == JournalTruncated.code else JournalCorrupt
        first = next(one for one in found if (one.code, one.file) == damaged[0])
        data = {"branch": branch, "file": first.file}
        raise kind(f"{first.message}. No epoch was begun.", hint=first.remedy, data=data)


def _reasons(witness: BranchWitness, loss: Loss | None) -> list[str]:
    if loss:
        return [loss.sentence()]
    return [*witness.copies]


def _lost_of(loss: Loss) -> str:
    if not loss.is_first_known:
        return f"Record {loss.seen} and some before it are lost."
    return lost_records(loss.first - 1, loss.seen)


def _keep_view(workspace: Workspace, branch: str, loss: Loss | None) -> None:
    """Keep the view of the missing records: a new store would replace it."""
    cache = CacheFiles(workspace.machine.fs, workspace.folders.cache_of(branch))
    basis = published_stamp(cache) if loss else None
    if loss and basis and basis.store_id == loss.store_id and (loss.now is None or basis.seq > loss.now):
        cache.keep_lost_view(basis)


def _is_wanted(workspace: Workspace, branch: str) -> bool:
    known = {workspace.head().branch, workspace.default_branch}
    return branch in known or git.is_in_use(workspace.repo, workspace.machine.env, branch)


def lost_records(seq: int, seen: int) -> str:
    """Return the sentence that names the lost records of a store that ends at ``seq`` and had come to ``seen``."""
    if seen - seq == 1:
        return f"Record {seen} is lost."
    return f"{pluralize(seen - seq, 'record')} are lost: {seq + 1} to {seen}."
