"""The dates of documents as git knows them, kept in the cache: the history is read once, then what came since.

The cache has three files. One has the dates as of a commit, a line for each file in the order of their names: dates of
a few files are looked up in it without reading the others. The second has what later commits changed, until that is
much.
Losing the cache costs another pass over the history. A git that is too slow, or cannot be asked, knows no date; that it
was too slow is noted in the third file, and it is asked again a day later.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

import msgspec

from kbcore import limits
from kbcore.clock import text_of
from kbcore.errors import GitUnusable, KBError
from kbcore.extract.changes import GLOB
from kbcore.git import revisions
from kbcore.git.file_dates import DateChanges, DocumentDates, FileDates, read_date_changes
from kbcore.storage import files
from kbcore.store.workspace import Workspace
from kbcore.sync.stamps import write_cached
from kbcore.sync.wanted_files import ActiveExtractor
from kbcore.text.globs import fixed_part

_LINES: Final = "file-dates.jsonl"
_LATER: Final = "file-dates-later.json"
_SLOW: Final = "file-dates-slow.json"
_ASKED_AGAIN_S: Final = 24 * 60 * 60
_FORMAT: Final = 2
"""Raised whenever an entry means something else."""
_MAX_BYTES: Final = 256 * limits.MIB
_MOST_BY_KEY: Final = 1000
"""For more files, all lines are read at once."""
_MOST_LATER: Final = 1000
"""Of more files that later commits touched, the lines are written again."""
_REMEMBERED: Final = 4096
"""Dates whose texts are remembered: a commit often brings many files."""

Lookup = Callable[[str], FileDates | None]


class _Head(msgspec.Struct, frozen=True):
    """The first line: the dates are those of all files below some folders, as of a commit."""

    format: int
    commit: str
    folders: list[str]


class _Later(msgspec.Struct, frozen=True):
    """The changes of the commits from ``base``, that of the lines, to ``commit``."""

    format: int
    base: str
    commit: str
    changes: DateChanges


class SlowHistory(msgspec.Struct, frozen=True):
    """The note that git took too long for the history below some folders, with the time in seconds since 1970."""

    format: int
    folders: list[str]
    at_s: int


_decode_slow = msgspec.json.Decoder(SlowHistory).decode
_decode_head = msgspec.json.Decoder(_Head).decode
_decode_later = msgspec.json.Decoder(_Later).decode
_decode_line = msgspec.json.Decoder(tuple[str, FileDates]).decode
_decode_lines = msgspec.json.Decoder(list[tuple[str, FileDates]]).decode
_UNREADABLE: Final = (KBError, msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class DateLines:
    """The content of the file of lines. Raises: ``msgspec.DecodeError`` where it is no such file."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._begin = data.find(b"\n") + 1
        self.head = _decode_head(data[: max(self._begin - 1, 0)])

    def of(self, name: str) -> FileDates | None:
        """Return the dates of a file, None of one that is not known; a damaged line is not known."""
        key = _key(name)
        data, low, high = self._data, self._begin, len(self._data)
        while low < high:
            start = data.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = data.find(b"\n", start, high) + 1 or high
            if data[start:end] < key:
                low = end
            else:
                high = start
        if not data.startswith(key, low):
            return None
        try:
            return _decode_line(data[low : data.find(b"\n", low)])[1]
        except _UNREADABLE:
            return None

    def all(self) -> dict[str, FileDates]:
        """Return the dates of all files. Raises: ``msgspec.DecodeError``, ``UnicodeDecodeError``."""
        listed = self._data[self._begin :].rstrip(b"\n").replace(b"\n", b",")
        return dict(_decode_lines(b"[" + listed + b"]"))


def lines_of(commit: str, folders: Collection[str], dates: Mapping[str, FileDates]) -> bytes:
    """Return the content of the file of lines. A file whose name is not UTF-8 is not kept: no document has such one."""
    kept = [msgspec.json.encode((name, one)) for name, one in dates.items() if name.isascii() or _is_utf8(name)]
    return b"".join(one + b"\n" for one in [msgspec.json.encode(_Head(_FORMAT, commit, list(folders))), *sorted(kept)])


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _key(name: str) -> bytes:
    """Return how the line of a file begins, and that of no other file."""
    return b"[" + msgspec.json.encode(name) + b"," if _is_utf8(name) else b"\xff"


def document_folders(wants: Iterable[ActiveExtractor]) -> set[str]:
    """Return the folders where documents may be, "" for the top of the worktree."""
    return {fixed_part(glob) for want in wants for glob, _ in want.globs if glob != GLOB}


def dates_of(
    workspace: Workspace, commit: str, folders: Collection[str], paths: Collection[str], *, is_kept: bool = True
) -> dict[str, DocumentDates]:
    """Return the dates of those of these files that a commit has; ``folders`` are those where documents may be.

    ``is_kept``: what was found is kept in the cache. Nothing is returned where git does not answer within
    ``limits.GIT_DATES_S``, for a day after that, and in a shallow clone.
    """
    if not (commit and paths):
        return {}
    listed = [] if "" in folders else sorted(folders)
    now_s, slow = workspace.machine.clock.epoch_ns() // 10**9, slow_history(workspace)
    if slow and slow.folders == listed and 0 <= now_s - slow.at_s < _ASKED_AGAIN_S:
        return {}
    begun_s = workspace.machine.clock.monotonic_s()
    try:
        dates = _lookup(workspace, commit, listed, is_kept=is_kept, many=len(paths) > _MOST_BY_KEY)
    except GitUnusable:
        if is_kept and workspace.machine.clock.monotonic_s() - begun_s >= limits.GIT_DATES_S:
            _write(workspace, _SLOW, msgspec.json.encode(SlowHistory(_FORMAT, listed, now_s)))
        return {}
    if slow and is_kept:
        files.remove_quietly(workspace.machine.fs, workspace.folders.cache_dir / _SLOW)
    found = ((path, dates(path)) for path in paths)
    return {path: _shown(one) for path, one in found if one}


