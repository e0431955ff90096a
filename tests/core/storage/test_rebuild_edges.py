"""A head that is rebuilt beside others at work, after a compaction that was cut off, or with odd parts beside it."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from kbcore.errors import JournalCorrupt, LockTimeout, StorageFull
from kbcore.storage import compaction, head, lock, quarantine, rebuild, snapshot
from tests.core.storage.making import CLOCK, FS, NO_SYNC, contents, fill, new_store, numbers, segment
from tests.support.disk.faultfs import LoggingFs


def rebuilt(directory: Path) -> rebuild.Rebuilt:
    return rebuild.rebuild_head(NO_SYNC, directory, CLOCK, branch="main", wait_s=0)


def test_a_head_is_not_rebuilt_while_somebody_writes(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    before = contents(directory)
    with lock.held(FS, CLOCK, directory / "lock"), pytest.raises(LockTimeout):
        rebuilt(directory)
    assert contents(directory) == before


def test_a_torn_end_before_an_empty_leftover_is_not_sealed(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    with segment(directory).open("ab") as file:
        file.write(b"torn")
    (directory / "journal-0000000003.jsonl").touch()
    (directory / "head.json").unlink()
    done = rebuilt(directory)
    assert [part.file for part in done.head.segments] == ["journal-0000000001.jsonl"]
    assert numbers(directory) == [1, 2]


def test_a_snapshot_that_states_another_lineage_is_left_out(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    of = msgspec.structs.replace(head.read(FS, directory), lineage="e" * 64)
    odd = snapshot.write(FS, directory, of, [b"1"])
    done = rebuilt(directory)
    assert done.head.snapshots == ()
    assert f"{odd.file} belongs to another history and was left out." in done.unproven


def test_a_store_that_lost_its_snapshot_gets_one_with_the_next_compaction(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    compaction.compact(NO_SYNC, directory, CLOCK, lambda of: [b"1"])
    (directory / "snapshot-0000000002.jsonl").unlink()
    rebuilt(directory)
    fs = LoggingFs()
    done = compaction.compact(fs, directory, CLOCK, lambda of: [b"1"])
    assert [ref.seq for ref in done.head.snapshots] == [2]
    assert_named_only_when_durable(fs, "replace", "snapshot-0000000002.jsonl")
    fill(directory, 1)
    assert numbers(directory) == [1, 2, 3]


def test_a_snapshot_that_was_found_is_sealed_in_by_the_next_compaction(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    snapshot.write(FS, directory, head.read(FS, directory), [b"1"])
    assert [ref.seq for ref in rebuilt(directory).head.snapshots] == [2]
    fs = LoggingFs()
    assert compaction.compact(fs, directory, CLOCK, lambda of: [b"1"]).sealed == "journal-0000000001.jsonl"
    assert_named_only_when_durable(fs, "open", "journal-0000000003.jsonl")


def assert_named_only_when_durable(fs: LoggingFs, kind: str, name: str) -> None:
    made = fs.calls.index((kind, name))
    assert made < fs.calls.index(("fsync_dir", "main"), made) < fs.calls.index(("replace", "head.json"))


def with_end(tmp_path: Path, end: Callable[[bytes], bytes]) -> Path:
    """Return a store without a head, the end of whose journal is what ``end`` makes of its last line."""
    directory = new_store(tmp_path, 3)
    path = segment(directory)
    *lines, last = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines) + end(last))
    (directory / "head.json").unlink()
    return directory


@pytest.mark.parametrize(
    "end",
    [
        lambda last: last[:-1] + b"\r\n",
        lambda last: b"\xef\xbb\xbf" + last,
        lambda last: b"torn\n" + last[:-1] + b"\r\n",
    ],
    ids=["converted line end", "byte-order mark", "converted after something torn"],
)
def test_a_record_that_was_only_converted_is_not_given_up(tmp_path: Path, end: Callable[[bytes], bytes]) -> None:
    directory = with_end(tmp_path, end)
    before = contents(directory)
    with pytest.raises(JournalCorrupt):
        rebuilt(directory)
    assert contents(directory) == before


@pytest.mark.parametrize(
    ("end", "left"),
    [
        (lambda last: last[:-1], 2),
        (lambda last: last + last, 3),
        (lambda last: last + b"\xef\xbb\xbfgarbage\r\n", 3),
    ],
    ids=["no newline", "twice", "garbage"],
)
def test_an_end_that_is_no_record_of_its_own_is_left_to_the_next_write(
    tmp_path: Path, end: Callable[[bytes], bytes], left: int
) -> None:
    directory = with_end(tmp_path, end)
    done = rebuilt(directory)
    assert done.head.seq == left
    assert any("The next write moves them to quarantine." in said for said in done.unproven)


def test_history_that_was_pruned_before_is_not_called_lost(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    compaction.compact(NO_SYNC, directory, CLOCK, lambda of: [b"1"], prune_before=4)
    assert not any(said.startswith("The records before 4") for said in rebuilt(directory).unproven)
    (directory / "head.json").unlink()
    assert any(said.startswith("The records before 4") for said in rebuilt(directory).unproven)


@pytest.mark.parametrize("can_be_removed", [True, False])
def test_a_copy_that_finds_no_room_is_removed_and_the_reason_is_reported(tmp_path: Path, can_be_removed: bool) -> None:
    directory = new_store(tmp_path, 2)

    class Full(LoggingFs):
        def _run(self, kind, method, args):
            if kind == "write":
                raise OSError(errno.ENOSPC, "x")
            if kind in {"unlink", "rmdir"} and not can_be_removed:
                raise OSError(errno.EIO, "x")
            return super()._run(kind, method, args)

    with pytest.raises(StorageFull):
        quarantine.keep_all(Full(), directory, CLOCK.now())
    assert bool(quarantine.listed(FS, directory)) == (not can_be_removed)
