"""Branches come to be whole: created and copied."""

from __future__ import annotations

import errno
import os
import shutil
import stat
from pathlib import Path

import pytest

from kbcore.errors import (
    CommitUncertain,
    JournalCorrupt,
    JournalTruncated,
    KBError,
    SnapshotCorrupt,
    StorageError,
    UnknownBranch,
)
from kbcore.storage import branchdir, compaction, head, lock, snapshot, verify
from tests.core.storage.making import (
    CLOCK,
    FS,
    NO_SYNC,
    append,
    compacted_store,
    contents,
    holed_store,
    names,
    new_store,
    numbers,
    segment,
)
from tests.support.disk.faultfs import FailingFs, LoggingFs


def compacted(tmp_path: Path, name: str = "main") -> Path:
    """Two sealed segments with snapshots, and two records in the active one."""
    return compacted_store(tmp_path, 3, 3, 2, name=name)


def copy(source: Path, target: Path, fs=NO_SYNC) -> head.Head:
    return branchdir.copy(fs, source, target, branch=f"feature/{target.name}")


def test_a_new_store_is_empty_and_whole(tmp_path: Path) -> None:
    of = branchdir.create(FS, tmp_path / "main", CLOCK, branch="main")
    assert head.read(FS, tmp_path / "main") == of
    assert (of.seq, of.hash, of.branch, of.origin) == (0, of.lineage, "main", None)
    assert verify.prove(FS, tmp_path / "main").findings == ()
    assert names(tmp_path) == ["main"]


def test_two_new_stores_have_nothing_in_common(tmp_path: Path) -> None:
    one = branchdir.create(FS, tmp_path / "one", CLOCK, branch="x")
    two = branchdir.create(FS, tmp_path / "two", CLOCK, branch="x")
    assert one.lineage != two.lineage
    assert one.store_id != two.store_id


def test_an_existing_store_is_never_replaced(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    before = contents(directory)
    with pytest.raises(StorageError, match=f"{directory} exists already"):
        branchdir.create(FS, directory, CLOCK, branch="main")
    with pytest.raises(StorageError, match=f"{directory} exists already"):
        copy(new_store(tmp_path, name="other"), directory)
    assert contents(directory) == before
    assert names(tmp_path) == ["main", "other"]


def test_a_place_without_a_parent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="there is no directory"):
        branchdir.create(FS, tmp_path / "no" / "main", CLOCK, branch="main")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(StorageError, match="symbolic link"):
        branchdir.create(FS, tmp_path / "link" / "main", CLOCK, branch="main")


def test_a_copy_has_the_history_of_its_source_and_an_id_of_its_own(tmp_path: Path) -> None:
    source = compacted(tmp_path)
    of = head.read(FS, source)
    new = copy(source, tmp_path / "topic")
    assert new == head.read(FS, tmp_path / "topic")
    assert (new.seq, new.hash, new.lineage, new.head) == (of.seq, of.hash, of.lineage, of.head)
    assert (new.branch, new.origin) == ("feature/topic", head.CopiedFrom("main", 8, of.hash))
    assert new.store_id != of.store_id
    assert numbers(tmp_path / "topic") == numbers(source)
    assert [list(snapshot.read(FS, tmp_path / "topic", new, ref)) for ref in new.snapshots] == [
        [b'{"seq":3}'],
        [b'{"seq":6}'],
    ]
    assert verify.prove(FS, tmp_path / "topic").findings == ()


def test_copies_go_their_own_ways_from_a_common_prefix(tmp_path: Path) -> None:
    source = compacted(tmp_path)
    copy(source, tmp_path / "topic")
    append(source, 100)
    append(tmp_path / "topic", 200)
    compaction.compact(NO_SYNC, tmp_path / "topic", CLOCK, lambda of: [b"3"], prune_before=9)
    compaction.compact(NO_SYNC, source, CLOCK, lambda of: [b"4"])
    assert numbers(source) == [*range(1, 9), 100]
    assert numbers(tmp_path / "topic") == [7, 8, 200]
    assert verify.prove(FS, source).findings == verify.prove(FS, tmp_path / "topic").findings == ()


