"""Waits for git to get done with renaming a branch, before anything is concluded from what refs and reflogs lack.

What is decided in the middle of a rename would leave a store under a name that is not used any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from kbcore import git, ids
from kbcore.git.reflog import is_given_up, is_renaming
from kbcore.store.workspace import Workspace

WAIT_S: Final = 2.0
"""Time to wait for git: a rename takes some milliseconds."""
_STEP_S: Final = 0.05

T = TypeVar("T")


def settled(workspace: Workspace, ask: Callable[[], T], is_doubtful: Callable[[T], bool]) -> tuple[T, bool]:
    """Return what ``ask`` finds, asked again as long as that is doubtful, and whether it is to be relied on."""
    clock = workspace.machine.clock
    end_s = clock.monotonic_s() + WAIT_S
    while True:
        found = ask()
        if not is_doubtful(found):
            return found, True
        if clock.monotonic_s() >= end_s:
            return found, False
        clock.sleep(_STEP_S)


def is_between_names(workspace: Workspace) -> bool:
    """Tell whether some branch is being renamed, as far as its ref and its reflog go."""
    machine = workspace.machine
    return is_renaming(workspace.repo, machine.env, machine.clock.epoch_ns())


def may_be_former(workspace: Workspace, branch: str) -> bool:
    """Tell whether a branch may be called otherwise a moment from now, and a HEAD that names it be about to follow.

    The default branch may have been renamed long ago: the configuration does not follow.
    """
    if is_between_names(workspace):
        return True
    stays = ids.is_detached_name(branch) or branch == workspace.default_branch
    return not stays and is_given_up(workspace.repo, workspace.machine.env, branch)


def listed(workspace: Workspace, ask: Callable[[set[str]], T]) -> tuple[T, bool]:
    """Return what ``ask`` finds of the local branches while none is renamed, and whether that is to be relied on."""

    def look() -> tuple[set[str], T]:
        there = git.local_branches(workspace.repo, workspace.machine.env)
        return there, ask(there)

    def is_doubtful(found: tuple[set[str], T]) -> bool:
        return is_between_names(workspace) or git.local_branches(workspace.repo, workspace.machine.env) != found[0]

    (_, found), is_reliable = settled(workspace, look, is_doubtful)
    return found, is_reliable
