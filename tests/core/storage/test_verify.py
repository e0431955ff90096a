"""The proof of a store: every finding with its place, and nothing called sound that was not looked at."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from kbcore.errors import StorageError, UnknownBranch
from kbcore.storage import compaction, head, journal, layout, lock, verify
from kbcore.storage.fs import RealFs
from tests.core.storage.making import CLOCK, FS, append, contents, fill, holed_store, new_store, next_line, segment
from tests.support.disk.faultfs import FailingFs, LoggingFs


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Segments 1-3, 4-5, 6-; snapshots at 3 and 5."""
    directory = new_store(tmp_path, 3)
    compaction.compact(FS, directory, CLOCK, lambda of: [b"1", b"2"])
    fill(directory, 2)
    compaction.compact(FS, directory, CLOCK, lambda of: [b"3"])
    fill(directory, 2)
    return directory


def found(directory: Path) -> list[tuple[str, str, str, int]]:
    """Findings as (severity, code, file name, line); the proof wrote nothing."""
    before = contents(directory)
    proof = verify.prove(FS, directory)
    assert contents(directory) == before
    assert proof.is_sound == all(finding.severity == "note" for finding in proof.findings)
    return [(item.severity, item.code, Path(item.file).name, item.line) for item in proof.findings]


def test_a_sound_store_is_proven_whole(store: Path) -> None:
    proof = verify.prove(FS, store)
    assert (proof.findings, proof.good_seq, proof.records_checked, proof.is_sound) == ((), 7, 7, True)
    assert proof.head == head.read(FS, store)


def test_a_store_with_missing_records_is_proven_before_and_after_them(tmp_path: Path) -> None:
    found = verify.prove(FS, holed_store(tmp_path))
    assert (found.is_sound, found.good_seq, found.records_checked) == (True, 7, 5)


def test_damage_is_found_in_every_file_at_once(store: Path) -> None:
    for name in ("journal-0000000001.jsonl", "journal-0000000006.jsonl"):
        path = store / name
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([lines[0], lines[1].replace(b'"pad"', b'"bad"'), *lines[2:]]))
    os.truncate(store / "journal-0000000004.jsonl", 100)
    path = store / "snapshot-0000000003.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"fact":2', b'"fact":3'))
    assert found(store) == [
        ("damage", "journal_corrupt", "journal-0000000001.jsonl", 2),
        ("damage", "journal_truncated", "journal-0000000004.jsonl", -1),
        ("damage", "journal_corrupt", "journal-0000000006.jsonl", 2),
        ("damage", "snapshot_corrupt", "snapshot-0000000003.jsonl", 3),
    ]
    assert verify.prove(FS, store).good_seq == 1


def test_missing_files_are_damage(store: Path) -> None:
    (store / "journal-0000000004.jsonl").unlink()
    (store / "journal-0000000006.jsonl").unlink()
    (store / "snapshot-0000000005.jsonl").unlink()
    assert found(store) == [
        ("damage", "journal_truncated", "journal-0000000004.jsonl", -1),
        ("damage", "journal_truncated", "journal-0000000006.jsonl", -1),
        ("damage", "snapshot_corrupt", "snapshot-0000000005.jsonl", -1),
    ]
    assert verify.prove(FS, store).good_seq == 3


def test_without_a_head_the_rest_is_not_called_sound(store: Path) -> None:
    (store / "head.json").write_bytes(b"x")
    assert found(store) == [
        ("damage", "head_damaged", "head.json", 1),
        ("not_checked", "no_head", "main", -1),
    ]


def test_bytes_beyond_the_head_are_a_note(store: Path) -> None:
    path = segment(store)
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(next_line(store) + b"torn")
    (finding,) = verify.prove(FS, store).findings
    assert (finding.severity, finding.code, finding.file, finding.offset) == ("note", "beyond_head", str(path), size)
    assert finding.message == (
        f"{path.stat().st_size - size} bytes beyond the head were never acknowledged; the next write "
        "makes 1 complete record part of history and moves 4 bytes of an unfinished write to quarantine"
    )


def test_bytes_beyond_the_head_are_an_append_in_progress_while_a_writer_holds_the_lock(store: Path) -> None:
    path = segment(store)
    size = path.stat().st_size
    with lock.held(FS, CLOCK, store / layout.LOCK, command="kb apply"):
        for more in (b"to", next_line(store)):
            with path.open("r+b") as file:
                file.seek(size)
                file.write(more)
            (store / "head.json.tmp").write_bytes(b"{")
            append, unfinished = verify.prove(FS, store).findings
            assert (append.severity, append.code, append.offset) == ("note", "append_in_progress", size)
            assert f"{len(more)} bytes are beyond the head: kb apply (process {os.getpid()} on " in append.message
            assert append.message.endswith(") is appending a record")
            assert "kb apply" in unfinished.message
    assert [one.code for one in verify.prove(FS, store).findings] == ["beyond_head", "unreferenced"]


def test_a_record_that_is_acknowledged_while_the_store_is_proven_is_no_finding(store: Path) -> None:
    class Later(RealFs):
        """Appends a record when the proof has read the head."""

        is_done = False

        def lstat(self, path: Path) -> os.stat_result:
            if path == segment(store) and not self.is_done:
                self.is_done = True
                fill(store, 1)
            return super().lstat(path)

    fs = Later()
    before = head.read(FS, store).seq
    proof = verify.prove(fs, store)
    assert fs.is_done
    assert (proof.findings, head.read(FS, store).seq) == ((), before + 1)


