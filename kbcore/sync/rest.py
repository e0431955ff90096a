"""Where a worktree and a branch were found at rest: files and head as they were when a sync had nothing to do or say.

Kept in ``.kb/cache`` for git's hooks, which mostly find nothing new and then need no database to know it. Losing it
costs a whole sync, nothing else; it is only believed while head, files and settings are what they were.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kbcore.errors import KBError
from kbcore.storage import files, journal
from kbcore.storage.head import Head
from kbcore.sync import scan as scanning
from kbcore.sync.checkout import settled
from kbcore.sync.pending import wanted
from kbcore.sync.scan import Known, Scan, Wanted
from kbcore.sync.stamps import path_of, read_stamps, write_cached
from kbcore.workspace import CACHE, Workspace

_FORMAT: Final = 1
_MAX_BYTES: Final = 4096


class _Rest(msgspec.Struct, frozen=True):
    """The head of one store, and the digest of all files with what reads them."""

    format: int
    store_id: str
    seq: int
    sum: str
    files: str


_decode = msgspec.json.Decoder(_Rest).decode


def is_at_rest(workspace: Workspace, branch: str) -> bool:
    """Tell whether nothing has changed since a sync of this branch found nothing to do. No file is read for it.

    Raises: ``BranchMoved`` when git does not get done; ``InvalidConfig``; what reading the head raises.
    """
    checkout = settled(workspace)
    place = _path_of(workspace, branch)
    fs = workspace.machine.fs
    noted = _read(workspace, place)
    if noted is None or checkout.head.branch != branch or not workspace.has_store(branch):
        return False
    directory = workspace.directory_of(branch)
    head = journal.read_head(fs, directory)
    if (noted.store_id, noted.seq, noted.sum) != (head.store_id, head.seq, head.hash):
        return False
    journal.check_length(fs, directory, head)
    root = workspace.repo.worktree
    stamps = read_stamps(fs, path_of(workspace.kb_dir / CACHE, root))
    wants = wanted(checkout.workspace)
    found = scanning.scan(root, wants, Known(stamps, {}, 0, is_glance=True))
    return not found.read and _is_plain(found) and _digest(found, wants) == noted.files


def note(workspace: Workspace, branch: str, head: Head, found: Scan, wants: Sequence[Wanted]) -> None:
    """Note that this head and these files are at rest, unless something about the files has to be told each time."""
    place = _path_of(workspace, branch)
    rest = _Rest(_FORMAT, head.store_id, head.seq, head.hash, _digest(found, wants))
    if _is_plain(found) and _read(workspace, place) != rest:
        write_cached(workspace.machine.fs, place, msgspec.json.encode(rest))


def _is_plain(found: Scan) -> bool:
    return not found.blind and not found.notes


def _digest(found: Scan, wants: Sequence[Wanted]) -> str:
    listed = [(path, one.hash, one.type, one.wanted.mark) for path, one in sorted(found.files.items())]
    return hashlib.sha256(msgspec.json.encode([[want.mark for want in wants], listed])).hexdigest()


def _path_of(workspace: Workspace, branch: str) -> Path:
    """Return where it is noted: with the views of the branch, for each worktree apart."""
    return path_of(workspace.cache_of(branch), workspace.repo.worktree).with_suffix(".rest")


def _read(workspace: Workspace, place: Path) -> _Rest | None:
    """Return what was noted; None when there is nothing that can be used."""
    try:
        data = files.read_file(workspace.machine.fs, place, _MAX_BYTES)
        noted = _decode(data) if data else None
    except (KBError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return noted if noted and noted.format == _FORMAT else None
