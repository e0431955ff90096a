"""The stores of branches: made on first use from the default branch, listed, and cleared away.

A store is never made of half a history, and never removed while its branch exists anywhere: in a ref, in a worktree,
or as the default branch. What ``collect`` removes goes to a trash folder first.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcore import git, ids
from kbcore.errors import Damaged, Incompatible, KBError, UnknownBranch
from kbcore.storage import branchdir, files, journal, layout, lock
from kbcore.store import BranchStore
from kbcore.workspace import BRANCHES, REPOSITORY_LOCK, Workspace

TRASH: Final = ".trash"


class Choice(msgspec.Struct, frozen=True):
    """The branch that a request means; with ``follows_head`` it is the one checked out, and may move."""

    branch: str
    follows_head: bool


class Ensured(msgspec.Struct, frozen=True):
    """What ``ensure`` found or did: whether the store is new, and what it was copied from ("": it starts empty)."""

    branch: str
    is_new: bool
    copied_from: str = ""
    notice: str = ""


class BranchInfo(msgspec.Struct, frozen=True):
    """A branch store as ``kb branch list`` shows it; ``error`` is the code of what keeps it from being read."""

    name: str
    seq: int | None
    current: bool
    exists_in_git: bool
    origin: dict[str, Any] | None
    error: str = ""


class Collected(msgspec.Struct, frozen=True):
    """What ``collect`` moved to the trash, and what it kept."""

    removed: tuple[str, ...]
    kept: tuple[str, ...]
    dry_run: bool


def ensure(workspace: Workspace, branch: str) -> Ensured:
    """Make sure that a branch has a store; a new one is a copy of the default branch's, history included.

    Raises: ``LockTimeout``, ``ReadOnlyStore``, ``StorageFull`` and what reading the default branch's store raises.
    """
    fs, clock, directory = workspace.machine.fs, workspace.machine.clock, workspace.directory_of(branch)
    if files.is_directory(fs, directory):
        return Ensured(branch, is_new=False)
    with _repository_lock(workspace):
        if files.is_directory(fs, directory):
            return Ensured(branch, is_new=False)
        default = workspace.default_branch
        source = workspace.directory_of(default)
        if branch != default and files.is_directory(fs, source):
            branchdir.copy(fs, source, directory, branch=branch)
            _share_view(workspace, default, branch)
            return Ensured(branch, is_new=True, copied_from=default)
        branchdir.create(fs, directory, clock, branch=branch)
    notice = "" if branch == default else f"The default branch {default} has no store yet; {branch} starts empty."
    return Ensured(branch, is_new=True, notice=notice)


def choose(workspace: Workspace, named: str | None) -> Choice:
    """Return the branch that a request means: the one that it names, else the one that is checked out.

    Raises: ``UnknownBranch`` for a name that exists nowhere; ``GitUnusable`` when HEAD cannot be read.
    """
    if named:
        workspace.check_branch(named)
        return Choice(named, follows_head=False)
    return Choice(workspace.head().branch, follows_head=True)


def open_branch(workspace: Workspace, named: str | None) -> tuple[BranchStore, Choice, Ensured]:
    """Return the store of the branch that a request means, made on first use.

    Raises: as ``choose`` and ``ensure``.
    """
    choice = choose(workspace, named)
    ensured = ensure(workspace, choice.branch)
    return workspace.store(choice.branch), choice, ensured


def _repository_lock(workspace: Workspace) -> Any:
    """Return the lock of the repository, not yet taken; a fresh clone has only the tracked half of ``.kb``."""
    machine = workspace.machine
    for folder in (workspace.kb_dir, workspace.kb_dir / BRANCHES):
        if not files.is_directory(machine.fs, folder):
            with files.explained(folder, "make"):
                machine.fs.mkdir(folder)
    path = workspace.kb_dir / BRANCHES / REPOSITORY_LOCK
    return lock.held(machine.fs, machine.clock, path, wait_s=workspace.config.lock_wait_s, command="kb branch")


def _share_view(workspace: Workspace, source: str, target: str) -> None:
    """Let a copied branch begin with the view of its source. Only a saving: a failure costs a rebuild."""
    fs = workspace.machine.fs
    folder = workspace.cache_of(target)
    try:
        if not files.is_directory(fs, folder):
            fs.mkdir(folder)
        fs.link(workspace.cache_of(source) / "view.duckdb", folder / "view.duckdb")
    except (OSError, KBError):
        return


def stores(workspace: Workspace) -> Iterator[tuple[str, Path]]:
    """Yield the name and the directory of every branch store, in order of name."""
    fs, parent = workspace.machine.fs, workspace.kb_dir / BRANCHES
    if not files.is_directory(fs, parent):
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
    """Return the branch that a store says it belongs to; a name too long for a directory stands only there."""
    try:
        return journal.read_head(workspace.machine.fs, directory).branch
    except (Damaged, Incompatible, UnknownBranch):
        return directory.name


def listing(workspace: Workspace) -> list[BranchInfo]:
    """Return every branch that has a store."""
    current = workspace.head().branch
    in_git = git.local_branches(workspace.repo, workspace.machine.env)
    found = []
    for name, directory in stores(workspace):
        is_current, exists = name == current, name in in_git
        try:
            head = journal.read_head(workspace.machine.fs, directory)
        except KBError as error:
            found.append(BranchInfo(name, None, is_current, exists, None, error.code))
            continue
        origin = msgspec.to_builtins(head.origin) if head.origin else None
        found.append(BranchInfo(name, head.seq, is_current, exists, origin))
    return found


def living(workspace: Workspace) -> set[str]:
    """Return the branches whose stores are needed: local refs, what any worktree has checked out, and the default.

    Raises: ``GitUnusable`` when git cannot list them all.
    """
    names = {workspace.default_branch, workspace.head().branch}
    names |= git.local_branches(workspace.repo, workspace.machine.env)
    return names | {one.head.branch for one in git.worktree_heads(workspace.repo, workspace.machine.env)}


def collect(workspace: Workspace, *, dry_run: bool = False) -> Collected:
    """Move the stores of branches that exist nowhere any more to the trash.

    A branch counts as existing when it is a local ref, is checked out or being rebased in any worktree, or is the
    default branch. A store that cannot be named is kept.

    Raises: ``GitUnusable`` when git cannot list its branches; nothing is removed then.
    """
    fs, clock = workspace.machine.fs, workspace.machine.clock
    removed, kept = [], []
    with contextlib.nullcontext() if dry_run else _repository_lock(workspace):
        if not dry_run:
            branchdir.clear_unfinished(fs, workspace.kb_dir / BRANCHES)
        needed = living(workspace)
        for name, directory in stores(workspace):
            is_known = workspace.directory_of(name) == directory
            if name in needed or not is_known:
                kept.append(name)
                continue
            removed.append(name)
            if dry_run:
                continue
            with lock.held(fs, clock, directory / layout.LOCK, wait_s=workspace.config.lock_wait_s, command="kb gc"):
                _move_to_trash(workspace, directory)
            cache = workspace.cache_of(name)
            if files.is_directory(fs, cache):
                with files.explained(cache, "remove"):
                    files.remove_tree(fs, cache)
    return Collected(tuple(removed), tuple(kept), dry_run)


def _move_to_trash(workspace: Workspace, directory: Path) -> None:
    """Rename a store out of the way. The trash is never emptied by KB."""
    fs, trash = workspace.machine.fs, directory.parent / TRASH
    when = workspace.machine.clock.now().replace(":", "").replace("-", "")
    with files.explained(directory, "move"):
        if not files.is_directory(fs, trash):
            fs.mkdir(trash)
        fs.replace(directory, trash / f"{directory.name}~{when}")
        fs.fsync_dir(trash)
        fs.fsync_dir(directory.parent)
