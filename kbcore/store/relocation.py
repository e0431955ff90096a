"""Stores of an older layout, which are moved once.

An older KB kept its stores in ``.kb/branches``. They are moved into the common git directory by one rename, after every
journal was proven and every head was marked so that an older KB refuses it. Wherever the process ends, the stores are
whole in one of the two places, and the next command finishes. Afterwards ``.kb/branches`` is a pointer (``pointer``).
"""

from __future__ import annotations

import contextlib
import errno
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kbcore.errors import Damaged, Incompatible, KBError, ReadOnlyStore, StorageError, UnknownBranch
from kbcore.errors.remedies import kb
from kbcore.storage import files, head, layout, lock, untracked, verify
from kbcore.store import pointer
from kbcore.store.folders import Folders
from kbcore.store.kb_folder import (
    OLDER_LOCK,
    fault_in,
    fault_of,
    files_in,
    is_folder,
    is_inside_git,
    is_used,
    kind_of,
    name_of,
)
from kbcore.store.unread_stores import require_untracked
from kbcore.text.wording import pluralize

if TYPE_CHECKING:
    from kbcore.storage.fs import Fs
    from kbcore.store.pool import StorePool

_MARKER: Final = "moving"
"""In the folder of the data: a copy over to another file system is complete, and what it was made of can go."""
_BUILDING: Final = ".moving-"
_ASIDE: Final = ".moved-branches"


def move_older_stores(folders: Folders, pool: StorePool, wait_s: Callable[[], float]) -> str:
    """Move the stores of an older layout, if there are any, and bring the pointer to them up to date.

    Costs two or three looks at the disk when there is nothing to do, which is the rule. Returns what to say of a move.

    Raises: ``StorageError`` when there are stores of an older layout that cannot be moved, ``LockTimeout`` while an
    older KB writes; ``Damaged`` errors of their journals; ``GitUnusable``.
    """
    fs, shown = folders.machine.fs, folders.shown_branches
    if shown == folders.usual_branches_dir:
        require_untracked(folders, pool)
        return ""
    seen = pointer.seen_of(folders)
    if seen is not None and pool.settled.get(shown) == seen:
        return ""
    if pointer.is_up_to_date(folders):
        if seen is not None:
            pool.settled[shown] = seen
        return ""
    kind = kind_of(fs, shown)
    has_stores = is_used(fs, folders.usual_branches_dir)
    if kind == "folder" and not has_stores:
        return _move(folders, pool, wait_s)
    if has_stores:
        _finish_copy(folders, wait_s)
        pointer.point(folders, pool)
    return ""


def _move(folders: Folders, pool: StorePool, wait_s: Callable[[], float]) -> str:
    """Move the stores of the older layout; return what to say of it."""
    machine, old = folders.machine, folders.shown_branches
    fault = fault_of(folders.machine, folders.repo, folders.kb_dir, old)
    if fault is not None and fault.kind == "tracked":
        return ""  # it came with the repository; ``find_unread`` reports it
    if fault is not None:
        raise _immovable(folders, fault.message)
    try:
        files.make_directory(machine.fs, folders.data_dir)
    except ReadOnlyStore as error:
        why = f"The stores in {old} have to be moved there once: run any `kb` command where that can be written."
        refused = folders.refused(error)
        raise ReadOnlyStore(error.message, hint=f"{why} {refused.remedy}", data=refused.data) from error
    with lock.held(machine.fs, machine.clock, folders.repository_lock, wait_s=wait_s(), command="kb move"):
        if is_used(machine.fs, folders.usual_branches_dir) or kind_of(machine.fs, old) != "folder":
            return ""  # another process moved them meanwhile
        with lock.held(machine.fs, machine.clock, old / OLDER_LOCK, wait_s=wait_s(), command="kb move"):
            return _moved(folders, pool, wait_s)


