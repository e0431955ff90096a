"""Stores and caches in ``.kb`` that are not read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from kbcore.errors import StorageError
from kbcore.errors.remedies import shell
from kbcore.store.folders import Folders
from kbcore.store.kb_folder import count_tracked, fault_in, is_used, kind_of, name_of
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcore.store.pool import StorePool

_ORIGIN: Final = 'that an older KB made, or KB itself while your own settings said "store": "worktree"'


class UnreadPath(msgspec.Struct, frozen=True):
    """Something in a worktree that KB does not read: what it is, and what to do about it."""

    code: str
    severity: Literal["error", "warning", "note"]
    path: str
    message: str
    remedy: str

    def __str__(self) -> str:
        """Say both in a line."""
        return f"{self.message} {self.remedy}"


def find_unread(folders: Folders, *, asks_git: bool = False) -> Iterator[UnreadPath]:
    """Yield stores and caches in ``.kb`` that an older KB had there, and that are not read.

    git is asked only about what is neither absent nor KB's own pointer, unless ``asks_git``.

    Raises: ``GitUnusable``.
    """
    for kb_dir in dict.fromkeys([folders.kb_dir, folders.repo.worktree / folders.kb_dir.name]):
        for path in (kb_dir / folders.shown_branches.name, kb_dir / folders.shown_cache.name):
            if path in {folders.usual_branches_dir, folders.usual_cache_dir}:
                found = _tracked(folders, kb_dir, path)
            else:
                found = _look_at(folders, kb_dir, path, asks_git=asks_git)
            if found is not None:
                yield found


def tracked_stores(folders: Folders) -> str:
    """Say that git tracks stores of an older layout, which are not read, and what to do; "" where it tracks none.

    Raises: ``GitUnusable``.
    """
    name = folders.shown_branches.name
    found = (one for one in find_unread(folders) if one.code == "store_tracked" and Path(one.path).name == name)
    return " ".join(map(str, found))


def require_untracked(folders: Folders, pool: StorePool) -> None:
    """Refuse stores and caches in the worktree that git tracks: whoever made the repository may have made them.

    git is asked again when its index has changed. Raises: ``StorageError``; ``GitUnusable``.
    """
    shown = folders.shown_branches
    if shown != folders.usual_branches_dir:
        return
    try:
        index = folders.machine.fs.lstat(folders.repo.common_dir / "index")
    except OSError:
        seen = None
    else:
        seen = index.st_ino, index.st_size, index.st_mtime_ns
    if seen is not None and pool.settled.get(shown) == seen:
        return
    for path in (shown, folders.shown_cache):
        if found := _tracked(folders, folders.kb_dir, path):
            raise StorageError(found.message, hint=found.remedy, data={"file": found.path})
    if seen is not None:
        pool.settled[shown] = seen


def _look_at(folders: Folders, kb_dir: Path, path: Path, *, asks_git: bool) -> UnreadPath | None:
    fs, name = folders.machine.fs, name_of(folders.repo, path)
    kind = kind_of(fs, path)
    is_cache = path.name == folders.shown_cache.name
    is_pointer = kind in {"absent", "file", "guard"} or (
        kind == "link" and not is_cache and Path(os.path.realpath(path)) == folders.usual_branches_dir
    )
    if (asks_git or not is_pointer) and (found := _tracked(folders, kb_dir, path)):
        return found
    if is_pointer:
        return None
    if kind == "link":
        remedy = f"Delete {name}."
        return UnreadPath("strange_link", "warning", str(path), f"{name} is a link that KB did not make.", remedy)
    if is_cache:
        message = f"{name} is a cache {_ORIGIN}, or was put there. It is not read."
        moves = path == folders.shown_cache and folders.has_older_stores()
        remedy = "It is moved along with the stores." if moves else f"Delete {name}."
        return UnreadPath("older_cache", "note", str(path), message, remedy)
    if is_used(fs, folders.usual_branches_dir) or path != folders.shown_branches:
        message = f"{name} is no part of the stores, which are in {folders.usual_branches_dir}. It is not read."
        remedy = (
            f"{shell('doctor', '--adopt', name)} takes over the stores in it, and "
            f"{shell('doctor', '--adopt', name, '--replace')} puts "
            "those that have their places into the trash. Else delete it."
        )
        return UnreadPath("stores_beside", "warning", str(path), message, remedy)
    message = f"{name} holds stores {_ORIGIN}."
    if fault := fault_in(folders.machine, folders.repo, path):
        remedy = f"Correct that, or {shell('doctor', '--adopt', name, lead='run')}."
        return UnreadPath(
            "stores_immovable", "error", str(path), f"{message} They cannot be moved: {fault.message}", remedy
        )
    remedy = f"The next command that may write proves them and moves them to {folders.usual_branches_dir}."
    return UnreadPath("older_layout", "note", str(path), message, remedy)


def _tracked(folders: Folders, kb_dir: Path, path: Path) -> UnreadPath | None:
    """Return what to say of a folder in ``.kb`` that git tracks; None when it tracks nothing there."""
    tracked, name = count_tracked(folders.machine, folders.repo, kb_dir, path.name), name_of(folders.repo, path)
    if not tracked:
        return None
    untrack = f"`git rm -r --cached {name}`, commit that"
    if kind_of(folders.machine.fs, path) == "link":
        message = f"git tracks {name}, which is a link. KB reads nothing through it."
        return UnreadPath("store_tracked", "error", str(path), message, f"Run {untrack}, and delete {name}.")
    message = f"git tracks {pluralize(tracked, 'file')} in {name}. KB reads none of them."
    if path.name == folders.shown_cache.name:
        remedy = f"Run {untrack}, and delete what is left of it."
    else:
        take = (
            "they are read then"
            if path == folders.usual_branches_dir
            else f"then {shell('doctor', '--adopt', name, lead='run')}"
        )
        remedy = f"If these stores are yours: {untrack}; {take}. If not: {untrack}, and delete {name}."
    return UnreadPath("store_tracked", "error", str(path), message, remedy)
