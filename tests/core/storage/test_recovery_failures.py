"""Recovery that fails itself: nothing is lost, and the answer is true."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kbcore.errors import CommitUncertain, StorageFull
from kbcore.storage import journal, recovery, verify
from tests.core.storage.making import CLOCK, FS, NO_SYNC, append, new_store, next_line, numbers, segment
from tests.support.disk.faultfs import FailingFs, LoggingFs


def add_tail(directory: Path, tail: bytes) -> None:
    with segment(directory).open("ab") as file:
        file.write(tail)


def recovered(directory: Path, fs=NO_SYNC) -> recovery.RecoveryReport:
    with journal.writing(fs, directory, CLOCK) as writer:
        return writer.recovery


def test_no_room_in_quarantine_cuts_nothing(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    add_tail(directory, b"torn")
    probe = LoggingFs()
    other = new_store(tmp_path, 3, name="probe")
    add_tail(other, b"torn")
    recovered(other, probe)
    at = next(index for index, (kind, name) in enumerate(probe.calls) if kind == "write" and ".cut" in name)
    with pytest.raises(StorageFull):
        recovered(directory, FailingFs(at, 28))
    assert segment(directory).read_bytes().endswith(b"torn")
    assert recovered(directory).kept is not None


def test_a_failure_to_roll_forward_is_uncertain(tmp_path: Path) -> None:
    """The record may be the caller's own of an earlier, uncertain try."""
    directory = new_store(tmp_path, 3)
    add_tail(directory, next_line(directory, 4))
    probe, other = LoggingFs(), new_store(tmp_path / "probe", 3)
    add_tail(other, next_line(other, 4))
    recovered(other, probe)
    at = probe.calls.index(("fsync", segment(directory).name))
    with pytest.raises(CommitUncertain, match="record 4 of an earlier writer is whole, but may not be durable"):
        recovered(directory, FailingFs(at))
    assert recovered(directory).rolled_forward == (4,)


def test_a_file_that_shrinks_while_it_is_rolled_forward_is_noticed(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    add_tail(directory, next_line(directory, 4))

    class Shrinking(LoggingFs):
        def _run(self, kind, method, args):
            if kind == "open" and args[1] & os.O_RDWR and args[0].name != "lock":
                os.truncate(args[0], 10)
            return super()._run(kind, method, args)

    with pytest.raises(CommitUncertain, match="Input/output error"):
        recovered(directory, Shrinking())


def test_a_record_left_by_a_failed_sync_is_counted_once(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 1)
    probe = LoggingFs()
    append(new_store(tmp_path / "probe", 1), 2, fs=probe)
    at = probe.calls.index(("fsync", segment(directory).name))
    with pytest.raises(CommitUncertain):
        append(directory, 2, fs=FailingFs(at))
    append(directory, 3)
    assert numbers(directory) == [1, 2, 3]
    assert verify.prove(FS, directory).findings == ()
