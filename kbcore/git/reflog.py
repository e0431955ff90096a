"""Reads from a branch's reflog which names it had before.

git tells a rename nowhere else; where no reflog is kept, nothing is known, and nothing is guessed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from kbcore.git.commands import run_git
from kbcore.git.files import BRANCH_PREFIX, decode_name, encode_name, find_lines
from kbcore.git.head import uses_reftable
from kbcore.git.repository import Repository
from kbcore.ids import check_branch_name

_RENAMED = re.compile(rb"(?:^|\t)Branch: renamed refs/heads/(\S+) to refs/heads/(\S+)$", re.MULTILINE)


def former_names(repo: Repository, env: Mapping[str, str], branch: str) -> list[str]:
    """Return the names that a branch had before it was renamed to this one, the latest first.

    Empty for a name that git has no reflog of. The names may be in use again, by other branches.

    Raises:
        GitUnusable: the reflog is there and cannot be read.
    """
    if check_branch_name(branch) is not None:
        return []
    ref = BRANCH_PREFIX + encode_name(branch)
    if uses_reftable(repo.git_dir):
        # Latest first. Looking for signatures would run the program that the repository names for that.
        shown = ["reflog", "show", "--no-show-signature", "--format=%gs", os.fsdecode(ref), "--"]
        found = list(_RENAMED.finditer(run_git(repo, env, shown, allowed=(0, 128)).output))
    else:
        found = find_lines(repo.common_dir / "logs" / os.fsdecode(ref), _RENAMED)[::-1]
    names, current = list[str](), encode_name(branch)
    for renamed in found:
        old, new = renamed.groups()
        name = decode_name(old)
        if new == current and check_branch_name(name) is None and b"\\" not in old:
            names.append(name)
            current = old
    return names