def test_sealed_files_are_shared_and_the_active_segment_is_not(tmp_path: Path) -> None:
    source = compacted(tmp_path)
    copy(source, tmp_path / "topic")
    of = head.read(FS, source)
    for name in of.files:
        is_shared = (source / name).stat().st_ino == (tmp_path / "topic" / name).stat().st_ino
        assert is_shared == (name != of.head.file)


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP])
def test_without_hard_links_everything_is_copied(tmp_path: Path, code: int) -> None:
    class Linkless(LoggingFs):
        def _run(self, kind, method, args):
            if kind == "link":
                raise OSError(code, os.strerror(code))
            return super()._run(kind, method, args)

    source = compacted(tmp_path)
    copy(source, tmp_path / "topic", Linkless())
    for name in head.read(FS, source).files:
        assert (source / name).read_bytes() == (tmp_path / "topic" / name).read_bytes()
        assert (tmp_path / "topic" / name).stat().st_nlink == 1
    assert verify.prove(FS, tmp_path / "topic").findings == ()


def test_only_acknowledged_bytes_are_copied(tmp_path: Path) -> None:
    source = compacted(tmp_path)
    with segment(source).open("ab") as file:
        file.write(b"torn append of a writer at work")
    (source / "quarantine").mkdir()
    copy(source, tmp_path / "topic")
    assert names(tmp_path / "topic") == sorted({*head.read(FS, source).files, "head.json", "lock"})
    assert verify.prove(FS, tmp_path / "topic").findings == ()


def test_a_source_that_is_being_written_gives_one_of_its_heads(tmp_path: Path) -> None:
    source = compacted(tmp_path)

    class Busy(LoggingFs):
        def _run(self, kind, method, args):
            if kind == "link":
                append(source, 99)
            return super()._run(kind, method, args)

    assert copy(source, tmp_path / "topic", Busy()).seq == 8
    assert numbers(tmp_path / "topic") == list(range(1, 9))


@pytest.mark.parametrize("moment", ["lstat", "link"])
@pytest.mark.parametrize("file", ["journal-0000000001.jsonl", "journal-0000000004.jsonl", "snapshot-0000000003.jsonl"])
def test_a_source_that_is_pruned_meanwhile_is_read_again(tmp_path: Path, moment: str, file: str) -> None:
    source = compacted(tmp_path)
    pruned: list[head.Head] = []

    class Pruning(LoggingFs):
        def _run(self, kind, method, args):
            if kind == moment and args[0].name == file and not pruned:
                pruned.append(compaction.compact(NO_SYNC, source, CLOCK, lambda of: [b"3"], prune_before=7).head)
            return super()._run(kind, method, args)

    new = copy(source, tmp_path / "topic", Pruning())
    assert (new.first_seq, numbers(tmp_path / "topic")) == (7, [7, 8])
    assert verify.prove(FS, tmp_path / "topic").findings == ()
    assert names(tmp_path) == ["main", "topic"]


def test_a_source_whose_last_segment_is_sealed_and_pruned_meanwhile_is_read_again(tmp_path: Path) -> None:
    source = compacted(tmp_path)
    active, pruned = source / head.read(FS, source).head.file, list[head.Head]()

    class Pruning(LoggingFs):
        def _run(self, kind, method, args):
            if kind == "open" and args[0] == active and not pruned:
                pruned.append(compaction.compact(NO_SYNC, source, CLOCK, lambda of: [b"8"], prune_before=9).head)
            return super()._run(kind, method, args)

    assert copy(source, tmp_path / "topic", Pruning()).first_seq == 9
    assert not active.exists()
    assert verify.prove(FS, tmp_path / "topic").findings == ()


