"""The id of a repository, kept in its own git configuration as ``kb.id``.

A clone does not get it, and deleting KB's folder does not change it. A copy of the whole repository has the same id,
so the id never means a place.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kbcore.errors import GitUnusable
from kbcore.git.commands import run_git
from kbcore.git.files import read_settings
from kbcore.git.repository import Repository
from kbcore.ids import REPOSITORY_ID

_KEY: Final = "kb.id"
_NOT_SET: Final = 5
"""The status of `git config` where what is to be taken out is not there."""


def write_id(repo: Repository, env: Mapping[str, str], repository_id: str) -> None:
    """Write the id of a repository into its configuration.

    Raises: ``GitUnusable`` when git refuses.
    """
    run_git(repo, env, ["config", "--local", "--replace-all", _KEY, repository_id])


def remove_id(repo: Repository, env: Mapping[str, str]) -> None:
    """Take the id out of a repository's configuration, where it is. Raises: ``GitUnusable`` when git refuses."""
    run_git(repo, env, ["config", "--local", "--unset-all", _KEY], allowed=(0, _NOT_SET))


class IdCache:
    """The ids of the repositories that a process works on; a configuration is read again when its file changes."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, ...], str]] = {}

    def read(self, common_dir: Path) -> str:
        """Return the id of the repository with this common git directory; "" where it has none that can be read."""
        try:
            status = os.stat(f"{common_dir}/config")  # noqa: PTH116 - many times in one request: a Path costs as much
        except OSError:
            return ""
        mark = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        known = self._known.get(common_dir)
        if known and known[0] == mark:
            return known[1]
        try:
            stated = read_settings(common_dir).get(_KEY, "")
        except GitUnusable:
            # Nothing can be said of this repository; whoever asks git for more gets the error.
            return ""
        found = stated if REPOSITORY_ID.fullmatch(stated) else ""
        self._known[common_dir] = (mark, found)
        return found
