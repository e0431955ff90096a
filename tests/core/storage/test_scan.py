"""Reading: exactly the acknowledged records, each proven, from any position."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kbcore.errors import FormatTooNew, HistoryPruned, JournalCorrupt, JournalTruncated, StorageError
from kbcore.storage import compaction, files, frame, head, journal
from kbcore.storage.places import Position, RecordPosition
from tests.core.storage.making import (
    CLOCK,
    FS,
    LINEAGE,
    append,
    fill,
    holed_store,
    new_store,
    next_line,
    numbers,
    payload,
    segment,
)
from tests.support.disk.faultfs import LoggingFs


def three_segments(tmp_path: Path) -> Path:
    """Records 1-4 and 5-7 sealed, 8-9 active."""
    directory = new_store(tmp_path, 4)
    compaction.compact(FS, directory, CLOCK, lambda of: [b"1"])
    fill(directory, 3)
    compaction.compact(FS, directory, CLOCK, lambda of: [b"1"])
    fill(directory, 2)
    return directory


def before(entry: RecordPosition) -> Position:
    return Position(entry.frame.seq - 1, entry.frame.prev, entry.file, entry.offset)


def test_every_record_comes_once_and_in_order(tmp_path: Path) -> None:
    assert numbers(three_segments(tmp_path)) == list(range(1, 10))


def test_an_empty_store_has_no_records(tmp_path: Path) -> None:
    assert numbers(new_store(tmp_path)) == []


def test_reading_goes_on_from_any_position(tmp_path: Path) -> None:
    directory = three_segments(tmp_path)
    of = head.read(FS, directory)
    entries = list(journal.scan(FS, directory, of))
    positions = [of.start, *(entry.end for entry in entries), *(before(entry) for entry in entries)]
    for place in positions:
        rest = [entry.frame.seq for entry in journal.scan(FS, directory, of, after=place)]
        assert rest == list(range(place.seq + 1, 10))
    assert entries[-1].end == of.end


def test_one_record_is_read_by_its_place(tmp_path: Path) -> None:
    directory = three_segments(tmp_path)
    of = head.read(FS, directory)
    entries = list(journal.scan(FS, directory, of))
    assert [journal.read_one(FS, directory, of, before(entry)) for entry in entries] == entries
    with pytest.raises(ValueError, match="record 10 is beyond the head"):
        journal.read_one(FS, directory, of, of.end)


def test_lines_longer_than_a_chunk_are_put_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = new_store(tmp_path, 5, pad=300)
    for chunk in (1, 7, 64, 1000):
        monkeypatch.setattr(files, "CHUNK_BYTES", chunk)
        assert numbers(directory) == [1, 2, 3, 4, 5]


def test_a_line_longer_than_any_record_is_not_gathered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = new_store(tmp_path, 3, pad=5000)
    monkeypatch.setattr(files, "CHUNK_BYTES", 64)
    monkeypatch.setattr(frame, "MAX_LINE_BYTES", 1000)
    with pytest.raises(JournalCorrupt) as caught:
        numbers(directory)
    assert caught.value.data["line"] == 1


def test_bytes_beyond_the_head_are_invisible_and_left_alone(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    for tail in (next_line(directory), b"garbage\n", b"\0" * 4096, b'{"v":2}\n'):
        with segment(directory).open("ab") as file:
            file.write(tail)
        before = segment(directory).read_bytes()
        assert numbers(directory) == [1, 2, 3]
        assert segment(directory).read_bytes() == before


def test_reading_never_looks_beyond_the_head(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    limit = segment(directory).stat().st_size
    with segment(directory).open("ab") as file:
        file.write(b"x" * 10000)

    class Narrow(LoggingFs):
        def _run(self, kind, method, args):
            assert kind != "pread" or args[1] + args[2] <= limit
            return super()._run(kind, method, args)

    list(journal.scan(Narrow(), directory, head.read(FS, directory)))


def test_the_good_part_of_a_damaged_journal_is_readable(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 9)
    path = segment(directory)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:6], lines[6].replace(b'"n":7', b'"n":8'), *lines[7:]]))
    of = head.read(FS, directory)
    with pytest.raises(JournalCorrupt) as caught:
        list(journal.scan(FS, directory, of))
    assert caught.value.data["good_seq"] == 6
    assert "Records up to seq 6 are good and readable with --at 6." in caught.value.hint
    good = [entry.frame.seq for entry in journal.scan(FS, directory, of, until=6)]
    assert good == [1, 2, 3, 4, 5, 6]
    with pytest.raises(JournalCorrupt):
        list(journal.scan(FS, directory, of, until=7))


def test_the_good_part_of_a_short_journal_is_readable(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 9)
    data = segment(directory).read_bytes()
    segment(directory).write_bytes(data[: data.index(b'"seq":5')])
    of = head.read(FS, directory)
    assert [entry.frame.seq for entry in journal.scan(FS, directory, of, until=4)] == [1, 2, 3, 4]
    with pytest.raises(JournalTruncated):
        list(journal.scan(FS, directory, of, until=5))


def test_nothing_is_read_beyond_the_seq_that_was_asked_for(tmp_path: Path) -> None:
    directory = three_segments(tmp_path)
    of = head.read(FS, directory)
    places_after = [entry.end for entry in journal.scan(FS, directory, of)]
    for place in places_after:
        for until in range(1, 10):
            found = [entry.frame.seq for entry in journal.scan(FS, directory, of, after=place, until=until)]
            assert found == list(range(place.seq + 1, until + 1))


def test_records_of_a_newer_format_stop_the_reading(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    of = head.read(FS, directory)
    line = next_line(directory).replace(b'"v":1', b'"v":2').replace(b'"sum":"', b'"sum":"0', 1)
    with segment(directory).open("ab") as file:
        file.write(line)
    newer = msgspec.structs.replace(of.head, seq=3, length=of.head.length + len(line))
    with pytest.raises(FormatTooNew, match=r"journal-0000000001\.jsonl.*: the record has format 2"):
        list(journal.scan(FS, directory, msgspec.structs.replace(of, head=newer)))


def test_a_reader_ahead_of_the_journal_is_refused(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    old = head.read(FS, directory)
    append(directory, 3)
    ahead = head.read(FS, directory).end
    with pytest.raises(JournalTruncated, match="the journal ends at seq 2, but record 3 had been read from it"):
        list(journal.scan(FS, directory, old, after=ahead))


def test_a_reader_of_another_history_is_refused(tmp_path: Path) -> None:
    one, two = new_store(tmp_path, 2, name="one"), new_store(tmp_path, 2, name="two")
    append(two, 99)
    append(one, 98)
    of = head.read(FS, one)
    with pytest.raises(JournalCorrupt, match="the head file does not name this end"):
        list(journal.scan(FS, one, of, after=head.read(FS, two).end))


@pytest.mark.parametrize("later", [0, 1])
def test_another_sealed_segment_of_the_same_length_is_refused(tmp_path: Path, later: int) -> None:
    one, two = new_store(tmp_path, 3, name="one"), new_store(tmp_path, 3, name="two")
    sealed = segment(one).name
    compaction.compact(FS, one, CLOCK, lambda of: [b"1"])
    fill(one, later)
    assert (one / sealed).stat().st_size == (two / sealed).stat().st_size
    (two / sealed).replace(one / sealed)
    with pytest.raises(JournalCorrupt) as caught:
        numbers(one)
    assert caught.value.data["file"] == str(one / sealed)


def test_a_sealed_segment_that_grew_is_reported(tmp_path: Path) -> None:
    directory = three_segments(tmp_path)
    with (directory / "journal-0000000005.jsonl").open("ab") as file:
        file.write(b"\n")
    with pytest.raises(JournalCorrupt, match=r"journal-0000000005\.jsonl was sealed with \d+ bytes and has \d+"):
        numbers(directory)
    of = head.read(FS, directory)
    assert [entry.frame.seq for entry in journal.scan(FS, directory, of, until=7)] == list(range(1, 8))


def test_an_end_with_another_number_is_refused(tmp_path: Path) -> None:
    of = head.read(FS, directory := three_segments(tmp_path))
    replace = msgspec.structs.replace
    sealed = of.segments[0].sealed
    assert sealed
    wrong_seal = replace(of.segments[0], sealed=replace(sealed, last_seq=3))
    for wrong in (replace(of, head=replace(of.head, seq=10)), replace(of, segments=(wrong_seal, *of.segments[1:]))):
        with pytest.raises(JournalCorrupt, match="the head file does not name this end"):
            list(journal.scan(FS, directory, wrong))


def test_a_sealed_segment_that_shrank_is_reported(tmp_path: Path) -> None:
    directory = three_segments(tmp_path)
    path = directory / "journal-0000000001.jsonl"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(JournalTruncated, match=r"journal-0000000001\.jsonl has \d+ bytes, and \d+ were acknowledged"):
        numbers(directory)


@pytest.mark.parametrize("first_seq", [1, 5, 8])
def test_a_missing_segment_is_reported(tmp_path: Path, first_seq: int) -> None:
    directory = three_segments(tmp_path)
    (directory / f"journal-{first_seq:010}.jsonl").unlink()
    with pytest.raises(JournalTruncated, match=f"journal-{first_seq:010}.jsonl is missing, and the head names it"):
        numbers(directory)


def test_a_reader_overtaken_by_pruning_starts_over(tmp_path: Path) -> None:
    directory = three_segments(tmp_path)
    seen: list[list[int]] = []

    def use(of: head.Head) -> list[int]:
        if not seen:
            compaction.compact(FS, directory, CLOCK, lambda at: [b"1"], prune_before=8)
        seen.append([segment.first_seq for segment in of.segments])
        return [entry.frame.seq for entry in journal.scan(FS, directory, of)]

    assert journal.reading(FS, directory, use) == [8, 9]
    assert seen == [[1, 5, 8], [8, 10]]


def test_a_reader_gives_up_when_what_it_wants_is_gone_for_good(tmp_path: Path) -> None:
    directory = three_segments(tmp_path)
    start = head.read(FS, directory).start
    compaction.compact(FS, directory, CLOCK, lambda at: [b"1"], prune_before=8)
    tries = []

    def use(of: head.Head) -> None:
        tries.append(of)
        list(journal.scan(FS, directory, of, after=start))

    with pytest.raises(HistoryPruned, match=r"journal-0000000001\.jsonl was pruned; history begins at record 8"):
        journal.reading(FS, directory, use)
    assert len(tries) == 1


def test_a_reader_starts_over_three_times_at_most(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 1)
    tries = []

    def use(of: head.Head) -> None:
        tries.append(of)
        fill(directory, 1)
        compaction.compact(FS, directory, CLOCK, lambda at: [b"1"])
        raise HistoryPruned("again")

    with pytest.raises(HistoryPruned, match="again"):
        journal.reading(FS, directory, use)
    assert len(tries) == 3


def test_a_reader_that_stopped_where_history_now_begins_goes_on(tmp_path: Path) -> None:
    directory = three_segments(tmp_path)
    place = next(entry.end for entry in journal.scan(FS, directory, head.read(FS, directory)) if entry.frame.seq == 7)
    compaction.compact(FS, directory, CLOCK, lambda at: [b"1"], prune_before=8)
    of = head.read(FS, directory)
    assert [entry.frame.seq for entry in journal.scan(FS, directory, of, after=place)] == [8, 9]


@pytest.mark.parametrize("other", [{"hash": "0" * 64}, {"seq": 6}])
def test_a_reader_that_stopped_elsewhere_learns_that_history_was_pruned(tmp_path: Path, other: dict) -> None:
    directory = three_segments(tmp_path)
    place = next(entry.end for entry in journal.scan(FS, directory, head.read(FS, directory)) if entry.frame.seq == 7)
    compaction.compact(FS, directory, CLOCK, lambda at: [b"1"], prune_before=8)
    with pytest.raises(HistoryPruned):
        list(journal.scan(FS, directory, head.read(FS, directory), after=msgspec.structs.replace(place, **other)))


def test_an_outdated_head_still_gives_its_own_records(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    old = head.read(FS, directory)
    append(directory, 4)
    compaction.compact(FS, directory, CLOCK, lambda at: [b"1"])
    append(directory, 5)
    assert [entry.frame.seq for entry in journal.scan(FS, directory, old)] == [1, 2, 3]


def test_a_symbolic_link_in_place_of_a_segment_is_refused(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    path = segment(directory)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match="it is a symbolic link, and KB follows none there"):
        numbers(directory)


def test_two_stores_cannot_be_spliced(tmp_path: Path) -> None:
    one = new_store(tmp_path, 2, name="one")
    prev = "b" * 64
    framed, line = frame.encode(1, prev, payload(1))
    path = segment(one)
    path.write_bytes(line + path.read_bytes().split(b"\n", 1)[1])
    with pytest.raises(JournalCorrupt) as caught:
        numbers(one)
    assert framed.prev != LINEAGE
    assert "files of two stores or two times were mixed" in caught.value.hint


@pytest.mark.parametrize("until", [1, 3, 4, 5, 6, None])
def test_what_is_asked_for_up_to_missing_records_ends_before_them(tmp_path: Path, until: int | None) -> None:
    directory = holed_store(tmp_path)
    found = journal.scan(FS, directory, head.read(FS, directory), until=until)
    assert [one.frame.seq for one in found] == [seq for seq in (1, 2, 3, 6, 7) if until is None or seq <= until]


def test_damaged_bytes_before_missing_records_are_not_read(tmp_path: Path) -> None:
    directory = holed_store(tmp_path)
    with (directory / "journal-0000000001.jsonl").open("ab") as file:
        file.write(b"damaged")
    assert numbers(directory) == [1, 2, 3, 6, 7]
