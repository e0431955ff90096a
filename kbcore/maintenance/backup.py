"""Back up the stores of branches into one file, and restore them from it.

A store is never overwritten: what is in the place of a restored one goes to the trash. Where the two do not end with
the same record, the restored store begins a new epoch, and its first record says so.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore.errors import Damaged, GitUnusable, HistoryPruned, InvalidQuery, KBError, StoreWentBack, UnknownBranch
from kbcore.errors.remedies import shell
from kbcore.maintenance.epochs import begin_epoch, ending
from kbcore.process import interrupting
from kbcore.storage import archive, branchdir, files, head, journal, snapshot, verify
from kbcore.storage.archive import Backup, Saved
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, Tip
from kbcore.storage.loss import Loss, holds
from kbcore.store import branches
from kbcore.store.branches import lost, trash
from kbcore.store.branches.stores import discard_cache, repository_lock
from kbcore.store.workspace import Workspace
from kbcore.store.write_request import Author
from kbcore.text.escaping import in_quotes
from kbcore.text.wording import some_of
from kbcore.view.base import published_stamp
from kbcore.view.cache_files import CacheFiles

_PLAIN: Final = "A name is used as it is, also with * and ?."


class SavedBranch(msgspec.Struct, frozen=True):
    """One branch of a backup."""

    branch: str
    seq: int
    hash: str
    at: str
    length_bytes: int


class BackedUp(msgspec.Struct, frozen=True):
    """The content of a backup, or what it would be on a dry run."""

    path: str
    dry_run: bool
    branches: tuple[SavedBranch, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


class GivenUp(msgspec.Struct, frozen=True):
    """Acknowledged records of a store id, the first and the last, that a restored store does not have.

    Where ``is_first_known`` is false, some of them may be there, or were written under another id.
    """

    store_id: str
    first: int
    last: int
    is_first_known: bool = True


class RestoredBranch(msgspec.Struct, frozen=True):
    """A branch that was restored, or would be on a dry run.

    ``present_seq`` is where the store ends that is there now, None when there is none or it cannot be read;
    ``is_same_store`` tells that it is the store that was backed up, under any id, or a copy with records in common.
    ``replaced`` is where it is in the trash; ``is_new_epoch`` tells that the restored store got a new id; ``given_up``
    are the records that are known to have been acknowledged and that it does not have.
    """

    branch: str
    seq: int
    present_seq: int | None = None
    has_present: bool = False
    is_same_store: bool = False
    replaced: str = ""
    is_new_epoch: bool = False
    given_up: tuple[GivenUp, ...] = ()


class RestoredBackup(msgspec.Struct, frozen=True):
    """The result of a restore, or of its dry run."""

    path: str
    dry_run: bool
    at: str
    branches: tuple[RestoredBranch, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        shown: dict[str, Any] = msgspec.to_builtins(self)
        return shown


def back_up(
    workspace: Workspace,
    path: Path,
    names: Sequence[str] = (),
    *,
    tool: str,
    replaces: bool = False,
    dry_run: bool = False,
) -> BackedUp:
    """Write a backup of the named branches, by default of all that have a store; no writer waits for it.

    Raises: ``InvalidQuery`` for a file next to the stores; ``UnknownBranch`` for a branch without a store;
    ``StoreWentBack`` for one that lacks acknowledged records where an older backup would be replaced, which may have
    them; what ``archive.write`` raises.
    """
    fs, clock = workspace.machine.fs, workspace.machine.clock
    _check_path(workspace, path)
    archive.check_target(fs, path, replaces=replaces)
    there = dict(branches.stores(workspace))
    missing = [name for name in names if name not in there]
    if missing:
        verb = "has" if len(missing) == 1 else "have"
        hint = f"These have one: {some_of(sorted(there), 10)}. {_PLAIN}"
        quoted = [in_quotes(one) for one in missing]
        raise UnknownBranch(f"{some_of(quoted, 3)} {verb} no store to back up.", hint=hint if there else "")
    if not there:
        raise UnknownBranch("No branch has a store yet.", hint="Nothing was written that could be backed up.")
    chosen = list(dict.fromkeys(names)) or sorted(there)
    for name in chosen:
        if replaces:
            _refuse_lost(workspace, name)
        journal.reading(fs, there[name], partial(_insist_sound, fs, there[name]))
    if dry_run:
        return BackedUp(str(path), dry_run, tuple(_planned(head.read(fs, there[name])) for name in chosen))
    sources = [there[name] for name in chosen]
    written = archive.write(fs, path, sources, at=clock.now(), tool=tool, replaces=replaces)
    return BackedUp(str(path), dry_run, tuple(map(_shown, written.branches)))


def _check_path(workspace: Workspace, path: Path) -> None:
    """Refuse a file in a folder of stores or caches: what takes those away takes the backup as well."""
    folder = Path(os.path.realpath(path.parent))
    for own in (workspace.folders.data_dir, workspace.folders.branches_dir, workspace.folders.cache_dir):
        if folder.is_relative_to(os.path.realpath(own)):
            raise InvalidQuery(
                f"{path} is inside {own}, where KB keeps what it would have to be restored after.",
                hint="Name a file outside of the repository, best on another disk.",
                data={"file": str(path)},
            )


def _planned(of: head.Head) -> SavedBranch:
    length = sum(part.sealed.length if part.sealed else of.head.length for part in of.segments)
    return SavedBranch(of.branch, of.seq, of.hash, of.head.at, length + sum(ref.length for ref in of.snapshots))


def _insist_sound(fs: Fs, directory: Path, of: head.Head) -> None:
    """Raise the store's own error for damage: a backup of it would take the place of a good one."""
    for _ in journal.scan(fs, directory, of):
        continue
    for ref in of.snapshots:
        snapshot.check(fs, directory, of, ref)


