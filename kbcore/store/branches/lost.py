"""Stores that lack acknowledged records, as the second witness shows it.

A store that KB itself puts away is no loss: it lies in another place of the same repository.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kbcore.errors import KBError, StoreWentBack
from kbcore.errors.remedies import shell
from kbcore.storage import files, head
from kbcore.storage.loss import Loss, missing
from kbcore.store import relocation, unread_stores
from kbcore.store.branches import store_moves
from kbcore.store.workspace import Workspace


def loss_of(workspace: Workspace, branch: str) -> Loss | None:
    """Return what the store of a branch lacks, which may not exist; None when nothing is known to be missing.

    Raises: what reading its head raises.
    """
    return workspace.loss_of(branch)


def losses(workspace: Workspace) -> list[Loss]:
    """Return what is missing of all branches that were ever noted here. A damaged head is left to who reads it."""
    found = []
    for seen in workspace.place.entries():
        with contextlib.suppress(KBError):
            found.append(loss_of(workspace, seen.branch))
    return [one for one in found if one is not None]


def refuse(workspace: Workspace, branch: str) -> None:
    """Refuse to write to the store of a branch that lacks acknowledged records.

    Raises: ``StoreWentBack``; what reading its head raises.
    """
    loss = loss_of(workspace, branch)
    if loss is not None:
        raise error_of(workspace, loss)


def refuse_gone(workspace: Workspace, branch: str) -> None:
    """Refuse what needs a store where a branch has none any more. Raises: as ``refuse``."""
    if not workspace.folders.has_store(branch):
        refuse(workspace, branch)


def refuse_any(workspace: Workspace) -> None:
    """Refuse to make the folder of the stores where the store of a branch is missing: all of them may come back.

    Raises: ``StoreWentBack`` about the branch that is checked out if its store is missing, else about the first one.
    """
    if found := _first(workspace, losses(workspace)):
        raise error_of(workspace, found)


def _first(workspace: Workspace, found: Sequence[Loss]) -> Loss | None:
    """Return the loss about the branch that is checked out, else the first one."""
    return min(found, key=lambda loss: loss.branch != workspace.head().branch, default=None)


def blocking(workspace: Workspace, branch: str, found: Sequence[Loss], *, is_copied: bool) -> Loss | None:
    """Return that one of the losses for which a write to a branch is refused, None where there is none.

    It is about another branch where no store is made while that one is missing. ``is_copied`` says that the branch has
    no store, and that its first use copies or takes over another one.
    """
    by_branch = {loss.branch: loss for loss in found}
    if branch in by_branch or workspace.folders.has_store(branch):
        return by_branch.get(branch)
    if not workspace.folders.has_branches_dir():
        return _first(workspace, found)
    return None if is_copied else by_branch.get(workspace.default_branch)


def error_of(workspace: Workspace, loss: Loss, way_on: str = "") -> StoreWentBack:
    """Return the error about a loss; its hint begins with a store of that branch that is there and is not read.

    ``way_on`` is as in ``Loss.remedy``.
    """
    error = loss.error()
    return StoreWentBack(error.message, hint=remedy(workspace, loss, way_on), data=error.data)


def remedy(workspace: Workspace, loss: Loss, way_on: str = "") -> str:
    """Return what a person can do about a loss: first what brings the records back from a place that KB knows.

    ``way_on`` is as in ``Loss.remedy``.
    """
    own = loss.remedy(way_on)
    name, fs = workspace.folders.shown_branches.name, workspace.machine.fs
    with contextlib.suppress(KBError, OSError):  # the hint is only longer; whatever failed is no reason to say less
        held = [one for one in store_moves.in_trash(workspace) if one.name == loss.directory.name]
        if held and _has_records(workspace, held[-1].path, loss):
            back = f"{shell('branch', 'restore', loss.branch)}"
            return f"The trash has a store of {loss.branch} with these records: {back} brings it back. {own}"
        if loss.kind != "gone":  # what lies elsewhere is not taken over while the branch has a store
            return own
        for one in unread_stores.find_unread(workspace.folders):
            if Path(one.path).name == name and Path(one.path, loss.directory.name).is_dir():
                return f"{one} {own}"
        for folder in workspace.folders.folders_moved_aside():
            if _has_records(workspace, folder / loss.directory.name, loss):
                stores = relocation.stores_in(fs, folder)
                is_free = not any(files.is_directory(fs, workspace.folders.branches_dir / one.name) for one in stores)
                path = folder if is_free else folder / loss.directory.name
                adopted = f"{shell('doctor', '--adopt', str(path))}"
                return f"There is one in {folder}, which is not read: {adopted} takes it over. {own}"
    return own


def _has_records(workspace: Workspace, store: Path, loss: Loss) -> bool:
    """Tell whether a store has the missing records, as its head says; False where that cannot be read."""
    try:
        of = head.read(workspace.machine.fs, store)
    except KBError:
        return False
    return of.store_id == loss.store_id and of.seq >= loss.seen


def warning(workspace: Workspace, loss: Loss) -> str:
    """Return what to say to who does not write, with ``remedy``."""
    return loss.warning(remedy(workspace, loss))


def note_store(workspace: Workspace, branch: str) -> None:
    """Note the store that a branch has now, after KB has put it in the place of another one."""
    with contextlib.suppress(KBError):
        loss_of(workspace, branch)


class SeenFurther(msgspec.Struct, frozen=True):
    """A branch that was seen further than here, by a repository with the same id whose place is gone."""

    branch: str
    git_dir: str
    seen: int
    now: int | None


def missing_places(workspace: Workspace) -> list[SeenFurther]:
    """Return the branches that were seen further in places where the repository is no more, each once.

    A hint, no proof: the repository here may be a copy that was made before, and nothing is missing from that.
    """
    place, fs, found = workspace.place, workspace.machine.fs, []
    for folder in place.gone():
        for seen in place.entries(folder):
            directory: Path = workspace.folders.directory_of(seen.branch)
            now = None
            with contextlib.suppress(KBError):
                now = head.read(fs, directory)
            with contextlib.suppress(KBError):
                if missing(fs, directory, seen, now, lambda _: False):
                    found.append(SeenFurther(seen.branch, place.path_of(folder), seen.seq, now.seq if now else None))
    furthest = {one.branch: one for one in sorted(found, key=lambda one: one.seen)}
    return [*furthest.values()]
