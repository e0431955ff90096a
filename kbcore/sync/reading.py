"""One file of a worktree: its content, the hash of it, and what an extractor finds in it. Plain data in and out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from kbcore.extract.changes import file_kind
from kbcore.extract.facts import Extractor, Facts, SourceFile
from kbcore.extract.registry import run
from kbcore.git.worktree_content import Unfit, read
from kbcore.text.problems import FileProblem

_RACY_NS: Final = 2_000_000_000


class FileToRead(msgspec.Struct, frozen=True, array_like=True):
    """A file that was seen. ``place`` is its path as the system has it, ``extractor`` a number that the caller gives.

    ``known`` is the hash of the content that is recorded as this extractor reads it, "" where none is.
    """

    path: str
    place: bytes
    type: str | None
    extractor: int
    is_link: bool
    known: str


class FileContent(msgspec.Struct, frozen=True):
    """The result of reading a file.

    ``looks`` are the stat fields by which the content is known again, None where the file changed too recently.
    ``facts`` is None for the content that is recorded, and for a file that is gone.
    """

    hash: str = ""
    looks: tuple[int, int, int, int] | None = None
    facts: Facts | None = None
    is_gone: bool = False


def read_content(
    file: FileToRead, extractor: Extractor | None, settings: Mapping[str, Any], now_ns: int
) -> FileContent:
    """Return what a file holds now; without an extractor, its hash alone.

    ``now_ns`` is the time of the scan, in nanoseconds since 1970.
    """
    try:
        data, about = read(os.fsdecode(file.place), file_kind(file.path))
    except (FileNotFoundError, NotADirectoryError) as error:
        return FileContent(facts=unread_facts(error)) if file.is_link else FileContent(is_gone=True)
    except (OSError, Unfit) as error:
        return FileContent(facts=unread_facts(error))
    digest, looks = hashlib.sha256(data).hexdigest(), None
    if len(data) == about.st_size and max(about.st_mtime_ns, about.st_ctime_ns) < now_ns - _RACY_NS:
        looks = (about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino)
    if extractor is None or digest == file.known:
        return FileContent(digest, looks)
    return FileContent(digest, looks, run(extractor, SourceFile(file.path, data, file.type), settings))


def unread_facts(error: OSError | Unfit) -> Facts:
    """Return the facts of a file of which nothing can be read, with the reason as its problem."""
    if isinstance(error, Unfit):
        message, hint = error.args
    elif isinstance(error, FileNotFoundError):
        message, hint = "It is a link to nothing, or was removed while it was read.", "Remove the link, or sync again."
    else:
        message, hint = f"It cannot be read: {error.strerror}.", "Give yourself permission to read it."
    return Facts(problems=(FileProblem(0, "unreadable", message, hint),), is_complete=False)
