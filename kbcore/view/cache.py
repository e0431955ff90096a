"""Where the published view of a branch lies, when it is written anew, and how it is replaced.

The cache may be deleted at any time, and may be unwritable: KB then works in memory. A published file is never
changed in place; a new one is built beside it and renamed over it.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from kbcore import interrupting, limits
from kbcore.clock import Clock
from kbcore.errors import KBError, ResourceLimit, StorageError, ViewDamaged, ViewForeign
from kbcore.storage import bug_reports, files, journal, lock
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head
from kbcore.view import base, replay
from kbcore.view.base_stamp import BaseStamp
from kbcore.view.database import Room
from kbcore.view.fold import FoldedRecord, FoldStart
from kbcore.view.view import View

VIEW: Final = "view.duckdb"
TEXT: Final = "text.db"
"""The index of text; ``kbcore.view.text_search`` says what is in it."""
FORMER_TEXT: Final = "text.duckdb"
"""The index of earlier versions, which is deleted when a new one is built."""
AHEAD: Final = "ahead-"
"""Begins the name of a view that was kept because it has seen records that its store does not have any more."""

UNFINISHED: Final = ".view-"
"""Begins the name of a view that is being written."""

_KEPT: Final = re.compile(rf"(?:{AHEAD}|lost-)(?P<seq>[0-9]{{1,18}})(?:-[0-9a-f]{{12}})?\.duckdb", re.ASCII)
"""Earlier versions had a second name for the view of a store that was gone."""

_TAIL_ROWS: Final = 2000
_TAIL_SHARE: Final = 100
"""A tail is worth publishing from 2,000 rows on, and from a hundredth of a large base on: that bounds both what a
fresh process folds and what publishing costs per change."""
_LONGEST_TAIL: Final = 3
"""A tail so many times as long is published although another process has begun to."""
_LOOK_S: Final = 0.05
"""Between two looks whether another process still publishes."""


def is_kept(name: str) -> bool:
    """Tell whether a file of a cache is a view that was set aside, which only a person removes."""
    return _KEPT.fullmatch(name) is not None


class SetAsideView(msgspec.Struct, frozen=True):
    """A view that was set aside, and up to which seq it had seen its store."""

    path: Path
    seq: int


class ViewCache:
    """The view files of one branch, in one directory below the folder of caches."""

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
        self._fs = fs
        self._usual = usual if usual != directory else None
        self._memory_bytes = memory_bytes
        self.directory = directory
        self.path = directory / VIEW
        self._is_refusing = False
        self.notices: list[str] = []
        """What a person should hear of: a cache that contradicts the journal."""

    def opened(self) -> View | None:
        """Return a view on the published base, None where there is none."""
        for directory in filter(None, (self.directory, self._usual)):
            path = directory / VIEW
            try:
                if self.size_of(path) is not None:
                    return open_view(self._fs, path, self.room)
            except ViewDamaged as error:
                self.distrust(path, error)
            except StorageError:
                continue  # whatever lies there is no view
        return None

    def size_of(self, path: Path) -> int | None:
        """Return the size of a cached file, None where there is none; a link on the way to it is not followed.

        Raises: ``StorageError`` when something else lies there, or when it cannot be looked at.
        """
        folders = (path.parent.parent, path.parent) if path.parent != self.directory.parent else (path.parent,)
        if not all(files.is_directory(self._fs, folder) for folder in folders):
            return None
        return files.read_size(self._fs, path)

    def distrust(self, path: Path, error: ViewDamaged) -> None:
        """Delete a cached file that cannot be used, and note when somebody else made it."""
        if isinstance(error, ViewForeign):
            self.notices.append(
                f"{path} was not made by KB: {error}. Nothing was read from it; it is deleted and made again."
            )
        self.drop(path)

    def report_bug(self, error: Exception, doing: str) -> None:
        """Report a bug that changed no answer: in a file beside the caches, and in a notice."""
        saved = bug_reports.write_report(error, doing, self.directory.parent)
        self.notices.append(
            f"KB failed in a way that it should not ({type(error).__name__}: {doing}). What was answered is right. "
            f"{f'A report is in {saved}.' if saved else 'A report could not be written.'}"
        )

    def basis(self) -> BaseStamp | None:
        """Return what the published view stands on, None where there is none."""
        view = self.opened()
        if view is None:
            return None
        with view:
            return view.basis

    def begin_with(self, other: ViewCache) -> None:
        """Take over the published view of another branch, as a second name of the same file.

        For a branch that is about to be copied from the other: done before, so that the view is never later than the
        copy. Only a saving: where it cannot be done, the view is folded from the journal.
        """
        for name in (VIEW, TEXT):
            target = self.new_file()
            if target is None:
                return
            try:
                self._fs.link(other.directory / name, target)
                self._fs.replace(target, self.directory / name)
            except OSError:
                self.drop(target)

    def set_aside(self, basis: BaseStamp) -> None:
        """Keep the published view, which has seen records that its store lacks: they may be got back from it."""
        # The digest keeps the views of two losses apart.
        kept = self.directory / f"{AHEAD}{basis.seq}-{basis.sum[:12]}.duckdb"
        with contextlib.suppress(OSError):
            self._fs.replace(self.path, kept)

    def kept(self) -> list[SetAsideView]:
        """Return the views that were set aside, in order of name; none where the cache cannot be listed."""
        if not _are_real(self._fs, (self.directory.parent, self.directory)):
            return []
        try:
            names = sorted(self._fs.listdir(self.directory))
        except OSError:
            return []
        found = [_KEPT.fullmatch(name) for name in names]
        return [SetAsideView(self.directory / one[0], int(one["seq"])) for one in found if one]

    def note(self, basis: BaseStamp, head: Head) -> None:
        """Note that a view has seen what the journal does not have."""
        self.notices.append(
            f"Record {basis.seq} ({basis.sum[:12]}) was read earlier and is not in the journal, which now ends at "
            f"{head.seq} ({head.hash[:12]}): the store was put back to an earlier state, or records are lost."
        )

    def build(self, start: FoldStart, entries: Iterable[FoldedRecord], basis: BaseStamp) -> View:
        """Return a view folded from the whole journal, published if the cache can be written.

        Raises: ``ViewDamaged`` when the cache took only a part of it.
        """
        target = self.new_file() if basis.seq else None
        if target is None:
            return self.build_in_memory(start, entries, basis)
        try:
            with interrupting.maintenance():
                view = base.build(str(target), self.room, start, entries, basis)
        except BaseException:
            self.drop(target)
            raise
        self._move_in(target)
        return view

    def build_in_memory(self, start: FoldStart, entries: Iterable[FoldedRecord], basis: BaseStamp) -> View:
        """Return a view that leaves no file behind."""
        with interrupting.maintenance():
            return base.build(":memory:", self.room, start, entries, basis)

    def is_due(self, view: View) -> bool:
        """Tell whether the tail has grown long enough to be published."""
        return view.tail_rows >= _TAIL_ROWS and view.tail_rows >= view.base_rows() // _TAIL_SHARE

    def renew(self, view: View, catch_up: Callable[[View], None]) -> View | None:
        """Publish a view whose tail has grown long, or return a view on the base that another process has published.

        That one is given to ``catch_up``, and used where its own tail need not be published. While another process
        publishes, nothing is done: its base will do. One that was stopped meanwhile is not waited for without end.
        """
        with lock.Claim(self._fs, self.directory) as claim:
            if not claim.take() and claim.is_possible and self._is_bearable(view):
                return None
            newer = self.opened()
            if newer is not None:
                is_enough = False
                try:
                    if newer.basis.seq > view.base_seq and newer.basis.store_id == view.basis.store_id:
                        catch_up(newer)
                        is_enough = not self.is_due(newer)
                finally:
                    if not is_enough:
                        newer.close()
                if is_enough:
                    return newer
            self.publish(view)
        return None

    @contextlib.contextmanager
    def claimed(self, clock: Clock, wait_s: float) -> Iterator[None]:
        """Keep other processes from publishing during the block. One that publishes is waited for, up to this time."""
        end_s = clock.monotonic_s() + wait_s
        with lock.Claim(self._fs, self.directory) as claim:
            while not claim.take() and claim.is_possible and clock.monotonic_s() < end_s:
                interrupting.check()
                clock.sleep(_LOOK_S)
            yield

    def identity(self) -> tuple[int, int] | None:
        """Return what tells the published view from one that is published later; None where there is none."""
        try:
            found = self._fs.lstat(self.path)
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def is_writable(self) -> bool:
        """Tell whether a view can be published, as far as is known."""
        return not self._is_refusing and self.new_file() is not None

    @staticmethod
    def _is_bearable(view: View) -> bool:
        return view.tail_rows < _LONGEST_TAIL * max(_TAIL_ROWS, view.base_rows() // _TAIL_SHARE)

    def publish(self, view: View) -> None:
        """Write the view as the new base, if the cache can be written, and stand on it."""
        target = None if self._is_refusing else self.new_file()
        if target is None:
            return
        try:
            with interrupting.maintenance():
                view.write_base(str(target))
        except (ViewDamaged, ResourceLimit):
            # A full disk, for one: the view answers as before, and nobody tries again in this process.
            self._is_refusing = True
            self.drop(target)
            return
        except BaseException:
            self.drop(target)
            raise
        try:
            # Before it gets the name that other processes publish under as well: the base must be this very file.
            view.rebase(str(target))
        except BaseException:
            self.drop(target)
            raise
        self._move_in(target)

    def _move_in(self, target: Path) -> None:
        """Give a finished view its name. Where that fails, the process goes on with the file that it has open."""
        try:
            self._fs.replace(target, self.path)
        except OSError:
            self._is_refusing = True
            self.drop(target)

    def discard(self) -> None:
        """Delete the published view; the next opening folds the journal again."""
        self.drop(self.path)

    def drop(self, path: Path) -> None:
        """Delete a cached file, and the logs beside it; nothing in a place that is not the cache's own."""
        if not _are_real(self._fs, (path.parent.parent, path.parent)):
            return  # it is in a place that is not ours
        for one in (path, *logs_of(path)):
            files.remove_quietly(self._fs, one)

    @property
    def room(self) -> Room:
        """Return what a database of this cache may use of the machine."""
        room = room_beside(self._fs, self.path, self._memory_bytes)
        usual = (str(self._usual.parent),) if self._usual else ()
        return msgspec.structs.replace(room, folders=(*room.folders, *usual))

    def new_file(self) -> Path | None:
        """Return the name of a new file in the cache, or None when the cache cannot be written."""
        target = self.directory / f"{UNFINISHED}{os.getpid()}-{secrets.token_hex(4)}.duckdb"
        try:
            for folder in (self.directory.parent, self.directory):
                if not files.is_directory(self._fs, folder):
                    with contextlib.suppress(FileExistsError):  # another process made it at this moment
                        self._fs.mkdir(folder)
            fd = self._fs.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            self._fs.close(fd)
            self._fs.unlink(target)
        except (OSError, KBError):
            return None
        return target


