"""Folders that git is to leave alone on every branch: each holds an ignore file of its own, which no branch tracks.

The tracked ``.kb/.gitignore`` says the same, but comes and goes with what is checked out. On a branch from before it,
``git add`` would take the stores in, and the next switch would delete them.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final

from kbcore.errors import KBError
from kbcore.storage import files
from kbcore.storage.fs import Fs

IGNORE: Final = ".gitignore"
_EVERYTHING: Final = b"*\n"


def make(fs: Fs, folder: Path) -> None:
    """Make a folder, unless it is there, and keep out of git what it holds, as far as that can be written.

    Raises: ``StorageError`` and its kin when there is no folder and none can be made.
    """
    if not files.is_directory(fs, folder):
        with files.explained(folder, "make"), contextlib.suppress(FileExistsError):
            fs.mkdir(folder)
    with contextlib.suppress(KBError):
        if not files.read_size(fs, folder / IGNORE):  # what a crash left empty is written once more
            _write(fs, folder / IGNORE)


def _write(fs: Fs, path: Path) -> None:
    """Write the ignore file, or leave none. Processes that come by at the same time write the same."""
    try:
        with files.opened(fs, path, os.O_WRONLY | os.O_CREAT) as fd:
            files.pwrite_all(fs, fd, _EVERYTHING, 0)
    except OSError:
        files.remove_quietly(fs, path)
