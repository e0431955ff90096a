"""Moves of a store: aside, into the place of another, and into the trash.

A store that makes room is put aside, under a name that says whose it is, until its place is taken: the next process
with the repository lock after a process that ended in between puts it back. A branch never loses its store to a move.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from kbcore.errors import CommitUncertain, KBError
from kbcore.storage import branchdir, files, trashed
from kbcore.storage.fs import Fs
from kbcore.storage.trashed import ASIDE, TRASH, TrashedStore, aside_of
from kbcore.store.workspace import Workspace


def finish_moves(workspace: Workspace) -> None:
    """Finish or undo what processes that ended early left aside. The caller holds the repository lock.

    Raises: ``StorageError`` and its kin when something cannot be moved.
    """
    fs, parent = workspace.machine.fs, workspace.folders.branches_dir
    with files.explained(parent, "list", reading=True):
        entries = sorted(fs.listdir(parent))
    for entry in entries:
        if entry.startswith(ASIDE):
            bring_back(workspace, parent / entry.removeprefix(ASIDE))


def is_aside(workspace: Workspace, directory: Path) -> bool:
    """Tell whether the store of a directory makes room, or did when its process ended."""
    return files.is_directory(workspace.machine.fs, aside_of(directory))


def set_aside(workspace: Workspace, directory: Path) -> None:
    """Have a store make room. The caller holds its lock, and goes on with one of the functions below."""
    _rename(workspace.machine.fs, directory, aside_of(directory))


def bring_back(workspace: Workspace, directory: Path) -> Path | None:
    """Give a store that was set aside its place again; if that is taken, it goes to the trash, which is returned."""
    fs, aside = workspace.machine.fs, aside_of(directory)
    if files.is_directory(fs, directory):
        return throw_away(workspace, aside)
    _rename(fs, aside, directory)
    return None


def put_in_place(workspace: Workspace, new: Path, directory: Path) -> Path | None:
    """Rename a whole store to ``directory``; one that is there goes to the trash, and its new place is returned.

    The caller holds the repository lock, and the lock of the store that is there.

    Raises: ``CommitUncertain`` when it is done, but may not survive a power failure, or the other store could not be
    moved to the trash; what a refused rename raises, and what was in place is there again then.
    """
    fs = workspace.machine.fs
    if not files.is_directory(fs, directory):
        trashed.state_successor(fs, directory, new)
        _rename(fs, new, directory)
        return None
    try:
        set_aside(workspace, directory)
        _rename(fs, new, directory)
    except BaseException:
        if is_aside(workspace, directory):
            bring_back(workspace, directory)
        raise
    try:
        return bring_back(workspace, directory)
    except KBError as error:
        raise CommitUncertain(
            f"{directory} is in place, but the store that was there could not be moved to the trash: {error.message}",
            hint="The next command that makes or moves a store moves it there.",
            data={"file": str(directory)},
        ) from error


def throw_away(workspace: Workspace, store: Path) -> Path:
    """Rename a store into the trash, where it is the newest of its name, and return where it is now.

    Its name there states what has its place now: another store, or none, which means that KB deleted it.
    """
    fs, directory = workspace.machine.fs, store.with_name(store.name.removeprefix(ASIDE))
    trash = directory.parent / TRASH
    if not files.is_directory(fs, trash):
        with files.explained(trash, "make"):
            fs.mkdir(trash)
    now = workspace.machine.clock.now().replace(":", "").replace("-", "")
    newest = max((one.when for one in in_trash(workspace) if one.name == directory.name), default="")
    is_vacated = store == directory or not files.is_directory(fs, directory)
    target = trashed.trash_path(fs, directory, max(now, _next(newest)), is_vacated=is_vacated)
    _rename(fs, store, target)
    return target


def in_trash(workspace: Workspace) -> list[TrashedStore]:
    """Return the stores in the trash, those that came there first first. Raises: as ``trashed.stores_in_trash``."""
    return (
        trashed.stores_in_trash(workspace.machine.fs, workspace.folders.branches_dir)
        if workspace.folders.has_branches_dir()
        else []
    )


def _next(when: str) -> str:
    """Return the first time that sorts after one in the trash; the empty text after none."""
    if not when:
        return ""
    digits = f"{int(re.sub(r'[TZ.]', '', when)) + 1:020d}"
    return f"{digits[:8]}T{digits[8:14]}.{digits[14:]}Z"


def _rename(fs: Fs, source: Path, target: Path) -> None:
    """Rename a directory, and make both names durable."""
    with files.explained(source, "move"):
        fs.replace(source, target)
    try:
        for folder in dict.fromkeys([target.parent, source.parent]):
            fs.fsync_dir(folder)
    except OSError as error:
        raise branchdir.not_durable(target, os.strerror(error.errno or 0)) from error