def _moved(folders: Folders, pool: StorePool, wait_s: Callable[[], float]) -> str:
    """Move what was found fit to be moved. The caller holds both repository locks."""
    fs, clock, old = folders.machine.fs, folders.machine.clock, folders.shown_branches
    if fault := fault_in(folders.machine, folders.repo, old):  # once more: an older KB wrote until its lock was taken
        raise _immovable(folders, fault.message)
    stores = list(stores_in(fs, old))
    for store in stores:
        with lock.held(fs, clock, store / layout.LOCK, wait_s=wait_s(), command="kb move"):
            require_proof(folders, store)
            mark(fs, store, folders.store_features)
    new = folders.usual_branches_dir
    # The guard is ready before the rename: there is no moment for an older KB to begin a store in.
    guard = None if pointer.lists_link(folders) or is_inside_git(folders.repo) else pointer.built_guard(folders)
    try:
        fs.replace(old, new)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise files.explain(error, old, "move") from error
        _copy_over(folders, stores)
    with contextlib.suppress(KBError, OSError):
        if guard is None:
            pointer.make_link(folders, pointer.target_of(folders))
        else:
            fs.replace(guard, old)
    pointer.point(folders, pool)
    with files.explained(new, "sync"):
        fs.fsync_dir(new.parent)
        fs.fsync_dir(old.parent)
    _move_cache(folders)
    return (
        f"The stores were moved from {old} to {new} ({pluralize(len(stores), 'branch')}), where git's own commands do "
        "not reach them. An older KB refuses them from now on."
    )


def stores_in(fs: Fs, folder: Path) -> Iterator[Path]:
    """Yield the stores in a folder, those that make room included; what holds no file of a store is none.

    Raises: ``StorageError`` when the folder, or one in it, cannot be listed.
    """
    with files.explained(folder, "list", reading=True):
        names = sorted(fs.listdir(folder))
    for name in names:
        path = folder / name
        is_hidden = name.startswith(".") and not name.startswith(".aside-")
        if not is_hidden and is_store(fs, path):
            yield path


def is_store(fs: Fs, path: Path) -> bool:
    """Tell whether a folder holds a file of a store, damaged or not.

    Raises: ``StorageError`` when it cannot be listed.
    """
    kinds = {"head", "segment", "snapshot"}
    if not is_folder(fs, path):
        return False
    with files.explained(path, "list", reading=True):
        return any(layout.kind_of(name) in kinds for name in fs.listdir(path))


def require_proof(folders: Folders, store: Path) -> None:
    """Raise ``StorageError`` when a store does not prove; the caller holds its lock."""
    proof = verify.prove(folders.machine.fs, store)
    if not proof.is_sound:
        raise _immovable(folders, proof.damage)


def mark(fs: Fs, store: Path, features: tuple[str, ...]) -> None:
    """Say in the head of a store what a reader must know because of where the store is."""
    of = head.read(fs, store)
    wanted = tuple(sorted({*of.features_required, *features} - ({head.GIT_DIRECTORY} - {*features})))
    if wanted != of.features_required:
        head.publish(fs, store, msgspec.structs.replace(of, features_required=wanted))


def _immovable(folders: Folders, why: str) -> StorageError:
    old, new = folders.shown_branches, folders.usual_branches_dir
    return StorageError(
        f"The stores in {old} have to be moved to {new}, and cannot be: {why}",
        hint=f"Nothing was moved. Correct that, or {kb('doctor', '--adopt', name_of(folders.repo, old), lead='run')}.",
        data={"file": str(old)},
    )


def _move_cache(folders: Folders) -> None:
    """Move the cache of the older layout as well; it costs time to do without, and nothing else."""
    fs, old, new = folders.machine.fs, folders.shown_cache, folders.usual_cache_dir
    with contextlib.suppress(KBError, OSError):
        if kind_of(fs, old) == "folder" and fault_of(folders.machine, folders.repo, folders.kb_dir, old) is None:
            fs.replace(old, new)


