"""Somebody writes to the journal without the lock: noticed, never overwritten, never taken for a record."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kbcore.errors import CommitUncertain, ForeignWrite, StorageFull
from kbcore.storage import journal
from tests.core.storage.making import CLOCK, FS, append, new_store, numbers, segment
from tests.support.disk.faultfs import LoggingFs


class Intruding(LoggingFs):
    """Somebody writes to the journal just before, or just after, KB does."""

    def __init__(self, path: Path, data: bytes, *, first: bool) -> None:
        super().__init__()
        self.path = path
        self.data = data
        self.first = first

    def _run(self, kind, method, args):
        is_record = kind == "write" and self.names[args[0]] == self.path.name
        if is_record and self.first:
            self.intrude()
        result = super()._run(kind, method, args)
        if is_record and not self.first:
            self.intrude()
        return result

    def intrude(self) -> None:
        with self.path.open("ab") as file:
            file.write(self.data)


def test_a_foreign_write_before_the_record_is_refused_and_quarantined(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    path = segment(directory)
    size = path.stat().st_size
    with pytest.raises(ForeignWrite) as caught:
        append(directory, 3, fs=Intruding(path, b"hello\n", first=True))
    assert caught.value.message.startswith(
        f"{path}: another program wrote to the journal without taking the lock: it should"
    )
    assert caught.value.applied == "no"
    assert caught.value.data["offset"] == size
    with journal.writing(FS, directory, CLOCK) as writer:
        assert writer.recovery.rolled_forward == ()
        assert writer.recovery.kept is not None
    assert numbers(directory) == [1, 2]


def test_a_foreign_write_after_the_record_leaves_it_uncertain(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    with pytest.raises(CommitUncertain, match="without taking the lock, right after record 3"):
        append(directory, 3, fs=Intruding(segment(directory), b"hello\n", first=False))
    with journal.writing(FS, directory, CLOCK) as writer:
        assert writer.recovery.rolled_forward == (3,)
        assert writer.recovery.kept is not None
    assert numbers(directory) == [1, 2, 3]


def test_undoing_a_short_write_never_cuts_foreign_bytes(tmp_path: Path) -> None:
    class Both(Intruding):
        def _run(self, kind, method, args):
            if kind == "write" and self.names[args[0]] == self.path.name:
                self.intrude()
                raise OSError(errno.ENOSPC, "full")
            return super()._run(kind, method, args)

    directory = new_store(tmp_path, 2)
    with pytest.raises(StorageFull):
        append(directory, 3, fs=Both(segment(directory), b"hello\n", first=True))
    assert segment(directory).read_bytes().endswith(b"hello\n")
    append(directory, 3)
    assert [path.read_bytes() for path in (directory / "quarantine").glob("*.cut")] == [b"hello\n"]


def test_a_foreign_cut_is_noticed(tmp_path: Path) -> None:
    class Cutting(Intruding):
        def intrude(self) -> None:
            os.truncate(self.path, self.path.stat().st_size - 5)

    directory = new_store(tmp_path, 2)
    with pytest.raises(ForeignWrite):
        append(directory, 3, fs=Cutting(segment(directory), b"", first=False))
