"""Folders outside of a repository: what this process keeps for a while, and where caches go when git's folder is shut.

Invariant: a folder is used only if it is a real one, owned by this user, and nobody else may write to it. The name of
a folder in a place that others share cannot be guessed, so nobody can make it first.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from kbcore.storage.fs import Fs

_PRIVATE: Final = 0o700
_OTHERS_WRITE: Final = 0o022
_KEY_CHARS: Final = 32


def cache_place(fs: Fs, usual: Path, env: Mapping[str, str]) -> Path:
    """Return where caches go: the usual folder if it can be written, else one of the user, else a fresh one.

    The fresh one is that of this process, and goes with it.
    """
    if _can_write(fs, usual):
        return usual
    folder = user_folder(env, "XDG_CACHE_HOME", ".cache")
    if folder is not None:
        own = folder / "kb" / _key(usual)
        if _make_private(own):
            return own
    try:
        return Path(made_private_folder(), "cache")
    except OSError:
        return usual  # nothing can be written anywhere: answers come from memory


def user_folder(env: Mapping[str, str], variable: str, below_home: str) -> Path | None:
    """Return a folder of the XDG base directories; None where there is no home. A relative path counts as not set."""
    for folder in (Path(env.get(variable, "")), Path(env.get("HOME", ""), below_home)):
        if folder.is_absolute():
            return folder
    return None


def private_folders() -> list[str]:
    """Return the private folder of this process, made or not; none where there is no place for temporary files."""
    try:
        return [_private_folder(os.getpid())]
    except FileNotFoundError:
        return []


def made_private_folder() -> str:
    """Make the folder in which this process keeps what is temporary, and return it. Raises: ``OSError``."""
    folder = _private_folder(os.getpid())
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, _PRIVATE)  # noqa: PTH102 - the mode counts
        atexit.register(_remove_private_folder, os.getpid())
    if not _is_private(Path(folder)):
        raise PermissionError(f"{folder} is not a folder of this user alone")
    return folder


@cache
def _private_folder(_pid: int) -> str:
    """Return the name of a folder for a process.

    Raises: ``FileNotFoundError`` where there is no place for temporary files.
    """
    place = Path(tempfile.gettempdir()).resolve()
    return str(place / f"kb-{secrets.token_hex(8)}")


def _remove_private_folder(pid: int) -> None:
    if pid == os.getpid():  # a fork does not own it
        shutil.rmtree(_private_folder(pid), ignore_errors=True)


def _can_write(fs: Fs, folder: Path) -> bool:
    """Tell whether files can be made in a folder, or below the nearest one that there is of those above it."""
    for place in (folder, *folder.parents):
        try:
            fs.lstat(place)
            return fs.refusal_to_write(place) == 0
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return False
    return False


def _key(usual: Path) -> str:
    """Return the name of a repository's caches in a folder that all repositories of a user share."""
    return hashlib.sha256(os.fsencode(usual.resolve())).hexdigest()[:_KEY_CHARS]


def _make_private(folder: Path) -> bool:
    """Make a folder and the two above it, as far as they are missing; tell whether it and its parent are private."""
    try:
        for place in (folder.parent.parent, folder.parent, folder):
            with contextlib.suppress(FileExistsError):
                os.mkdir(place, _PRIVATE)  # noqa: PTH102 - the mode counts
            if place != folder.parent.parent and not _is_private(place):
                return False
        os.utime(folder)  # a read-only mount says so now
    except OSError:
        return False
    return True


def _is_private(folder: Path) -> bool:
    """Tell whether this is a real folder that this user owns, and that nobody else may write to."""
    try:
        about = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & _OTHERS_WRITE
