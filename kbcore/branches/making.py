"""How a branch gets its store: made on first use, copied on demand, and done without by who only reads.

A copy holds one head of what it was copied from. A renamed branch takes its store along: a commit under the former
name is in the new store, or finds the branch moved.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from kbcore.branches import trash
from kbcore.branches.choosing import Choice, choose, unknown
from kbcore.branches.origins import find_origin
from kbcore.branches.stores import discard_cache, repository_lock, store_lock, stores
from kbcore.errors import InvalidQuery, Unavailable
from kbcore.storage import branchdir
from kbcore.store import BranchStore
from kbcore.viewcache import ViewCache
from kbcore.visible import in_quotes
from kbcore.workspace import Workspace


class Ensured(msgspec.Struct, frozen=True):
    """What ``ensure`` found or did: whether the store is new, and what it was copied from ("": it starts empty)."""

    branch: str
    is_new: bool
    copied_from: str = ""
    notice: str = ""


def ensure(workspace: Workspace, branch: str) -> Ensured:
    """Make sure that a branch has a store; a new one is a copy, history included, of what ``find_origin`` names.

    Raises: ``LockTimeout``, ``ReadOnlyStore``, ``StorageFull`` and what reading the store that is copied raises.
    """
    if workspace.has_store(branch):
        return Ensured(branch, is_new=False)
    with repository_lock(workspace):
        if workspace.has_store(branch):
            return Ensured(branch, is_new=False)
        origin = find_origin(workspace, branch)
        if origin is None:
            return _empty(workspace, branch)
        source = workspace.directory_of(origin.branch)
        if origin.is_former:
            # Who is committing under the former name either ends before the copy is made, or is refused after it.
            with store_lock(workspace, source):
                _copy(workspace, source, branch, view_of=origin.branch)
                trash.move_in(workspace, source)
            discard_cache(workspace, origin.branch)
        else:
            _copy(workspace, source, branch, view_of=origin.branch)
    return Ensured(branch, is_new=True, copied_from=origin.branch, notice=origin.notice)


def copy_from(workspace: Workspace, branch: str, source: str, *, replaces: bool = False) -> Ensured:
    """Make the store of a branch a copy of a named one: of another branch's, or of the last one in the trash.

    With ``replaces`` a store that the branch has already goes to the trash first.

    Raises: ``InvalidQuery`` when it has one and is to keep it; ``UnknownBranch`` for a source that there is not; as
    ``ensure``.
    """
    if branch == source:
        raise InvalidQuery(f"{branch} cannot be copied from itself.", hint="Name another branch with --from.")
    with repository_lock(workspace):
        is_in_use = workspace.has_store(source)
        directory = workspace.directory_of(source) if is_in_use else trash.find(workspace, source)
        if directory is None:
            raise unknown(workspace, source, f"{in_quotes(source)} has no store, neither in use nor in the trash.")
        view_of, target = source if is_in_use else "", workspace.directory_of(branch)
        if not workspace.has_store(branch):
            _copy(workspace, directory, branch, view_of=view_of)
        elif replaces:
            with store_lock(workspace, target):
                aside = trash.move_in(workspace, target)
                try:
                    _copy(workspace, directory, branch, view_of=view_of)
                except BaseException:
                    trash.move_back(workspace, aside, target)
                    raise
        else:
            raise InvalidQuery(
                f"{branch} has a store already.",
                hint="With --replace, that store goes to the trash first; `kb branch restore` brings it back.",
            )
    return Ensured(branch, is_new=True, copied_from=source)


def open_branch(workspace: Workspace, named: str | None) -> tuple[BranchStore, Choice, Ensured]:
    """Return the store of the branch that a request means, made on first use.

    Raises: as ``choose`` and ``ensure``.
    """
    choice = choose(workspace, named)
    ensured = ensure(workspace, choice.branch)
    return workspace.store(choice.branch), choice, ensured


def open_to_read(workspace: Workspace, named: str | None) -> tuple[BranchStore, Choice, Ensured]:
    """Return a store that answers for the branch that a request means; never to be written to.

    Where a new branch cannot get a store of its own, that is the one that it would be copied from, and the choice
    names that branch.

    Raises: as ``choose`` and ``ensure``; the latter only when there is nothing to copy.
    """
    choice = choose(workspace, named)
    try:
        ensured = ensure(workspace, choice.branch)
    except Unavailable as refused:
        origin = find_origin(workspace, choice.branch)
        if origin is None:
            raise
        notice = (
            f"{choice.branch} has no store yet and cannot get one ({refused.message}): "
            f"this is {origin.branch}, from which it will be copied."
        )
        ensured = Ensured(choice.branch, is_new=False, notice=notice)
        choice = Choice(origin.branch, follows_head=False)
    return workspace.store(choice.branch), choice, ensured


def _copy(workspace: Workspace, source: Path, branch: str, *, view_of: str) -> None:
    """Copy a store's directory, and let the new branch begin with the view of the branch ``view_of``, if any."""
    fs = workspace.machine.fs
    discard_cache(workspace, branch)
    if view_of:
        ViewCache(fs, workspace.cache_of(branch)).begin_with(ViewCache(fs, workspace.cache_of(view_of)))
    branchdir.copy(fs, source, workspace.directory_of(branch), branch=branch)


def _empty(workspace: Workspace, branch: str) -> Ensured:
    branchdir.create(workspace.machine.fs, workspace.directory_of(branch), workspace.machine.clock, branch=branch)
    default = workspace.default_branch
    notice = "" if branch == default else f"The default branch {default} has no store yet; {branch} starts empty."
    others = [name for name, _ in stores(workspace) if name != branch]
    if others:
        notice = notice or f"{branch} starts empty."
        notice += (
            f" There are stores of other branches ({', '.join(others[:3])}); if one of them was renamed: "
            f"`kb branch ensure {branch} --from NAME --replace`."
        )
    return Ensured(branch, is_new=True, notice=notice)
