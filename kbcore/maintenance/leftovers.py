"""Files in the cache that are not needed: those of processes that ended early, and old reports of bugs.

Whether a file is still written is decided by its age alone: the process may run on another machine.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from kbcore.storage import files
from kbcore.storage.layout import TMP_SUFFIX
from kbcore.store.workspace import Workspace
from kbcore.view.cache_files import UNFINISHED

_DAY_NS: Final = 24 * 3600 * 10**9
_UNFINISHED_DAYS: Final = 1
"""Nothing in the cache takes so long to write."""
REPORT_DAYS: Final = 28


class RemovedFiles(msgspec.Struct, frozen=True):
    """The number of files that were removed, or would be."""

    unfinished: int
    reports: int


def sweep(workspace: Workspace, reports: str, *, dry_run: bool = False) -> RemovedFiles:
    """Remove unfinished files of the cache that are older than a day, and reports older than ``REPORT_DAYS``.

    ``reports`` is their folder within the cache. Raises: ``StorageError`` when a folder cannot be listed.
    """
    cache = workspace.folders.cache_dir
    unfinished = [path for path in _files(workspace, cache, 2) if _is_unfinished(path.name)]
    bug_reports = [path for path in _files(workspace, cache / reports, 1) if path.suffix == ".txt"]
    return RemovedFiles(
        _remove(workspace, unfinished, _UNFINISHED_DAYS, dry_run=dry_run),
        _remove(workspace, bug_reports, REPORT_DAYS, dry_run=dry_run),
    )


def _is_unfinished(name: str) -> bool:
    return name.endswith(TMP_SUFFIX) or name.startswith(UNFINISHED)


def _files(workspace: Workspace, folder: Path, depth: int) -> Iterator[Path]:
    """Yield what lies in a folder, and in the folders within it as far down as that."""
    fs = workspace.machine.fs
    if not files.is_directory(fs, folder):
        return
    with files.explained(folder, "list", reading=True):
        names = sorted(fs.listdir(folder))
    for path in (folder / name for name in names):
        if depth > 1 and _is_folder(workspace, path):
            yield from _files(workspace, path, depth - 1)
        else:
            yield path


def _is_folder(workspace: Workspace, path: Path) -> bool:
    # Another process may remove it at this moment; what a link leads to is not the cache's.
    with contextlib.suppress(OSError):
        return stat.S_ISDIR(workspace.machine.fs.lstat(path).st_mode)
    return False


def _remove(workspace: Workspace, paths: list[Path], days: int, *, dry_run: bool) -> int:
    fs, before_ns = workspace.machine.fs, workspace.machine.clock.epoch_ns() - days * _DAY_NS
    removed = 0
    for path in paths:
        # Another process may remove it at this moment.
        with contextlib.suppress(OSError):
            found = fs.lstat(path)
            if stat.S_ISREG(found.st_mode) and found.st_mtime_ns < before_ns:
                if not dry_run:
                    fs.unlink(path)
                removed += 1
    return removed
