"""The places in ``.kb`` for stores and caches: their kind, whether git tracks them, and their owner.

Only reads: nothing is changed here.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

import msgspec

from kbcore.git import Repository
from kbcore.git.commands import run_git
from kbcore.git.files import is_true, read_settings
from kbcore.git.ownership import SharedModes
from kbcore.storage import files
from kbcore.storage.files import below
from kbcore.storage.fs import Fs
from kbcore.store.pool import Machine

KB: Final = ".kb"
OLDER_LOCK: Final = ".lock"
"""The repository lock of the older layout. A guard has a folder of that name, so that an older KB cannot take it."""
_OTHERS_WRITE: Final = 0o022
_GIT_FAILS: Final = 128

Kind = Literal["absent", "link", "file", "guard", "folder", "other"]


class TakeoverFault(msgspec.Struct, frozen=True):
    """The reason why a folder is not taken over."""

    kind: Literal["tracked", "owner", "link", "special"]
    message: str


def kind_of(fs: Fs, path: Path) -> Kind:
    """Say what lies at a path."""
    try:
        mode = fs.lstat(path).st_mode
    except OSError:
        return "absent"
    if stat.S_ISLNK(mode):
        return "link"
    if stat.S_ISREG(mode):
        return "file"
    if not stat.S_ISDIR(mode):
        return "other"
    return "guard" if is_folder(fs, path / OLDER_LOCK) else "folder"


def is_used(fs: Fs, branches_dir: Path) -> bool:
    """Tell whether a folder of stores holds anything to keep: a store, one under construction, the trash.

    A process that ended early can leave an empty folder, or one with locks alone. What cannot be listed counts as used.
    """
    try:
        return any(is_folder(fs, branches_dir / name) for name in fs.listdir(branches_dir))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def is_folder(fs: Fs, path: Path) -> bool:
    """Tell whether a path is a folder, and no link to one."""
    try:
        return stat.S_ISDIR(fs.lstat(path).st_mode)
    except OSError:
        return False


@lru_cache(maxsize=8)
def relative_path(path: str, start: str) -> str:
    """Return a path as it is seen from a folder."""
    return os.path.relpath(path, start)


def pointer_text(target: str) -> bytes:
    """Return the content of a file that points to the stores."""
    return f"{where(target)}\n".encode()


def where(target: str) -> str:
    """Return the sentence in a pointer that says where the stores are."""
    return f"The stores of KB are in {target}, seen from the folder .kb; nothing here is read."


def is_inside_git(repo: Repository) -> bool:
    """Tell whether ``.kb`` is in the git directory, as in a bare repository: git shows nothing of it."""
    return repo.kb_root == repo.common_dir


def main_of(repo: Repository) -> Repository:
    """Return the repository as it is seen from its main worktree."""
    return msgspec.structs.replace(repo, git_dir=repo.common_dir, worktree=repo.kb_root)


def name_in_worktree(repo: Repository, kb_dir: Path) -> str:
    """Return the path of a ``.kb`` from the top of the main worktree."""
    return kb_dir.relative_to(repo.kb_root).as_posix()


def name_of(repo: Repository, path: Path) -> str:
    """Return how messages name a path: from the top of the worktree, where it is in one."""
    for root in (repo.worktree, repo.kb_root):
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return str(path)


def fault_of(machine: Machine, repo: Repository, kb_dir: Path, folder: Path) -> TakeoverFault | None:
    """Return what keeps a folder in ``.kb`` from being taken over; None when nothing does.

    It is to be untracked in the index and in HEAD, to belong to the user, and to hold files and folders alone.
    """
    if count_tracked(machine, repo, kb_dir, folder.name):
        return TakeoverFault("tracked", f"git tracks {folder}.")
    return fault_in(machine, repo, folder)


def fault_in(machine: Machine, repo: Repository, folder: Path) -> TakeoverFault | None:
    """Return what is in a folder that KB never takes over: links, devices, files of other users."""
    fs = machine.fs
    # The members of a group share the files of such a repository.
    is_shared = _is_shared(machine, repo)
    for path, status in files_in(fs, folder):
        if stat.S_ISLNK(status.st_mode):
            return TakeoverFault("link", f"{path} is a symbolic link.")
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return TakeoverFault("special", f"{path} is neither a file nor a folder.")
        if status.st_uid != os.geteuid() and not is_shared:
            return TakeoverFault("owner", f"{path} belongs to another user (uid {status.st_uid}).")
    return None


def count_tracked(machine: Machine, repo: Repository, kb_dir: Path, name: str) -> int:
    """Return how many files of ``.kb/NAME`` are in the index or in HEAD of the worktree that has this ``.kb``."""
    env = machine.env
    is_main = kb_dir == below(repo.kb_root, KB)
    is_bare = is_true(read_settings(repo.common_dir).get("core.bare", "false"))
    if (is_inside_git(repo) or is_bare) if is_main else not repo.has_worktree:
        return 0  # no index, and nothing checked out
    asked = main_of(repo) if is_main else repo
    place = f"{kb_dir.name}/{name}"
    words = ["-z", "--", f":(top){place}"]
    answer = run_git(asked, env, ["ls-files", "--with-tree=HEAD", *words], allowed=(0, _GIT_FAILS))
    if answer.status:  # an unborn branch has no HEAD
        answer = run_git(asked, env, ["ls-files", *words])
    return len({*answer.output.split(b"\0")} - {b""})


def _is_shared(machine: Machine, repo: Repository) -> bool:
    """Tell whether other users than the owner of a file may write to it; a negative mode is the whole mode."""
    return bool(abs(SharedModes(machine.env)(repo.common_dir)) & _OTHERS_WRITE)


def files_in(fs: Fs, folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield a folder and all in it, with what is known of each; no link is followed. Folders come before their content.

    Raises: ``StorageError`` when something cannot be looked at.
    """
    with files.explained(folder, "look at", reading=True):
        status = fs.lstat(folder)
        names = sorted(fs.listdir(folder)) if stat.S_ISDIR(status.st_mode) else []
    yield folder, status
    for name in names:
        yield from files_in(fs, folder / name)
