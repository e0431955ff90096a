"""The content of one file that an extractor wants: the only way to it, with every check that it may be read.

A file outside of the repository is not read, nor what is no file, nor one beyond the limit; nothing waits for a pipe.
"""

from __future__ import annotations

import itertools
import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from kbcore import limits

_NO_FILE: Final = ("It is no regular file.", "Remove it, or choose other paths in .kb/config.json.")
_CHUNK_BYTES: Final = 64 * limits.KIB


class Unfit(Exception):
    """A file that must not be read, for the reason and with the remedy in its arguments."""


class SizeLimit(NamedTuple):
    """The most bytes of a file that is read, and what to do about a larger one."""

    most_bytes: int
    remedy: str


DOCUMENT: Final = SizeLimit(limits.MAX_SOURCE_FILE_BYTES, "Split the document.")


def read(place: str, limit: SizeLimit = DOCUMENT) -> tuple[bytes, os.stat_result]:
    """Return the content of a file, and what the file looked like when it was opened.

    What took its place since it was looked at is looked at again; opening a pipe does not wait for its writer.

    Raises: ``OSError``, ``Unfit``.
    """
    # Plain calls: the layers that `open` puts around them take longer than reading a document does.
    file = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(file)
        _check_kind(about, limit)
        data = os.read(file, about.st_size + 1)
        while more := os.read(file, _CHUNK_BYTES):
            data += more
    finally:
        os.close(file)
    return data, about


def read_beginning(place: str, most_bytes: int) -> bytes:
    """Return so many bytes of a file, whatever its length. Raises: ``OSError``, ``Unfit``."""
    file = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise Unfit(*_NO_FILE)
        data = os.read(file, most_bytes)
        while len(data) < most_bytes and (more := os.read(file, most_bytes - len(data))):
            data += more
    finally:
        os.close(file)
    return data


def check(place: str, about: os.stat_result, root: Path, *, is_direct: bool, limit: SizeLimit = DOCUMENT) -> None:
    """Refuse a file that must not be read; ``is_direct`` says that no link leads there.

    Raises: ``Unfit``.
    """
    if not is_direct and not _is_inside(place, str(root).rstrip("/")):
        raise Unfit("It is a link that leads out of the repository.", "Put the file itself here.")
    _check_kind(about, limit)


def _is_inside(place: str, root: str) -> bool:
    """Tell whether a path leads to below ``root``, to which no link leads."""
    if not root:
        return True
    names = place.removeprefix(f"{root}/").split("/")
    if place.startswith(f"{root}/") and ".." not in names:
        paths = itertools.accumulate(names, lambda above, name: f"{above}/{name}", initial=root)
        if not any(map(os.path.islink, paths)):
            return True
    return f"{os.path.realpath(place)}/".startswith(f"{root}/")


def _check_kind(about: os.stat_result, limit: SizeLimit) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise Unfit(*_NO_FILE)
    if about.st_size > limit.most_bytes:
        # How many they are is not said: it is kept until the file is read, and that may grow meanwhile.
        raise Unfit(f"It has more bytes than the limit of {limit.most_bytes}.", limit.remedy)
