"""Tells whether git is renaming a branch right now: for a moment neither ref nor reflog says what becomes of it.

git moves the reflog of the old name aside, deletes the old ref, gives the reflog the new name, writes the rename into
it, makes the new ref, and last lets each HEAD follow that names the old one. The looks below are taken in this order,
so a rename that one of them came too early for is seen by a later one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from kbcore.git.files import decode_name, is_fresh
from kbcore.git.head import uses_reftable
from kbcore.git.reflog import former_names
from kbcore.git.refs import local_branches
from kbcore.git.repository import Repository

_LOGS: Final = "logs/refs/heads"
_ASIDE: Final = "logs/refs/.tmp-renamed-log"
_FRESH_NS: Final = 2_000_000_000
"""An older one was left by a git that was killed."""


def is_renaming(repo: Repository, env: Mapping[str, str], now_ns: int) -> bool:
    """Tell whether a branch is between two names, as far as its reflog and its ref go.

    ``now_ns`` is the wall-clock time. Where no reflog is kept, git leaves no trace of a rename anyway.

    Raises: ``GitUnusable`` when the refs cannot be listed.
    """
    if uses_reftable(repo.git_dir):
        return False
    if is_fresh(repo.common_dir / _ASIDE, now_ns, _FRESH_NS):
        return True
    logs = {name for name, path in _logs(repo.common_dir / _LOGS) if is_fresh(path, now_ns, _FRESH_NS)}
    return bool(logs) and not logs <= local_branches(repo, env)


def is_given_up(repo: Repository, env: Mapping[str, str], branch: str) -> bool:
    """Tell whether a name is that of no branch, and was the name of one that is called otherwise now.

    A HEAD that still names it is about to follow, unless somebody begins an orphan branch under that very name.

    Raises: ``GitUnusable`` when refs or reflogs cannot be read.
    """
    there = local_branches(repo, env)
    return branch not in there and any(branch in former_names(repo, env, name) for name in there)


def _logs(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the branches that have a reflog, and where it is; a folder that goes meanwhile has none."""
    for directory, _, names in os.walk(folder):
        for name in names:
            path = Path(directory) / name
            yield decode_name(os.fsencode(path.relative_to(folder).as_posix())), path
