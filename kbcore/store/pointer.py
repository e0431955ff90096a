"""The pointer to the stores: what KB puts at ``.kb/branches`` when the stores are in the git directory.

A link where git ignores a link of that name, else a guard, which is a folder that hides itself from git. An older KB
begins no second store next to either. Nothing is ever read there.
"""

from __future__ import annotations

import contextlib
import errno
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kbcore.errors import GitUnusable, KBError
from kbcore.git.commands import run_git
from kbcore.limits import MAX_CONFIG_BYTES
from kbcore.storage import files, untracked
from kbcore.store.folders import Folders
from kbcore.store.kb_folder import (
    OLDER_LOCK,
    count_tracked,
    is_folder,
    is_inside_git,
    kind_of,
    main_of,
    name_in_worktree,
    pointer_text,
    relative_path,
    where,
)
from kbcore.store.unread_stores import require_untracked

if TYPE_CHECKING:
    from kbcore.storage.fs import Fs
    from kbcore.store.pool import StorePool

README: Final = "README"
_GUARD_ASIDE: Final = ".branches.tmp"
_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
_GIT_SAYS_NO: Final = 1


def point(folders: Folders, pool: StorePool) -> None:
    """Bring ``.kb/branches`` to what it should be; where nothing can be written there, it stays as it is.

    What git tracks under that name is left alone, and so is a folder of stores.
    """
    memo = (folders.shown_branches, _signature(folders))
    if memo in pool.pointed:
        return
    with contextlib.suppress(KBError, OSError):
        if is_folder(folders.machine.fs, folders.kb_dir):
            _point(folders)
    pool.pointed.add((folders.shown_branches, _signature(folders)))


def make_room(folders: Folders, pool: StorePool) -> None:
    """Remove KB's pointer where the stores are to be in its place; the caller is about to make their folder.

    Another process may do the same at this moment, and have made stores there already: nothing of those is removed.

    Raises: ``StorageError`` and its kin when it cannot be removed; as ``require_untracked``.
    """
    if not folders.is_in_worktree:
        return
    require_untracked(folders, pool)
    fs, shown = folders.machine.fs, folders.shown_branches
    if not folders.has_own_pointer():
        return
    with files.explained(shown, "remove"), contextlib.suppress(FileNotFoundError):
        if kind_of(fs, shown) == "guard":
            _open_guard(fs, shown)
            return
        try:
            fs.unlink(shown)
        except OSError:
            if kind_of(fs, shown) != "folder":
                raise


def target_of(folders: Folders) -> str:
    """Return where the link leads: a relative path, so that it is right after the repository was moved."""
    return relative_path(str(folders.usual_branches_dir), str(folders.kb_dir))


def seen_of(folders: Folders) -> tuple[object, ...] | None:
    """Return how the link and the ignore file look from outside, by two looks; None where there is no link."""
    fs = folders.machine.fs
    try:
        ignore = fs.lstat(files.below(folders.kb_dir, untracked.IGNORE))
        target = fs.readlink(folders.shown_branches)
    except OSError:
        return None
    return target, folders.usual_branches_dir, ignore.st_ino, ignore.st_size, ignore.st_mtime_ns


def is_up_to_date(folders: Folders) -> bool:
    """Tell by looks alone whether the pointer is as it should be, or there is nothing to point to."""
    fs, shown = folders.machine.fs, folders.shown_branches
    try:
        target = fs.readlink(shown)
    except FileNotFoundError:
        return not files.is_there(fs, folders.usual_branches_dir) or not is_folder(fs, folders.kb_dir)
    except OSError:
        kind = kind_of(fs, shown)
        return kind == "file" or (kind == "guard" and not lists_link(folders))
    return target == target_of(folders) and (is_inside_git(folders.repo) or lists_link(folders))


