"""Replaces or makes a file that is not KB's own: whole or not at all, and on the disk before it counts."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from kbcore.errors import StorageError, StorageFull
from kbcore.storage.files import is_full
from kbcore.storage.fs import shared_mode

_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK})
"""Errors of a file system without hard links, such as FAT and some network file systems."""
_LEFTOVER: Final = re.compile(r"\.(?P<name>.+)\.kb-[0-9a-f]{8}", re.DOTALL)
"""The name of a file of new content, before it replaces the file that is named in it."""


def replace_file(path: Path, content: bytes, mode: int | None, *, share: int = 0) -> None:
    """Give a file new content; it and its folder are synced, so that no crash leaves a file empty.

    Folders are made. Without a ``mode`` it is a program with what the umask allows, and what ``share`` adds to that
    (``storage.fs.shared_mode``).

    Raises: ``OSError``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not the id of the process: in a container it is often that of another one, or of one that was killed here.
    new = path.with_name(f".{path.name}.kb-{secrets.token_hex(4)}")
    try:
        with new.open("xb") as file:
            if mode is None:
                made = os.fstat(file.fileno()).st_mode
                mode = shared_mode(made | (made & 0o444) >> 2, share)
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        _sync_folder(path.parent)
    finally:
        new.unlink(missing_ok=True)


def remove_leftovers(paths: Iterable[Path]) -> None:
    """Remove the new content that a process which was killed while it replaced or made these files left next to them.

    The caller sees to it that no other process writes one of them now.

    Raises: ``OSError``.
    """
    names: dict[Path, set[str]] = {}
    for path in paths:
        names.setdefault(path.parent, set()).add(path.name)
    for folder, wanted in names.items():
        with contextlib.suppress(FileNotFoundError):
            for entry in [*folder.iterdir()]:
                found = _LEFTOVER.fullmatch(entry.name)
                if found and found["name"] in wanted:
                    entry.unlink(missing_ok=True)


def remove_leftovers_in(folder: Path) -> None:
    """Remove all new content that killed processes left in a folder, which may not be there, and in its folders.

    The caller sees to it that no other process writes there now. Raises: ``OSError``.
    """
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for inner in [folder, *(one for one in folder.iterdir() if one.is_dir() and not one.is_symlink())]:
            for entry in [*inner.iterdir()]:
                if _LEFTOVER.fullmatch(entry.name):
                    entry.unlink(missing_ok=True)


def create_file(path: Path, content: bytes) -> None:
    """Make a new file, synced with its folder. Folders are made.

    Where the file system has no hard links, a crash at the wrong moment leaves it empty.

    Raises: ``FileExistsError`` when there is one already; ``OSError``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}.kb-{secrets.token_hex(4)}")
    try:
        with new.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            path.hardlink_to(new)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            path.open("xb").close()  # so that the file of another process is not replaced
            new.replace(path)
        _sync_folder(path.parent)
    finally:
        new.unlink(missing_ok=True)


def not_written(name: str, error: OSError) -> StorageFull | StorageError:
    """Return the error of a file that the system lets nobody write; ``name`` is how the user knows it."""
    kind = StorageFull if is_full(error) else StorageError
    return kind(f"{name} cannot be written: {error.strerror}.", data={"file": name})


def remove_file(path: Path) -> None:
    """Remove a file that was made a moment ago, and is not wanted any more. Raises: ``OSError``."""
    path.unlink()
    _sync_folder(path.parent)


def remove_files(paths: Iterable[Path]) -> None:
    """Remove files, of which some may be gone, and sync their folders once. Raises: ``OSError``."""
    folders = set[Path]()
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            folders.add(path.parent)
    for folder in sorted(folders):
        _sync_folder(folder)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
