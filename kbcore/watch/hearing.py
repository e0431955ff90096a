"""Which folders can be listened to, and whether a folder really is. Only folders are looked at, never what files hold.

A listener gives no word when a folder that came later could not be added: the system may have no watches left, or the
folder could not be read then. The system itself says what it watches, where it has ``/proc``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

_OWN_FILES: Final = Path("/proc/self/fdinfo")
_WATCH: Final = "inotify wd:"
_INODE: Final = "ino:"


def readable(folders: Iterable[Path]) -> list[Path]:
    """Return those of these folders that the system would tell of."""
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
    """Tell whether a folder may be read and is no link."""
    return os.access(path, os.R_OK | os.X_OK) and not os.path.islink(path)  # noqa: PTH114 - for every folder


def new_folders(told: Iterable[str], known: Collection[Path] = ()) -> list[Path]:
    """Return what of these paths is a folder, no link to one, and not known."""
    places = (Path(path) for path in told)
    return [place for place in places if place.is_dir() and not place.is_symlink() and place not in known]


def is_heard(folders: Iterable[Path], told: Iterable[str]) -> bool:
    """Tell whether the system listens to every readable folder at or below what was ``told`` of.

    ``folders`` are those that were listened to at the beginning: a system that does not name these cannot be asked.
    """
    new = new_folders(told)
    if not new:
        return True
    listened = frozenset(_inodes_listened_to())
    if not listened.issuperset(_inodes(folders)):
        return True
    return listened.issuperset(_inodes(folders_below(readable(new))[0]))


def _inodes(folders: Iterable[Path]) -> Iterator[int]:
    for folder in folders:
        try:
            yield folder.stat().st_ino
        except OSError:  # it went: whoever listens to the folder above is told of that
            continue


def _inodes_listened_to() -> Iterator[int]:
    """Yield the inodes that this process has the system watch; none where it does not say."""
    try:
        files = list(_OWN_FILES.iterdir())
    except OSError:
        return
    for file in files:
        try:
            lines = file.read_text().splitlines()
        except OSError:  # closed since it was listed
            continue
        for words in (line.split() for line in lines if line.startswith(_WATCH)):
            yield from (int(word.removeprefix(_INODE), 16) for word in words if word.startswith(_INODE))
