"""Repairs that a person asks for: a new head from the journal, or snapshots from what still has their facts.

Each makes a full copy of the store first, changes no record, and is itself on record afterwards.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore.errors import Damaged, KBError, SnapshotCorrupt, ViewDamaged
from kbcore.errors.remedies import for_shell, without_referrals
from kbcore.maintenance import snapshot_sources
from kbcore.maintenance.epochs import append_note, begin_epoch, ending_with, forgotten
from kbcore.maintenance.findings import salvage_advice
from kbcore.maintenance.snapshot_sources import Facts, FactSource
from kbcore.model import canonical
from kbcore.process import interrupting
from kbcore.storage import files, journal, layout, quarantine, rebuild, snapshot, verify
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.storage.rebuild import Witness
from kbcore.store.branches import lost
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author
from kbcore.view import replay
from kbcore.view.base import open_view
from kbcore.view.cache_files import VIEW

GOES_ON: Final = "The store goes on without them: a new head was requested."


class Repaired(msgspec.Struct, frozen=True):
    """The result of a repair."""

    branch: str
    seq: int
    copy: str = ""
    """The place of the copy of the store; empty when there was nothing to repair."""
    done: tuple[str, ...] = ()
    """The files that were rebuilt, a sentence each."""
    doubts: tuple[str, ...] = ()
    """Losses, and facts that cannot be proven any more, a sentence each."""

    def as_json(self) -> dict[str, Any]:
        """Return what was done as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


@interrupting.maintenance()
def rebuild_head(workspace: Workspace, branch: str, author: Author) -> Repaired:
    """Make a new head out of the records that are there, if anything is wrong that a new head would repair.

    Raises: ``StoreWentBack`` where there is no store any more; what ``storage.rebuild.rebuild_head`` raises; the head
    is as it was then.
    """
    fs, clock, directory = workspace.machine.fs, workspace.machine.clock, workspace.folders.directory_of(branch)
    wait_s = workspace.config.lock_wait_s
    lost.refuse_gone(workspace, branch)
    proof = verify.prove(fs, directory)
    if proof.head and not any(one.severity == "damage" and one.code != SnapshotCorrupt.code for one in proof.findings):
        return Repaired(branch, proof.head.seq)
    try:
        made = rebuild.rebuild_head(
            fs,
            directory,
            clock,
            branch=branch,
            wait_s=wait_s,
            command=author.tool,
            witness=_witness(workspace, branch),
            features=workspace.folders.store_features,
        )
    except Damaged as error:
        remedy = f"{for_shell(without_referrals(error.remedy))} A new head does not repair that; nothing was changed."
        with files.explained(directory, "list", reading=True):
            has_journal = any(layout.segment_first_seq(name) is not None for name in fs.listdir(directory))
        loss = None
        with contextlib.suppress(KBError):  # it is not known without a head
            loss = lost.loss_of(workspace, branch)
        hint = f"{remedy} {salvage_advice(branch, loss) if has_journal else ''}".strip()
        raise type(error)(error.message, hint=hint, data=error.data) from error
    interrupting.note_change()
    done, doubts, seq = (
        f"The head was rebuilt from the journal, at seq {made.head.seq}.",
        [*made.unproven],
        made.head.seq,
    )
    witness = workspace.witness(branch)
    witness.prepare()
    try:
        with journal.writing(fs, directory, clock, wait_s=wait_s, command=author.tool) as writer:
            doubts += writer.recovery.sentences()
            loss = witness.check(writer.head)
            if loss:
                # Nobody was asked about the loss: it cannot be known before there is a head.
                why = [done, *doubts, _kept(made.copy), loss.sentence(), GOES_ON]
                said, ended = ending_with(writer.head, why, loss, clock.now())
                seq = begin_epoch(workspace, writer, author, said, ended)
                doubts.append(f"{loss.sentence()} {forgotten(is_one=loss.is_of_one)}")
            else:
                seq = append_note(workspace, writer, author, [done, *doubts, _kept(made.copy)])
            witness.accept(writer.head)
    except KBError as error:
        # The new head counts already: what failed is only the note of it.
        doubts.append(f"The repair could not be put on record: {error.message}.")
    return Repaired(branch, seq, made.copy, (done,), tuple(doubts))