def slow_history(workspace: Workspace) -> SlowHistory | None:
    """Return the note that git was too slow when it was asked last, None where it was not."""
    try:
        data = files.read_file(workspace.machine.fs, workspace.folders.cache_dir / _SLOW, limits.MIB)
        slow = _decode_slow(data) if data else None
    except _UNREADABLE:
        return None
    return slow if slow and slow.format == _FORMAT else None


def slow_words(workspace: Workspace, slow: SlowHistory) -> tuple[str, str]:
    """Return in words that git was too slow, and what to do about it."""
    at = text_of(datetime.fromtimestamp(slow.at_s, UTC)).partition(".")[0]
    message = f"git needed more than {limits.GIT_DATES_S:g} s for the history of the documents at {at}Z: new documents"
    path = shlex.quote(str(workspace.folders.cache_dir / _SLOW))
    again = f"A sync asks git again a day later, or once `rm {path}` has removed the note"
    return f"{message} have the dates of their sync, and no author.", f"{again}; `git gc` may make git quicker."


def _lookup(workspace: Workspace, commit: str, folders: list[str], *, is_kept: bool, many: bool) -> Lookup:
    """Return what gives the dates of a file below some folders at a commit, for a few files or for many.

    Raises: ``GitUnusable``.
    """
    repo, env = workspace.repo, workspace.machine.env
    if (repo.common_dir / "shallow").exists():
        return lambda _: None  # the first commit here is not the one that brought a file
    lines = _read_lines(workspace, folders)
    if lines is None:
        return _whole(workspace, commit, folders, is_kept=is_kept)
    base = lines.head.commit
    kept = _read_later(workspace, base)
    if kept.commit != commit:
        start = next((one for one in (kept.commit, base) if revisions.merge_bases(repo, env, one, commit) == [one]), "")
        if not start:
            return _whole(workspace, commit, folders, is_kept=is_kept)
        before = kept.changes if start == kept.commit else DateChanges()
        new = read_date_changes(repo, env, f"{start}..{commit}", folders, timeout_s=limits.GIT_DATES_S)
        kept = _Later(_FORMAT, base, commit, before.then(new))
        if is_kept:
            _keep(workspace, lines, kept)
    return kept.changes.lookup(_of_many(lines) if many else lines.of)


def _of_many(lines: DateLines) -> Lookup:
    try:
        return lines.all().get
    except _UNREADABLE:
        return lines.of


def _whole(workspace: Workspace, commit: str, folders: list[str], *, is_kept: bool) -> Lookup:
    """Do as ``_lookup`` by the whole history. Raises: ``GitUnusable``."""
    repo, env = workspace.repo, workspace.machine.env
    dates = read_date_changes(repo, env, commit, folders, timeout_s=limits.GIT_DATES_S).found
    if is_kept:
        _write(workspace, _LINES, lines_of(commit, folders, dates))
    return dates.get


def _keep(workspace: Workspace, lines: DateLines, kept: _Later) -> None:
    """Write what later commits changed; all lines again where that is much."""
    if len(kept.changes.found) + len(kept.changes.names) <= _MOST_LATER:
        _write(workspace, _LATER, msgspec.json.encode(kept))
        return
    try:
        dates = kept.changes.of_all(lines.all())
    except _UNREADABLE:
        return  # a damaged line: the next pass over the whole history writes the file
    _write(workspace, _LINES, lines_of(kept.commit, lines.head.folders, dates))


def _write(workspace: Workspace, name: str, data: bytes) -> None:
    write_cached(workspace.machine.fs, workspace.folders.cache_dir / name, data)


def _read_lines(workspace: Workspace, folders: list[str]) -> DateLines | None:
    """Return the lines that are kept for these folders, None where there are none that can be used."""
    try:
        data = files.read_file(workspace.machine.fs, workspace.folders.cache_dir / _LINES, _MAX_BYTES)
        lines = DateLines(data) if data else None
    except _UNREADABLE:
        return None
    return lines if lines and lines.head.format == _FORMAT and lines.head.folders == folders else None


def _read_later(workspace: Workspace, base: str) -> _Later:
    """Return what is kept of the commits after that of the lines; nothing of them where that cannot be used."""
    try:
        data = files.read_file(workspace.machine.fs, workspace.folders.cache_dir / _LATER, _MAX_BYTES)
        later = _decode_later(data) if data else None
    except _UNREADABLE:
        later = None
    is_usable = later is not None and (later.format, later.base) == (_FORMAT, base)
    return later if later and is_usable else _Later(_FORMAT, base, base, DateChanges())


@lru_cache(maxsize=_REMEMBERED)
def _shown(dates: FileDates) -> DocumentDates:
    created, updated = (text_of(datetime.fromtimestamp(at, UTC)) for at in (dates.created_s, dates.updated_s))
    return DocumentDates(created, updated, dates.author)
