"""The change files of worktrees: one process at a time writes them, with what git needs beside them."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from kbcore import limits
from kbcore.errors import StorageError
from kbcore.extract.changes import FOLDER
from kbcore.git import Repository, staging, worktree_content
from kbcore.git.worktree_content import Unfit
from kbcore.model.claims import change_file
from kbcore.storage import files
from kbcore.storage.fs import Fs
from kbcore.storage.lock import held
from kbcore.storage.replacing import create_file, not_written, remove_leftovers, remove_leftovers_in, replace_file
from kbcore.store.kb_folder import KB
from kbcore.store.workspace import Workspace

ATTRIBUTES: Final = f"{KB}/.gitattributes"
ATTRIBUTES_LINE: Final = f"{change_file.ATTRIBUTES}\n"
"""Line endings stay, no filter changes a file or keeps its content elsewhere, and no merge makes one of two."""
LOCK: Final = "share"
"""The name of the lock of those who write change files (``Folders.lock_path``)."""
_KEEP: Final = ".keep"
"""Beside the change files of a month, so that git takes no deleted month for a moved one."""


@contextlib.contextmanager
def locked(workspace: Workspace, roots: Iterable[Path] = (), *, command: str = "kb share") -> Iterator[None]:
    """Let one process of this repository write change files at a time, and remove what a killed one left.

    ``roots`` are the worktrees; without them it is that of the workspace. Raises: ``LockTimeout``; ``StorageError``.
    """
    machine, path = workspace.machine, workspace.folders.lock_path(LOCK)
    for one in (path.parent.parent, path.parent):
        files.make_directory(machine.fs, one)
    with held(machine.fs, machine.clock, path, wait_s=workspace.config.lock_wait_s, command=command):
        try:
            for root in [*roots] or [workspace.repo.worktree]:
                remove_leftovers_in(root / FOLDER)
                remove_leftovers([root / ATTRIBUTES])
        except OSError as error:
            raise StorageError(f"{FOLDER} cannot be read: {error.strerror}.") from error
        yield


def write_file(fs: Fs, root: Path, path: str, content: bytes) -> None:
    """Write a change file of a worktree, unless it is there with this content, whatever its line ends.

    Raises: ``StorageFull``; ``StorageError``, also where something else is in its place.
    """
    place = root / path
    for folder in place.relative_to(root).parents:
        if (root / folder).is_symlink():
            raise StorageError(
                f"{folder} is a link, and change files are written into the folder itself.",
                hint="Replace the link with the folder.",
            )
    try:
        with contextlib.suppress(FileExistsError):
            create_file(place, content)
            return
    except OSError as error:
        raise not_written(path, error) from error
    found = files.read_file(fs, place, 2 * limits.MAX_CHANGE_FILE_BYTES)
    if (
        found is None or found.replace(b"\r\n", b"\n") != content
    ):  # its name has a digest of its content: KB has not written it so
        raise StorageError(
            f"{path} is there with another content than its name says, so it was not written.",
            hint="Remove it, or bring back the file as it was committed, and try again.",
            data={"file": path},
        )


def write_companion_files(repo: Repository, env: Mapping[str, str], paths: Iterable[str]) -> list[str]:
    """Write what is committed with change files at these paths, where it is not there, and return its paths.

    That is the attributes, and an empty file for each month. In attributes that an earlier KB wrote its line is
    replaced. What git is set to leave out of the worktree stays as the index has it, and is not returned.

    Raises: ``StorageFull``, ``StorageError``; ``GitUnusable``.
    """
    folders = {path.rpartition("/")[0] for path in paths} - {FOLDER}  # that has the packs, and never goes
    found = [ATTRIBUTES, *(f"{folder}/{_KEEP}" for folder in sorted(folders))]
    if not all((repo.worktree / path).exists() for path in found):
        left_out = staging.not_checked_out(repo, env, KB)
        found = [path for path in found if path not in left_out]
    for path in found:
        text = ATTRIBUTES_LINE if path == ATTRIBUTES else ""
        try:
            if path != ATTRIBUTES or not _replace_earlier_line(repo.worktree / path):
                create_file(repo.worktree / path, text.encode())
        except FileExistsError:
            continue
        except OSError as error:
            raise not_written(path, error) from error
    return found


def _replace_earlier_line(path: Path) -> bool:
    """Put the line of attributes in the place of the one that an earlier KB wrote; tell whether that was there.

    Raises: ``OSError``.
    """
    earlier, wanted = change_file.EARLIER_ATTRIBUTES.encode(), change_file.ATTRIBUTES.encode()
    try:
        content, about = worktree_content.read(str(path))
    except (FileNotFoundError, Unfit):
        return False
    if path.is_symlink():
        return False
    lines = content.splitlines(keepends=True)
    new = b"".join(wanted + one[len(earlier) :] if one.rstrip() == earlier else one for one in lines)
    if new == content:
        return False
    replace_file(path, new, stat.S_IMODE(about.st_mode))
    return True
