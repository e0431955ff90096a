"""Damage to acknowledged bytes: always found, always at the right place, and never answered by writing."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pytest

from kbcore.errors import Damaged, JournalCorrupt, JournalTruncated
from kbcore.storage import compaction, head, journal
from tests.core.storage.making import CLOCK, FS, NO_SYNC, append, contents, fill, new_store, numbers, segment


def assert_damage(directory: Path, kind: type[Damaged]) -> Damaged:
    """Readers and writers both refuse, and nothing is written."""
    before = contents(directory)
    with pytest.raises(kind) as caught:
        numbers(directory)
    if segment(directory).stat().st_size != head.read(FS, directory).head.length:
        with pytest.raises(kind):
            append(directory, 99, fs=NO_SYNC)
    assert contents(directory) == before
    return caught.value


def test_every_bit_flip_is_found_at_its_line(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 5)
    path = segment(directory)
    data = path.read_bytes()
    of = head.read(FS, directory)
    line_of = list(itertools.accumulate((data[: at + 1].endswith(b"\n") for at in range(len(data))), initial=1))
    with path.open("r+b", buffering=0) as file:
        for bit in range(8 * len(data)):
            at = bit // 8
            os.pwrite(file.fileno(), bytes([data[at] ^ 1 << bit % 8]), at)
            with pytest.raises(JournalCorrupt) as caught:
                list(journal.scan(FS, directory, of))
            assert (caught.value.data["file"], caught.value.data["line"]) == (str(path), line_of[at]), bit
            os.pwrite(file.fileno(), data[at : at + 1], at)
    assert numbers(directory) == [1, 2, 3, 4, 5]


def test_every_bit_flip_in_a_sealed_segment_is_found_at_its_line(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    sealed = segment(directory)
    compaction.compact(FS, directory, CLOCK, lambda of: [])
    fill(directory, 1)
    data = sealed.read_bytes()
    of = head.read(FS, directory)
    with sealed.open("r+b", buffering=0) as file:
        for bit in range(8 * len(data)):
            at = bit // 8
            os.pwrite(file.fileno(), bytes([data[at] ^ 1 << bit % 8]), at)
            with pytest.raises(JournalCorrupt) as caught:
                list(journal.scan(FS, directory, of))
            line = data[:at].count(b"\n") + 1
            assert (caught.value.data["file"], caught.value.data["line"]) == (str(sealed), line), bit
            os.pwrite(file.fileno(), data[at : at + 1], at)


def test_every_truncation_below_the_head_is_refused(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 5)
    path = segment(directory)
    data = path.read_bytes()
    of = head.read(FS, directory)
    for length in reversed(range(len(data))):
        os.truncate(path, length)
        with pytest.raises(JournalTruncated) as caught:
            list(journal.scan(FS, directory, of))
        assert caught.value.message == f"{path} has {length} bytes, and {len(data)} were acknowledged"
        with pytest.raises(JournalTruncated), journal.writing(NO_SYNC, directory, CLOCK):
            pass
        assert path.stat().st_size == length
    assert not (directory / "quarantine").exists()


def test_the_hint_for_a_lost_last_newline_names_the_editor(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    segment(directory).write_bytes(segment(directory).read_bytes()[:-1])
    assert "The last newline is missing: an editor removed it." in assert_damage(directory, JournalTruncated).hint


@pytest.mark.parametrize("at", [0, 3, 7])
@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda lines, at: [*lines[:at], *lines[at + 1 :]], JournalTruncated),
        (lambda lines, at: [*lines[: at + 1], lines[at], *lines[at + 1 :]], JournalCorrupt),
        (lambda lines, at: [lines[at], *lines[:at], *lines[at + 1 :]] if at else lines[::-1], JournalCorrupt),
        (lambda lines, at: [*lines[:at], b'{"v":1}\n', *lines[at:]], JournalCorrupt),
    ],
    ids=["deleted", "doubled", "moved", "inserted"],
)
def test_lines_that_are_deleted_doubled_moved_or_inserted_are_found(tmp_path: Path, change, kind, at: int) -> None:
    directory = new_store(tmp_path, 9)
    path = segment(directory)
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True), at)))
    assert_damage(directory, kind)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda data: data.replace(b"\n", b"\r\n"), "CRLF"),
        (lambda data: b"\xef\xbb\xbf" + data, "byte-order mark"),
        (lambda data: b"<<<<<<< HEAD\n" + data + b"=======\n>>>>>>> topic\n", "merge marker"),
        (lambda data: b"\n" + data, "empty line"),
        (lambda data: data[:200] + b"\0" * 300 + data[500:], "zero bytes"),
        (lambda data: b"\0" + data[1:], "zero bytes"),
        (lambda data: data.replace(b'"pad":""', b'"pad":"\xc3"', 1), "not UTF-8"),
        (lambda data: b"garbage\n" + data, "does not begin like a record"),
        (lambda data: data.replace(b'"n":3', b'"n":4'), "edited by hand"),
        (lambda data: data.replace(b'"seq":', b'"seq": '), "edited by hand"),
    ],
)
def test_the_hint_names_what_usually_does_this(tmp_path: Path, change, word: str) -> None:
    directory = new_store(tmp_path, 5)
    path = segment(directory)
    path.write_bytes(change(path.read_bytes()))
    error = assert_damage(directory, JournalCorrupt)
    assert word in error.hint
    assert "kb doctor" in error.hint
    assert error.message.startswith(f"{path}, line ")


def test_the_message_names_line_byte_and_both_sides(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    path = segment(directory)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[0], lines[1], lines[2]]))
    error = assert_damage(directory, JournalCorrupt)
    assert error.message == (
        f"{path}, line 2, byte {len(lines[0])}: the record is out of order (expected seq 2, found seq 1)"
    )
    assert error.data == {
        "file": str(path),
        "line": 2,
        "offset": len(lines[0]),
        "expected": "seq 2",
        "actual": "seq 1",
        "good_seq": 1,
    }


def test_an_older_journal_under_a_newer_head_is_refused(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    old = segment(directory).read_bytes()
    append(directory, 4)
    segment(directory).write_bytes(old)
    assert_damage(directory, JournalTruncated)


def test_another_journal_of_the_same_length_is_refused(tmp_path: Path) -> None:
    one, two = new_store(tmp_path, 3, name="one"), new_store(tmp_path, 3, name="two")
    assert segment(one).stat().st_size == segment(two).stat().st_size
    segment(one).write_bytes(segment(two).read_bytes())
    error = assert_damage(one, JournalCorrupt)
    assert "the records are valid and end with 3, but the head file does not name this end" in error.message
    assert "Files from different times or stores were mixed" in error.hint


def test_a_deleted_last_line_is_found_although_the_chain_is_whole(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    lines = segment(directory).read_bytes().splitlines(keepends=True)
    segment(directory).write_bytes(b"".join(lines[:2]))
    assert_damage(directory, JournalTruncated)
