"""The origin of a branch's store: the branch's own under its former name, else the default branch's.

Nothing is guessed: only what git's reflog says of a name is taken for a rename.
"""

from __future__ import annotations

import msgspec

from kbcore import git
from kbcore.errors import Damaged, Incompatible
from kbcore.errors.remedies import shell
from kbcore.storage import journal
from kbcore.store.branches.stores import former, in_git
from kbcore.store.workspace import Workspace
from kbcore.text.wording import one_of


class BranchOrigin(msgspec.Struct, frozen=True):
    """The store that a new one is copied from; with ``is_former`` it is the branch's own, under its former name.

    ``notice`` says what a person would not expect.
    """

    branch: str
    is_former: bool = False
    notice: str = ""


def find_origin(workspace: Workspace, branch: str) -> BranchOrigin | None:
    """Return what the store of a branch that has none is copied from, None when there is nothing to copy.

    Raises: ``GitUnusable`` when git cannot tell.
    """
    notice = ""
    old = former(workspace, branch)
    if old:
        # Only a ref makes it a branch again: a HEAD that still names it is about to follow the rename.
        is_gone = not git.is_branch(workspace.repo, workspace.machine.env, old)
        if is_gone or (workspace.verdict_on(old) == "made_again" and workspace.has_seen(old, branch)):
            said = f"git renamed {old} to {branch}: its store, history included, has that name now."
            return BranchOrigin(old, is_former=True, notice=said)
        notice = (
            f"git renamed {old} to {branch}, but there is a branch {old} again, and the store is still that of {old}; "
            f"{shell('branch', 'ensure', branch, '--from', old, '--replace')} copies it."
        )
    source = default_store(workspace, branch)
    return BranchOrigin(source, notice=notice) if source else None


def find_renamed(workspace: Workspace, former_name: str) -> str:
    """Return the branch that a store is of where git renamed it, and made another one of its former name since.

    Only what the store itself saw last of its branch proves that. Empty where no branch without a store is this one.

    Raises: ``GitUnusable`` when refs or reflogs cannot be read.
    """
    return next(
        (
            name
            for name in sorted(in_git(workspace) - {former_name})
            if workspace.has_seen(former_name, name) and former(workspace, name) == former_name
        ),
        "",
    )


def renamed_over(workspace: Workspace, branch: str) -> list[str]:
    """Return the former names of a branch under which a store was left, because the branch had one already.

    That is what ``git branch -M`` over a branch with a store makes. Empty once the branch has taken over the store of
    a former name. One look at the reflog, as a rule.

    Raises: ``GitUnusable`` when the reflog cannot be read.
    """
    repo, env = workspace.repo, workspace.machine.env
    names = git.former_names(repo, env, branch)
    left = [
        name
        for name in names
        if name not in {branch, workspace.default_branch}
        and workspace.folders.has_store(name)
        and not git.is_in_use(repo, env, name)
    ]
    if not left or not workspace.folders.has_store(branch):
        return []
    try:
        origin = journal.read_head(workspace.machine.fs, workspace.folders.directory_of(branch)).origin
    except (Damaged, Incompatible):  # whoever reads or writes the branch says so
        return []
    return [] if origin is not None and origin.branch in names else left


def left_over(workspace: Workspace, branch: str) -> str:
    """Return what to say to who uses a branch that another was renamed to, its store left in place; empty as a rule.

    Raises: as ``renamed_over``.
    """
    left = renamed_over(workspace, branch)
    if not left:
        return ""
    old = left[0]
    return (
        f"git renamed {old} to {branch}, which had a store already: that of {old} is still there, and this is not it. "
        f"{shell('branch', 'ensure', branch, '--from', old, '--replace')} takes it instead; "
        f"{shell('gc')} moves it to the trash."
    )


def default_store(workspace: Workspace, branch: str) -> str:
    """Return the default branch, or the name under which its store lies; empty when it has none, or is ``branch``.

    The default branch may have been renamed: then ``origin/HEAD`` or the configuration still has its former name, or
    has the new name already while the store has not been used under it.
    """
    default = workspace.default_branch
    for name in _called_now(workspace, default):
        if name != branch and workspace.folders.has_store(name):
            return name
    if default == branch:
        return ""
    return default if workspace.folders.has_store(default) else former(workspace, default)


def default_line(workspace: Workspace) -> str:
    """Return which branch is the default one, and what has become of it where git has none of that name.

    Raises: ``GitUnusable`` when refs or reflogs cannot be read; ``InvalidConfig`` for a name that git would not take.
    """
    default = workspace.default_branch
    if git.is_in_use(workspace.repo, workspace.machine.env, default):
        return f"{default} is the default branch"
    renamed = _called_now(workspace, default)
    if renamed:
        return f"the default branch {default} is called {one_of(renamed)} now"
    return f"{default} is the default branch, and git has none of that name here"


def _called_now(workspace: Workspace, name: str) -> list[str]:
    """Return the branches that git renamed from a name which no branch has any more."""
    repo, env = workspace.repo, workspace.machine.env
    if git.is_in_use(repo, env, name):
        return []
    return [one for one in sorted(in_git(workspace)) if name in git.former_names(repo, env, one)]
