"""Syncs and their order, wherever files are made or moved: the calls that a kill cannot miss."""

from __future__ import annotations

from pathlib import Path

from kbcore.storage import branchdir, compaction, journal, rebuild
from tests.core.storage.making import CLOCK, fill, new_store, next_line, segment
from tests.support.disk.faultfs import LoggingFs

CHANGING = {"write", "pwrite", "ftruncate", "fsync", "fsync_dir", "replace", "unlink", "link", "mkdir", "rmdir"}


def changes(fs: LoggingFs) -> list[str]:
    """Return the calls that change the disk, as "call name", without the lock's."""
    return [
        f"{kind} {'.tmp-' if name.startswith('.tmp-') else name}"
        for kind, name in fs.calls
        if kind in CHANGING and (kind, name) != ("pwrite", "lock")
    ]


def test_compaction_syncs_the_snapshot_the_segment_and_the_head_in_turn(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    fs = LoggingFs()
    compaction.compact(fs, directory, CLOCK, lambda of: [b"1"])
    assert changes(fs) == [
        "write snapshot-0000000002.jsonl.tmp",
        "fsync snapshot-0000000002.jsonl.tmp",
        "replace snapshot-0000000002.jsonl",
        "fsync_dir main",
        "write head.json.tmp",
        "fsync head.json.tmp",
        "replace head.json",
        "fsync_dir main",
    ]


def test_pruning_unlinks_only_after_the_head_no_longer_names_the_files(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    compaction.compact(LoggingFs(), directory, CLOCK, lambda of: [b"1"])
    fs = LoggingFs()
    compaction.compact(fs, directory, CLOCK, lambda of: [b"1"], prune_before=3)
    assert changes(fs) == [
        "write head.json.tmp",
        "fsync head.json.tmp",
        "replace head.json",
        "fsync_dir main",
        "unlink journal-0000000001.jsonl",
    ]


def test_a_copy_is_synced_whole_before_it_gets_its_name(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    compaction.compact(LoggingFs(), directory, CLOCK, lambda of: [b"1"])
    fill(directory, 1)
    fs = LoggingFs()
    branchdir.copy(fs, directory, tmp_path / "topic", branch="topic")
    assert changes(fs) == [
        "mkdir .tmp-",
        "link journal-0000000001.jsonl",
        "link snapshot-0000000002.jsonl",
        "write journal-0000000003.jsonl",
        "fsync journal-0000000003.jsonl",
        "write lock",
        "write head.json",
        "fsync head.json",
        "fsync_dir .tmp-",
        "replace topic",
        f"fsync_dir {tmp_path.name}",
    ]


def test_a_new_store_is_synced_whole_before_it_gets_its_name(tmp_path: Path) -> None:
    fs = LoggingFs()
    branchdir.create(fs, tmp_path / "main", CLOCK, branch="main")
    assert changes(fs) == [
        "mkdir .tmp-",
        "write lock",
        "write head.json",
        "fsync head.json",
        "fsync_dir .tmp-",
        "replace main",
        f"fsync_dir {tmp_path.name}",
    ]


def test_torn_bytes_are_safe_in_quarantine_before_they_are_cut(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    name = segment(directory).name
    with segment(directory).open("ab") as file:
        file.write(next_line(directory) + b"torn")
    fs = LoggingFs()
    with journal.writing(fs, directory, CLOCK) as writer:
        kept = writer.recovery.kept
    assert kept is not None
    assert changes(fs) == [
        "mkdir quarantine",
        "fsync_dir main",
        "write journal-0000000001.cut.tmp",
        "fsync journal-0000000001.cut.tmp",
        f"write {kept.copy}.json.tmp",
        f"fsync {kept.copy}.json.tmp",
        f"replace {kept.copy}.json",
        f"replace {kept.copy}",
        "fsync_dir quarantine",
        f"ftruncate {name}",
        f"pwrite {name}",
        f"fsync {name}",
        "write head.json.tmp",
        "fsync head.json.tmp",
        "replace head.json",
        "fsync_dir main",
    ]


def test_a_cut_alone_is_not_synced(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    with segment(directory).open("ab") as file:
        file.write(b"torn")
    fs = LoggingFs()
    with journal.writing(fs, directory, CLOCK):
        pass
    assert changes(fs)[-2:] == ["fsync_dir quarantine", "ftruncate journal-0000000001.jsonl"]


def test_a_repair_copies_first_and_syncs_what_the_new_head_vouches_for(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    (directory / "head.json").unlink()
    fs = LoggingFs()
    done = rebuild.rebuild_head(fs, directory, CLOCK, branch="main")
    copy = Path(done.copy).name
    assert changes(fs) == [
        "mkdir quarantine",
        "fsync_dir main",
        f"mkdir {copy}",
        "write journal-0000000001.jsonl",
        "fsync journal-0000000001.jsonl",
        f"fsync_dir {copy}",
        "fsync_dir quarantine",
        "pwrite journal-0000000001.jsonl",
        "fsync journal-0000000001.jsonl",
        "write head.json.tmp",
        "fsync head.json.tmp",
        "replace head.json",
        "fsync_dir main",
    ]
