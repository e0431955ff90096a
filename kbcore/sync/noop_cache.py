"""The cached proof that a sync has nothing to do: head and files as they were when it had nothing to do.

Kept in the cache with what that sync answered, so that the next one, and git's hooks, need no database to say the
same. Losing it costs a whole sync, nothing else; it is only believed while head, files and settings are what they were.

git's hooks believe it on one sign less where there are many files: while git's index is what it was, git has written
none of them. What an editor changed meanwhile is then left to the next sync.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kbcore.errors import KBError
from kbcore.ids import path_text
from kbcore.storage import files, journal
from kbcore.storage.head import Head
from kbcore.store.workspace import Workspace
from kbcore.sync.active_extractors import SETTINGS, extractors_of
from kbcore.sync.answer import SyncAnswer
from kbcore.sync.checkout import Checkout, settled
from kbcore.sync.scan import Scan, candidates, walk_of
from kbcore.sync.stamps import stamps_file, write_cached
from kbcore.sync.wanted_files import ActiveExtractor
from kbcore.text.globs import fixed_part, parents

MANY_FILES: Final = 5_000
"""Above so many files, looking at each takes longer than a hook may."""

_FORMAT: Final = 4
_MAX_BYTES: Final = 2**20
"""A longer answer is not kept: whoever has thousands of problems to read has the time of a whole sync."""


class _CachedNoop(msgspec.Struct, frozen=True):
    """The head of one store, the digests of what reads the files and of how all looked from outside, and the answer.

    ``index`` is git's own checksum of its index, "" where it keeps none.
    """

    format: int
    store_id: str
    seq: int
    sum: str
    wants: str
    looks: str
    files: int
    index: str
    answer: SyncAnswer


_decode = msgspec.json.Decoder(_CachedNoop).decode


def lookup(
    workspace: Workspace, branch: str, *, is_hook: bool = False, many_files: int = MANY_FILES
) -> SyncAnswer | None:
    """Return what a sync of this branch would answer, when nothing has changed since one that found nothing to do.

    No file is read for it. None when a sync has to look, or has to say what is missing from the store, or whether it is
    of another branch than git has now. With
    ``is_hook``, above ``many_files`` they are looked at only when git may have written one.

    Raises: ``BranchMoved`` when git does not get done; ``InvalidConfig``; what reading the head raises.
    """
    if not workspace.repo.has_worktree:
        return None
    checkout = settled(workspace)
    noted = _read(workspace, _path_of(workspace, branch))
    if noted is None or checkout.head.branch != branch or not workspace.folders.has_store(branch):
        return None
    directory = workspace.folders.directory_of(branch)
    head = journal.read_head(workspace.machine.fs, directory)
    if (noted.store_id, noted.seq, noted.sum) != (head.store_id, head.seq, head.hash):
        return None
    journal.check_length(workspace.machine.fs, directory, head)
    if workspace.witness(branch).check(head) or workspace.verdict_on(branch) != "same":
        return None
    wants = extractors_of(checkout.workspace)
    if _digest(wants) != noted.wants or checkout.workspace.cut_values():
        return None
    index = checkout.index_sum()
    if is_hook and noted.files > many_files and index and index == noted.index:
        return noted.answer
    if _looks_now(workspace.repo.worktree, wants) != noted.looks:
        return None
    if index != noted.index:
        _write(workspace, branch, msgspec.structs.replace(noted, index=index))
    return noted.answer


def is_unchanged(workspace: Workspace, branch: str, head: Head) -> bool:
    """Return whether the records up to a head hold what the files of the worktree say now. No file is read for it.

    False also where only a sync can tell. Raises: ``InvalidConfig``.
    """
    noted = _read(workspace, _path_of(workspace, branch))
    if noted is None or (noted.store_id, noted.seq, noted.sum) != (head.store_id, head.seq, head.hash):
        return False
    wants = extractors_of(workspace)
    return _digest(wants) == noted.wants and _looks_now(workspace.repo.worktree, wants) == noted.looks


def files_and_folders(workspace: Workspace) -> set[str]:
    """Return the paths of every file that is wanted now, and of the folders in which another one may come.

    As long as all of these look the same, a sync finds what it found. A folder that is not there yet is among them.
    Raises: ``InvalidConfig``.
    """
    if not workspace.repo.has_worktree:
        return set()
    wants = extractors_of(workspace)
    walk = walk_of(workspace.repo.worktree, wants)
    found = {path for path, *_ in candidates(walk, wants)}
    starts = {fixed_part(glob) for want in wants for glob, _ in want.globs}
    above = {parent for start in starts for parent in parents(start)}
    return found | {*walk.folders} | starts | above


def note(checkout: Checkout, head: Head, scan: Scan, wants: Sequence[ActiveExtractor], answer: SyncAnswer) -> None:
    """Note that a sync of this head and these files has nothing to do, as far as their looks decide the answer.

    They do not where a file cannot be read or has just been changed, or a folder cannot be looked into. ``checkout`` is
    what git had checked out before they were looked at.
    """
    if scan.blind or scan.notes.keys() - {SETTINGS} or scan.stamps.keys() != scan.files.keys() or not scan.files:
        return
    looks = [_look(path, one.size, one.mtime_ns, one.ctime_ns, one.inode) for path, one in scan.stamps.items()]
    about = (_digest(wants), _digest(wants, [*looks, *_counts(scan.not_read)]), len(looks), checkout.index_sum())
    _write(
        checkout.workspace,
        answer.outcome.branch,
        _CachedNoop(_FORMAT, head.store_id, head.seq, head.hash, *about, answer),
    )


def _write(workspace: Workspace, branch: str, cached: _CachedNoop) -> None:
    """Keep a note, unless it is kept already."""
    place, data = _path_of(workspace, branch), msgspec.json.encode(cached)
    if len(data) <= _MAX_BYTES and _read(workspace, place) != cached:
        write_cached(workspace.machine.fs, place, data)


def _looks_now(root: Path, wants: Sequence[ActiveExtractor]) -> str:
    """Return the digest of how all wanted files look from outside now; "" when that cannot be determined."""
    walk = walk_of(root, wants)
    looks = set()
    try:
        for path, entry, _, _ in candidates(walk, wants):
            about = entry.stat()
            looks.add(_look(path, about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino))
    except OSError:
        return ""
    return "" if walk.blind or walk.notes else _digest(wants, [*looks, *_counts(walk.not_read)])


def _counts(not_read: Mapping[str, int]) -> list[str]:
    return [f"{path_text(ending)}\0\0{number}" for ending, number in not_read.items()]


def _look(path: str, size: int, mtime_ns: int, ctime_ns: int, inode: int) -> str:
    return f"{path}\0{size} {mtime_ns} {ctime_ns} {inode}"


def _digest(wants: Sequence[ActiveExtractor], looks: Iterable[str] = ()) -> str:
    text = "\n".join([*(want.mark for want in wants if want.fault is None), *sorted(looks)])
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def _path_of(workspace: Workspace, branch: str) -> Path:
    """Return where it is noted: with the views of the branch, separate for each worktree."""
    return stamps_file(workspace.folders.cache_of(branch), workspace.repo.worktree).with_suffix(".rest")


def _read(workspace: Workspace, place: Path) -> _CachedNoop | None:
    """Return what was noted; None when there is nothing that can be used."""
    try:
        data = files.read_file(workspace.machine.fs, place, _MAX_BYTES)
        noted = _decode(data) if data else None
    except (KBError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return noted if noted and noted.format == _FORMAT else None
