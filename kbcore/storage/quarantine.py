"""Bytes that are cut off or about to be repaired, kept under ``quarantine/``.

Invariant: a copy is complete and durable before the caller touches the original; only a redaction deletes it.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import stat
from pathlib import Path
from typing import Final

import msgspec

from kbcore.storage import files, layout
from kbcore.storage.fs import Fs

_CUT: Final = re.compile(r"(journal-[0-9]{10,18}(?:-r[0-9]{1,9})?)(?:-at-|\.cut)", re.ASCII)


class QuarantinedFile(msgspec.Struct, frozen=True):
    """The kept part of a file, its place, and why. The reason file has exactly this."""

    file: str
    """Name in the branch directory of the file that the bytes came from."""
    offset: int
    length: int
    sha256: str
    copy: str
    """Name under ``quarantine/``."""
    reason: str
    at: str


def keep(fs: Fs, directory: Path, file: str, span: tuple[int, int], *, reason: str, at: str) -> QuarantinedFile:
    """Copy the bytes from ``span[0]`` to ``span[1]`` of a file, with a reason file, durably.

    The name states offset and digest, so doing it again after a crash is harmless: nothing is overwritten.

    Raises:
        StorageFull, ReadOnlyStore, StorageError: nothing was kept that counts; the original is untouched.
    """
    folder = _made(fs, directory)
    start, end = span
    stem = file.removesuffix(".jsonl")
    unfinished = folder / f"{stem}.cut{layout.TMP_SUFFIX}"
    digest = files.copy_range(fs, directory / file, unfinished, start, end - start)
    kept = QuarantinedFile(file, start, end - start, digest, f"{stem}-at-{start}-{digest[:16]}.cut", reason, at)
    copy, description = folder / kept.copy, folder / f"{kept.copy}.json"
    files.write_synced(fs, layout.tmp_path(description), msgspec.json.format(msgspec.json.encode(kept)) + b"\n")
    with files.explained(copy, "keep"):
        fs.replace(layout.tmp_path(description), description)
        fs.replace(unfinished, copy)
        fs.fsync_dir(folder)
    return kept


def keep_all(fs: Fs, directory: Path, at: str) -> Path:
    """Copy every file of a branch directory, except the lock and earlier copies, durably; return where.

    ``at`` is the time of the repair that comes next: it is in the name, with something random.

    Raises:
        StorageFull, ReadOnlyStore, StorageError: there is no copy; what was made of it is removed again.
    """
    folder = _made(fs, directory) / f"before-rebuild-{at.replace(':', '')}-{secrets.token_hex(4)}"
    with files.explained(folder, "copy the store to"):
        fs.mkdir(folder)
        try:
            for entry in sorted(fs.listdir(directory)):
                source = directory / entry
                status = fs.lstat(source)
                if stat.S_ISREG(status.st_mode) and layout.kind_of(entry) != "lock":
                    files.copy_range(fs, source, folder / entry, 0, status.st_size)
            fs.fsync_dir(folder)
            fs.fsync_dir(folder.parent)
        except BaseException:
            # Its space may be what is missing, and a part of a store must not pass for a copy of it.
            with contextlib.suppress(OSError):
                files.remove_tree(fs, folder)
            raise
    return folder


def cut_from(name: str) -> str:
    """Return the name of the segment that a file of ``keep`` was cut from, "" for anything else."""
    found = _CUT.match(name)
    return f"{found[1]}.jsonl" if found else ""


def listed(fs: Fs, directory: Path) -> list[str]:
    """Return the names under ``quarantine/``, sorted; raises ``OSError`` if it cannot be listed."""
    try:
        return sorted(fs.listdir(directory / layout.QUARANTINE))
    except FileNotFoundError:
        return []


def _made(fs: Fs, directory: Path) -> Path:
    folder = directory / layout.QUARANTINE
    if not files.is_directory(fs, folder):
        with files.explained(folder, "make"):
            fs.mkdir(folder)
            fs.fsync_dir(directory)
    return folder
