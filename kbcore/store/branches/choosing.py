"""Choice of a request's branch.

A name is checked before anything is made of it: only what git or a store knows is a branch.
"""

from __future__ import annotations

import msgspec

from kbcore import git, ids
from kbcore.errors import UnknownBranch
from kbcore.errors.remedies import shell
from kbcore.store.branches import store_moves
from kbcore.store.branches.stores import stores
from kbcore.store.workspace import Workspace, head_moved
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import nearest
from kbcore.text.wording import shortened

_SHOWN_CHARS = 80


class Choice(msgspec.Struct, frozen=True):
    """The branch that a request means; with ``follows_head`` it is the one checked out, and may move."""

    branch: str
    follows_head: bool


def choose(workspace: Workspace, named: str | None) -> Choice:
    """Return the branch that a request means: the one that it names, else the one that is checked out.

    Raises: ``UnknownBranch`` for a name that exists nowhere, the empty one included; ``GitUnusable`` when HEAD cannot
    be read.
    """
    if named is None:
        return Choice(workspace.head_branch(), follows_head=True)
    _check(workspace, named)
    return Choice(named, follows_head=False)


def choose_noted(workspace: Workspace, branch: str | None) -> str:
    """Return the branch that a request about a loss means: also one that is gone from git, if its store was noted.

    Raises: as ``choose``.
    """
    if branch is not None and workspace.place.read(ids.encode_branch(branch)):
        return branch
    return choose(workspace, branch).branch


def insist(workspace: Workspace, branch: str, *, follows_head: bool) -> None:
    """Refuse a branch that was chosen, and that git has renamed or deleted while the request waited.

    Raises: ``BranchMoved`` when HEAD named it, and names another one now; else ``UnknownBranch``.
    """
    if ids.is_detached_name(branch) or branch in {workspace.head().branch, workspace.default_branch}:
        return
    if git.is_in_use(workspace.repo, workspace.machine.env, branch):
        return
    now = workspace.head().branch
    if follows_head and now != branch:
        raise head_moved(branch, now)
    raise no_branch(
        workspace, branch, f"There is no branch {in_quotes(branch)} any more, neither in git nor as a store."
    )


def no_branch(workspace: Workspace, name: str, message: str) -> UnknownBranch:
    """Return the error about a name: its store may be in the trash, or else there is a near one that would do."""
    if not ids.is_detached_name(name) and not ids.check_branch_name(name):
        encoded = ids.encode_branch(name)
        if any(one.name == encoded for one in store_moves.in_trash(workspace)):
            back = f"{shell('branch', 'restore', name)} brings it back."
            return UnknownBranch(message, hint=f"The trash holds a store of {in_quotes(name)}; {back}")
    known = {store for store, _ in stores(workspace)} | git.local_branches(workspace.repo, workspace.machine.env)
    near = nearest(name, sorted(known))
    return UnknownBranch(message, hint=f"Did you mean {in_quotes(near)}? {UnknownBranch.default_hint}" if near else "")


def _check(workspace: Workspace, branch: str) -> None:
    """Refuse the name of a branch that exists neither in git nor as a store."""
    is_detached = ids.is_detached_name(branch)
    shown = shortened(branch, _SHOWN_CHARS)
    fault = None if is_detached else ids.check_branch_name(branch)
    if fault:
        raise no_branch(workspace, branch, f"{in_quotes(shown)} cannot be a branch: {fault}.")
    if workspace.folders.has_store(branch) or branch in {workspace.head().branch, workspace.default_branch}:
        return
    if is_detached or not git.is_branch(workspace.repo, workspace.machine.env, branch):
        raise no_branch(workspace, branch, f"There is no branch {in_quotes(shown)}, neither in git nor as a store.")
