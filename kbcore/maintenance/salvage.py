"""Salvage a damaged branch: keep every record that is proven, and note which records are missing.

The state comes from the newest sound snapshot and the records after it. Where no snapshot covers the missing records,
what is known before them is carried over them, and what a cached view adds enters as a record marked unproven. The old
head counts until the record that documents the salvage is durable; the store as it was is copied to quarantine first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore.errors import (
    Damaged,
    HeadDamaged,
    KBError,
    SnapshotCorrupt,
    StoreWentBack,
)
from kbcore.errors.remedies import shell
from kbcore.limits import MAX_HEAD_BYTES, MAX_RECORD_BYTES
from kbcore.maintenance.epochs import ACCEPTED, NoteContent, append_note, ending_with
from kbcore.maintenance.snapshot_sources import with_snapshot
from kbcore.maintenance.unproven import differences, seen_by_view
from kbcore.model import canonical, record
from kbcore.model.folding import apply
from kbcore.model.record import (
    SALVAGE,
    UNPROVEN,
    Operation,
    PutNode,
    Unproven,
)
from kbcore.model.state import Stamp, State
from kbcore.process import interrupting
from kbcore.storage import (
    files,
    frame,
    head,
    known_damage,
    layout,
    lock,
    provable,
    quarantine,
    recovery,
    snapshot,
)
from kbcore.storage.fs import Fs
from kbcore.storage.head import Epoch, Head, SnapshotRef
from kbcore.storage.journal import Writer
from kbcore.storage.loss import Loss
from kbcore.storage.places import MissingRecords, record_range
from kbcore.storage.provable import TrustedHashes
from kbcore.storage.recovery import RecoveryReport
from kbcore.store import branches
from kbcore.store.branches import lost
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author
from kbcore.text.wording import pluralize, some_of
from kbcore.view import replay

QUESTION: Final = "Salvage the store, give it a new id, and go on without them?"
"""The question before a store is salvaged that lacks acknowledged records, after the loss is named."""
_SHOWN: Final = 10
_OPS_BYTES: Final = MAX_RECORD_BYTES // 2
_APPENDING: Final = os.O_RDWR | os.O_APPEND


class Salvaged(msgspec.Struct, frozen=True):
    """The result of a salvage of one branch."""

    branch: str
    seq: int
    copy: str = ""
    """The place of the copy of the store; empty when there was nothing to salvage."""
    holes: tuple[MissingRecords, ...] = ()
    """The records that are gone since this salvage."""
    entities: int = 0
    """The number of entities of the branch now."""
    done: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    """Losses and unproven facts, a sentence each."""

    def as_json(self) -> dict[str, Any]:
        """Return what was done as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


class _Carried(msgspec.Struct):
    """A state that was carried over missing records, and what the records after them show of these."""

    state: State
    known: list[canonical.KnownChangeset]
    changed: dict[str, None]
    """Entities that a missing record changed: their version is known, their values are not."""
    left_out: dict[str, None]
    """Entities that a missing record created, and of which a later one states too little to keep them."""


@interrupting.maintenance()
def salvage(workspace: Workspace, branch: str, author: Author, *, accepts_loss: bool = False) -> list[Salvaged]:
    """Salvage a branch, and every other branch that shares one of its damaged files by a hard link.

    A store that went back is salvaged up to the last record that the second witness saw: what is not proven of its end
    is missing as well. A person has to accept that; the store begins a new epoch then, with the record of the salvage.

    Raises:
        HeadDamaged: no sound record is left, or the head is an older one and no record is damaged; nothing was changed.
        JournalCorrupt: files of different times were mixed; nothing was changed.
        FormatTooNew: a newer KB wrote a part of this.
        StoreWentBack: acknowledged records are missing, and that is not accepted, or no record is damaged; nothing was
            changed. Of a branch that shares a file, it is a doubt in the answer, with the command for that branch: what
            was accepted is the loss of ``branch`` alone.
        LockTimeout, LockUnsupported, StorageFull, ReadOnlyStore, StorageError: the old head counts.
        StatementTimeout, ResourceLimit: a cached view could not be read whole; the old head counts.
        CommitUncertain: the new head may or may not count; salvaging again is safe.
    """
    lost.refuse_gone(workspace, branch)
    shared = sharing(workspace, branch)
    made = [_salvage_one(workspace, branch, author, accepts_loss=accepts_loss)]
    for name in shared:
        try:
            made.append(_salvage_one(workspace, name, author, accepts_loss=False))
        except StoreWentBack as error:
            made.append(Salvaged(name, int(error.data["now"] or 0), doubts=(f"{error.message} {error.hint}",)))
    return made


