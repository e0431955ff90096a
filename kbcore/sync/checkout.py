"""The commit that git has checked out while files are read, and whether that stayed the same.

git takes ``index.lock``, writes the files, renames the lock to ``index``, and only then moves HEAD. Files that are
found in between belong to a branch that HEAD does not name yet, so nothing read then may be committed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from kbcore.errors import BranchMoved, GitUnusable, NotARepository
from kbcore.git import HeadState
from kbcore.git.files import read_end, refused
from kbcore.store.workspace import Workspace, head_moved

WAIT_S: Final = 2.0
"""The time to wait for git."""

_STEP_S: Final = 0.02
_FOLLOW_NS: Final = 20_000_000
"""The longest time from writing the index to writing HEAD."""

_SUM_BYTES: Final = 20
"""A longer one ends in so many bytes as well; these are zeros where git is set to keep none."""

_LOCKS: Final = ("index.lock", "HEAD.lock")
_HEADS: Final = ("HEAD", "reftable/tables.list")
_RUN_BY_GIT: Final = "GIT_INDEX_FILE"
"""git sets it for the hooks that it runs while it holds the index itself, such as pre-commit."""

Mark = tuple[int, int, int]


class Checkout(msgspec.Struct, frozen=True):
    """The commit of a worktree's HEAD when a scan began, and its files and index at that time."""

    workspace: Workspace
    head: HeadState
    head_marks: tuple[Mark | None, ...]
    index_mark: Mark | None

    def index_sum(self) -> str:
        """Return the checksum that ends git's index, if the index is still the one that was there; else "".

        While it is the same, git has written no file that it tracks: it notes of each how it looked afterwards.
        """
        path = self.workspace.repo.git_dir / "index"
        try:
            checksum = read_end(path, _SUM_BYTES)
        except GitUnusable:  # an index that git cannot read either says nothing of the files
            return ""
        return checksum.hex() if any(checksum) and _mark(path) == self.index_mark else ""

    def guard(self) -> None:
        """Refuse to commit what was read, unless the worktree stayed and git has left HEAD alone all the while.

        No process is started for it, but as ``git.read_head`` says.

        Raises: ``BranchMoved``, ``NotARepository``; ``git.MustAskGit``.
        """
        _check_there(self.workspace)
        lock = _lock(self.workspace)
        if lock:
            raise _busy(lock)
        if _mark(self.workspace.repo.git_dir / "index") != self.index_mark:
            self.workspace.machine.clock.sleep(_follow_s(self.workspace))
        now = self.workspace.head(starts_git=False)
        if now.branch != self.head.branch:
            raise head_moved(self.head.branch, now.branch)
        if now != self.head or _head_marks(self.workspace) != self.head_marks:
            raise BranchMoved(
                f"git changed what is checked out of {now.branch} while its files were read.",
                hint="Send the request again.",
            )


def settled(workspace: Workspace, *, wait_s: float = WAIT_S) -> Checkout:
    """Return what is checked out, once git is not in the middle of changing it, with the settings that belong to it.

    Raises: ``BranchMoved`` when git does not get done within ``wait_s`` seconds; ``NotARepository`` when the worktree
    is gone.
    """
    _check_there(workspace)
    clock = workspace.machine.clock
    end_s = clock.monotonic_s() + wait_s
    while True:
        lock = _lock(workspace)
        pause_s = _STEP_S if lock else _follow_s(workspace)
        if not pause_s or (clock.monotonic_s() >= end_s and not lock):
            break
        if clock.monotonic_s() >= end_s:
            raise _busy(lock)
        clock.sleep(pause_s)
    # The index comes before HEAD: what changes in between is then seen by the guard.
    index_mark = _mark(workspace.repo.git_dir / "index")
    head_marks = _head_marks(workspace)
    # Settings are files of the checkout like any other.
    return Checkout(workspace.renewed(), workspace.head(), head_marks, index_mark)


def _check_there(workspace: Workspace) -> None:
    """Refuse a worktree that is gone: its git directory may be left, and every file would seem deleted."""
    root = workspace.repo.worktree
    if _mark(root) is None:
        message = f"This worktree was removed or moved: {root}."
        raise NotARepository(message, hint="`git worktree list` names those that there are.")


def _busy(lock: str) -> BranchMoved:
    name = Path(lock).name
    return BranchMoved(
        f"git is changing the files of this worktree ({name} exists).",
        hint=f"Wait until git is done, then run it again; if no git runs here, remove {lock}.",
    )


def _lock(workspace: Workspace) -> str:
    """Return the path of the lock that git holds on the worktree; "" when none, or when git itself runs us."""
    if workspace.machine.env.get(_RUN_BY_GIT):
        return ""
    paths = (workspace.repo.git_dir / name for name in _LOCKS)
    return next((str(path) for path in paths if _mark(path)), "")


def _follow_s(workspace: Workspace) -> float:
    """Return how long to wait for HEAD to follow an index that was written a moment ago, in seconds."""
    index = _mark(workspace.repo.git_dir / "index")
    if index is None:
        return 0.0
    written_ns = index[0]
    age_ns = workspace.machine.clock.epoch_ns() - written_ns
    has_followed = any(mark is not None and mark[0] > written_ns for mark in _head_marks(workspace))
    return (_FOLLOW_NS - age_ns) / 1e9 if 0 <= age_ns < _FOLLOW_NS and not has_followed else 0.0


def _head_marks(workspace: Workspace) -> tuple[Mark | None, ...]:
    return tuple(_mark(workspace.repo.git_dir / name) for name in _HEADS)


def _mark(path: Path) -> Mark | None:
    """Return what changes whenever git rewrites a file; None when it is not there. Raises ``GitUnusable``."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise refused("look at", path, error) from error
    return found.st_mtime_ns, found.st_ino, found.st_size
