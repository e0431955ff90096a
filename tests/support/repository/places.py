"""Where the stores and caches of a repository are: the one place that tests take it from."""

from __future__ import annotations

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
