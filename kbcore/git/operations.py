"""git's operations of several steps, such as a rebase: while one is under way, the files are no state of the branch.

An operation that stopped, for a conflict or an edit, may stay so for days. A running rebase writes to its folder
all the time; one that stopped does not.
"""

from __future__ import annotations

from typing import Final

from kbcore.git.files import is_fresh, read_small
from kbcore.git.repository import Repository
from kbcore.storage.files import below

_FOLDERS: Final = ("rebase-merge", "rebase-apply")
_MARKS: Final = (
    *((folder, "rebase") for folder in _FOLDERS),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
)
MARKS: Final = tuple(mark for mark, _ in _MARKS)
"""The names in the git directory of which one is there while an operation is not finished."""
_FRESH_NS: Final = 1_000_000_000
"""Between two steps git writes to its folder, or to the index, sooner than that, unless it runs long commands."""


def is_stepping(repo: Repository, now_ns: int) -> bool:
    """Tell whether a rebase is under way in a worktree and was at work a moment ago.

    ``now_ns`` is the wall-clock time.
    """
    folders = [repo.git_dir / name for name in _FOLDERS if (repo.git_dir / name).is_dir()]
    return any(is_fresh(path, now_ns, _FRESH_NS) for folder in folders for path in (folder, repo.git_dir / "index"))


def is_in_sequence(repo: Repository) -> bool:
    """Tell whether git makes further commits after the present one: it rebases, or picks or reverts several."""
    if any((repo.git_dir / name).is_dir() for name in _FOLDERS):
        return True
    # The step that makes the present commit is still listed.
    return len((read_small(repo.git_dir / "sequencer" / "todo") or b"").splitlines()) > 1


def operation_of(repo: Repository) -> str:
    """Return the name of git's operation that is not finished in a worktree, such as ``merge``; "" for none."""
    return next((name for mark, name in _MARKS if below(repo.git_dir, mark).exists()), "")