def test_bytes_beyond_an_empty_segment_are_a_note(store: Path) -> None:
    compaction.compact(FS, store, CLOCK, lambda of: [b"4"])
    with segment(store).open("ab") as file:
        file.write(next_line(store))
    assert found(store) == [("note", "beyond_head", "journal-0000000008.jsonl", -1)]


def test_a_head_older_than_the_journal_is_damage(store: Path) -> None:
    (store / "journal-0000000008.jsonl").write_bytes(next_line(store))
    assert ("damage", "head_damaged", "head.json", -1) in found(store)


def test_what_belongs_to_nothing_is_listed(store: Path) -> None:
    for name in ("head.json.tmp", "journal-0000000099.jsonl", "snapshot-0000000001.jsonl", "notes.txt"):
        (store / name).touch()
    with segment(store).open("ab") as file:
        file.write(b"torn")
    with journal.writing(FS, store, CLOCK) as writer:
        kept = writer.recovery.kept
    assert kept is not None
    assert found(store) == [
        ("note", "unreferenced", "head.json.tmp", -1),
        ("note", "unreferenced", "journal-0000000099.jsonl", -1),
        ("note", "unreferenced", "notes.txt", -1),
        ("note", "unreferenced", "snapshot-0000000001.jsonl", -1),
        ("note", "quarantined", kept.copy, -1),
    ]


def test_a_snapshot_of_another_history_is_damage(tmp_path: Path, store: Path) -> None:
    of = head.read(FS, store)
    other = new_store(tmp_path, 3, name="other")
    compaction.compact(FS, other, CLOCK, lambda at: [b"1", b"2"])
    ref = head.read(FS, other).snapshots[0]
    assert ref.hash != of.snapshots[0].hash
    (other / ref.file).replace(store / ref.file)
    assert found(store) == [("damage", "snapshot_corrupt", ref.file, 1)]


def test_a_head_that_names_a_snapshot_of_another_history_is_damage(tmp_path: Path, store: Path) -> None:
    other = new_store(tmp_path, 3, name="other")
    compaction.compact(FS, other, CLOCK, lambda at: [b"1", b"2"])
    ref = head.read(FS, other).snapshots[0]
    (other / ref.file).replace(store / ref.file)
    of = head.read(FS, store)
    (store / "head.json").write_bytes(head.encode(msgspec.structs.replace(of, snapshots=(ref, of.snapshots[1]))))
    (finding,) = verify.prove(FS, store).findings
    assert finding.message == f"{store / ref.file} is not of this history"
    os.truncate(store / "journal-0000000001.jsonl", 0)
    assert [item.code for item in verify.prove(FS, store).findings] == ["journal_truncated"]


def test_a_record_of_a_newer_kb_beyond_the_head_is_not_called_sound(store: Path) -> None:
    with segment(store).open("ab") as file:
        file.write(b'{"v":2}\n')
    assert found(store) == [("not_checked", "format_too_new", "journal-0000000006.jsonl", 3)]


def test_only_torn_bytes_beyond_the_head_are_a_note(store: Path) -> None:
    with segment(store).open("ab") as file:
        file.write(b"torn")
    (finding,) = verify.prove(FS, store).findings
    assert finding.message == (
        "4 bytes beyond the head were never acknowledged; the next write moves 4 bytes of an unfinished write "
        "to quarantine"
    )


def test_no_call_that_fails_leaves_a_store_called_sound_unseen(store: Path) -> None:
    append(store, 8)
    probe = LoggingFs()
    verify.prove(probe, store)
    for at, (kind, name) in enumerate(probe.calls):
        proof = verify.prove(FailingFs(at), store)
        assert proof.is_sound == (kind == "close"), (kind, name)
        assert kind == "close" or {finding.severity for finding in proof.findings} == {"not_checked"}


def test_no_store_is_no_finding(tmp_path: Path) -> None:
    with pytest.raises(UnknownBranch):
        verify.prove(FS, tmp_path / "nothing")


def test_the_size_of_a_store_is_known_without_reading_it(store: Path) -> None:
    stats = verify.stats(FS, store, head.read(FS, store))
    sizes = {path.name: path.stat().st_size for path in store.iterdir()}
    assert stats == verify.Stats(
        records=7,
        records_since_snapshot=2,
        bytes_since_snapshot=sizes["journal-0000000006.jsonl"],
        journal_bytes=sum(size for name, size in sizes.items() if name.startswith("journal")),
        snapshot_bytes=sum(size for name, size in sizes.items() if name.startswith("snapshot")),
        segments=3,
        snapshots=2,
        quarantined=0,
    )


def test_a_quarantine_that_cannot_be_listed_is_reported(store: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot list .*quarantine: Input/output error"):
        verify.stats(FailingFs(0), store, head.read(FS, store))


def test_a_store_without_snapshots_is_replayed_from_its_beginning(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 5)
    stats = verify.stats(FS, directory, head.read(FS, directory))
    assert (stats.records_since_snapshot, stats.bytes_since_snapshot) == (5, segment(directory).stat().st_size)
