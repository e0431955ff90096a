"""Appending to the journal, one writer at a time, under the branch lock; reading is passed on from ``scan``.

Invariant: ``append`` returns only after the record and the head that names it are durable; every error says
truthfully whether the record was applied.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import msgspec

from kbcore.clock import Clock, moment_after
from kbcore.errors import (
    CommitUncertain,
    ForeignWrite,
    KBError,
    ReadOnlyStore,
    StorageError,
    StorageFull,
    UnknownBranch,
)
from kbcore.limits import LOCK_WAIT_S
from kbcore.storage import files, frame, head, layout, lock, recovery
from kbcore.storage.fs import Fs
from kbcore.storage.head import Head, SnapshotRef, Tip
from kbcore.storage.places import Position
from kbcore.storage.recovery import RecoveryReport
from kbcore.storage.scan import check_length, read_one, reading, scan

__all__ = ["Position", "Writer", "check_length", "read_head", "read_one", "reading", "scan", "writing"]

read_head = head.read


class Writer:
    """The one writer of a branch, for as long as ``writing`` holds its lock."""

    def __init__(self, fs: Fs, directory: Path, fd: int, of: Head, recovered: RecoveryReport) -> None:
        """Made by ``writing``; ``fd`` is the active segment, open for appending."""
        self._fs = fs
        self._directory = directory
        self._fd = fd
        self._is_spent = False
        self.head = of
        """The last acknowledged head."""
        self.recovery = recovered
        """Records rolled forward or put in quarantine before this writer could begin."""

    def append(
        self,
        rec: bytes,
        at: str,
        *,
        snapshots: tuple[SnapshotRef, ...] | None = None,
        epochs_of: Head | None = None,
    ) -> Head:
        """Commit one record and return the new head; when this returns, the record is durable.

        Args:
            rec: the payload, one JSON object on one line.
            at: the record's time, as ``Clock.now`` gives it; not before the head's.
            snapshots: what the new head names instead of the last head's; they are durable already.
            epochs_of: the head with the epochs that end before this record, as ``head.with_epoch`` returns it.

        Raises:
            LimitExceeded: the record is too long; nothing was written.
            ValueError: ``rec`` could not be read back, or ``at`` goes back by a day or less; a bug in the caller.
            StorageFull, ReadOnlyStore, StorageError: the record was not applied.
            ForeignWrite: another program wrote without the lock; the record was not applied.
            CommitUncertain: the record may or may not be durable. This writer takes no more records.
        """
        tip = self.head.head
        if self._is_spent:
            raise StorageError(f"the writer of {self._directory} has failed; open the branch again")
        if at != moment_after(tip.at, at).at:
            raise ValueError(f"time goes back from {tip.at} to {at}")
        framed, line = frame.encode(tip.seq + 1, tip.hash, rec)
        # Whatever ends this early, an interrupt included, leaves the rest to the next writer's recovery.
        self._is_spent = True
        self._write(line)
        self._sync()
        new = Tip(framed.seq, framed.sum, tip.file, tip.length + len(line), at)
        listed = self.head.snapshots if snapshots is None else snapshots
        of = epochs_of or self.head
        self._publish(msgspec.structs.replace(of, head=new, snapshots=listed))
        self._is_spent = False
        return self.head

    def _write(self, line: bytes) -> None:
        """Append the line and make sure that it went where it belongs."""
        start, path = self.head.head.length, self._directory / self.head.head.file
        try:
            files.write_all(self._fs, self._fd, line)
        except OSError as error:
            self._undo_short_write(path, start, line, error)
        try:
            size = self._fs.fstat(self._fd).st_size
            is_alone = size == start + len(line)
            is_in_place = is_alone or self._fs.pread(self._fd, len(line), start) == line
        except OSError as error:
            raise self._uncertain(files.explain(error, path, "check the end of")) from error
        if is_alone:
            return
        stranger = f"{path}: another program wrote to the journal without taking the lock"
        data = {"file": str(path), "offset": start, "expected": start + len(line), "actual": size}
        if is_in_place:
            raise CommitUncertain(f"{stranger}, right after record {self.head.seq + 1}", data=data)
        raise ForeignWrite(
            f"{stranger}: it should have {start + len(line)} bytes and has {size}",
            hint="Find what else writes to the store. The next write quarantines those bytes.",
            data=data,
        )

    def _undo_short_write(self, path: Path, start: int, line: bytes, error: OSError) -> NoReturn:
        """Cut what a failed write left; raises in every case."""
        reason = files.explain(error, path, "append to")
        try:
            length = self._fs.fstat(self._fd).st_size - start
            is_ours = line.startswith(self._fs.pread(self._fd, length, start)) if length > 0 else length == 0
        except OSError:
            raise self._uncertain(reason) from error
        if length >= len(line):
            raise self._uncertain(reason) from error
        # A part of a line can never become a record, so the answer stays true even if there is no cut.
        with contextlib.suppress(OSError):
            if is_ours:
                self._fs.ftruncate(self._fd, start)
                self._is_spent = False
        raise reason from error

    def _sync(self) -> None:
        path = self._directory / self.head.head.file
        try:
            self._fs.fsync(self._fd)
        except OSError as error:
            raise self._uncertain(files.explain(error, path, "sync")) from error

    def _publish(self, new: Head) -> None:
        """Make the new head the head. The rename is the point of no return."""
        path = self._directory / layout.HEAD
        try:
            files.write_synced(self._fs, layout.tmp_path(path), head.encode(new))
        except (StorageFull, ReadOnlyStore) as error:
            self._take_back(error)
            raise
        except KBError as error:
            raise self._uncertain(error) from error
        try:
            files.publish(self._fs, path)
        except KBError as error:
            raise self._uncertain(error) from error
        self.head = new

    def _take_back(self, reason: KBError) -> None:
        """Cut the record whose head could not be written, durably, so that "not applied" is the truth."""
        files.remove_quietly(self._fs, layout.tmp_path(self._directory / layout.HEAD))
        try:
            self._fs.ftruncate(self._fd, self.head.head.length)
            self._fs.fsync(self._fd)
        except OSError as error:
            raise self._uncertain(reason) from error
        self._is_spent = False

    def _uncertain(self, reason: KBError) -> CommitUncertain:
        return CommitUncertain(
            f"record {self.head.seq + 1} was written, but may not be durable: {reason.message}",
            data=reason.data,
        )


@contextlib.contextmanager
def writing(
    fs: Fs,
    directory: Path,
    clock: Clock,
    *,
    wait_s: float = LOCK_WAIT_S,
    command: str = "kb",
    meanwhile: Callable[[], None] | None = None,
) -> Iterator[Writer]:
    """Hold the branch lock and yield its writer, after recovering what an earlier writer left unfinished.

    Args:
        fs: the file system.
        directory: the branch's directory.
        clock: for waiting, and for times noted in quarantine.
        wait_s: how long to wait for the lock, in seconds.
        command: what to call this process in other processes' messages.
        meanwhile: done shortly before this process gets the lock, if it has to wait for it.

    Raises:
        UnknownBranch: there is no such directory.
        LockTimeout, LockUnsupported: the lock was not taken.
        JournalCorrupt, JournalTruncated, HeadDamaged, FormatTooNew: the store is not fit to write to.
        CommitUncertain: an earlier writer's complete record could not be made durable.
        StorageFull, ReadOnlyStore, StorageError: a file could not be opened, read or written.
    """
    if not files.is_directory(fs, directory):
        raise UnknownBranch(f"there is no store in {directory}", data={"file": str(directory)})
    with lock.held(fs, clock, directory / layout.LOCK, wait_s=wait_s, command=command, meanwhile=meanwhile):
        of = head.read(fs, directory)
        recovery.remove_superseded(fs, directory, of)
        path = directory / of.head.file
        recovered = RecoveryReport()
        if files.read_size(fs, path) != of.head.length:
            of, recovered = recovery.recover(fs, directory, of, clock.now())
        recovery.refuse_unlisted(fs, directory, of)
        recovery.refuse_resized(fs, directory, of)
        with files.explained(path, "open"):
            fd = fs.open(path, os.O_RDWR | os.O_APPEND)
        try:
            yield Writer(fs, directory, fd, of, recovered)
        finally:
            files.close(fs, fd)
