"""Detection of other packages with an extractor, by the files with which packages announce it.

What the standard library offers for this brings its package for e-mail: a quarter of what a git hook takes that has
nothing to do, and such extractors are rare.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import PathFinder
from pathlib import Path

_METADATA = (".dist-info", ".egg-info")
_IN_AN_EGG = "egg-info"


def may_be_announced(group: str, import_path: Iterable[str]) -> bool:
    """Tell whether a package may have entry points of this group; where only asking can tell, the answer is yes.

    That is so of an archive on the import path, and where packages are found in another way than by it.
    """
    finders = (finder for finder in sys.meta_path if finder is not PathFinder)
    if any(hasattr(finder, "find_distributions") for finder in finders):
        return True
    return any(_is_announced(group.encode(), folder) for folder in import_path)


def _is_announced(group: bytes, folder: str) -> bool:
    try:
        return any(group in _read(place) for place in _places(folder or os.curdir))
    except FileNotFoundError:
        return False
    except OSError:
        return True


def _places(folder: str) -> Iterator[Path]:
    """Yield where a package in a folder may name its entry points. Raises: ``OSError``."""
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name.lower()
            if name.endswith(_METADATA) or name == _IN_AN_EGG:
                yield Path(entry.path, "entry_points.txt")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return b""