def sharing(workspace: Workspace, branch: str) -> list[str]:
    """Return the other branches whose stores have a damaged journal file of this one under a second name."""
    fs, directory = workspace.machine.fs, workspace.folders.directory_of(branch)
    try:
        proven = provable.prove(fs, directory, head.read(fs, directory))
    except Damaged:
        return []
    inodes = {_inode(fs, directory / name) for name in proven.damaged} - {None}
    found = []
    for name, other in branches.stores(workspace):
        if other == directory:
            continue
        try:
            used = head.read(fs, other).files
        except KBError:  # its own diagnosis says what is wrong with it
            continue
        if inodes & {_inode(fs, other / file) for file in used}:
            found.append(name)
    return found


def _inode(fs: Fs, path: Path) -> tuple[int, int] | None:
    try:
        status = fs.lstat(path)
    except OSError:  # a missing file is not shared
        return None
    return status.st_dev, status.st_ino


def _salvage_one(workspace: Workspace, branch: str, author: Author, *, accepts_loss: bool) -> Salvaged:
    fs, clock, directory = workspace.machine.fs, workspace.machine.clock, workspace.folders.directory_of(branch)
    workspace.witness(branch).prepare()
    with lock.held(fs, clock, directory / layout.LOCK, wait_s=workspace.config.lock_wait_s, command=author.tool):
        others = [other for _, other in branches.stores(workspace) if other != directory]
        of, known, doubts = _head(workspace, directory, branch)
        recovery.remove_superseded(fs, directory, of)  # before a copy is made of it
        proven, loss = _proven(workspace, branch, of, others, known)
        of = proven.of
        sound, damaged = _snapshots(fs, directory, of, proven)
        is_sound = proven.is_whole and not proven.damaged and not doubts and not damaged
        if loss:
            _insist_accepted(loss, branch, is_accepted=accepts_loss, is_sound=is_sound)
        if is_sound:
            return Salvaged(branch, of.seq)
        copy = str(quarantine.keep_all(fs, directory, clock.now()))
        planned = provable.plan(of, proven)
        provable.write(fs, directory, of, planned)
        new = msgspec.structs.replace(planned.head, snapshots=sound)
        doubts += [f"{ref.file} is damaged and was left out." for ref in damaged]
        holes = tuple(one for one in new.holes if one not in of.holes)
        new, carried, view = _with_state(workspace, directory, branch, new)
        doubts += _lost(new, holes, carried, view[0] if view else None)
        done = [_kept_records(new, of), *_filled(proven, directory, workspace.folders.data_dir)]
        ops = tuple(differences(carried.state, view[1])) if view and carried else ()
        said, ended = (
            [*done, *doubts, f"The store as it was is kept in quarantine/{Path(copy).name}."],
            tuple[Epoch, ...](),
        )
        if loss:
            said, ended = ending_with(new, [*said, _went_back(loss, holes), ACCEPTED], loss, clock.now())
            done.append("The store has a new id: a person accepted the loss.")
        # Counted before the new head counts: whatever fails after that would say that nothing was done.
        count = len(_applied(replay.folded(fs, directory, new).state, ops).nodes)
        note = _Note(said, holes, ops, view[0] if view else None, ended)
        new, failed = _append(workspace, directory, new, author, note)
        doubts += failed
        workspace.witness(branch).accept(new)
        for name in {part.file for part in of.segments} - new.files:
            files.remove_quietly(fs, directory / name)  # its bytes are in quarantine
        known_damage.forget(fs, workspace.folders.cache_of(branch))
    return Salvaged(branch, new.seq, copy, holes, count, tuple(done), tuple(doubts))


def _proven(
    workspace: Workspace, branch: str, of: Head, others: Iterable[Path], known: TrustedHashes
) -> tuple[provable.Proven, Loss | None]:
    """Return what is proven up to the last record that was seen, and the loss that a person has to accept."""
    fs, directory = workspace.machine.fs, workspace.folders.directory_of(branch)
    loss = workspace.witness(branch).would_lack(fs, directory, of)
    if loss is None or loss.kind != "went_back":
        return provable.prove(fs, directory, of, others, known), loss
    proven = provable.prove(fs, directory, _as_far_as_seen(of, workspace, directory, of), others, known)
    is_whole = proven.of.seq == loss.seen and all(
        last <= of.seq for _, last in provable.missing(proven.of, proven.runs)
    )
    return proven, None if is_whole else loss


