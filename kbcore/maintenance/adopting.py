"""``kb doctor --adopt``: take over stores from elsewhere, such as those that an older KB left in ``.kb/branches``.

Each is copied, and the copy is proven before it is moved to its place. A store with records that is there is replaced
only when that is asked for, and goes to the trash first.
What the copy was made of is removed last, and only when git tracks none of it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import msgspec

from kbcore import ids
from kbcore.errors import GitUnusable, InvalidQuery, JournalCorrupt, KBError
from kbcore.errors.remedies import shell
from kbcore.storage import branchdir, files, head, layout, lock, trashed, verify
from kbcore.storage.fs import Fs
from kbcore.store import branches, kb_folder, pointer, relocation
from kbcore.store.branches import trash
from kbcore.store.branches.stores import discard_cache, repository_lock
from kbcore.store.kb_folder import KB
from kbcore.store.workspace import Workspace
from kbcore.text.wording import some_of


class Adopted(msgspec.Struct, frozen=True):
    """A store that was taken over: how far it goes, and where the one went that had its place ("" for none).

    ``damage`` says what is wrong with it, "" when it proves. ``replaced_seq`` is how far the one went that had its
    place, None for none and for one that cannot be read.
    """

    branch: str
    seq: int | None
    replaced: str
    damage: str
    replaced_seq: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        found: dict[str, Any] = msgspec.to_builtins(self)
        return found


class _Copy(msgspec.Struct, frozen=True):
    """A copy next to its place: of which branch, how far it goes, and what is wrong with it."""

    branch: str
    place: Path
    seq: int | None
    damage: str


def adopt(
    workspace: Workspace, path: Path, *, replaces: bool = False, even_damaged: bool = False
) -> tuple[Adopted, ...]:
    """Take over the store at ``path``, or every store in that folder; return what was taken over.

    With ``replaces``, a store with records that has the place goes to the trash; an empty one always does. With
    ``even_damaged`` also what does not prove is taken over, as it is, to be repaired in its place.

    Raises: ``InvalidQuery`` when there is nothing that can be taken over: no store, links, what another user
    owns; or when a branch has a store with records, and it is not to be replaced; ``Damaged`` errors and
    ``Incompatible``; ``LockTimeout`` while one is written to; ``StorageError``.
    """
    fs = workspace.machine.fs
    _require_elsewhere(workspace, path)
    if fault := kb_folder.fault_in(workspace.machine, workspace.repo, path):
        raise InvalidQuery(
            f"{fault.message} Nothing was taken over.", hint="KB takes over only what is the user's own."
        )
    sources = [path] if relocation.is_store(fs, path) else list(relocation.stores_in(fs, path))
    if not sources:
        raise InvalidQuery(f"{path} holds no store.", hint="Name a store, or the folder that holds stores.")
    with repository_lock(workspace, accepts_loss=True):
        try:
            copies = [_copied(workspace, source, even_damaged=even_damaged) for source in sources]
            if not replaces:
                _refuse_present(workspace, copies)
            done = tuple(_put_in_place(workspace, one) for one in copies)
        except BaseException:
            with contextlib.suppress(KBError, OSError):
                branchdir.clear_unfinished(fs, workspace.folders.branches_dir)
            raise
        branchdir.clear_unfinished(fs, workspace.folders.branches_dir)
        _remove(workspace, path, sources)
    pointer.point(workspace.folders, workspace.pool)
    return done


def _require_elsewhere(workspace: Workspace, path: Path) -> None:
    shown, kind = str(path), kb_folder.kind_of(workspace.machine.fs, path)
    if kind == "link" and Path(os.path.realpath(path)) == Path(os.path.realpath(workspace.folders.branches_dir)):
        raise InvalidQuery(
            f"{shown} only points to the stores, which are in {workspace.folders.branches_dir}.",
            hint="There is nothing to take over.",
        )
    if kind == "link":
        raise InvalidQuery(f"{shown} is a link, and KB follows none there.", hint="Name the folder that it leads to.")
    if kind not in {"folder", "guard"}:
        raise InvalidQuery(f"{shown} is no folder.", hint="Name a store, or the folder that holds stores.")
    if Path(os.path.realpath(path)).is_relative_to(os.path.realpath(workspace.folders.data_dir)):
        hint = workspace.folders.place_of_stores().remedy or "There is nothing to take over."
        raise InvalidQuery(f"{shown} is where the stores are already.", hint=hint)


def _copied(workspace: Workspace, source: Path, *, even_damaged: bool) -> _Copy:
    """Copy one store next to its place."""
    machine = workspace.machine
    fs, wait_s = machine.fs, workspace.config.lock_wait_s
    with lock.held(fs, machine.clock, source / layout.LOCK, wait_s=wait_s, command="kb doctor"):
        proof = verify.prove(fs, source)
        damage = proof.damage
        if damage and not even_damaged:
            hint = f"With --even-damaged it is taken over as it is; then {shell('doctor')} says what can be repaired."
            raise JournalCorrupt(f"{source} does not prove: {damage}. Nothing was taken over.", hint=hint)
        branch = _branch_of(source, proof.head.branch if proof.head else "")
        place = branchdir.building_place(workspace.folders.directory_of(branch))
        relocation.copy_tree(fs, source, place)
    if not damage:
        verified = verify.prove(fs, place)
        if not verified.is_sound:
            raise JournalCorrupt(f"The copy of {source} does not prove. Nothing was taken over.")
    return _Copy(branch, place, _seq_of(fs, place), damage)


def _seq_of(fs: Fs, store: Path) -> int | None:
    """Return how far a store goes, None for none and for one whose head cannot be read."""
    try:
        return head.read(fs, store).seq
    except KBError:
        return None


def _refuse_present(workspace: Workspace, copies: list[_Copy]) -> None:
    """Refuse to take the place of a store that holds records, or that cannot be read."""
    fs = workspace.machine.fs
    present = {one.branch: _seq_of(fs, workspace.folders.directory_of(one.branch)) for one in copies}
    taken = [one for one in copies if workspace.folders.has_store(one.branch) and present[one.branch] != 0]
    if not taken:
        return
    said = [f"{one.branch} has a store {up_to(present[one.branch])}, this one is {up_to(one.seq)}" for one in taken]
    raise InvalidQuery(
        f"{some_of(said, 3)}. Nothing was taken over.",
        hint=f"With --replace, the present store goes to the trash; {shell('branch', 'restore')} brings it back.",
    )


def up_to(seq: int | None) -> str:
    """Say how far a store goes."""
    return "whose head cannot be read" if seq is None else f"at seq {seq}"


def _branch_of(source: Path, said: str) -> str:
    branch = said or ids.decode_branch(source.name) or ""
    fault = None if ids.is_detached_name(branch) else ids.check_branch_name(branch)
    if fault:
        raise InvalidQuery(f"{source} is the store of no branch: {fault}.")
    return branch


def _put_in_place(workspace: Workspace, copy: _Copy) -> Adopted:
    fs, directory = workspace.machine.fs, workspace.folders.directory_of(copy.branch)
    discard_cache(workspace, copy.branch)
    former = _seq_of(fs, directory)
    replaced = trash.replace(workspace, copy.place, directory)
    with contextlib.suppress(GitUnusable):  # it is noted at the next use
        branches.note_ref(workspace, copy.branch)
    return Adopted(copy.branch, copy.seq, str(replaced) if replaced else "", copy.damage, former)


def _remove(workspace: Workspace, path: Path, sources: list[Path]) -> None:
    """Remove what was copied out of ``.kb``, unless git tracks it; what lies elsewhere stays."""
    fs = workspace.machine.fs
    folder = path if path not in sources else path.parent
    if folder not in {
        workspace.folders.shown_branches,
        workspace.repo.worktree / KB / workspace.folders.shown_branches.name,
    }:
        return
    if kb_folder.fault_of(workspace.machine, workspace.repo, folder.parent, folder) is not None:
        return
    with files.explained(path, "remove"):
        for source in sources:
            files.remove_tree(fs, source)
        left = [name for name in fs.listdir(folder) if not (name.startswith(".") and name != trashed.TRASH)]
        if not left:
            files.remove_tree(fs, folder)
