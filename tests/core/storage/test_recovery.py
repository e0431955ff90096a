"""The recovery table, row by row: what is found, what a writer does, and what readers see meanwhile."""

from __future__ import annotations

import json
import os
from pathlib import Path

import msgspec
import pytest

from kbcore.errors import Damaged, FormatTooNew, JournalCorrupt, JournalTruncated, StorageError
from kbcore.storage import compaction, frame, head, journal, layout, recovery
from kbcore.storage.frame import Flaw
from kbcore.storage.head import Head
from kbcore.storage.places import BrokenWalk, Position
from kbcore.storage.recovery import SegmentSurvey, Torn, Whole
from tests.core.storage.making import (
    CLOCK,
    FS,
    NO_SYNC,
    append,
    contents,
    fill,
    holed_store,
    new_store,
    next_line,
    numbers,
    segment,
)
from tests.support.disk.faultfs import FailingFs, LoggingFs


def add_tail(directory: Path, tail: bytes) -> None:
    with segment(directory).open("ab") as file:
        file.write(tail)


def recovered(directory: Path, fs=NO_SYNC) -> recovery.RecoveryReport:
    with journal.writing(fs, directory, CLOCK) as writer:
        assert writer.head == head.read(FS, directory)
        return writer.recovery


def test_a_clean_store_needs_nothing(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    before = contents(directory)
    report = recovered(directory)
    assert report == recovery.RecoveryReport()
    assert report.sentences() == []
    assert contents(directory) == before


def test_a_whole_record_beyond_the_head_is_rolled_forward(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    add_tail(directory, next_line(directory, 4))
    before = segment(directory).read_bytes()
    report = recovered(directory)
    assert (report.rolled_forward, report.is_old_head, report.kept) == ((4,), False, None)
    assert report.sentences() == [
        "An earlier writer ended before it could answer: record 4 was complete, and now counts."
    ]
    assert segment(directory).read_bytes() == before
    assert numbers(directory) == [1, 2, 3, 4]
    assert head.read(FS, directory).head.at == json.loads(before.splitlines()[-1])["rec"]["at"]


def test_rolling_forward_writes_the_same_bytes_again_before_it_syncs(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    name = segment(directory).name
    add_tail(directory, next_line(directory))
    fs = LoggingFs()
    recovered(directory, fs)
    changing = {"pwrite", "fsync", "write", "replace", "fsync_dir", "ftruncate"}
    assert [call for call in fs.calls if call[0] in changing][1:] == [
        ("pwrite", name),
        ("fsync", name),
        ("write", "head.json.tmp"),
        ("fsync", "head.json.tmp"),
        ("replace", "head.json"),
        ("fsync_dir", "main"),
    ]


def test_several_whole_records_beyond_the_head_mean_an_old_head(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    old = (directory / "head.json").read_bytes()
    fill(directory, 4)
    (directory / "head.json").write_bytes(old)
    report = recovered(directory)
    assert (report.rolled_forward, report.is_old_head) == ((4, 5, 6, 7), True)
    assert report.sentences() == [
        "An earlier writer ended before it could answer: records 4 to 7 were complete, and now count.",
        "The head file was older than the journal: a person or a tool restored an old one.",
    ]
    assert numbers(directory) == [1, 2, 3, 4, 5, 6, 7]


def test_a_payload_without_a_time_keeps_the_time_of_the_head(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 1)
    tip = head.read(FS, directory).head
    add_tail(directory, frame.encode(2, tip.hash, b'{"n":2}')[1])
    recovered(directory)
    assert head.read(FS, directory).head.at == tip.at


TAILS = {
    "one NUL": (b"\0", "zero bytes"),
    "a sector of NULs": (b"\0" * 512, "zero bytes"),
    "a page of NULs": (b"\0" * 4096, "zero bytes"),
    "garbage with newline": (b"garbage\n", "does not begin like a record"),
    "half a character": (b'{"v":1,"x":"\xc3', "not UTF-8"),
    "empty line": (b"\n", "empty line"),
    "CRLF": (b'{"v":1}\r\n', "CRLF"),
    "BOM": (b"\xef\xbb\xbf", "byte-order mark"),
    "merge marker": (b">>>>>>> topic\n", "merge marker"),
}


@pytest.mark.parametrize("shape", TAILS)
@pytest.mark.parametrize("whole", [0, 1, 2])
def test_anything_else_beyond_the_head_goes_to_quarantine(tmp_path: Path, shape: str, whole: int) -> None:
    directory = new_store(tmp_path, 3)
    old = (directory / "head.json").read_bytes()
    good = fill(directory, whole).head
    (directory / "head.json").write_bytes(old)
    tail, word = TAILS[shape]
    add_tail(directory, tail)
    assert numbers(directory) == [1, 2, 3]
    report = recovered(directory)
    assert report.rolled_forward == tuple(range(4, 4 + whole))
    kept = report.kept
    assert kept is not None
    assert word in kept.reason
    assert report.sentences()[-1] == (
        f"{len(tail)} bytes of an unfinished write were cut from {good.file} and kept as "
        f"quarantine/{kept.copy}: {kept.reason}"
    )
    assert (directory / "quarantine" / kept.copy).read_bytes() == tail
    reason = json.loads((directory / "quarantine" / f"{kept.copy}.json").read_text())
    assert (reason["file"], reason["offset"], reason["length"]) == (good.file, good.length, len(tail))
    assert segment(directory).stat().st_size == good.length
    assert append(directory, 9).seq == 4 + whole


def test_a_torn_append_of_every_length_is_put_away(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    line, path = next_line(directory, 3), segment(directory)
    size = path.stat().st_size
    for length in range(1, len(line)):
        with path.open("ab") as file:
            file.write(line[:length])
        assert numbers(directory) == [1, 2]
        report = recovered(directory)
        assert report.rolled_forward == ()
        assert report.kept is not None
        assert report.kept.length == length
        assert path.stat().st_size == size
    assert len(list((directory / "quarantine").glob("*.cut"))) == len(line) - 1
    with path.open("ab") as file:
        file.write(line)
    assert recovered(directory).rolled_forward == (3,)


def test_other_bytes_at_the_same_place_never_replace_kept_ones(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    for tail in (b"one", b"two", b"one"):
        add_tail(directory, tail)
        recovered(directory)
    kept = sorted(path.read_bytes() for path in (directory / "quarantine").glob("*.cut"))
    assert kept == [b"one", b"two"]


@pytest.mark.parametrize("tail", [b"", b"garbage", b"next"])
def test_damage_before_the_head_stops_the_writer(tmp_path: Path, tail: bytes) -> None:
    directory = new_store(tmp_path, 3)
    add_tail(directory, next_line(directory) if tail == b"next" else tail or b"\0")
    path = segment(directory)
    path.write_bytes(path.read_bytes().replace(b'"n":2', b'"n":3'))
    before = contents(directory)
    with pytest.raises(JournalCorrupt) as caught:
        recovered(directory)
    assert caught.value.data["line"] == 2
    assert contents(directory) == before


def test_crlf_conversion_is_never_mistaken_for_a_torn_append(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    path = segment(directory)
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    before = contents(directory)
    with pytest.raises(JournalCorrupt) as caught:
        recovered(directory)
    assert "CRLF" in caught.value.hint
    assert contents(directory) == before


def test_a_short_segment_stops_the_writer(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    os.truncate(segment(directory), 10)
    with pytest.raises(JournalTruncated):
        recovered(directory)


def test_a_missing_segment_stops_the_writer(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    path = segment(directory)
    path.unlink()
    with pytest.raises(JournalTruncated) as caught:
        recovered(directory)
    assert caught.value.message == f"{path} is missing, and the head names it"
    assert not path.exists()


def test_a_head_of_another_time_stops_the_writer(tmp_path: Path) -> None:
    one, two = new_store(tmp_path, 3, name="one"), new_store(tmp_path, 3, name="two")
    segment(one).write_bytes(segment(two).read_bytes() + b"x")
    with pytest.raises(JournalCorrupt, match="the head file does not name this end"):
        recovered(one)


def test_a_record_of_a_newer_kb_beyond_the_head_stops_the_writer(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    add_tail(directory, b'{"v":2,"new":"shape"}\n')
    before = contents(directory)
    with pytest.raises(FormatTooNew, match="the record has format 2, and this KB reads up to 1"):
        recovered(directory)
    assert contents(directory) == before


def test_recovery_reads_the_active_segment_only(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    compaction.compact(FS, directory, CLOCK, lambda of: [])
    fill(directory, 2)
    sealed = directory / "journal-0000000001.jsonl"
    sealed.write_bytes(b"x" * sealed.stat().st_size)
    add_tail(directory, next_line(directory))
    assert recovered(directory).rolled_forward == (6,)


def test_planning_is_a_function_of_what_was_found(tmp_path: Path) -> None:
    of = head.read(FS, new_store(tmp_path, 2))
    end = Position(of.seq, of.hash, of.head.file, of.head.length)
    flaw = Flaw("the line is cut off")
    whole = Whole(Position(3, "c" * 64, of.head.file, of.head.length + 100), "2030-01-01T00:00:00.000000Z")

    def plan(**found) -> recovery.RecoveryPlan:
        return recovery.plan(tmp_path, SegmentSurvey(of, **found))

    assert isinstance(plan(size=None, reached=end).refusal, JournalTruncated)
    assert isinstance(plan(size=of.head.length - 1, reached=end).refusal, JournalTruncated)
    assert isinstance(
        plan(size=of.head.length + 1, reached=end, damage=BrokenWalk(end, flaw, 1)).refusal, JournalCorrupt
    )
    moved = Position(2, "d" * 64, of.head.file, of.head.length)
    assert isinstance(plan(size=of.head.length + 1, reached=moved).refusal, JournalCorrupt)
    nothing = plan(size=of.head.length, reached=end)
    assert (nothing.refusal, nothing.head, nothing.torn, nothing.whole) == (None, of, None, ())
    torn = Torn(of.head.length + 100, 7, flaw)
    both = plan(size=of.head.length + 107, reached=end, whole=(whole,), torn=torn)
    assert (both.torn, both.whole, both.head.seq) == (torn, (whole,), 3)
    assert both.head.head.length == of.head.length + 100
    assert both.head.head.at == "2030-01-01T00:00:00.000000Z"


@pytest.mark.parametrize(
    ("harm", "kind"),
    [
        (Path.unlink, JournalTruncated),
        (lambda path: os.truncate(path, path.stat().st_size - 1), JournalTruncated),
        (lambda path: os.truncate(path, path.stat().st_size + 1), JournalCorrupt),
    ],
    ids=["gone", "cut", "grown"],
)
def test_a_sealed_file_of_another_size_stops_the_writer(tmp_path: Path, harm, kind: type[Damaged]) -> None:
    directory = new_store(tmp_path, 2)
    compaction.compact(NO_SYNC, directory, CLOCK, lambda of: [b"1"], wait_s=0)
    fill(directory, 1)
    harm(directory / "journal-0000000001.jsonl")
    with pytest.raises(kind, match="journal-0000000001"):
        append(directory, 4)
    assert head.read(FS, directory).seq == 3


def test_damaged_bytes_before_missing_records_stop_no_writer(tmp_path: Path) -> None:
    directory = holed_store(tmp_path)
    path = directory / "journal-0000000001.jsonl"
    os.truncate(path, path.stat().st_size + 9)
    assert append(directory, 8).seq == 8


# What a redaction has replaced


def redacted_head(directory: Path) -> Head:
    """Return a head that says that a redaction wrote all records again, while the files are those of before it."""
    of = head.read(FS, directory)
    return msgspec.structs.replace(of, redacted=head.Redacted(1, of.seq, "the id before it"), segments=())


def test_only_files_of_an_earlier_generation_are_superseded(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    (directory / layout.segment_name(1, 1)).write_bytes(b"of the redaction itself")
    (directory / layout.segment_name(9)).write_bytes(b"begins after it")
    of = redacted_head(directory)
    assert recovery.superseded(FS, directory, of) == [directory / layout.segment_name(1)]


def test_the_folder_of_a_superseded_file_is_synced_after_its_removal(tmp_path: Path) -> None:
    directory, fs = new_store(tmp_path, 3), LoggingFs()
    old = layout.segment_name(1)
    recovery.remove_superseded(fs, directory, redacted_head(directory))
    assert fs.calls.index(("fsync_dir", directory.name)) > fs.calls.index(("unlink", old))
    assert not (directory / old).exists()


@pytest.mark.parametrize("kind", ["listdir", "unlink", "fsync_dir"])
def test_a_failure_to_remove_what_is_superseded_names_the_place(tmp_path: Path, kind: str) -> None:
    probe, other = LoggingFs(), new_store(tmp_path / "probe", 3)
    recovery.remove_superseded(probe, other, redacted_head(other))
    directory = new_store(tmp_path, 3)
    at = [name for name, _ in probe.calls].index(kind)
    with pytest.raises(StorageError, match=str(directory)):
        recovery.remove_superseded(FailingFs(at), directory, redacted_head(directory))