def _refuse_lost(workspace: Workspace, branch: str) -> None:
    """Raise ``StoreWentBack`` for a store that lacks acknowledged records: the backup to replace may have them."""
    loss = lost.loss_of(workspace, branch)
    if loss is not None:
        refused = loss.error()
        hint = f"The backup that is there may have them: write to another file. {refused.remedy}"
        raise StoreWentBack(refused.message, hint=hint, data=refused.data)


def _shown(saved: Saved) -> SavedBranch:
    length = sum(member.length for member in saved.files)
    return SavedBranch(saved.branch, saved.seq, saved.hash, saved.at, length)


@interrupting.maintenance()
def restore(
    workspace: Workspace,
    path: Path,
    author: Author,
    names: Sequence[str] = (),
    *,
    replaces: bool = False,
    dry_run: bool = False,
) -> RestoredBackup:
    """Prove a backup, and put the named branches of it into their places, by default all of them.

    Each branch is in its place whole or not at all. With ``replaces``, a store that is there goes to the trash.

    Raises:
        BackupDamaged, FormatTooNew, NotFound: from the backup; nothing was changed.
        UnknownBranch: the backup has no such branch; nothing was changed.
        InvalidQuery: a branch has a store, and it is not to be replaced; nothing was changed.
        LockTimeout, StorageFull, ReadOnlyStore, StorageError: branches before the one that is named are restored.
        CommitUncertain: so too; the last one is in place, and may not survive a power failure.
    """
    fs = workspace.machine.fs
    with archive.opened(fs, path) as backup:
        backup.check()
        chosen = list(_chosen(backup, names))
        states = tuple(_present(workspace, saved, *backup.store(number)) for number, saved in chosen)
        if dry_run:
            return RestoredBackup(str(path), dry_run, backup.manifest.at, states)
        _refuse_present(states, replaces=replaces)
        done = [_restore_one(workspace, backup, number, author, replaces=replaces) for number, _ in chosen]
        return RestoredBackup(str(path), dry_run, backup.manifest.at, tuple(done))


def _chosen(backup: Backup, names: Sequence[str]) -> Iterator[tuple[int, Saved]]:
    there = {saved.branch for saved in backup.manifest.branches}
    missing = [name for name in names if name not in there]
    if missing:
        hint = f"It holds {some_of(sorted(there), 10)}. {_PLAIN}"
        raise UnknownBranch(f"The backup holds no branch {some_of([in_quotes(one) for one in missing], 3)}.", hint=hint)
    for number, saved in enumerate(backup.manifest.branches):
        if not names or saved.branch in names:
            yield number, saved


def _present(workspace: Workspace, saved: Saved, fs: Fs, folder: Path) -> RestoredBranch:
    """Return what is in the place of a branch now, and which acknowledged records the restored store would not have.

    ``fs`` and ``folder`` are where the store that is to be restored can be read. What the present store has counts, and
    what the second witness has noted: a store that went back may end just where the backup does.
    """
    new = head.read(fs, folder)
    loss = workspace.witness(saved.branch).would_lack(fs, folder, new)
    if not workspace.folders.has_store(saved.branch):
        return RestoredBranch(saved.branch, saved.seq, is_new_epoch=True, given_up=given_up(None, new, 0, loss))
    directory = workspace.folders.directory_of(saved.branch)
    try:
        of = head.read(workspace.machine.fs, directory)
    except KBError:
        rows = given_up(None, new, 0, loss)
        return RestoredBranch(saved.branch, saved.seq, has_present=True, is_new_epoch=True, given_up=rows)
    shared = _shared(_Store(workspace.machine.fs, directory, of), _Store(fs, folder, new))
    is_same_store = shared > 0 or not _ends(of).keys().isdisjoint(_ends(new))
    rows = given_up(of if is_same_store else None, new, shared, loss)
    is_at_its_head = (of.store_id, of.lineage, of.seq, of.hash) == (new.store_id, new.lineage, new.seq, new.hash)
    return RestoredBranch(
        saved.branch,
        saved.seq,
        of.seq,
        has_present=True,
        is_same_store=is_same_store,
        is_new_epoch=bool(rows) or not is_at_its_head,
        given_up=rows,
    )


