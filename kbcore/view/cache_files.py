"""The folder of cached files of one branch: their names, how one is written and published, and how it is deleted.

The files may be deleted at any time, and the folder may be unwritable: the caller works in memory then.
A published file is never changed in place; a new one is written next to it and renamed over it. The content of the
files is left to the modules that write and open them.
"""

from __future__ import annotations

import contextlib
import copy
import os
import re
import secrets
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from kbcore import limits
from kbcore.errors import KBError, ResourceLimit, StorageError, ViewDamaged, ViewForeign
from kbcore.storage import files
from kbcore.storage.fs import Fs

if TYPE_CHECKING:
    from kbcore.view.base_stamp import BaseStamp
    from kbcore.view.database import Room

T = TypeVar("T")

VIEW: Final = "view.duckdb"
TEXT: Final = "text.db"
"""The index of text; ``kbcore.view.text_index_cache`` says what is in it."""
MEANINGS: Final = "meanings.bin"
"""The vectors of what entities mean; ``kbcore.view.entity_vectors`` says what is in it."""
CLAIMS: Final = "claims.db"
"""The index of changes; ``kbcore.view.claim_index`` says what is in it. It alone is changed in place."""
FORMER_TEXT: Final = "text.duckdb"
"""The index of earlier versions, which is deleted when a new one is built."""
AHEAD: Final = "ahead-"
"""Begins the name of a view that was kept because it has seen records that its store does not have any more."""

REDACTED: Final = "redacted"
"""The file that names the redaction since which all other files of the folder were made."""
_MAX_REDACTED_BYTES: Final = 1024

UNFINISHED: Final = ".view-"
"""Begins the name of a file that is being written."""

_KEPT: Final = re.compile(rf"(?:{AHEAD}|lost-)(?P<seq>[0-9]{{1,18}})(?:-[0-9a-f]{{12}})?\.duckdb", re.ASCII)
"""Earlier versions had a second name for the view of a missing store."""


def is_kept(name: str) -> bool:
    """Tell whether a file of a cache is a lost view that was kept, which only a person removes."""
    return _KEPT.fullmatch(name) is not None


class LostView(msgspec.Struct, frozen=True):
    """A view that is ahead of its store, and the seq up to which it had seen it."""

    path: Path
    seq: int


class Redactions(threading.local):
    """The last redaction of a store as this thread has ``seen`` it; "" for none."""

    seen = ""


