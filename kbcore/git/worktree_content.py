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

_CHUNK_BYTES: Final = 64 * limits.KIB


class Unfit(Exception):
    """A file that must not be read, for the reason and with the remedy in its arguments."""


class FileKind(NamedTuple):
    """A kind of files that are read: the most bytes of one, and what to do about one that is not read.

    That is one which is larger, which is no regular file, or to which a link leads out of the repository.
    """

    most_bytes: int
    if_larger: str
    if_no_file: str
    if_outside: str


DOCUMENT: Final = FileKind(
    limits.MAX_SOURCE_FILE_BYTES,
    "Split the document.",
    "Remove it, or choose other paths in .kb/config.json.",
    "Put the file itself here.",
)


def read(place: str, kind: FileKind = DOCUMENT) -> tuple[bytes, os.stat_result]:
    """Return the content of a file, and what the file looked like when it was opened.

    What took its place since it was looked at is looked at again; opening a pipe does not wait for its writer.

    Raises: ``OSError``, ``Unfit``.
    """
    # Plain calls: the layers that `open` puts around them take longer than reading a document does.
    file = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        about = os.fstat(file)
        _check(about, kind)
        data = os.read(file, about.st_size + 1)
        # One byte more was asked for: a file that gave as many as it has is at its end.
        while len(data) != about.st_size and (more := os.read(file, _CHUNK_BYTES)):
            data += more
    finally:
        os.close(file)
    return data, about


def read_beginning(place: str, most_bytes: int) -> bytes:
    """Return so many bytes of a file, whatever its length. Raises: ``OSError``, ``Unfit``."""
    file = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check_is_file(os.fstat(file), DOCUMENT)
        data = os.read(file, most_bytes)
        while len(data) < most_bytes and (more := os.read(file, most_bytes - len(data))):
            data += more
    finally:
        os.close(file)
    return data


def check(place: str, about: os.stat_result, root: Path, *, is_direct: bool, kind: FileKind = DOCUMENT) -> None:
    """Refuse a file that must not be read; ``is_direct`` says that no link leads there.

    Raises: ``Unfit``.
    """
    if not is_direct and not _is_inside(place, str(root).rstrip("/")):
        raise Unfit("It is a link that leads out of the repository.", kind.if_outside)
    _check(about, kind)


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


def _check_is_file(about: os.stat_result, kind: FileKind) -> None:
    if not stat.S_ISREG(about.st_mode):
        raise Unfit("It is no regular file.", kind.if_no_file)


def _check(about: os.stat_result, kind: FileKind) -> None:
    _check_is_file(about, kind)
    if about.st_size > kind.most_bytes:
        # How many they are is not said: it is kept until the file is read, and that may grow meanwhile.
        raise Unfit(f"It has more bytes than the limit of {kind.most_bytes}.", kind.if_larger)
