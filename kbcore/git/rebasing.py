"""Tells whether git takes the steps of a rebase right now: what lies in the worktree then is no state of the branch.

A rebase that stopped, for a conflict or an edit, may stay so for days, and is worked in: that is told by its quiet.
"""

from __future__ import annotations

from typing import Final

from kbcore.git.files import is_fresh
from kbcore.git.repository import Repository

_FOLDERS: Final = ("rebase-merge", "rebase-apply")
_FRESH_NS: Final = 1_000_000_000
"""Between two steps git writes to its folder, or to the index, sooner than that, unless it runs long commands."""


def is_stepping(repo: Repository, now_ns: int) -> bool:
    """Tell whether a rebase is under way in a worktree and was at work a moment ago.

    ``now_ns`` is the wall-clock time.
    """
    folders = [repo.git_dir / name for name in _FOLDERS if (repo.git_dir / name).is_dir()]
    return any(is_fresh(path, now_ns, _FRESH_NS) for folder in folders for path in (folder, repo.git_dir / "index"))