class CacheFiles:
    """The files of one branch, in one directory below the folder of caches."""

    def __init__(
        self,
        fs: Fs,
        directory: Path,
        memory_bytes: int = limits.VIEW_MEMORY_BYTES,
        *,
        usual: Path | None = None,
    ) -> None:
        """``memory_bytes`` is what a database of this cache may hold in memory.

        ``usual`` is where others publish who may write there: a view is taken from it where this cache has none.
        """
        self.fs = fs
        self._usual = usual if usual != directory else None
        self._memory_bytes = memory_bytes
        self.directory = directory
        self.path = directory / VIEW
        self._is_refusing = False
        self.redactions = Redactions()
        self.last_redaction: Callable[[], str] = lambda: self.redactions.seen
        """Returns what the head names now."""
        self.notices: list[str] = []
        """A warning for the user: a cache that contradicts the journal, or that another program made."""

    def for_other_files(self) -> CacheFiles:
        """Return the same folder, with the same notices, for other files: a failure to write them is none of these."""
        other = copy.copy(self)
        other._is_refusing = False  # noqa: SLF001 - it is of this class
        return other

    @property
    def view_paths(self) -> list[Path]:
        """Return where a published view may be, the place to look first first."""
        return [directory / VIEW for directory in (self.directory, self._usual) if directory]

    @property
    def room(self) -> Room:
        """Return what a database of this cache may use of the machine."""
        room = room_of(self.fs, self.path, self._memory_bytes)
        usual = (str(self._usual.parent),) if self._usual else ()
        return msgspec.structs.replace(room, folders=(*room.folders, *usual))

    def usable_size(self, path: Path) -> int | None:
        """Return the size of a cached file; None where there is none, or something else, or where a link leads to it.

        One with a log next to it was written by another program: it is deleted.
        """
        folders = (path.parent.parent, path.parent) if path.parent != self.directory.parent else (path.parent,)
        try:
            if not all(files.is_directory(self.fs, folder) for folder in folders):
                return None
            length_bytes = files.read_size(self.fs, path)
            if length_bytes is None or _log_of(self.fs, path) is None:
                return length_bytes
        except StorageError:
            return None
        self.drop(path)
        return None

    def identity(self) -> tuple[int, int] | None:
        """Return what is another value for a view that is published later; None where there is no published view."""
        try:
            found = self.fs.lstat(self.path)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def is_writable(self) -> bool:
        """Tell whether a file can be published, as far as is known."""
        return self.new_file() is not None

    def new_file(self) -> Path | None:
        """Return the name of a new file in the cache, or None when the cache cannot be written."""
        if self._is_refusing:
            return None
        target = self.directory / f"{UNFINISHED}{os.getpid()}-{secrets.token_hex(4)}.duckdb"
        try:
            for folder in (self.directory.parent, self.directory):
                if not files.is_directory(self.fs, folder):
                    with contextlib.suppress(FileExistsError):  # another process made it at this moment
                        self.fs.mkdir(folder)
            fd = self.fs.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            self.fs.close(fd)
            self.fs.unlink(target)
        except (OSError, KBError):
            return None
        return target

    @contextlib.contextmanager
    def filling(self, target: Path) -> Iterator[None]:
        """Delete a new file unless the block ends well."""
        try:
            yield
        except BaseException:
            self.drop(target)
            raise

    def written(self, write: Callable[[Path], object]) -> Path | None:
        """Return a new file that ``write`` has filled; None where the cache cannot be written.

        Where there is no room for it, as on a full disk, no other file is written in this process.
        """
        target = self.new_file()
        if target is None:
            return None
        try:
            with self.filling(target):
                write(target)
        except (ViewDamaged, ResourceLimit):
            self._is_refusing = True
            return None
        return target

    def publish(self, path: Path, write: Callable[[Path], object], use: Callable[[Path], T]) -> T | None:
        """Publish a file that ``write`` fills; return what ``use`` returns for it, None where it cannot be written.

        ``use`` gets the file before it has its name: other processes publish under that name as well, and what is used
        must be this very file.
        """
        target = self.written(write)
        if target is None:
            return None
        with self.filling(target):
            used = use(target)
        self.move_in(target, path)
        return used

    def move_in(self, target: Path, path: Path) -> None:
        """Give a finished file its name. Where that fails, the process goes on with the file that it has open."""
        try:
            self.fs.replace(target, path)
        except OSError:
            self._is_refusing = True
            self.drop(target)
        # Something may have been taken out of the store meanwhile, and what was cached was deleted before this.
        if self.last_redaction() != self.redactions.seen:
            self.drop(path)

    def discard_damaged(self, path: Path, error: ViewDamaged) -> None:
        """Delete a cached file that cannot be used, and note when another program made it."""
        if isinstance(error, ViewForeign):
            self.notices.append(
                f"{path} was not made by KB: {error}. Nothing was read from it; it is deleted and made again."
            )
        self.drop(path)

    def drop(self, *paths: Path) -> None:
        """Delete cached files, and the logs next to them; nothing in a place that is not the cache's own."""
        for path in paths:
            if _are_real(self.fs, (path.parent.parent, path.parent)):
                for one in (path, *_logs_of(path)):
                    files.remove_quietly(self.fs, one)

    def forget_redacted(self) -> None:
        """Delete what was cached before the last redaction of the store, unless that was done already."""
        wanted, mark = self.redactions.seen, self.directory / REDACTED
        if not wanted or not _are_real(self.fs, (self.directory.parent, self.directory)):
            return
        with contextlib.suppress(OSError, KBError):
            if files.read_file(self.fs, mark, _MAX_REDACTED_BYTES) == wanted.encode():
                return
            for name in self.fs.listdir(self.directory):
                if stat.S_ISREG(self.fs.lstat(self.directory / name).st_mode):
                    files.remove_quietly(self.fs, self.directory / name)
            files.publish_file(self.fs, mark, wanted.encode())

    def begin_with(self, other: CacheFiles) -> None:
        """Take over the published files of another branch, as a second name of the same file.

        For a branch that is about to be copied from the other: done before, so that the view is never later than the
        copy. Only a saving: where it cannot be done, the view is folded from the journal.
        """
        for name in (VIEW, TEXT, MEANINGS):
            target = self.new_file()
            if target is None:
                return
            try:
                self.fs.link(other.directory / name, target)
                self.fs.replace(target, self.directory / name)
            except OSError:
                self.drop(target)

    def keep_lost_view(self, basis: BaseStamp) -> None:
        """Keep the published view, which has seen records that its store lacks: they may be got back from it."""
        # The digest distinguishes the views of two losses.
        kept = self.directory / f"{AHEAD}{basis.seq}-{basis.sum[:12]}.duckdb"
        with contextlib.suppress(OSError):
            self.fs.replace(self.path, kept)

    def kept(self) -> list[LostView]:
        """Return the lost views that were kept, in order of name; none where the cache cannot be listed."""
        if not _are_real(self.fs, (self.directory.parent, self.directory)):
            return []
        try:
            names = sorted(self.fs.listdir(self.directory))
        except OSError:
            return []
        found = [_KEPT.fullmatch(name) for name in names]
        return [LostView(self.directory / one[0], int(one["seq"])) for one in found if one]


def _logs_of(path: Path) -> list[Path]:
    """Return the names of the files that DuckDB, or SQLite for an index, puts next to a file to change it."""
    suffixes = ("-wal", "-journal", "-shm") if path.name in {TEXT, CLAIMS} else (".wal",)
    return [path.with_name(f"{path.name}{suffix}") for suffix in suffixes]


def _log_of(fs: Fs, path: Path) -> Path | None:
    """Return a log next to a cached file; KB leaves none, so another program wrote to the file.

    Raises: ``StorageError`` when something else than a file is there, or when it cannot be looked at.
    """
    return next((log for log in _logs_of(path) if files.read_size(fs, log) is not None), None)


def refuse_log(fs: Fs, path: Path) -> None:
    """Raise ``ViewDamaged`` for a cached file with a log next to it; otherwise as ``_log_of``."""
    if log := _log_of(fs, path):
        raise ViewDamaged(f"{log} is next to it: another program wrote to it")


def room_of(fs: Fs, path: Path, memory_bytes: int = limits.VIEW_MEMORY_BYTES) -> Room:
    """Return what a database may use that opens a cached file: the caches of all branches, and a folder for spilling.

    What a database cannot hold is not spilled where something else has the name of that folder, or its place.
    """
    from kbcore.view.database import Room  # noqa: PLC0415 - duckdb, which the index of changes does without

    spill = path.parent / "spill"
    is_free = _are_real(fs, (path.parent.parent, path.parent, spill))
    return Room(str(spill) if is_free else "", (str(path.parent.parent),), memory_bytes)


def _are_real(fs: Fs, folders: Iterable[Path]) -> bool:
    """Tell whether each of these is a folder, or nothing: no link, and nothing else that has its name."""
    try:
        for folder in folders:
            files.is_directory(fs, folder)
    except StorageError:
        return False
    return True