def _copy_over(folders: Folders, stores: list[Path]) -> None:
    """Copy the folder to another file system, prove the copy, and put away what it was made of."""
    fs, old, new = folders.machine.fs, folders.shown_branches, folders.usual_branches_dir
    with files.explained(folders.data_dir, "clear"):
        for name in fs.listdir(folders.data_dir):
            if name.startswith(_BUILDING):
                files.remove_tree(fs, folders.data_dir / name)
    building = folders.data_dir / f"{_BUILDING}{secrets.token_hex(8)}"
    copy_tree(fs, old, building)
    for store in stores:
        require_proof(folders, building / store.name)
    files.write_synced(fs, folders.data_dir / _MARKER, b"")
    with files.explained(new, "make"):
        fs.replace(building, new)
        fs.fsync_dir(folders.data_dir)
    _put_away(folders)


def copy_tree(fs: Fs, source: Path, target: Path) -> None:
    """Copy a folder with all in it, durably; hard links within it stay such.

    Raises: ``StorageError`` and its kin; the target may exist in part then.
    """
    seen: dict[tuple[int, int], Path] = {}
    with files.explained(target, "make"):
        fs.mkdir(target)
    for path, status in files_in(fs, source):
        there, identity = target / path.relative_to(source), (status.st_dev, status.st_ino)
        if path == source:
            continue
        if stat.S_ISDIR(status.st_mode):
            with files.explained(there, "make"):
                fs.mkdir(there)
        elif identity in seen:
            with files.explained(there, "make"):
                fs.link(seen[identity], there)
        else:
            files.copy_range(fs, path, there, 0, status.st_size)
            seen[identity] = there
    for path, status in files_in(fs, target):
        if stat.S_ISDIR(status.st_mode):
            with files.explained(path, "sync"):
                fs.fsync_dir(path)


def _finish_copy(folders: Folders, wait_s: Callable[[], float]) -> None:
    """Finish a copy whose process ended before it had put away what it copied."""
    machine = folders.machine
    if not files.is_there(machine.fs, folders.data_dir / _MARKER):
        return
    with lock.held(machine.fs, machine.clock, folders.repository_lock, wait_s=wait_s(), command="kb move"):
        finish_locked(folders)


def finish_locked(folders: Folders) -> None:
    """Do the same for who holds the repository lock."""
    if files.is_there(folders.machine.fs, folders.data_dir / _MARKER):
        _put_away(folders)


def _put_away(folders: Folders) -> None:
    """Remove the folder that was copied, if all of its stores are in the copy; else it stays, and is not read."""
    fs, old, aside = folders.machine.fs, folders.shown_branches, folders.kb_dir / _ASIDE
    if kind_of(fs, old) == "folder" and all(_is_copied(folders, store) for store in stores_in(fs, old)):
        with files.explained(old, "move"):
            fs.replace(old, aside)
            fs.fsync_dir(folders.kb_dir)
    with contextlib.suppress(OSError):
        # Its own ignore file goes last: until then git shows nothing of it. A link that came with the repository stays.
        names = fs.listdir(aside) if is_folder(fs, aside) else []
        for name in sorted(names, key=lambda name: name == untracked.IGNORE):
            if is_folder(fs, aside / name):
                files.remove_tree(fs, aside / name)
            else:
                fs.unlink(aside / name)
        fs.rmdir(aside)
    if not files.is_there(fs, aside):
        files.remove_quietly(fs, folders.data_dir / _MARKER)


def _is_copied(folders: Folders, store: Path) -> bool:
    """Tell whether a store is a marked one, and its copy goes as far as it does."""
    fs = folders.machine.fs
    try:
        of, copied = head.read(fs, store), head.read(fs, folders.usual_branches_dir / store.name)
    except (Damaged, Incompatible, UnknownBranch):
        return False
    return head.GIT_DIRECTORY in of.features_required and (of.store_id == copied.store_id) and of.seq <= copied.seq