def logs_of(path: Path) -> list[Path]:
    """Return the names of the files that DuckDB, or SQLite for the index of text, puts beside a file to change it."""
    suffixes = ("-wal", "-journal", "-shm") if path.name == TEXT else (".wal",)
    return [path.with_name(f"{path.name}{suffix}") for suffix in suffixes]


def log_beside(fs: Fs, path: Path) -> Path | None:
    """Return a log that lies beside a cached file; KB leaves none, so another program wrote to the file.

    Raises: ``StorageError`` when something else than a file lies there, or when it cannot be looked at.
    """
    return next((log for log in logs_of(path) if files.read_size(fs, log) is not None), None)


def refuse_log(fs: Fs, path: Path) -> None:
    """Raise ``ViewDamaged`` for a cached file with a log beside it; otherwise as ``log_beside``."""
    if log := log_beside(fs, path):
        raise ViewDamaged(f"{log} lies beside it: another program wrote to it")


def open_view(fs: Fs, path: Path, room: Room | None = None) -> View:
    """Return a view on a published base. ``room`` is that of a database of its folder where it is not given.

    KB leaves no log beside a base. Where there is one, another program wrote to the base, and DuckDB would take its
    rows in as if they had been published.

    Raises: ``ViewDamaged`` when it is not a base that this program can use; ``StorageError`` when something else lies
    there.
    """
    refuse_log(fs, path)
    length_bytes = files.read_size(fs, path)
    if length_bytes is None:
        raise ViewDamaged(f"{path} is not there")
    return base.open_base(str(path), room or room_beside(fs, path), length_bytes)


