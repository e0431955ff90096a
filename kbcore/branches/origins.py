"""What the store of a branch is made from: the branch's own under its former name, else the default branch's.

Nothing is guessed: only what git's reflog says of a name is taken for a rename.
"""

from __future__ import annotations

import msgspec

from kbcore import git
from kbcore.branches.stores import former, in_git
from kbcore.workspace import Workspace


class Origin(msgspec.Struct, frozen=True):
    """The store that a new one is copied from; with ``is_former`` it is the branch's own, under its former name.

    ``notice`` says what a person would not expect.
    """

    branch: str
    is_former: bool = False
    notice: str = ""


def find_origin(workspace: Workspace, branch: str) -> Origin | None:
    """Return what the store of a branch that has none is copied from, None when there is nothing to copy.

    Raises: ``GitUnusable`` when git cannot tell.
    """
    notice = ""
    old = former(workspace, branch)
    if old:
        if old not in in_git(workspace):
            said = f"git renamed {old} to {branch}: its store, history included, goes by that name now."
            return Origin(old, is_former=True, notice=said)
        notice = (
            f"git renamed {old} to {branch}, but there is a branch {old} again, and the store is still that of {old}; "
            f"`kb branch ensure {branch} --from {old} --replace` copies it."
        )
    source = _default_store(workspace, branch)
    return Origin(source, notice=notice) if source else None


def _default_store(workspace: Workspace, branch: str) -> str:
    """Return the default branch, or the name under which its store lies; empty when it has none, or is ``branch``.

    The default branch may have been renamed: then ``origin/HEAD`` or the configuration still has its former name, or
    has the new name already while the store has not been used under it.
    """
    default, repo, env = workspace.default_branch, workspace.repo, workspace.machine.env
    if not git.is_in_use(repo, env, default):
        for name in sorted(in_git(workspace) - {branch}):
            if default in git.former_names(repo, env, name) and workspace.has_store(name):
                return name
    if default == branch:
        return ""
    return default if workspace.has_store(default) else former(workspace, default)
