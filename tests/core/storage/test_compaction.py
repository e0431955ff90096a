"""Compaction changes files, never answers; pruning removes only what it was asked to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kbcore import limits
from kbcore.errors import CommitUncertain, InvalidQuery, KBError, LimitExceeded, SnapshotCorrupt, StorageFull
from kbcore.storage import compaction, head, journal, layout, snapshot, verify
from tests.core.storage.making import (
    CLOCK,
    FS,
    NO_SYNC,
    append,
    compacted_store,
    contents,
    fill,
    holed_store,
    new_store,
    next_line,
    numbers,
    remove_from_head,
    segment,
)
from tests.support.disk.faultfs import FailingFs, LoggingFs


def fold(of: head.Head) -> list[bytes]:
    return [b'{"seq":%d}' % of.seq]


def compact(directory: Path, *, before: int | None = None, fs=NO_SYNC) -> compaction.Compacted:
    return compaction.compact(fs, directory, CLOCK, fold, prune_before=before, wait_s=0)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} - {"lock", "head.json"}


def three_times(tmp_path: Path, name: str = "main") -> Path:
    """Segments 1-3, 4-6, 7- and snapshots at 3 and 6; two records in the active one."""
    return compacted_store(tmp_path, 3, 3, 2, name=name)


def test_it_seals_the_segment_and_keeps_every_answer(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    old = head.read(FS, directory)
    done = compact(directory)
    new = head.read(FS, directory)
    assert done.head == new
    assert (new.seq, new.hash, new.head.at) == (old.seq, old.hash, old.head.at)
    assert (new.store_id, new.lineage) == (old.store_id, old.lineage)
    assert (done.sealed, done.pruned, done.removed, done.stuck, done.unlisted) == (old.head.file, (), (), (), ())
    assert done.snapshot == new.snapshots[0]
    assert list(snapshot.read(FS, directory, new, new.snapshots[0])) == [b'{"seq":3}']
    assert numbers(directory) == [1, 2, 3]
    assert append(directory, 4).head.file == "journal-0000000004.jsonl"
    assert numbers(directory) == [1, 2, 3, 4]
    assert verify.prove(FS, directory).findings == ()


def test_doing_it_twice_changes_nothing(tmp_path: Path) -> None:
    directory = three_times(tmp_path)
    compact(directory)
    before = contents(directory)
    done = compact(directory)
    assert contents(directory) == before
    assert (done.sealed, done.snapshot) == ("", head.read(FS, directory).snapshots[-1])


def test_an_empty_store_stays_empty(tmp_path: Path) -> None:
    directory = new_store(tmp_path)
    before = contents(directory)
    assert compact(directory).snapshot is None
    assert compact(directory, before=1).pruned == ()
    assert contents(directory) == before


def test_it_recovers_first(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    with segment(directory).open("ab") as file:
        file.write(next_line(directory, 4) + b"torn")
    done = compact(directory)
    assert done.recovery.rolled_forward == (4,)
    assert done.recovery.kept is not None
    assert done.head.seq == 4
    assert numbers(directory) == [1, 2, 3, 4]


def test_old_history_and_old_snapshots_are_kept_by_default(tmp_path: Path) -> None:
    directory = three_times(tmp_path)
    done = compact(directory)
    assert [ref.seq for ref in done.head.snapshots] == [3, 6, 8]
    assert [part.first_seq for part in done.head.segments] == [1, 4, 7, 9]
    for ref in done.head.snapshots:
        assert list(snapshot.read(FS, directory, done.head, ref)) == [b'{"seq":%d}' % ref.seq]


@pytest.mark.parametrize(
    ("before", "first", "kept_snapshots"),
    [(1, 1, [3, 6, 8]), (3, 1, [3, 6, 8]), (4, 4, [3, 6, 8]), (6, 4, [3, 6, 8]), (7, 7, [6, 8]), (9, 9, [8])],
)
def test_pruning_gives_up_whole_segments_before_a_seq(
    tmp_path: Path, before: int, first: int, kept_snapshots: list[int]
) -> None:
    directory = three_times(tmp_path)
    old = head.read(FS, directory)
    done = compact(directory, before=before)
    assert (done.head.first_seq, [ref.seq for ref in done.head.snapshots]) == (first, kept_snapshots)
    assert numbers(directory) == list(range(first, 9))
    assert names(directory) == done.head.files
    assert set(done.pruned) == {part.file for part in (*old.segments, *old.snapshots)} - done.head.files
    if first == 1:
        assert done.head.pruned is None
    else:
        assert done.head.pruned is not None
        assert done.head.pruned.before == first
    assert done.head.snapshots[0].seq == first - 1 or first == 1
    assert verify.prove(FS, directory).findings == ()
    assert append(directory, 9).seq == 9


def test_pruning_again_goes_on_from_there(tmp_path: Path) -> None:
    directory = three_times(tmp_path)
    compact(directory, before=4)
    fill(directory, 1)
    assert compact(directory, before=10).head.first_seq == 10
    assert numbers(directory) == []
    fill(directory, 2)
    assert numbers(directory) == [10, 11]


@pytest.mark.parametrize(("before", "sound"), [(4, 3), (9, 8)])
def test_history_is_not_given_up_for_a_snapshot_that_is_damaged(tmp_path: Path, before: int, sound: int) -> None:
    directory = three_times(tmp_path)
    compact(directory)
    saved = contents(directory)
    path = directory / f"snapshot-{sound:010d}.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"seq"', b'"sea"', 2))
    with pytest.raises(SnapshotCorrupt, match=path.name):
        compact(directory, before=before)
    assert contents(directory) == saved | {path.name: path.read_bytes()}


@pytest.mark.parametrize("before", [0, -1, 10])
def test_pruning_beyond_the_head_is_refused(tmp_path: Path, before: int) -> None:
    directory = three_times(tmp_path)
    saved = contents(directory)
    with pytest.raises(InvalidQuery) as caught:
        compact(directory, before=before)
    assert caught.value.message == f"cannot prune before seq {before}: the head is 8"
    assert caught.value.hint == "Give a seq from 1 to 9."
    assert contents(directory) == saved


def test_leftovers_are_removed_and_strangers_are_not(tmp_path: Path) -> None:
    directory = three_times(tmp_path)
    leftovers = ["journal-0000000099.jsonl", "snapshot-0000000005.jsonl", "snapshot-0000000005.jsonl.tmp"]
    strangers = ["notes.txt", "head.json~"]
    for name in (*leftovers, *strangers, "head.json.tmp", "journal-0000000009.jsonl"):
        (directory / name).touch()
    (directory / "journal-0000000050.jsonl").write_bytes(b"{}\n")
    done = compact(directory)
    assert done.removed == tuple(leftovers)
    assert done.unlisted == ("journal-0000000050.jsonl",)
    assert names(directory) == done.head.files | set(strangers) | {"journal-0000000050.jsonl"}


def test_what_cannot_be_removed_is_reported(tmp_path: Path) -> None:
    directory = three_times(tmp_path)

    class Clinging(LoggingFs):
        def _run(self, kind, method, args):
            if kind == "unlink":
                raise PermissionError(1, "no")
            return super()._run(kind, method, args)

    done = compact(directory, before=7, fs=Clinging())
    assert (
        set(done.stuck)
        == set(done.pruned)
        == {
            "journal-0000000001.jsonl",
            "journal-0000000004.jsonl",
            "snapshot-0000000003.jsonl",
        }
    )
    assert numbers(directory) == [7, 8]
    assert {finding.code for finding in verify.prove(FS, directory).findings} == {"unreferenced"}
    assert set(compact(directory).removed) == set(done.pruned)


def test_no_room_leaves_the_old_layout(tmp_path: Path) -> None:
    directory = three_times(tmp_path)
    before = contents(directory)
    probe = LoggingFs(NO_SYNC)
    compact(three_times(tmp_path, "probe"), fs=probe)
    at = next(index for index, (kind, name) in enumerate(probe.calls) if kind == "write" and "snapshot" in name)
    with pytest.raises(StorageFull):
        compact(directory, fs=FailingFs(at, 28))
    assert contents(directory) == before


def test_a_head_file_never_outgrows_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = three_times(tmp_path)
    monkeypatch.setattr(limits, "MAX_HEAD_BYTES", 2000)
    before = head.read(FS, directory)
    with pytest.raises(LimitExceeded, match="has been compacted too often: its head file names 7 files"):
        compact(directory)
    assert head.read(FS, directory) == before
    assert compact(directory, before=9).head.first_seq == 9
    compact(directory)


def test_a_failed_head_may_or_may_not_count(tmp_path: Path) -> None:
    directory = three_times(tmp_path)
    probe = LoggingFs(NO_SYNC)
    compact(three_times(tmp_path / "probe"), fs=probe)
    with pytest.raises(CommitUncertain) as caught:
        compact(directory, fs=FailingFs(probe.calls.index(("replace", "head.json"))))
    assert caught.value.message.startswith(f"the compaction of {directory} may or may not have taken effect: cannot")
    assert caught.value.hint == "Run `kb compact --branch main` again; the answers are the same either way."


def test_a_fold_that_fails_changes_nothing(tmp_path: Path) -> None:
    directory = three_times(tmp_path)
    before = contents(directory)

    def broken(of: head.Head):
        yield b"1"
        raise KeyError

    with pytest.raises(KeyError):
        compaction.compact(FS, directory, CLOCK, broken)
    assert contents(directory) == before
    with journal.writing(FS, directory, CLOCK, wait_s=0):
        pass


@pytest.mark.parametrize("when", ["before", "half", "after"])
def test_whichever_call_fails_the_answers_stay(tmp_path: Path, when: str) -> None:
    probe = LoggingFs(NO_SYNC)
    compact(three_times(tmp_path, "probe"), before=7, fs=probe)
    for at in range(len(probe.calls)):
        directory = three_times(tmp_path, f"at{at}")
        fs = FailingFs(at, when=when, inner=NO_SYNC)
        try:
            compact(directory, before=7, fs=fs)
        except KBError as error:
            assert str(tmp_path) in error.message  # noqa: PT017 - some calls may fail without harm
        fs.close_all()
        of = head.read(FS, directory)
        assert of.seq == 8
        assert numbers(directory) == list(range(of.first_seq, 9))
        assert append(directory, 9).seq == 9
        assert compact(directory, before=7).head.first_seq == 7
        assert verify.prove(FS, directory).findings == ()
        assert names(directory) == head.read(FS, directory).files
        assert not os.path.lexists(directory / "quarantine")


@pytest.mark.parametrize(
    ("before", "first"),
    [(1, 1), (3, 1), (4, 6), (5, 6), (6, 6), (8, 8)],
)
def test_pruning_keeps_what_a_snapshot_leads_to_where_records_are_missing(
    tmp_path: Path, before: int, first: int
) -> None:
    directory = holed_store(tmp_path)
    assert compact(directory, before=before).head.first_seq == first
    assert numbers(directory) == [seq for seq in (1, 2, 3, 6, 7) if seq >= first]


@pytest.mark.parametrize("before", [4, 5, 6, 7])
def test_pruning_that_would_give_up_more_than_was_asked_is_refused(tmp_path: Path, before: int) -> None:
    directory = holed_store(tmp_path, snapshots=(3,))
    saved = contents(directory)
    with pytest.raises(
        InvalidQuery, match=rf"before seq {before} alone: .* the records {before} to 7 could be"
    ) as caught:
        compact(directory, before=before)
    assert (
        caught.value.hint
        == "what `kb help prune` describes for the branch main gives them up as well, with the seq 8; "
        "no less can be given up."
    )
    assert contents(directory) == saved
    assert compact(directory, before=8).head.first_seq == 8


def test_pruning_does_not_begin_history_where_no_snapshot_is(tmp_path: Path) -> None:
    directory = three_times(tmp_path)
    remove_from_head(directory, 3)
    with pytest.raises(InvalidQuery, match=r"before seq 4 alone: .* the records 4 to 6 could be"):
        compact(directory, before=4)
    assert compact(directory, before=7).head.first_seq == 7


def test_pruning_gives_up_no_more_where_the_first_snapshot_is_gone_already(tmp_path: Path) -> None:
    directory = three_times(tmp_path)
    compact(directory, before=4)
    remove_from_head(directory, 3)
    assert compact(directory, before=5).head.first_seq == 4


def test_pruning_up_to_missing_records_keeps_what_comes_after_the_next_ones(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    for _ in range(4):
        compact(directory)
        fill(directory, 2)
    remove_from_head(directory, 4, 8, 3, 5)
    assert [(hole.first, hole.last) for hole in head.read(FS, directory).holes] == [(4, 5), (8, 9)]
    assert compact(directory, before=6).head.parts == ((6, 7), (10, 11))


def test_a_copy_of_a_redaction_that_did_not_end_is_removed_and_not_reported_as_records(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    copy = directory / layout.segment_name(1, 1)
    copy.write_bytes((directory / layout.segment_name(1)).read_bytes())
    done = compaction.compact(FS, directory, CLOCK, lambda of: [b"1"])
    assert (done.removed, done.unlisted) == ((copy.name,), ())
    assert not copy.exists()
