"""The content of one file that an extractor wants: the only way to it, with every check that it may be read.

A file outside of the repository is not read, nor what is no file, nor one beyond the limit; nothing waits for a pipe.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from kbcore import limits


class Unfit(Exception):
    """A file that must not be read, for the reason and with the remedy in its arguments."""


def read(place: str) -> tuple[bytes, os.stat_result]:
    """Return the content of a file, and what the file looked like when it was opened.

    What took its place since it was looked at is looked at again; opening a pipe does not wait for its writer.

    Raises: ``OSError``, ``Unfit``.
    """
    with open(place, "rb", opener=_at_once) as file:
        about = os.fstat(file.fileno())
        _check_kind(about)
        return file.read(), about


def _at_once(place: str, flags: int) -> int:
    return os.open(place, flags | os.O_NONBLOCK)


def check(place: str, about: os.stat_result, root: Path, *, is_direct: bool) -> None:
    """Refuse a file that must not be read; ``is_direct`` says that no link leads there.

    Raises: ``Unfit``.
    """
    if not is_direct and not Path(os.path.realpath(place)).is_relative_to(root):
        raise Unfit("It is a link that leads out of the repository.", "Put the file itself here.")
    _check_kind(about)


def _check_kind(about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise Unfit("It is no regular file.", "Remove it, or choose other paths in .kb/config.json.")
    if about.st_size > limits.MAX_SOURCE_FILE_BYTES:
        message = f"It has {about.st_size} bytes; the limit is {limits.MAX_SOURCE_FILE_BYTES}."
        raise Unfit(message, "Split the document.")