def _insist_accepted(loss: Loss, branch: str, *, is_accepted: bool, is_sound: bool) -> None:
    """Refuse a loss that was not accepted, or that is all that is wrong. Raises: ``StoreWentBack``."""
    error = loss.error(loss.new_epoch())
    if is_sound:
        raise error
    if not is_accepted:
        command = layout.salvage_command(branch, "--yes")
        command_to_restore = layout.restore_command(loss.directory, branch)
        restored = f"If there is a backup, {command_to_restore} brings the store back as it was then."
        hint = (
            f"{restored} Without one, {command} salvages the store and goes on without them, once a person accepts it."
        )
        raise StoreWentBack(error.message, hint=hint, data={**error.data, "is_acceptable": True})


def _went_back(loss: Loss, holes: Iterable[MissingRecords]) -> str:
    """Say what was lost of the end of a store, as far as it is lost still: a part may have been found."""
    if loss.kind != "went_back" or any((one.first, one.last) == (loss.first, loss.seen) for one in holes):
        return loss.sentence()
    gone = [record_range(max(one.first, loss.first), one.last) for one in holes if one.last >= loss.first]
    return (
        f"The store of {loss.branch} went back to an earlier state. seen: {loss.seen}, now: {loss.now}; of records "
        f"{loss.first} to {loss.seen}, {' and '.join(gone)} could not be found."
    )


def _applied(state: State, ops: Iterable[Operation]) -> State:
    apply(state, Stamp(0, "", "", UNPROVEN), ops)
    return state


def _head(workspace: Workspace, directory: Path, branch: str) -> tuple[Head, TrustedHashes, list[str]]:
    """Return the head to salvage for, made from the journal where the head file is lost, and what that leaves open.

    With it, the hashes that it does not name any more where it was made, or has to end later.

    Raises: ``HeadDamaged`` for the head file of an earlier time next to a journal that is whole: a new head file is
    enough there.
    """
    fs, now = workspace.machine.fs, workspace.machine.clock.now()
    try:
        of = head.read(fs, directory)
    except HeadDamaged:
        data = files.read_file(fs, directory / layout.HEAD, MAX_HEAD_BYTES)
        old = head.decode_unproven(data or b"")
        origin = "come from the damaged head and are not proven" if old else "are not known any more"
        made, known = _made_head(workspace, directory, branch, old)
        doubt = f"The head file was lost: store id and origin {origin}, and whether anything was acknowledged after "
        return made, known, [f"{doubt}record {made.seq} cannot be known."]
    if not _is_interrupted(fs, directory, of):
        try:
            recovery.refuse_unlisted(fs, directory, of)
        except HeadDamaged:
            made, known = _made_head(workspace, directory, branch, of)
            if provable.prove(fs, directory, made, known=known).is_as_written:
                raise
            doubt = "The head file was older than the journal: whether anything was acknowledged after "
            return made, known, [f"{doubt}record {made.seq} cannot be known."]
    if recovery.plan(directory, recovery.survey(fs, directory, of)).refusal is None:
        # The end of the journal is sound: what was never acknowledged there is dealt with as before any write.
        of, _ = recovery.recover(fs, directory, of, now)
    return of, provable.known_from(of), []


def _made_head(workspace: Workspace, directory: Path, branch: str, old: Head | None) -> tuple[Head, TrustedHashes]:
    """Return a head of all sound records, and as far as the second witness saw; ``old`` is what is left of the head.

    With it, the hash of the last sound record, after which the witness may have seen others.
    """
    fs, now = workspace.machine.fs, workspace.machine.clock.now()
    present = provable.provisional_head(fs, directory, branch, now, old)
    of = _as_far_as_seen(present, workspace, directory, old)
    refs = []
    for name in sorted(name for name in fs.listdir(directory) if layout.snapshot_seq(name) is not None):
        try:
            lineage, ref = snapshot.inspect(fs, directory, name)
        except SnapshotCorrupt:
            continue
        if lineage == of.lineage and ref.seq <= of.seq:
            refs.append(ref)
    features = tuple(sorted({*of.features_required, *workspace.folders.store_features}))
    made = msgspec.structs.replace(of, snapshots=tuple(refs), features_required=features)
    return made, provable.known_from(present, is_sound=False)


