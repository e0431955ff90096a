"""Branches that have a store, and stores that are needed.

A list is complete or an error is raised: what is not in the list of the living may be removed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from kbcore import git, ids
from kbcore.errors import (
    Damaged,
    GitUnusable,
    Incompatible,
    KBError,
    ReadOnlyStore,
    Unavailable,
    UnknownBranch,
)
from kbcore.storage import files, gitref, journal, layout, lock
from kbcore.storage.fs import Fs
from kbcore.storage.gitref import RefSeen
from kbcore.store import pointer, relocation
from kbcore.store.branches import lost, settling, store_moves
from kbcore.store.workspace import Workspace

if TYPE_CHECKING:
    from kbcore.store.facts_export import Export
    from kbcore.view.view import View


class BranchInfo(msgspec.Struct, frozen=True):
    """A branch store as ``kb branch list`` shows it; ``error`` is the code of what keeps it from being read.

    ``exists_in_git`` is as ``in_git`` says: a branch that is checked out or being rebased exists.
    ``is_made_again`` tells that the store is that of an earlier branch of this name, ``is_doubted`` that it may be.
    """

    name: str
    seq: int | None
    current: bool
    exists_in_git: bool
    origin: dict[str, Any] | None
    error: str = ""
    is_made_again: bool = False
    is_doubted: bool = False


def missing_between(workspace: Workspace, other: str, branch: str) -> Export:
    """Return what clients wrote on a branch and another one has not, both as their stores have them.

    The other branch has nothing if it has no store, which "" also says. Raises: what reading a store raises.
    """
    from kbcore.store.facts_export import missing_on  # noqa: PLC0415 - imports duckdb, which few need who look for a store

    def read(view: View) -> Export:
        if not other or not workspace.folders.has_store(workspace.answering(other)):
            return missing_on(None, view)
        return workspace.store(other).read(lambda there: missing_on(there, view))

    return workspace.store(branch).read(read)


def stores(workspace: Workspace) -> Iterator[tuple[str, Path]]:
    """Yield the name and the directory of every branch store, in order of name."""
    fs, parent = workspace.machine.fs, workspace.folders.branches_dir
    if not workspace.folders.has_branches_dir():
        return
    found = []
    with files.explained(parent, "list", reading=True):
        entries = fs.listdir(parent)
    for entry in entries:
        directory = parent / entry
        if entry.startswith(".") or not files.is_directory(fs, directory):
            continue
        found.append((ids.decode_branch(entry) or _name_in_head(workspace, directory), directory))
    yield from sorted(found)


def _name_in_head(workspace: Workspace, directory: Path) -> str:
    """Return the branch that a store says it belongs to; a name too long for a directory is only there."""
    try:
        return journal.read_head(workspace.machine.fs, directory).branch
    except (Damaged, Incompatible, UnknownBranch):
        return directory.name


def listing(workspace: Workspace) -> list[BranchInfo]:
    """Return every branch that has a store. Raises: ``GitUnusable`` when git cannot tell its branches and reflogs."""
    current, known = workspace.head().branch, in_git(workspace)
    found = []
    for name, directory in stores(workspace):
        is_current, exists = name == current, name in known
        verdict = workspace.verdict_on(name)
        is_made_again, is_doubted = verdict == "made_again", verdict == "doubtful"
        try:
            head = journal.read_head(workspace.machine.fs, directory)
        except KBError as error:
            found.append(BranchInfo(name, None, is_current, exists, None, error.code, is_made_again, is_doubted))
            continue
        origin = msgspec.to_builtins(head.origin) if head.origin else None
        found.append(BranchInfo(name, head.seq, is_current, exists, origin, "", is_made_again, is_doubted))
    return found


def in_git(workspace: Workspace) -> set[str]:
    """Return the local branches, and what any worktree has checked out or is rebasing.

    Raises: ``GitUnusable`` when git cannot list them all.
    """
    repo, env = workspace.repo, workspace.machine.env
    return git.local_branches(repo, env) | {one.head.branch for one in git.worktree_heads(repo, env)}


def living(workspace: Workspace) -> dict[str, str]:
    """Return the branches whose stores are needed, each with the reason in words.

    Those are what git has, the default branch, and the former name of a branch that was renamed and has not been
    used since: its store is still under that name.

    Raises: ``GitUnusable`` when git cannot list them all, or keeps renaming them.
    """
    repo, env = workspace.repo, workspace.machine.env

    def ask(there: set[str]) -> dict[str, str]:
        needed = dict.fromkeys(there, "a branch of git")
        needed |= {one.head.branch: f"checked out in {one.path}" for one in git.worktree_heads(repo, env)}
        needed |= {workspace.head().branch: "checked out here", workspace.default_branch: "the default branch"}
        past = {old: f"git renamed it to {name}" for name in sorted(needed) for old in [former(workspace, name)] if old}
        return past | needed

    needed, is_reliable = settling.listed(workspace, ask)
    if not is_reliable:
        raise GitUnusable("git keeps renaming branches.", hint="Run it again when git is done.")
    return needed


def note_gone(workspace: Workspace, fs: Fs | None = None) -> None:
    """Note in each store whose branch git does not have that it was gone, for the time when there is one of its name.

    Where git keeps no reflogs, nothing else shows that a branch of that name is another one. Each store is noted once.
    Nothing is noted in a store whose branch had no ref when it was used last, as one that was restored before git made
    the branch, nor while git has no branch at all. What cannot be determined or noted now is left to the next look.

    ``fs`` is the file system to write on, where that of the workspace takes no writes.

    Raises: ``GitUnusable`` when git cannot list its branches; ``StorageError`` when the stores cannot be listed.
    """
    folders, fs = workspace.folders, fs or workspace.machine.fs
    if workspace.unmovable is not None or folders.is_unmoved:
        return
    there = [name for name, place in stores(workspace) if folders.directory_of(name) == place]
    named = [name for name in there if not ids.is_detached_name(name) and name != workspace.default_branch]
    refs = git.local_branches(workspace.repo, workspace.machine.env) if named else set[str]()
    if not refs or not any(_is_to_be_noted(workspace, name) for name in named if name not in refs):
        return
    try:
        needed = living(workspace)
    except GitUnusable:  # git keeps renaming branches
        return
    # A branch with a store of its own was looked for, by this function, before it got that store.
    others = refs - {*there, workspace.default_branch}
    machine, path = workspace.machine, folders.repository_lock
    with (
        contextlib.suppress(Unavailable),
        lock.held(fs, machine.clock, path, wait_s=0, command="kb branch"),
    ):
        for name in named:
            if name not in needed:
                _note_gone(workspace, fs, name, may_be_renamed=bool(others))


def _note_gone(workspace: Workspace, fs: Fs, name: str, *, may_be_renamed: bool) -> None:
    """Note it in one store, unless the branch came back. The caller holds the lock that who makes a store waits for."""
    directory = workspace.folders.directory_of(name)
    if not _is_to_be_noted(workspace, name) or git.is_in_use(workspace.repo, workspace.machine.env, name):
        return
    # Without a note it is not known whether there was a ref before.
    seen = gitref.read(fs, directory) or RefSeen(gitref.FORMAT, "", had_ref=False)
    gitref.write(fs, directory, msgspec.structs.replace(seen, is_gone=True, may_be_renamed=may_be_renamed))


def _is_to_be_noted(workspace: Workspace, name: str) -> bool:
    """Tell whether the store of a branch that git does not have is there, and does not say that yet."""
    if not workspace.folders.has_store(name):
        return False
    seen = gitref.read(workspace.machine.fs, workspace.folders.directory_of(name))
    return seen is None or (seen.had_ref and not seen.is_gone)


def former(workspace: Workspace, branch: str) -> str:
    """Return the name under which the store of a renamed branch lies; empty when it has its own, or there is none.

    Raises: ``GitUnusable`` when the branch's reflog cannot be read.
    """
    if workspace.folders.has_store(branch):
        return ""
    names = git.former_names(workspace.repo, workspace.machine.env, branch)
    return next((name for name in names if name != branch and workspace.folders.has_store(name)), "")


@contextlib.contextmanager
def repository_lock(workspace: Workspace, *, accepts_loss: bool = False) -> Iterator[None]:
    """Hold the lock of the repository: every store is in its place then, whatever ended before.

    A fresh clone has only the tracked ``.kb``; the folder of the stores is made.

    Raises: as ``make_data_dir``; ``LockTimeout``.
    """
    machine, wait_s = workspace.machine, workspace.config.lock_wait_s
    make_data_dir(workspace, accepts_loss=accepts_loss)
    try:
        with lock.held(
            machine.fs, machine.clock, workspace.folders.repository_lock, wait_s=wait_s, command="kb branch"
        ):
            relocation.finish_locked(workspace.folders)
            store_moves.finish_moves(workspace)
            yield
    except ReadOnlyStore as error:
        raise workspace.folders.refused(error) from error


def make_data_dir(workspace: Workspace, *, accepts_loss: bool = False) -> None:
    """Make the folder of the stores, unless it is there.

    Where stores were and the whole folder vanished, nothing is made unless ``accepts_loss``: the stores may come back,
    and ``git stash pop`` fails where a file of them exists.

    Raises: ``StoreWentBack`` in that case; as ``files.make_directory`` and ``pointer.make_room``.
    """
    if not accepts_loss and not workspace.folders.has_branches_dir():
        lost.refuse_any(workspace)
    try:
        pointer.make_room(workspace.folders, workspace.pool)
        for folder in (workspace.folders.data_dir, workspace.folders.branches_dir):
            files.make_directory(workspace.machine.fs, folder)
    except ReadOnlyStore as error:
        raise workspace.folders.refused(error) from error


def store_lock(workspace: Workspace, directory: Path) -> AbstractContextManager[None]:
    """Return the lock of one store, not yet taken; whoever holds both took the repository's first."""
    machine, path = workspace.machine, directory / layout.LOCK
    return lock.held(machine.fs, machine.clock, path, wait_s=workspace.config.lock_wait_s, command="kb branch")


def discard_cache(workspace: Workspace, branch: str) -> None:
    """Remove what is cached for a branch whose store is gone or is another one now, but no witness of a loss.

    Only to save room: a view says which store it is of, so what cannot be removed does no harm.
    """
    from kbcore.view.cache_files import is_kept  # noqa: PLC0415 - imports duckdb, which few need who look for a store

    fs, cache = workspace.machine.fs, workspace.folders.cache_of(branch)
    with contextlib.suppress(OSError, KBError):
        if files.is_directory(fs, cache):
            for name in fs.listdir(cache):
                if not is_kept(name):
                    fs.unlink(cache / name)
            fs.rmdir(cache)
