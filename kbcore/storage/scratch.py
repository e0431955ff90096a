"""Folders outside of a repository: what this process keeps for a while, and where caches go when git's folder is shut.

Invariant: a folder is used only if it is a real one, owned by this user, and no other user may write to it. The name of
a folder in a shared place cannot be guessed, so others cannot make it first. The folder of a process is removed
when the process ends, and by the next one that makes such a folder when the process was killed.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

from kbcore.errors import StorageError
from kbcore.storage import files
from kbcore.storage.fs import LOCK_EXCLUSIVE, Fs, RealFs

_PRIVATE: Final = 0o700
_OTHERS_WRITE: Final = 0o022
_KEY_CHARS: Final = 32
_PREFIX: Final = "kb-"
_ID_BYTES: Final = 8
_NAME: Final = re.compile(rf"{_PREFIX}[0-9a-f]{{{2 * _ID_BYTES}}}")
_OWNER: Final = "owner"
"""A file in the folder of a process, which the process has locked for as long as it lives."""
_NEW_OWNER: Final = ".owner"
"""The same before it is locked."""
_MAX_LISTED: Final = 10_000
_MAX_LOOKED_AT: Final = 256
_MAX_REMOVED: Final = 8
"""Folders of killed processes that are removed at once."""


def cache_place(fs: Fs, usual: Path, env: Mapping[str, str]) -> Path:
    """Return where caches go: the usual folder if it can be written, else one of the user, else a fresh one.

    The fresh one is that of this process, and goes with it.
    """
    if _can_write(fs, usual):
        return usual
    folder = user_folder(env, "XDG_CACHE_HOME", ".cache")
    if folder is not None:
        own = folder / "kb" / _key(usual)
        with contextlib.suppress(OSError, StorageError):
            for place in (own.parent, own):
                make_private(RealFs(), place)
            os.utime(own)  # a read-only mount says so now
            return own
    try:
        return Path(made_private_folder(), "cache")
    except OSError:
        return usual  # nothing can be written anywhere: answers come from memory


def user_folder(env: Mapping[str, str], variable: str, below_home: str) -> Path | None:
    """Return a folder of the XDG base directories; None where there is no home. A relative path counts as not set."""
    return _absolute(env.get(variable, ""), env.get("HOME", ""), below_home)


@lru_cache(maxsize=8)
def _absolute(named: str, home: str, below_home: str) -> Path | None:
    for folder in (Path(named), Path(home, below_home)):
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
        _own(folder)
        atexit.register(_remove_private_folder, os.getpid())
        _remove_abandoned(os.path.dirname(folder))  # noqa: PTH120 - a text already
    if not is_private(RealFs(), Path(folder)):
        raise PermissionError(f"{folder} is not a folder of this user alone")
    return folder


@cache
def _private_folder(_pid: int) -> str:
    """Return the name of a folder for a process.

    Raises: ``FileNotFoundError`` where there is no place for temporary files.
    """
    place = os.path.realpath(tempfile.gettempdir())
    return f"{place}/{_PREFIX}{secrets.token_hex(_ID_BYTES)}"


def _own(folder: str) -> None:
    """Lock a file in a new folder until this process ends; the kernel frees it, however the process ends.

    Under its name the file is never there without the lock. Where nothing can be locked, the folder has no such file.
    """
    new, fd = Path(folder, _NEW_OWNER), -1
    with contextlib.suppress(OSError):
        fd = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        RealFs().flock(fd, LOCK_EXCLUSIVE)
        new.rename(Path(folder, _OWNER))
        return  # the descriptor stays open
    if fd >= 0:
        os.close(fd)


def _remove_abandoned(place: str) -> None:
    """Remove folders that processes of this user made here and did not remove, because they were killed.

    A folder without a lock file is left alone: it may be of another program.
    """
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        found = [entry.path for entry in islice(entries, _MAX_LISTED) if _NAME.fullmatch(entry.name)]
        removed = 0
        for path in found[:_MAX_LOOKED_AT]:
            removed += _remove_if_abandoned(path)
            if removed == _MAX_REMOVED:
                return


def _remove_if_abandoned(path: str) -> bool:
    """Remove a folder when its lock file is there and not locked; tell whether it was so.

    All is reached from the folder that was looked at: another one under the same name, or a link, is not touched.
    """
    with contextlib.ExitStack() as opened, contextlib.suppress(OSError):
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        opened.callback(os.close, folder)
        if not _is_own_and_private(os.fstat(folder)):
            return False
        owner = os.open(_OWNER, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        opened.callback(os.close, owner)
        if not stat.S_ISREG(os.fstat(owner).st_mode):
            return False
        RealFs().flock(owner, LOCK_EXCLUSIVE)  # fails when the process lives
        # The lock file goes last: whoever is killed now leaves it to the next.
        for name in sorted(os.listdir(folder), key=lambda name: name == _OWNER):  # noqa: PTH208 - by a descriptor
            try:
                os.unlink(name, dir_fd=folder)
            except (IsADirectoryError, PermissionError):
                shutil.rmtree(name, dir_fd=folder)
        os.rmdir(path)  # noqa: PTH106 - fails for what is not the empty folder
        return True
    return False


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
    return hashlib.sha256(os.fsencode(os.path.realpath(usual))).hexdigest()[:_KEY_CHARS]


def make_private(fs: Fs, folder: Path) -> None:
    """Make a folder of this user alone, with those above it that are missing.

    Raises: ``OSError``; ``StorageError`` where it would be in another user's folder, or is one that others write to.
    """
    nearest = next((one for one in (folder, *folder.parents) if files.is_there(fs, one)), Path(folder.anchor))
    if fs.lstat(nearest).st_uid != os.geteuid():
        raise StorageError(f"{nearest} belongs to another user")
    lacking = [one for one in (folder, *folder.parents) if one.is_relative_to(nearest) and one != nearest]
    for one in reversed(lacking):
        with contextlib.suppress(FileExistsError):
            fs.mkdir(one, _PRIVATE)
    if not is_private(fs, folder):
        raise StorageError(f"{folder} is no folder that only this user can write to")


def is_private(fs: Fs, folder: Path) -> bool:
    """Tell whether this is a real folder that this user owns, and that no other user may write to."""
    try:
        about = fs.lstat(folder)
    except OSError:
        return False
    return _is_own_and_private(about)


def _is_own_and_private(about: os.stat_result) -> bool:
    return stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & _OTHERS_WRITE