def _witness(workspace: Workspace, branch: str) -> Witness | None:
    """Return what the second witness knows of the store, or the cached view, which may be of another store.

    The view of a copied branch may have been folded from the store that it was copied from.
    """
    noted = workspace.place.read(workspace.folders.directory_of(branch).name)
    if noted:
        return Witness(noted.store_id, noted.seq, noted.hash, "the second witness", noted.lineage, noted.epochs)
    fs, path = workspace.machine.fs, workspace.folders.cache_of(branch) / VIEW
    try:
        with open_view(fs, path) as cached:
            basis = cached.basis
    except (ViewDamaged, KBError):
        return None
    if not basis.seq or basis.store_id in _store_ids(fs, workspace.folders.directory_of(branch).parent):
        return None
    return Witness(basis.store_id, basis.seq, basis.sum)


def _store_ids(fs: Fs, parent: Path) -> set[str]:
    """Return the ids of all stores in a folder and in the hidden folders there, as far as they can be read."""
    found = set[str]()
    with files.explained(parent, "list", reading=True):
        names = fs.listdir(parent)
    for name in names:
        with contextlib.suppress(KBError):
            if name.startswith(".") and files.is_directory(fs, parent / name):
                found |= _store_ids(fs, parent / name)
        with contextlib.suppress(KBError):
            head = journal.read_head(fs, parent / name)
            found |= {head.store_id, *(one.store_id for one in head.epochs)}
    return found


@interrupting.maintenance()
def rebuild_snapshots(workspace: Workspace, branch: str, author: Author) -> Repaired:
    """Rebuild every damaged or missing snapshot; leave out of the head what is found nowhere, if it can do without.

    Raises:
        SnapshotCorrupt: the one that replaces pruned history was found nowhere; nothing was changed.
        JournalCorrupt, JournalTruncated, HeadDamaged, FormatTooNew: the journal is not sound; nothing was changed.
        StoreWentBack: acknowledged records are missing; nothing was changed.
        LockTimeout, LockUnsupported, StorageFull, ReadOnlyStore, StorageError: the head is as it was.
        CommitUncertain: all was rebuilt; whether it is on record is not known.
    """
    fs, clock, directory = workspace.machine.fs, workspace.machine.clock, workspace.folders.directory_of(branch)
    wait_s = workspace.config.lock_wait_s
    lost.refuse_gone(workspace, branch)
    with journal.writing(fs, directory, clock, wait_s=wait_s, command=author.tool) as writer:
        workspace.witness(branch).refuse(writer.head)
        of = writer.head
        wanted = snapshot_sources.damaged(fs, directory, of)
        if not wanted:
            return Repaired(branch, of.seq)
        names = {ref.file for ref in wanted}
        whole = msgspec.structs.replace(of, snapshots=tuple(ref for ref in of.snapshots if ref.file not in names))
        sources = snapshot_sources.sources(workspace, branch, whole, wanted)
        copy = str(quarantine.keep_all(fs, directory, clock.now()))
        for source in sources:
            if source.kind != "nowhere":
                facts = source.facts or _folded(workspace, branch, whole, source)
                whole = snapshot_sources.with_snapshot(
                    whole, snapshot.write(fs, directory, snapshot_sources.head_at(of, source.ref), facts)
                )
        with files.explained(directory, "sync"):
            fs.fsync_dir(directory)
        done = [_made(source) for source in sources]
        begins = replay.history_from(whole)
        doubts = [_lost(begins)] if begins > replay.history_from(of) else []
        sentences = [*writer.recovery.sentences(), *done, *doubts, _kept(copy)]
        seq = append_note(workspace, writer, author, sentences, snapshots=whole.snapshots)
    return Repaired(branch, seq, copy, tuple(done), tuple(doubts))


def _folded(workspace: Workspace, branch: str, whole: Head, source: FactSource) -> Facts:
    folded = replay.folded(workspace.machine.fs, workspace.folders.directory_of(branch), whole, until=source.ref.seq)
    return tuple(canonical.lines(folded.state, folded.known))


def _made(source: FactSource) -> str:
    name = source.ref.file
    if source.kind == "nowhere":
        return f"{name} was found nowhere and was left out."
    where = f"from {source.place}, whose digest proves it" if source.kind == "copy" else "from the journal"
    return f"{name} was rebuilt {where}."


def _lost(begins: int) -> str:
    return f"History begins at seq {begins} now: earlier states cannot be queried any more."


def _kept(copy: str) -> str:
    return f"The store as it was is kept in quarantine/{Path(copy).name}."
