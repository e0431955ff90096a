"""A lost head file: what can be proven is proven, the rest is said, and nothing is lost on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcore.errors import FormatTooNew, HeadDamaged, JournalCorrupt, KBError, UnknownBranch
from kbcore.storage import branchdir, compaction, head, journal, rebuild, snapshot, verify
from tests.core.storage.making import (
    CLOCK,
    FS,
    NO_SYNC,
    append,
    compacted_store,
    contents,
    fill,
    names,
    new_store,
    next_line,
    numbers,
    segment,
)
from tests.support.disk.faultfs import FailingFs, LoggingFs

NOBODY_KNOWS = "cannot be known: only the head file knew."


def rebuilt(directory: Path, fs=NO_SYNC, witness: rebuild.Witness | None = None) -> rebuild.Rebuilt:
    return rebuild.rebuild_head(fs, directory, CLOCK, branch="main", wait_s=0, witness=witness)


@pytest.mark.parametrize(("seq", "number"), [(2, 2), (5, 5), (0, 0)])
def test_a_witness_that_saw_this_journal_knows_whose_it_is(tmp_path: Path, seq: int, number: int) -> None:
    directory = compacted(tmp_path)
    old = head.read(FS, directory)
    seen = {0: old.lineage, **{one.frame.seq: one.frame.sum for one in journal.scan(FS, directory, old)}}
    (directory / "head.json").unlink()
    done = rebuilt(directory, witness=rebuild.Witness(old.store_id, seq, seen[number]))
    assert done.head.store_id == old.store_id
    assert done.unproven[0].startswith(f"The store id comes from the cached view, which saw record {seq}; ")


@pytest.mark.parametrize(("seq", "number"), [(2, 3), (6, 5)])
def test_a_witness_of_another_history_is_not_believed(tmp_path: Path, seq: int, number: int) -> None:
    directory = compacted(tmp_path)
    old = head.read(FS, directory)
    seen = {one.frame.seq: one.frame.sum for one in journal.scan(FS, directory, old)}
    (directory / "head.json").unlink()
    done = rebuilt(directory, witness=rebuild.Witness(old.store_id, seq, seen[number]))
    assert done.head.store_id != old.store_id
    assert done.unproven[0].startswith("The store id is new; ")


@pytest.mark.parametrize(("seq", "is_believed"), [(5, False), (6, True)])
def test_a_witness_of_the_same_beginning_is_believed_only_about_lost_records(
    tmp_path: Path, seq: int, is_believed: bool
) -> None:
    directory = compacted(tmp_path)
    old = head.read(FS, directory)
    (directory / "head.json").unlink()
    witness = rebuild.Witness(old.store_id, seq, "0" * 64, lineage=old.lineage)
    assert (rebuilt(directory, witness=witness).head.store_id == old.store_id) is is_believed


def test_a_witness_of_lost_records_is_not_believed_about_another_beginning(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    old = head.read(FS, directory)
    (directory / "head.json").unlink()
    witness = rebuild.Witness(old.store_id, 6, "0" * 64, lineage=head.new_lineage())
    assert rebuilt(directory, witness=witness).head.store_id != old.store_id


def compacted(tmp_path: Path, name: str = "main") -> Path:
    return compacted_store(tmp_path, 3, 2, name=name)


def test_a_lost_head_is_made_again_from_the_journal(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    old = head.read(FS, directory)
    (directory / "head.json").unlink()
    before = contents(directory)
    done = rebuilt(directory)
    new = head.read(FS, directory)
    assert done.head == new
    assert (new.head, new.segments, new.snapshots, new.lineage) == (old.head, old.segments, old.snapshots, old.lineage)
    assert new.store_id != old.store_id
    assert done.unproven == (
        "The store id is new; which branch this one was copied from is not known any more.",
        f"Whether anything was acknowledged after record 5 {NOBODY_KNOWS}",
    )
    assert contents(Path(done.copy)) == before
    assert Path(done.copy).parent == directory / "quarantine"
    assert numbers(directory) == [1, 2, 3, 4, 5]
    assert append(directory, 6).seq == 6
    assert verify.prove(FS, directory).is_sound


def test_a_damaged_head_still_gives_its_names(tmp_path: Path) -> None:
    source = compacted(tmp_path)
    branchdir.copy(FS, source, tmp_path / "topic", branch="feature/x")
    directory = tmp_path / "topic"
    old = head.read(FS, directory)
    path = directory / "head.json"
    path.write_bytes(path.read_bytes().replace(b'"head":{"seq":5', b'"head":{"seq":4'))
    with pytest.raises(HeadDamaged):
        head.read(FS, directory)
    done = rebuilt(directory)
    assert done.head == old
    assert done.unproven == (
        "Store id, branch and origin come from the damaged head and are not proven.",
        f"Whether anything was acknowledged after record 5 {NOBODY_KNOWS}",
    )


def test_a_sound_head_can_be_rebuilt_to_itself(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    old = head.read(FS, directory)
    assert rebuilt(directory).head == old


def test_an_old_head_is_brought_up_to_date(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    old = (directory / "head.json").read_bytes()
    fill(directory, 1)
    compaction.compact(NO_SYNC, directory, CLOCK, lambda of: [b"1"])
    new = fill(directory, 2)
    (directory / "head.json").write_bytes(old)
    with pytest.raises(HeadDamaged, match="is older than the journal"):
        append(directory, 3)
    done = rebuilt(directory)
    assert (done.head.head, done.head.segments) == (new.head, new.segments)
    assert numbers(directory) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("records", [0, 2])
def test_an_empty_journal_gets_a_head(tmp_path: Path, records: int) -> None:
    directory = new_store(tmp_path, records)
    if records:
        compaction.compact(NO_SYNC, directory, CLOCK, lambda of: [b"1"], prune_before=records + 1)
    old = head.read(FS, directory)
    (directory / "head.json").unlink()
    new = rebuilt(directory).head
    assert (new.seq, new.segments[0].first_seq, new.snapshots) == (old.seq, records + 1, old.snapshots)
    assert new.lineage == old.lineage or not records
    assert new.head.at
    assert append(directory, 1).seq == records + 1


def test_pruned_history_needs_the_snapshot_before_it(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    compaction.compact(NO_SYNC, directory, CLOCK, lambda of: [b"2"], prune_before=4)
    old = head.read(FS, directory)
    (directory / "head.json").unlink()
    new = rebuilt(directory).head
    assert (new.first_seq, new.lineage, [ref.seq for ref in new.snapshots]) == (4, old.lineage, [3, 5])
    (directory / "head.json").unlink()
    for path in directory.glob("snapshot-*"):
        path.unlink()
    with pytest.raises(HeadDamaged, match="history begins at record 4, and no snapshot holds what came before"):
        rebuilt(directory)


def test_an_empty_leftover_of_a_compaction_is_passed_over(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    old = head.read(FS, directory)
    (directory / "journal-0000000005.jsonl").touch()
    (directory / "head.json").unlink()
    assert rebuilt(directory).head.segments == old.segments


def test_an_empty_journal_that_begins_in_the_middle_needs_a_snapshot(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    for path in directory.glob("*-*"):
        path.unlink()
    (directory / "head.json").unlink()
    (directory / "journal-0000000004.jsonl").touch()
    with pytest.raises(HeadDamaged, match="has no record, and no snapshot says what came before record 4"):
        rebuilt(directory)


def test_a_torn_end_is_left_to_the_next_write(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    with segment(directory).open("ab") as file:
        file.write(b'{"v":1,"seq":6')
    (directory / "head.json").unlink()
    done = rebuilt(directory)
    assert done.head.seq == 5
    assert any(
        said.startswith("14 bytes at the end of journal-0000000004.jsonl are no record (the line is cut off)")
        for said in done.unproven
    )
    with journal.writing(FS, directory, CLOCK) as writer:
        assert writer.recovery.kept is not None


def test_an_unanswered_record_becomes_part_of_history(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    with segment(directory).open("ab") as file:
        file.write(next_line(directory, 6))
    (directory / "head.json").unlink()
    assert rebuilt(directory).head.seq == 6
    assert numbers(directory) == [1, 2, 3, 4, 5, 6]


def test_lost_records_are_named(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    with segment(directory).open("r+b") as file:
        file.truncate(file.read().index(b"\n") + 1)
    done = rebuilt(directory)
    assert done.head.seq == 4
    assert "The old head named record 5: the records from 5 on are lost." not in done.unproven
    assert "The old head named record 5: the records from 5 are lost." in done.unproven


def test_a_snapshot_witnesses_lost_records(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    (directory / "head.json").unlink()
    (directory / "journal-0000000004.jsonl").unlink()
    path = directory / "journal-0000000001.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    done = rebuilt(directory)
    assert done.head.seq == 2
    assert done.head.snapshots == ()
    assert "snapshot-0000000003.jsonl was made at record 3: the records from 3 on are lost." in done.unproven


@pytest.mark.parametrize("name", ["journal-0000000001.jsonl", "journal-0000000004.jsonl"])
def test_damage_with_good_records_after_it_is_not_patched_over(tmp_path: Path, name: str) -> None:
    directory = compacted(tmp_path)
    (directory / "head.json").unlink()
    path = directory / name
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0].replace(b'"pad"', b'"bad"'), *lines[1:]]))
    before = contents(directory)
    with pytest.raises(JournalCorrupt) as caught:
        rebuilt(directory)
    assert (caught.value.data["file"], caught.value.data["line"]) == (str(path), 1)
    assert contents(directory) == before


def test_a_missing_file_in_the_middle_is_not_patched_over(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    compaction.compact(NO_SYNC, directory, CLOCK, lambda of: [b"1"])
    fill(directory, 1)
    (directory / "journal-0000000004.jsonl").unlink()
    (directory / "head.json").unlink()
    with pytest.raises(JournalCorrupt, match=r"journal-0000000006\.jsonl begins at record 6, not at 4"):
        rebuilt(directory)


def test_bytes_after_a_sealed_segment_are_not_patched_over(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    with (directory / "journal-0000000001.jsonl").open("ab") as file:
        file.write(b"x")
    (directory / "head.json").unlink()
    with pytest.raises(JournalCorrupt):
        rebuilt(directory)


def test_a_damaged_or_foreign_snapshot_is_left_out(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    other = new_store(tmp_path, 5, name="other")
    foreign = snapshot.write(FS, other, head.read(FS, other), [b"1"])
    (other / foreign.file).rename(directory / foreign.file)
    path = directory / "snapshot-0000000003.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    (directory / "head.json").unlink()
    done = rebuilt(directory)
    assert done.head.snapshots == ()
    assert any(said.startswith("A snapshot is damaged and was left out: ") for said in done.unproven)
    assert "snapshot-0000000005.jsonl belongs to another history and was left out." in done.unproven


def test_a_store_of_a_newer_kb_is_left_alone(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    with segment(directory).open("ab") as file:
        file.write(b'{"v":2}\n')
    (directory / "head.json").unlink()
    before = contents(directory)
    with pytest.raises(FormatTooNew):
        rebuilt(directory)
    assert contents(directory) == before


def test_without_a_journal_there_is_nothing_to_rebuild(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    for path in directory.glob("journal-*"):
        path.unlink()
    (directory / "head.json").unlink()
    with pytest.raises(HeadDamaged, match="has no journal file"):
        rebuilt(directory)
    for path in directory.glob("snapshot-*"):
        path.unlink()
    with pytest.raises(HeadDamaged, match="has no journal file"):
        rebuilt(directory)
    with pytest.raises(UnknownBranch):
        rebuilt(tmp_path / "nothing")


def test_whichever_call_fails_it_can_be_done_again(tmp_path: Path) -> None:
    probe = LoggingFs()
    example = compacted(tmp_path, "probe")
    (example / "head.json").unlink()
    rebuilt(example, probe)
    for at in range(len(probe.calls)):
        directory = compacted(tmp_path, f"at{at}")
        (directory / "head.json").unlink()
        fs = FailingFs(at, when="half", inner=NO_SYNC)
        try:
            rebuilt(directory, fs)
        except KBError as error:
            assert str(tmp_path) in error.message  # noqa: PT017 - some calls may fail without harm
        fs.close_all()
        rebuilt(directory)
        assert numbers(directory) == [1, 2, 3, 4, 5]
        assert verify.prove(FS, directory).is_sound
    assert names(example / "quarantine")


def test_pruned_history_is_named_where_the_head_does_not_say_that_it_was_pruned(tmp_path: Path) -> None:
    directory = compacted(tmp_path)
    old = (directory / "head.json").read_bytes()
    compaction.compact(NO_SYNC, directory, CLOCK, lambda of: [b"2"], prune_before=4)
    pruned = (directory / "head.json").read_bytes()
    for known, is_named in ((old, True), (b"", True), (pruned, False)):
        (directory / "head.json").write_bytes(known)
        said = "The records before 4 are not there: a snapshot replaces them"
        assert any(doubt.startswith(said) for doubt in rebuilt(directory).unproven) == is_named