def room_beside(fs: Fs, path: Path, memory_bytes: int = limits.VIEW_MEMORY_BYTES) -> Room:
    """Return what a database may use that opens a cached file: the caches of all branches, and a folder for spilling.

    What a database cannot hold is not spilled where something else has the name of that folder, or its place.
    """
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


def is_usable(basis: BaseStamp, head: Head) -> bool:
    """Tell whether a view that stands on this can become a view of this head by taking in what came after.

    The view of another store will do for the part of the history that the copy began with; whether it saw that very
    history, taking in the next record tells.
    """
    begins = replay.history_from(head), replay.listed_from(head)
    is_of_history = basis.lineage == head.lineage and (basis.history_from, basis.listed_from) == begins
    if not is_of_history or basis.file not in head.files:
        return False
    if basis.store_id == head.store_id or head.epoch_of(basis.store_id):
        return not is_ahead(basis, head)
    return head.origin is not None and basis.seq <= head.origin.seq


def is_ahead(basis: BaseStamp, head: Head) -> bool:
    """Tell whether a view of the same store, under any id that it had, has seen what its journal does not have."""
    tip = head if basis.store_id == head.store_id else head.epoch_of(basis.store_id)
    if tip is None or basis.lineage != head.lineage:
        return False
    return basis.seq > tip.seq or (basis.seq == tip.seq and basis.sum != tip.hash)


def store_ids(fs: Fs, parent: Path) -> set[str]:
    """Return the ids of all stores in a folder and in the hidden folders there, as far as they can be read."""
    found = set[str]()
    with files.explained(parent, "list", reading=True):
        names = fs.listdir(parent)
    for name in names:
        with contextlib.suppress(KBError):
            if name.startswith(".") and files.is_directory(fs, parent / name):
                found |= store_ids(fs, parent / name)
        with contextlib.suppress(KBError):
            head = journal.read_head(fs, parent / name)
            found |= {head.store_id, *(one.store_id for one in head.epochs)}
    return found
