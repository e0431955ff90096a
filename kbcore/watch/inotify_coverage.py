"""Folders that can be watched. Only folders are looked at, never the content of files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path


def readable(folders: Iterable[Path]) -> list[Path]:
    """Return those of these folders for which the system sends notifications."""
    return [folder for folder in folders if os.access(folder, os.R_OK | os.X_OK)]


def folders_below(folders: Sequence[Path]) -> tuple[list[Path], bool]:
    """Return these folders and all below them that may be read, and whether there are others: links lead to others."""
    found: list[Path] = []
    has_others = False
    for folder in folders:
        for at, below, _ in os.walk(folder):
            found.append(Path(at))
            listed = [name for name in below if _is_own(os.path.join(at, name))]  # noqa: PTH118 - as `os.walk` names it
            has_others |= len(listed) < len(below)
            below[:] = listed
    return found, has_others


def _is_own(path: str) -> bool:
    """Return whether a folder may be read and is no link."""
    return os.access(path, os.R_OK | os.X_OK) and not os.path.islink(path)  # noqa: PTH114 - for every folder


def new_folders(changed: Iterable[str], known: Collection[Path] = ()) -> list[Path]:
    """Return what of these paths is a folder, no link to one, and not known."""
    places = (Path(path) for path in changed)
    return [place for place in places if place.is_dir() and not place.is_symlink() and place not in known]
