"""How a store changes its place: aside, into the place of another, and into the trash.

A store that makes room lies aside, under a name that tells whose it is, until its place is taken: whoever holds the
repository lock next after a process that ended in between puts it back. A branch never loses its store to a move.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kbcore.errors import CommitUncertain, KBError
from kbcore.storage import files
from kbcore.storage.fs import Fs
from kbcore.workspace import Workspace

TRASH: Final = ".trash"
ASIDE: Final = ".aside-"
"""Begins the name of a store that makes room; the name of its directory follows."""
_MARK: Final = "~"
"""Between the name of a directory and the time that it came to the trash."""
_TIME: Final = re.compile(r"\d{8}T\d{6}\.\d{6}Z", re.ASCII)


def settle(workspace: Workspace) -> None:
    """Finish or undo what processes that ended early left aside. The caller holds the repository lock.

    Raises: ``StorageError`` and its kin when something cannot be moved.
    """
    fs, parent = workspace.machine.fs, workspace.branches_dir
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
    """Rename a store into the trash, where it is the newest of its name, and return where it is now."""
    fs, trash, name = workspace.machine.fs, store.parent / TRASH, store.name.removeprefix(ASIDE)
    if not files.is_directory(fs, trash):
        with files.explained(trash, "make"):
            fs.mkdir(trash)
    now = workspace.machine.clock.now().replace(":", "").replace("-", "")
    newest = max((when for its_name, when in trashed(workspace) if its_name == name), default="")
    target = trash / f"{name}{_MARK}{max(now, _next(newest))}"
    _rename(fs, store, target)
    return target


def trashed(workspace: Workspace) -> Iterator[tuple[str, str]]:
    """Yield the directory name of each store in the trash, and when it came there, in a form that sorts as text.

    The times of one name are all different, whatever the clock said.
    """
    fs, folder = workspace.machine.fs, workspace.branches_dir / TRASH
    if not files.is_directory(fs, folder):
        return
    with files.explained(folder, "list", reading=True):
        entries = fs.listdir(folder)
    for entry in entries:
        name, _, when = entry.rpartition(_MARK)
        if _TIME.fullmatch(when):
            yield name, when


def place_in_trash(workspace: Workspace, name: str, when: str) -> Path:
    """Return where a store in the trash lies, from what ``trashed`` yields."""
    return workspace.branches_dir / TRASH / f"{name}{_MARK}{when}"


def _next(when: str) -> str:
    """Return the first time that sorts after one in the trash; the empty text after none."""
    if not when:
        return ""
    digits = f"{int(re.sub(r'[TZ.]', '', when)) + 1:020d}"
    return f"{digits[:8]}T{digits[8:14]}.{digits[14:]}Z"


def aside_of(directory: Path) -> Path:
    """Return where the store of a directory lies while it makes room."""
    return directory.with_name(ASIDE + directory.name)


def _rename(fs: Fs, source: Path, target: Path) -> None:
    """Rename a directory, and make both names durable."""
    with files.explained(source, "move"):
        fs.replace(source, target)
    try:
        for folder in dict.fromkeys([target.parent, source.parent]):
            fs.fsync_dir(folder)
    except OSError as error:
        raise CommitUncertain(
            f"{target} is in place, but may not survive a power failure: {os.strerror(error.errno or 0)}",
            hint="Look at the system log; running the command again is safe.",
            data={"file": str(target)},
        ) from error