def given_up(present: Head | None, restored: Head, shared: int, loss: Loss | None) -> tuple[GivenUp, ...]:
    """Return the acknowledged records that a restored store does not have, by the id under which they were written.

    Args:
        present: the store that is replaced; None for none, one that cannot be read, and one that is unrelated.
        restored: the store that takes its place.
        shared: the last record that both have; 0 for none.
        loss: what the second witness finds missing from the restored store.
    """
    ends = _ends(restored)
    settled = {one.store_id: one.seen for one in restored.epochs} | {restored.store_id: restored.seq}
    known = _periods(present) if present else {}
    for row in loss.by_id if loss else ():
        if row.store_id not in known:
            is_first_known = loss is not None and loss.kind == "replaced" and bool(loss.kept)
            known[row.store_id] = _Period(row.first, 0, row.last, is_first_known=is_first_known)
    found = []
    for store_id, period in known.items():
        kept = max(ends.get(store_id, 0), shared)
        if shared < min(ends.get(store_id, 0), period.last):
            kept = shared  # two copies of one store both went on: under one id, each has records of its own
        noted = loss.seen if loss and loss.store_id == store_id else 0
        seen = max(period.seen, noted)
        if noted or period.last > kept or seen > max(settled.get(store_id, 0), kept):
            first = min(max(period.first, kept + 1), seen)
            is_known = kept < seen and (period.is_first_known or ends.get(store_id, 0) > 0)
            found.append(GivenUp(store_id, first, seen, is_first_known=is_known))
    return tuple(found)


class _Store(msgspec.Struct, frozen=True):
    """A store that can be read: its file system, its folder, and its head."""

    fs: Fs
    folder: Path
    head: Head


class _Period(msgspec.Struct, frozen=True):
    """The records under one id of a store: the first, the last that is there, and the last that was acknowledged."""

    first: int
    last: int
    seen: int
    is_first_known: bool = True


def _periods(of: Head) -> dict[str, _Period]:
    """Return the records of a store by the id under which they were written, oldest first."""
    found, first = dict[str, _Period](), 1
    for one in of.epochs:
        earlier = found.get(one.store_id)
        if earlier:  # more was found out later about the records that are lost
            found[one.store_id] = msgspec.structs.replace(earlier, seen=max(earlier.seen, one.seen))
        elif one.seq:
            found[one.store_id] = _Period(first, one.seq, one.seen)
            first = one.seq + 1
        else:  # the id of another store, which had the place of this one
            found[one.store_id] = _Period(1, 0, one.seen, is_first_known=False)
    return found | {of.store_id: _Period(first, of.seq, of.seq)}


def _ends(of: Head) -> dict[str, int]:
    """Return the last record that a store has of the time under each of its ids."""
    return {one.store_id: one.seq for one in of.epochs} | {of.store_id: of.seq}


def _shared(present: _Store, new: _Store) -> int:
    """Return the last record that both stores have, as far as that can be known; 0 where they have none in common.

    What the ids say is compared with the hash of the record: two copies of a store that both went on have other records
    under one id. Copies that have no id in common are compared in the same way.
    """
    if present.head.lineage != new.head.lineage:
        return 0
    ours, theirs = _ends(present.head), _ends(new.head)
    common = ours.keys() & theirs.keys()
    bound = max((min(ours[one], theirs[one]) for one in common), default=min(present.head.seq, new.head.seq))
    for one, other in ((present, new), (new, present)):
        tips = [Tip(past.seq, past.hash, "", 0, past.at) for past in one.head.epochs]
        tip = next((tip for tip in (one.head.head, *tips) if tip.seq == bound), None)
        if tip and not holds(other.fs, other.folder, other.head, tip):
            return _compared(present, new, bound)
    return bound


def _compared(present: _Store, new: _Store, until: int) -> int:
    """Return the last record that two stores have in common, by the records; damage ends the comparison."""
    found = 0
    with contextlib.suppress(Damaged, HistoryPruned):
        ours = journal.scan(present.fs, present.folder, present.head, until=until)
        theirs = journal.scan(new.fs, new.folder, new.head, until=until)
        mine = next(ours, None)
        for entry in theirs:
            while mine and mine.frame.seq < entry.frame.seq:
                mine = next(ours, None)
            if mine and mine.frame.seq == entry.frame.seq:
                if mine.frame.sum != entry.frame.sum:
                    break
                found = entry.frame.seq
    return found


