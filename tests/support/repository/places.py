"""The folders of the stores and caches of a repository: the one place that tests take them from."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from kbcore import git
from kbcore.store.folders import BRANCHES, CACHE, DATA, data_dir_of

STORES_NAME: Final = f".git/{DATA}/{BRANCHES}"
CACHES_NAME: Final = f".git/{DATA}/{CACHE}"
"""From the top of the main worktree of an ordinary repository, for what names files by their paths from there."""


def stores_at(root: Path) -> Path:
    """Return the folder that holds the stores of the repository at ``root``."""
    return data_dir_of(git.find_repository(root)) / BRANCHES


def caches_at(root: Path) -> Path:
    """Return the folder that holds the caches of the repository at ``root``."""
    return data_dir_of(git.find_repository(root)) / CACHE


def emptied(root: Path, what: str) -> None:
    """Delete what is in the folder of all stores, or in that of one, and keep the folder."""
    folder = stores_at(root) if what == "all" else stores_at(root) / "main"
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
