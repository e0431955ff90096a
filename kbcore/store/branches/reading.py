"""The store that answers for a branch while none is made for it: for who only reads, or plans a first write."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from kbcore.errors import GitUnusable
from kbcore.storage import branchdir, files, scratch
from kbcore.store.branch_store import BranchStore
from kbcore.store.branches import lost, trash
from kbcore.store.branches.choosing import Choice, choose
from kbcore.store.branches.creation import Ensured, ensure, existing, origin_of, said_of_empty, with_left_over
from kbcore.store.branches.origins import find_origin
from kbcore.store.workspace import Workspace


def open_to_read(workspace: Workspace, named: str | None) -> tuple[BranchStore, Choice, Ensured]:
    """Return a store that answers for the branch that a request means; never to be written to.

    Where a branch has no store of its own, that is the one that it will be copied from; the choice names the branch
    that is meant.

    Raises: as ``choose`` and ``for_reading``.
    """
    choice = choose(workspace, named)
    ensured = for_reading(workspace, choice)
    return workspace.store(choice.branch), choice, with_left_over(workspace, ensured)


def for_reading(workspace: Workspace, choice: Choice) -> Ensured:
    """Have ``workspace`` give what answers for a choice; see ``open_to_read``. Nothing is written to the stores.

    A branch without a store is answered from the one that its store will be copied from, as ``answering`` of the
    workspace says. Where there is none, that is an empty store which only this process has. The store of an earlier
    branch of this name, which git has deleted since, stays where it is: only a writer puts it in the trash.

    Raises: ``StoreWentBack`` where records are missing and nothing else answers; ``BranchMoved`` or ``UnknownBranch``
    for a branch that git has renamed or deleted since it was chosen; ``GitUnusable``; what reading a head raises.
    """
    answering, ensured = _answering(workspace, choice)
    if answering.branch != choice.branch:
        workspace.read_on[choice.branch] = answering.branch
    return ensured


def open_to_try(workspace: Workspace, named: str | None) -> tuple[BranchStore, Choice, Ensured]:
    """Return the store on which a dry run for the branch that a request means is planned; it takes no record.

    Raises: as ``choose`` and ``for_trying``.
    """
    choice = choose(workspace, named)
    ensured = for_trying(workspace, choice)
    return workspace.store(choice.branch), choice, with_left_over(workspace, ensured)


def for_writing(workspace: Workspace, choice: Choice, report: Callable[[Ensured], None]) -> None:
    """Have the store of a branch made for the first record of this request, once nothing refuses that.

    Until then the request is planned on what the store will be copied from. Where there is nothing to copy, the branch
    was renamed, or records are missing, the store is made at once. ``report`` is called when it is made.

    Raises: as ``ensure``.
    """
    branch, origin = choice.branch, None

    def make() -> None:
        # What made it may be this workspace renewed.
        workspace.tried_on.pop(branch, None)
        workspace.makes.pop(branch, None)
        report(with_left_over(workspace, ensure(workspace, branch, follows_head=choice.follows_head)))

    if (
        workspace.unmovable is None
        and not workspace.folders.has_store(branch)
        and lost.loss_of(workspace, branch) is None
    ):
        origin = origin_of(workspace, branch, follows_head=choice.follows_head)
    if origin is None or origin.is_former:
        make()
        return
    workspace.tried_on[branch], workspace.makes[branch] = origin.branch, make


def for_trying(workspace: Workspace, choice: Choice) -> Ensured:
    """Have the writes of a dry run planned on what answers for a choice; see ``for_reading``. Nothing is written.

    The branch is still the one that is meant: where it has no store, ``workspace`` gives, for it, the one that its
    store will be copied from.

    Raises: as ``for_reading``.
    """
    answering, ensured = _answering(workspace, choice)
    if answering.branch != choice.branch:
        workspace.tried_on[choice.branch] = answering.branch
    return ensured


def _answering(workspace: Workspace, choice: Choice) -> tuple[Choice, Ensured]:
    has_store = workspace.folders.has_store(choice.branch)
    if workspace.unmovable is not None and has_store:
        notice = (
            f"{workspace.unmovable.message}. The stores are read in {workspace.folders.branches_dir}, where they are."
        )
        return choice, Ensured(choice.branch, is_new=False, notice=notice)
    if not has_store:
        return _without_store(workspace, choice)
    verdict = workspace.verdict_on(choice.branch)
    if verdict == "made_again":
        return _of_earlier(workspace, choice)
    return choice, existing(workspace, choice.branch, verdict, notes_ref=False)


def _of_earlier(workspace: Workspace, choice: Choice) -> tuple[Choice, Ensured]:
    """Return the branch that answers for one whose store is that of an earlier branch of its name.

    Raises: ``StoreWentBack`` when records are missing from that store, and there is nothing else to read;
    ``GitUnusable`` and what reading its head raises.
    """
    loss = lost.loss_of(workspace, choice.branch)
    origin = find_origin(workspace, choice.branch)
    if loss and origin is None:
        raise lost.error_of(workspace, loss)
    why = f"git deleted {choice.branch} and made it again since its store was last used"
    then = "The next command that writes makes a new store, and puts that of the earlier branch in the trash."
    if origin is None:
        notice = f"{why}: this is the store of the earlier branch. {then}"
        return choice, Ensured(choice.branch, is_new=False, notice=notice, is_warning=True)
    notice = f"{why}: this is {origin.branch}, from which a new store will be copied. {then}"
    if loss:
        error = lost.error_of(workspace, loss)
        notice = f"{error.message} This is {origin.branch}. {error.remedy}"
    ensured = Ensured(choice.branch, is_new=False, notice=notice, is_warning=True)
    return Choice(origin.branch, follows_head=False), ensured


def _without_store(workspace: Workspace, choice: Choice) -> tuple[Choice, Ensured]:
    """Return the branch that answers for one that has no store.

    Raises: as ``for_reading``.
    """
    branch = choice.branch
    loss = lost.loss_of(workspace, branch)
    try:
        origin = origin_of(workspace, branch, follows_head=choice.follows_head)
        remembered = trash.remembered(workspace, branch)
        if origin is None:
            loss = lost.blocking(workspace, branch, lost.losses(workspace), is_copied=False)
    except GitUnusable as error:
        raise (lost.error_of(workspace, loss) if loss else error) from error
    if origin is None and loss:
        raise lost.error_of(workspace, loss)
    if origin is None:
        return choice, _read_as_empty(workspace, branch)
    if loss:
        missed = lost.error_of(workspace, loss)
        said = f"{missed.message} This is {origin.branch}. {missed.remedy}"
    elif origin.is_former:
        said = f"git renamed {origin.branch} to {branch}: this is the store of {origin.branch}, which goes to {branch}"
        said += " at its first write."
    else:
        said = f"{branch} has no store yet: this is {origin.branch}, from which the first write copies it."
        said = f"{said} {origin.notice}".rstrip()
    ensured = Ensured(branch, is_new=False, notice=f"{said} {remembered}".rstrip(), is_warning=bool(loss))
    return Choice(origin.branch, follows_head=False), ensured


def _read_as_empty(workspace: Workspace, branch: str) -> Ensured:
    """Have a branch without a store read as an empty one, in the private folder of this process.

    Raises: ``GitUnusable``; ``StorageError`` and its kin when that folder cannot be written.
    """
    machine, place = workspace.machine, workspace.folders.directory_of(branch)
    notice, is_warning = said_of_empty(workspace, branch)
    if place not in workspace.pool.empty_stores:
        with files.explained(place, "make"):
            folder = Path(scratch.made_private_folder(), f"empty-{secrets.token_hex(8)}")
        files.make_directory(machine.fs, folder)
        directory = folder / place.name
        branchdir.create(machine.fs, directory, machine.clock, branch=branch)
        workspace.pool.empty_stores[place] = directory
    return Ensured(branch, is_new=False, notice=notice, is_warning=is_warning)