def spoil(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"n":7', b'"n":6'))


@pytest.mark.parametrize(
    ("name", "damage", "kind"),
    [
        ("journal-0000000007.jsonl", spoil, JournalCorrupt),
        ("journal-0000000007.jsonl", lambda path: os.truncate(path, 9), JournalTruncated),
        ("journal-0000000007.jsonl", Path.unlink, JournalTruncated),
        ("journal-0000000001.jsonl", lambda path: os.truncate(path, 9), JournalTruncated),
        ("journal-0000000001.jsonl", Path.unlink, JournalTruncated),
        ("journal-0000000001.jsonl", lambda path: os.truncate(path, 99999), JournalCorrupt),
        ("snapshot-0000000003.jsonl", lambda path: os.truncate(path, 9), SnapshotCorrupt),
        ("snapshot-0000000003.jsonl", Path.unlink, SnapshotCorrupt),
    ],
)
def test_a_damaged_source_is_not_copied(tmp_path: Path, name: str, damage, kind) -> None:
    source = compacted(tmp_path)
    damage(source / name)
    with pytest.raises(kind) as caught:
        copy(source, tmp_path / "topic")
    assert ("--rebuild-snapshots --branch main`" in caught.value.hint) == (kind is SnapshotCorrupt)
    assert names(tmp_path) == ["main"]


def test_a_missing_source_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(UnknownBranch):
        copy(tmp_path / "nothing", tmp_path / "topic")


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("when", ["before", "half", "after"])
def test_whichever_call_fails_there_is_a_whole_copy_or_none(tmp_path: Path, code: int, when: str) -> None:
    source = compacted(tmp_path)
    probe = LoggingFs()
    copy(source, tmp_path / "probe", probe)
    for at in range(len(probe.calls)):
        target = tmp_path / f"at{at}"
        fs = FailingFs(at, code, when=when, inner=NO_SYNC)
        try:
            copy(source, target, fs)
            assert target.exists()
        except CommitUncertain:
            assert target.exists()
        except KBError as error:
            assert error.applied == "no"  # noqa: PT017 - a failed close is no failure
            assert not target.exists()
        fs.close_all()
        if target.exists():
            assert verify.prove(FS, target).findings == ()
            assert numbers(target) == list(range(1, 9))
        branchdir.clear_unfinished(FS, tmp_path)
    assert not list(tmp_path.glob(".tmp-*"))
    assert numbers(source) == list(range(1, 9))


def test_an_unsynced_parent_is_reported(tmp_path: Path) -> None:
    class Parent(LoggingFs):
        def _run(self, kind, method, args):
            if kind == "fsync_dir" and args[0] == tmp_path:
                raise OSError(errno.EIO, "x")
            return super()._run(kind, method, args)

    with pytest.raises(
        CommitUncertain, match=r"in place, but may not survive a power failure: cannot sync .*Input/out"
    ):
        branchdir.create(Parent(), tmp_path / "main", CLOCK, branch="main")
    assert numbers(tmp_path / "main") == []


def test_a_rename_whose_answer_was_lost_is_looked_for(tmp_path: Path) -> None:
    class Lost(LoggingFs):
        def _run(self, kind, method, args):
            result = super()._run(kind, method, args)
            if kind == "replace":
                raise FileNotFoundError(errno.ENOENT, "x")
            return result

    branchdir.create(Lost(), tmp_path / "main", CLOCK, branch="main")
    assert numbers(tmp_path / "main") == []
    assert names(tmp_path) == ["main"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_rename_that_failed_is_not_taken_for_done(tmp_path: Path, is_there: bool) -> None:
    """Neither when another store has the name, nor when the new one is gone."""
    if is_there:
        new_store(tmp_path, 2)

    class Failing(LoggingFs):
        def _run(self, kind, method, args):
            if kind == "replace":
                if not is_there:
                    shutil.rmtree(args[0])
                raise OSError(errno.EIO, "x")
            return super()._run(kind, method, args)

    with pytest.raises(StorageError, match=r"cannot make .*main: Input/output error"):
        branchdir.create(Failing(), tmp_path / "main", CLOCK, branch="main")
    assert names(tmp_path) == ["main"] * is_there


def test_a_rename_that_cannot_be_looked_for_is_uncertain(tmp_path: Path) -> None:
    fs = LoggingFs()
    branchdir.create(fs, tmp_path / "probe", CLOCK, branch="main")
    at = next(at for at, (kind, _) in enumerate(fs.calls) if kind == "replace")
    with pytest.raises(CommitUncertain, match=r"cannot make .*: Input/output error"):
        branchdir.create(FailingFs(at, when="after", lasting=True), tmp_path / "main", CLOCK, branch="main")


def test_leftovers_of_a_crash_are_cleared(tmp_path: Path) -> None:
    left = tmp_path / ".tmp-0123"
    (left / "deep").mkdir(parents=True)
    (left / "head.json").touch()
    new_store(tmp_path, 1)
    with pytest.raises(StorageError, match="cannot clear "):
        branchdir.clear_unfinished(FailingFs(0), tmp_path)
    assert branchdir.clear_unfinished(FS, tmp_path) == [".tmp-0123"]
    assert branchdir.clear_unfinished(FS, tmp_path) == []
    assert names(tmp_path) == ["main"]


def test_the_files_of_a_store_are_plain_files(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    copy(directory, tmp_path / "topic")
    for path in (tmp_path / "topic").iterdir():
        assert stat.S_ISREG(path.lstat().st_mode)
    with lock.held(FS, CLOCK, tmp_path / "topic" / "lock", wait_s=0):
        assert lock.read_holder(FS, tmp_path / "topic" / "lock") is not None


def test_a_source_with_damaged_bytes_before_missing_records_is_copied(tmp_path: Path) -> None:
    source = holed_store(tmp_path)
    path = source / "journal-0000000001.jsonl"
    os.truncate(path, path.stat().st_size + 9)
    copy(source, tmp_path / "topic")
    assert numbers(tmp_path / "topic") == [1, 2, 3, 6, 7]
