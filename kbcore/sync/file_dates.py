"""The dates of documents as git knows them, kept in the cache: the history is read once, then what came since.

Losing the cache costs another pass over the history. A git that is too slow, or cannot be asked, knows no date.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from kbcore import limits
from kbcore.clock import text_of
from kbcore.errors import GitUnusable, KBError
from kbcore.extract.changes import GLOB
from kbcore.git import revisions
from kbcore.git.file_dates import DocumentDates, FileDates, read_file_dates
from kbcore.storage import files
from kbcore.store.workspace import Workspace
from kbcore.sync.scan import ActiveExtractor
from kbcore.sync.stamps import write_cached
from kbcore.text.globs import fixed_part

_NAME: Final = "file-dates.json"
_FORMAT: Final = 1
"""Raised whenever an entry means something else."""
_MAX_BYTES: Final = 256 * limits.MIB


class _Kept(msgspec.Struct, frozen=True):
    """The file: the dates of all files below some folders, as of a commit."""

    format: int
    commit: str
    folders: list[str]
    dates: dict[str, FileDates]


_decode = msgspec.json.Decoder(_Kept).decode


def document_folders(wants: Iterable[ActiveExtractor]) -> set[str]:
    """Return the folders where documents may be, "" for the top of the worktree."""
    return {fixed_part(glob) for want in wants for glob, _ in want.globs if glob != GLOB}


def dates_of(
    workspace: Workspace, commit: str, folders: Collection[str], paths: Collection[str], *, is_kept: bool = True
) -> dict[str, DocumentDates]:
    """Return the dates of those of these files that a commit has; ``folders`` are those where documents may be.

    ``is_kept``: what was found is kept in the cache. Nothing is returned where git does not answer within
    ``limits.GIT_DATES_S``, and in a shallow clone.
    """
    if not (commit and paths):
        return {}
    try:
        found = _all(workspace, commit, [] if "" in folders else sorted(folders), is_kept=is_kept)
    except GitUnusable:
        return {}
    return {path: _shown(found[path]) for path in paths if path in found}


def _all(workspace: Workspace, commit: str, folders: list[str], *, is_kept: bool) -> Mapping[str, FileDates]:
    """Return the dates of all files below some folders. Raises: ``GitUnusable``."""
    repo, env, fs = workspace.repo, workspace.machine.env, workspace.machine.fs
    if (repo.common_dir / "shallow").exists():
        return {}  # the first commit here is not the one that brought a file
    path = workspace.folders.cache_dir / _NAME
    kept = _read(workspace)
    if kept and kept.folders == folders and kept.commit == commit:
        return kept.dates
    is_later = kept is not None and kept.folders == folders
    if not (kept and is_later and revisions.merge_bases(repo, env, kept.commit, commit) == [kept.commit]):
        kept = None
    commits = f"{kept.commit}..{commit}" if kept else commit
    known = kept.dates if kept else {}
    dates = read_file_dates(repo, env, commits, folders, known, timeout_s=limits.GIT_DATES_S)
    if is_kept:
        write_cached(fs, path, msgspec.json.encode(_Kept(_FORMAT, commit, folders, dates)))
    return dates


def _read(workspace: Workspace) -> _Kept | None:
    try:
        data = files.read_file(workspace.machine.fs, workspace.folders.cache_dir / _NAME, _MAX_BYTES)
        kept = _decode(data) if data else None
    except (KBError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return kept if kept and kept.format == _FORMAT else None


def _shown(dates: FileDates) -> DocumentDates:
    created, updated = (text_of(datetime.fromtimestamp(at, UTC)) for at in (dates.created_s, dates.updated_s))
    return DocumentDates(created, updated, dates.author)
