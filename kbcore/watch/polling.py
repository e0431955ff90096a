"""Detects changes in folders by polling, where notifications are not available.

What files hold is not read. No link below the folders is followed: its target is not watched, and it may
be anywhere, also above the link.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

LOOK_S: Final = 1.0
"""The polling interval."""

_Mark = tuple[int, int, int]


def poll(
    folders: Sequence[Path], stop: threading.Event, begun: threading.Event, *, is_deep: bool
) -> Iterator[set[str]]:
    """Yield the paths at which something changed since the last look, until ``stop``; ``begun`` is set after the first.

    Entries of the folders, and with ``is_deep`` everything below; a folder among them only when it comes or goes.
    """
    known = _marks(folders, stop, is_deep=is_deep)
    begun.set()
    while not stop.wait(LOOK_S):
        now = _marks(folders, stop, is_deep=is_deep)
        if stop.is_set():
            return
        yield {path for path, _ in known.items() ^ now.items()}
        known = now


def _marks(folders: Sequence[Path], stop: threading.Event, *, is_deep: bool) -> dict[str, _Mark]:
    """Return what changes whenever something at a path does, for each path; what may not be looked at is left out.

    It is given up at ``stop``, and then no whole.
    """
    found: dict[str, _Mark] = {}
    ahead = []
    for folder in folders:
        with contextlib.suppress(OSError):
            found[str(folder)] = _mark(folder.stat())
            ahead.append(str(folder))
    while ahead and not stop.is_set():
        with contextlib.suppress(OSError), os.scandir(ahead.pop()) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # it went since it was listed
                    status = entry.stat(follow_symlinks=False)
                    found[entry.path] = _mark(status)
                    if is_deep and stat.S_ISDIR(status.st_mode):
                        ahead.append(entry.path)
    return found


def _mark(status: os.stat_result) -> _Mark:
    """Return the marks of one path. The time of a folder changes with its entries, which have marks of their own."""
    if stat.S_ISDIR(status.st_mode):
        return status.st_ino, 0, 0
    return status.st_ino, status.st_ctime_ns, status.st_size