def _as_far_as_seen(of: Head, workspace: Workspace, directory: Path, old: Head | None) -> Head:
    """Return a head that ends with the last record that the second witness knows of, present or not.

    What was noted of a store with another id counts only if that store had the id of this one before: branches have
    one lineage, and the end of another branch is not the end of this one.
    """
    noted = workspace.place.read(directory.name)
    if noted is None or noted.lineage != of.lineage:
        return of
    if old and of.store_id not in {noted.store_id, *(one.store_id for one in noted.epochs)}:
        return of
    tip = of.head
    if noted.seq > of.seq:
        tip = msgspec.structs.replace(tip, seq=noted.seq, hash=noted.hash, at=max(tip.at, noted.at))
    return msgspec.structs.replace(of, store_id=of.store_id if old else noted.store_id, head=tip)


def _is_interrupted(fs: Fs, directory: Path, of: Head) -> bool:
    """Tell whether all that follows the head is the record of a salvage that ended before it was acknowledged."""
    data = files.read_file(fs, directory / layout.segment_name(of.seq + 1), frame.MAX_LINE_BYTES) or b""
    line, _, rest = data.partition(b"\n")
    if rest or of.active.first_seq == of.seq + 1:
        return False
    sound = frame.peek(line + b"\n")
    return sound is None or record.decode(sound.rec, seq=sound.seq).source in {SALVAGE, UNPROVEN}


def _snapshots(
    fs: Fs, directory: Path, of: Head, proven: provable.Proven
) -> tuple[tuple[SnapshotRef, ...], list[SnapshotRef]]:
    """Return the snapshots that are sound and belong to this history, and the others."""
    wanted = {ref.seq for ref in of.snapshots}
    hashes = {line.seq: line.sum for run in proven.runs for line in run if line.seq in wanted}
    sound: list[SnapshotRef] = []
    damaged: list[SnapshotRef] = []
    for ref in of.snapshots:
        try:
            snapshot.check(fs, directory, of, ref)
        except SnapshotCorrupt:
            damaged.append(ref)
        else:
            (sound if hashes.get(ref.seq, ref.hash) == ref.hash else damaged).append(ref)
    return tuple(sound), damaged


def _with_state(
    workspace: Workspace, directory: Path, branch: str, new: Head
) -> tuple[Head, _Carried | None, tuple[Unproven, State] | None]:
    """Return the head with a snapshot from which its state follows, and what is not proven of that.

    The second part is None where a sound snapshot or the first record leads to the head without a gap.
    """
    fs = workspace.machine.fs
    if new.pruned is None and not new.holes:
        return new, None, None
    if any(ref.seq >= new.whole_from - 1 for ref in new.snapshots):
        return new, None, None
    carried = _carry(fs, directory, new)
    ref = snapshot.write(fs, directory, new, canonical.lines(carried.state, carried.known))
    with files.explained(directory, "sync"):
        fs.fsync_dir(directory)
    return with_snapshot(new, ref), carried, seen_by_view(workspace, branch, directory, new)


def _carry(fs: Fs, directory: Path, new: Head) -> _Carried:
    """Fold every proven record onto the newest sound snapshot, over the missing ones, to the head."""
    carried = _Carried(State(), [], {}, {})
    begins = 0
    if new.snapshots:
        ref = new.snapshots[-1]
        folded = canonical.read(snapshot.read(fs, directory, new, ref))
        carried, begins = _Carried(folded.state, list(folded.known), {}, {}), ref.seq
    gone = {seq for hole in new.holes for seq in range(hole.first, hole.last + 1)}
    gone |= set(range(1, new.first_seq)) - set(range(1, begins + 1))
    for entry in replay.entries(fs, directory, new, skip=begins):
        # A generator: each operation is judged when the ones before it in its record are folded.
        ops = (op for op in entry.record.ops if _can_apply(carried, op, gone))
        apply(carried.state, Stamp(entry.seq, entry.record.at, entry.record.actor, entry.record.source), ops)
        carried.known.append(replay.known_of(entry))
    return carried


def _can_apply(carried: _Carried, op: Operation, gone: set[int]) -> bool:
    """Tell whether an operation can be folded; note what it shows of the missing records.

    An operation names the version that it was made on: one that is missing was made by a missing record. With 0, its
    record creates the entity, by one operation for each source.
    """
    if not isinstance(op, PutNode):
        return True
    if op.base in gone:
        carried.changed[op.id] = None
    if op.id in carried.state.nodes or {"type", "title", "status"} <= op.set.keys():
        carried.left_out.pop(op.id, None)
        return True
    if op.base == 0:
        return True
    carried.left_out[op.id] = None
    return False