def _open_guard(fs: Fs, folder: Path) -> None:
    """Make a guard a folder that stores can be in; its ignore file stays. One that is a folder already is left alone.

    Raises: ``OSError`` as the calls do.
    """
    # Only a guard has a folder of this name, and only one process succeeds to remove it.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        fs.rmdir(folder / OLDER_LOCK)
        with contextlib.suppress(FileNotFoundError):
            fs.unlink(folder / README)
        fs.fsync_dir(folder)


def _signature(folders: Folders) -> str:
    """Return what decides about the pointer, as a text: what is there, and what the ignore file beside it says."""
    fs, shown = folders.machine.fs, folders.shown_branches
    try:
        found = fs.readlink(shown)
    except OSError:
        found = kind_of(fs, shown)
    return f"{found} {_ignore_text(folders)!r}"


def _point(folders: Folders) -> None:
    fs, shown = folders.machine.fs, folders.shown_branches
    kind, target = kind_of(fs, shown), target_of(folders)
    is_listed = lists_link(folders) or is_inside_git(folders.repo)
    if kind in {"folder", "file", "other"} or (kind == "guard" and not is_listed):
        return
    if is_inside_git(folders.repo):
        make_link(folders, target)
        return
    if count_tracked(folders.machine, folders.repo, folders.kb_dir, shown.name):
        return
    aside = folders.kb_dir / _GUARD_ASIDE
    if kind == "guard":
        fs.replace(shown, aside)
        if kind_of(fs, aside) != "guard":  # another process replaced the guard at this moment
            fs.replace(aside, shown)
            return
    elif kind == "link" and fs.readlink(shown) != target:
        fs.unlink(shown)
    if is_listed:
        make_link(folders, target)
    if _is_ignored(folders):
        make_link(folders, target)
        if kind == "guard":
            files.remove_tree(fs, aside)
    else:
        with contextlib.suppress(FileNotFoundError):
            fs.unlink(shown)
        _guard(folders)


def make_link(folders: Folders, target: str) -> None:
    """Make the link; where the file system has none, a plain file that names the place."""
    fs, shown = folders.machine.fs, folders.shown_branches
    try:
        fs.symlink(target, shown)
    except FileExistsError:  # another process made it at this moment
        return
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        files.publish_file(fs, shown, pointer_text(target))


def _guard(folders: Folders) -> None:
    """Make a folder that git does not show, and in which an older KB can make no store."""
    fs, building = folders.machine.fs, built_guard(folders)
    fs.replace(building, folders.shown_branches)


def built_guard(folders: Folders) -> Path:
    """Return a guard that is ready to be renamed into its place."""
    fs, building = folders.machine.fs, folders.kb_dir / _GUARD_ASIDE
    untracked.make(fs, building)
    files.make_directory(fs, building / OLDER_LOCK)
    text = (
        f"{where(target_of(folders))}\n"
        "This folder keeps an older KB from beginning empty stores here. It is no link, because git does not ignore\n"
        f"one of this name: add a line `/{folders.shown_branches.name}` to .kb/.gitignore and commit it.\n"
    )
    files.write_synced(fs, building / README, text.encode())
    return building


def _is_ignored(folders: Folders) -> bool:
    """Ask git whether it ignores a link of this name; while nothing is there, or a link."""
    name = name_in_worktree(folders.repo, folders.kb_dir)
    try:
        asked = ["check-ignore", "--quiet", "--", f"{name}/{folders.shown_branches.name}"]
        return run_git(main_of(folders.repo), folders.machine.env, asked, allowed=(0, _GIT_SAYS_NO)).status == 0
    except GitUnusable:
        return False


def lists_link(folders: Folders) -> bool:
    """Tell whether the ignore file in ``.kb`` has the line that matches a link."""
    name = folders.shown_branches.name
    return not {f"/{name}".encode(), name.encode()}.isdisjoint(_ignore_text(folders).split())


def _ignore_text(folders: Folders) -> bytes:
    try:
        return files.read_file(folders.machine.fs, folders.kb_dir / untracked.IGNORE, MAX_CONFIG_BYTES) or b""
    except KBError:
        return b""
