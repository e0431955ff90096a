"""The owner of a repository, and the modes of its files: git's own settings about other users.

git decides who may use a repository of another user (``safe.directory``). It is asked only where an owner differs, so
that the usual case starts no process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kbcore.errors import GitUnusable
from kbcore.git.commands import ask_git_dir, run_plain
from kbcore.git.files import is_true
from kbcore.git.repository import Repository, find_repository

_ASSUMED: Final = "GIT_TEST_ASSUME_DIFFERENT_OWNER"
"""git's own variable for its tests; it takes every repository for another user's."""
_GROUP: Final = 0o660
_EVERYBODY: Final = 0o664
_OLD_VALUES: Final = {0: 0, 1: _GROUP, 2: _EVERYBODY}
_WORDS: Final = {
    "umask": 0,
    "group": _GROUP,
    "all": _EVERYBODY,
    "world": _EVERYBODY,
    "everybody": _EVERYBODY,
}
_OCTAL: Final = re.compile("[0-7]{1,6}")
_OWNER_BITS: Final = 0o600


def find_own_repository(
    start: Path, env: Mapping[str, str], *, git_dir: Path | None = None, work_tree: Path | None = None
) -> Repository:
    """Return the repository that holds ``start``, if it is this user's or git takes it for safe.

    Raises: as ``find_repository``; ``GitUnusable`` with git's own advice.
    """
    repo = find_repository(start, git_dir=git_dir, work_tree=work_tree)
    if git_dir is None:  # one that is named is trusted, as git does
        check_owner(repo, env)
    return repo


def check_owner(repo: Repository, env: Mapping[str, str]) -> None:
    """Refuse a repository of another user that git does not take for safe.

    Raises: ``GitUnusable`` with git's own advice, unchanged, as the hint.
    """
    if is_own(repo, env):
        return
    answer = run_plain(repo, env, ["rev-parse", "--git-dir"])
    if answer.returncode:
        said = answer.stderr.decode("utf-8", "backslashreplace").strip()
        raise GitUnusable(f"git refuses {repo.git_dir}", hint=f"The advice is git's own:\n{said}" if said else "")


def is_own(repo: Repository, env: Mapping[str, str]) -> bool:
    """Tell whether worktree and git directory belong to the user of this process, as git compares them."""
    if is_true(env.get(_ASSUMED, "")):
        return False
    own = {os.geteuid()}
    if own == {0} and env.get("SUDO_UID", "").isdecimal():
        own.add(int(env["SUDO_UID"]))
    paths = [repo.git_dir]
    if repo.has_worktree:
        pointer = repo.worktree / ".git"
        paths += [repo.worktree, *([pointer] if pointer.is_file() else [])]
    return all(path.lstat().st_uid in own for path in paths)


class SharedModes:
    """The mode that ``core.sharedRepository`` sets for folders in which files are made; 0 for the rules of the umask.

    git is asked once for each repository, when the first file is made in it.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._known: dict[Path, int] = {}
        self._git_dirs: dict[Path, Path | None] = {}

    def __call__(self, folder: Path) -> int:
        """Return the mode bits that files in a folder get; negative where they are the whole mode."""
        if folder not in self._git_dirs:
            self._git_dirs[folder] = _git_dir_around(folder)
        git_dir = self._git_dirs[folder]
        if git_dir is None:
            return 0
        if git_dir not in self._known:
            self._known[git_dir] = parse_shared(ask_git_dir(git_dir, self._env, "core.sharedrepository"))
        return self._known[git_dir]


def parse_shared(value: str | None) -> int:
    """Return what a value of ``core.sharedRepository`` means, as git reads it; None means no such setting.

    Raises: ``GitUnusable`` for a value that git refuses.
    """
    if value is None:
        return 0
    if value.lower() in _WORDS and value == value.lower():
        return _WORDS[value]
    if value.lower() in {"true", "yes", "on"}:
        return _GROUP
    if value.lower() in {"false", "no", "off", ""}:
        return 0
    number = int(value, 8) if _OCTAL.fullmatch(value) else -1
    if number in _OLD_VALUES:
        return _OLD_VALUES[number]
    if number < 0 or number & _OWNER_BITS != _OWNER_BITS:
        message = f"core.sharedRepository is {value!a}, which is no mode that git accepts"
        raise GitUnusable(message, hint="Set it to group, all, umask or an octal mode such as 0640.")
    return -(number & 0o666)


def _git_dir_around(folder: Path) -> Path | None:
    """Return the git directory that a folder is, or lies in."""
    for one in (folder, *folder.parents):
        if (one / "HEAD").is_file() and (one / "objects").is_dir() and (one / "refs").is_dir():
            return one
    return None