class _Note(msgspec.Struct, frozen=True):
    """The content of the record of a salvage: sentences, the missing records, and what a view adds."""

    said: list[str]
    holes: tuple[MissingRecords, ...]
    ops: tuple[Operation, ...]
    seen: Unproven | None
    ended: tuple[Epoch, ...]
    """The epochs that end with a loss that a person accepted."""


def _append(workspace: Workspace, directory: Path, new: Head, author: Author, note: _Note) -> tuple[Head, list[str]]:
    """Append the record that documents a salvage; with it, the new head comes to count. Then the unproven operations.

    The first record carries as many of these as fit, the rest follows in records of its own; what of it cannot be
    written is said, because the salvage counts already.
    """
    fs, path = workspace.machine.fs, directory / new.head.file
    with files.explained(path, "open"):
        fd = fs.open(path, _APPENDING)
    try:
        writer = Writer(fs, directory, fd, new, RecoveryReport())
        for part, is_first in _parts(note.ops):
            content = NoteContent(
                ops=part,
                holes=note.holes if is_first else (),
                unproven=note.seen if part else None,
            )
            try:
                said, ended = (note.said, note.ended) if is_first else ([], ())
                source = UNPROVEN if part else SALVAGE
                append_note(workspace, writer, author, said, source=source, content=content, ended=ended)
            except KBError as error:
                if is_first:
                    raise
                return writer.head, [f"Not all that the cached view adds could be written: {error.message}."]
    finally:
        files.close(fs, fd)
    return writer.head, []


def _parts(ops: tuple[Operation, ...]) -> Iterator[tuple[tuple[Operation, ...], bool]]:
    """Yield the operations in parts that fit into a record each; at least one part, if only an empty one."""
    part: list[Operation] = []
    size, is_first = 0, True
    for op in ops:
        more = len(msgspec.json.encode(op))
        if part and size + more > _OPS_BYTES:
            yield tuple(part), is_first
            part, size, is_first = [], 0, False
        part.append(op)
        size += more
    if part or is_first:
        yield tuple(part), is_first


def _kept_records(new: Head, of: Head) -> str:
    count = of.seq - of.first_seq + 1 - sum(hole.last - hole.first + 1 for hole in new.holes)
    return f"{pluralize(count, 'record')} of {of.seq - of.first_seq + 1} proven and kept."


def _filled(proven: provable.Proven, own: Path, top: Path) -> Iterator[str]:
    """Say which records came from other branches."""
    elsewhere: dict[Path, int] = {}
    for run in proven.runs:
        for line in run:
            if line.path.parent != own:
                elsewhere[line.path] = elsewhere.get(line.path, 0) + 1
    for path, count in elsewhere.items():
        place = path.relative_to(top) if path.is_relative_to(top) else path
        yield f"{pluralize(count, 'record')} came from {place}, proven by the chain."


def _lost(new: Head, holes: Iterable[MissingRecords], carried: _Carried | None, seen: Unproven | None) -> Iterator[str]:
    """Say what is missing and what is not proven, a sentence each."""
    for hole in holes:
        which = f"Record {hole.first} is" if hole.first == hole.last else f"Records {hole.first} to {hole.last} are"
        yield f"{which} missing, between hash {hole.before[:12]} and hash {hole.after[:12]}."
    if carried is None:
        if new.holes:
            ref = next(ref for ref in new.snapshots if ref.seq >= new.whole_from - 1)
            yield f"All remaining records are proven: {ref.file} has the state after the missing ones."
        return
    if new.pruned is not None and not new.holes:
        yield f"The records before {new.first_seq} were pruned."
    yield "No snapshot has the state after them: what they changed is missing, and their changeset ids are forgotten."
    if carried.changed:
        names = some_of([*carried.changed], _SHOWN)
        yield f"They changed {pluralize(len(carried.changed), 'entity')} that later records name again: {names}."
    if carried.left_out:
        names = some_of([*carried.left_out], _SHOWN)
        yield f"They created {pluralize(len(carried.left_out), 'entity')} of which too little is left: {names}."
    if seen:
        yield f"A cached view had seen record {seen.seq}; what it adds is in this record, marked unproven."
    else:
        yield f"{shell('sync', lead='Run')}: what files state comes back."
