"""The disk is timed with a file of its own, of which nothing stays."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from kbcore.clock import SystemClock
from kbcore.maintenance.disk import measure, speed_findings
from tests.support.disk.faultfs import NoSyncFs


class SlowFs(NoSyncFs):
    """A disk on which syncing or opening takes long, by a clock of its own."""

    def __init__(self, sync_s: float = 0.0, open_s: float = 0.0) -> None:
        super().__init__()
        self.sync_s, self.open_s, self.now_s = sync_s, open_s, 0.0

    def fsync(self, fd: int) -> None:
        self.now_s += self.sync_s

    def open(self, path: Path, flags: int, mode: int = 0o666) -> int:
        self.now_s += self.open_s
        return super().open(path, flags, mode)


class ClockOf(SystemClock):
    """The clock of such a disk."""

    def __init__(self, disk: SlowFs) -> None:
        self.disk = disk

    def monotonic_s(self) -> float:
        return self.disk.now_s


def codes(disk: SlowFs, folder: Path) -> list[str]:
    return [one.code for one in speed_findings(disk, folder, ClockOf(disk))]


def test_the_times_are_those_of_one_sync_and_one_read_and_nothing_stays(tmp_path: Path) -> None:
    disk = SlowFs(sync_s=0.25, open_s=0.03)
    speed = measure(disk, tmp_path, ClockOf(disk))
    assert (round(speed.sync_s, 6), round(speed.read_s, 6)) == (0.25, 0.03)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_is_well_slow_to_sync_or_slow_to_read(tmp_path: Path) -> None:
    assert codes(SlowFs(), tmp_path) == ["speed"]
    assert codes(SlowFs(sync_s=0.3), tmp_path) == ["slow_disk"]
    assert codes(SlowFs(open_s=0.05), tmp_path) == ["slow_disk"]


def test_a_single_delay_is_not_taken_for_the_disk(tmp_path: Path) -> None:
    class Hiccup(SlowFs):
        def fsync(self, fd: int) -> None:
            super().fsync(fd)
            self.sync_s = 0.0

    assert codes(Hiccup(sync_s=9.0), tmp_path) == ["speed"]


def test_where_there_is_no_cache_or_none_that_can_be_written_nothing_is_timed(tmp_path: Path) -> None:
    class ReadOnly(SlowFs):
        def refusal_to_write(self, path: Path) -> int:
            return errno.EROFS

    assert codes(SlowFs(), tmp_path / "none") == []
    assert codes(ReadOnly(), tmp_path) == []


def test_a_disk_that_refuses_is_said_not_to_be_timed(tmp_path: Path) -> None:
    class Full(SlowFs):
        def pwrite(self, fd: int, data: bytes | memoryview, offset: int) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (one,) = speed_findings(Full(), tmp_path, SystemClock())
    assert (one.severity, one.code) == ("warning", "storage_full")
    assert list(tmp_path.iterdir()) == []
