"""The content of one file that an extractor wants: the only way to it, with every check that it may be read.

A file outside of the repository is not read, nor what is no file, nor one beyond the limit; nothing waits for a pipe.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from kbcore import limits

_CHUNK_BYTES: Final = 64 * limits.KIB


class Unfit(Exception):
    """A file that must not be read, for the reason and with the remedy in its arguments."""


def read(place: str) -> tuple[bytes, os.stat_result]:
    """Return the content of a file, and what the file looked like when it was opened.

    What took its place since it was looked at is looked at again; opening a pipe does not wait for its writer.

    Raises: ``OSError``, ``Unfit``.
    """
    # Plain calls: the layers that `open` puts around them take longer than reading a document does.
    file = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(file)
        _check_kind(about)
        data = os.read(file, about.st_size + 1)
        while more := os.read(file, _CHUNK_BYTES):
            data += more
    finally:
        os.close(file)
    return data, about


def check(place: str, about: os.stat_result, root: Path, *, is_direct: bool) -> None:
    """Refuse a file that must not be read; ``is_direct`` says that no link leads there.

    Raises: ``Unfit``.
    """
    if not is_direct and not f"{os.path.realpath(place)}/".startswith(f"{str(root).rstrip('/')}/"):
        raise Unfit("It is a link that leads out of the repository.", "Put the file itself here.")
    _check_kind(about)


def _check_kind(about: os.stat_result) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise Unfit("It is no regular file.", "Remove it, or choose other paths in .kb/config.json.")
    if about.st_size > limits.MAX_SOURCE_FILE_BYTES:
        # How many they are is not said: it is kept until the file is read, and that may grow meanwhile.
        message = f"It has more bytes than the limit of {limits.MAX_SOURCE_FILE_BYTES}."
        raise Unfit(message, "Split the document.")