def _refuse_present(states: Iterable[RestoredBranch], *, replaces: bool) -> None:
    there = [one.branch for one in states if one.has_present]
    if there and not replaces:
        raise InvalidQuery(
            f"{some_of(there, 3)} {'has a store' if len(there) == 1 else 'have stores'}; nothing was restored.",
            hint=f"With --replace, the present store goes to the trash; {shell('branch', 'restore')} brings it back. "
            "Or name other branches of the backup with --only.",
        )


def _restore_one(
    workspace: Workspace, backup: Backup, number: int, author: Author, *, replaces: bool
) -> RestoredBranch:
    """Build the store next to its place, prove it, and rename it into its place under the repository's lock.

    The store that is there is locked from the look at its head to the rename: no record is added in between.
    """
    fs, saved = workspace.machine.fs, backup.manifest.branches[number]
    directory = workspace.folders.directory_of(saved.branch)
    workspace.witness(saved.branch).prepare()
    with repository_lock(workspace, accepts_loss=True):
        place = branchdir.building_place(directory)
        try:
            _extract(workspace, backup, number, place)
            with trash.present_lock(workspace, directory):
                state = _present(workspace, saved, fs, place)
                _refuse_present([state], replaces=replaces)
                if state.is_new_epoch:
                    _begin_epoch(workspace, place, saved, state.given_up, author)
                new = head.read(fs, place)
                if not state.is_same_store:
                    _keep_view(workspace, saved)
                interrupting.note_change()
                replaced = trash.put(workspace, place, directory)
        except BaseException:
            with contextlib.suppress(OSError):
                files.remove_tree(fs, place)
            raise
        discard_cache(workspace, saved.branch)
        with contextlib.suppress(GitUnusable):  # it is noted at the next use
            branches.note_ref(workspace, saved.branch)
        if state.is_new_epoch:
            workspace.witness(saved.branch).accept(new)
    return msgspec.structs.replace(state, replaced=str(replaced) if replaced else "")


def _keep_view(workspace: Workspace, saved: Saved) -> None:
    """Keep a cached view of records that neither the backup nor a readable store has."""
    cache = CacheFiles(workspace.machine.fs, workspace.folders.cache_of(saved.branch))
    basis = published_stamp(cache)
    if basis and basis.lineage == saved.lineage and basis.seq > saved.seq:
        cache.keep_lost_view(basis)


def _extract(workspace: Workspace, backup: Backup, number: int, place: Path) -> None:
    fs, saved = workspace.machine.fs, backup.manifest.branches[number]
    source, folder = backup.store(number)
    with files.explained(place, "make"):
        fs.mkdir(place)
    for member in saved.files:
        _copy_member(source, folder / member.file, fs, place / member.file)
    with files.explained(place, "sync"):
        fs.fsync_dir(place)
    proof = verify.prove(fs, place)
    if not proof.is_sound:
        raise backup.damaged(f"{saved.branch!r} could not be restored: {proof.damage}")


def _copy_member(source: Fs, path: Path, fs: Fs, target: Path) -> None:
    with (
        files.explained(target, "write"),
        files.opened(source, path, os.O_RDONLY) as read_fd,
        files.opened(fs, target, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as write_fd,
    ):
        at = 0
        while part := source.pread(read_fd, files.CHUNK_BYTES, at):
            files.write_all(fs, write_fd, part)
            at += len(part)
        fs.fsync(write_fd)


def _begin_epoch(workspace: Workspace, place: Path, saved: Saved, given_up: Sequence[GivenUp], author: Author) -> None:
    """Give the restored store a new id, before it has its place, and end the epochs of the records that are given up.

    The id of the restored store comes first: the records that follow are written under the new one.
    """
    machine = workspace.machine
    why = [f"The branch was restored from a backup of seq {saved.seq}, made at {saved.at}."]
    own = GivenUp(saved.store_id, saved.seq + 1, saved.seq)
    rows = {own.store_id: own} | {one.store_id: one for one in given_up}
    with journal.writing(
        machine.fs, place, machine.clock, wait_s=workspace.config.lock_wait_s, command=author.tool
    ) as writer:
        for one in rows.values():
            said, ended = ending(
                writer.head,
                why,
                machine.clock.now(),
                seen=one.last,
                lost_id=one.store_id,
                kept=one.first - 1,
                is_first_known=one.is_first_known,
            )
            begin_epoch(workspace, writer, author, said, (ended,))
