"""Committing: the order of the calls, and truthful answers when one of them fails."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kbcore.errors import (
    CommitUncertain,
    HeadDamaged,
    KBError,
    LimitExceeded,
    ReadOnlyStore,
    StorageError,
    StorageFull,
    UnknownBranch,
)
from kbcore.storage import frame, head, journal, layout, verify
from tests.core.storage.making import (
    CLOCK,
    FS,
    NO_SYNC,
    append,
    contents,
    new_store,
    next_line,
    numbers,
    payload,
    segment,
)
from tests.support.disk.faultfs import FailingFs, LoggingFs


def calls_of_a_commit(directory: Path) -> list[tuple[str, str]]:
    fs = LoggingFs()
    append(directory, 0, fs=fs)
    return fs.calls


def index_of(calls: list[tuple[str, str]], kind: str, name: str) -> int:
    return calls.index((kind, name))


def test_a_commit_makes_its_calls_in_the_one_safe_order(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 3)
    name = segment(directory).name
    changing = {"write", "fsync", "replace", "fsync_dir", "ftruncate", "flock", "unlink", "pwrite"}
    assert [call for call in calls_of_a_commit(directory) if call[0] in changing] == [
        ("flock", "lock"),
        ("pwrite", "lock"),
        ("write", name),
        ("fsync", name),
        ("write", "head.json.tmp"),
        ("fsync", "head.json.tmp"),
        ("replace", "head.json"),
        ("fsync_dir", "main"),
        ("flock", "lock"),
    ]


def test_a_commit_costs_twenty_five_calls_at_most(tmp_path: Path) -> None:
    assert len(calls_of_a_commit(new_store(tmp_path, 3))) <= 25


def test_the_head_of_a_record_after_which_an_epoch_begins_has_the_epochs_that_it_was_given(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    with journal.writing(FS, directory, CLOCK) as writer:
        of = writer.head
        ended = head.Epoch(of.store_id, of.seq, of.hash, of.seq, "")
        begun = writer.append(payload(3), CLOCK.now(), epochs_of=head.with_epoch(of, ended))
        assert (begun.seq, begun.epochs, begun.store_id == of.store_id) == (3, (ended,), False)
        assert writer.append(payload(4), CLOCK.now()).epochs == (ended,)
    assert head.read(FS, directory).epochs == (ended,)


def test_a_record_is_there_when_append_returns(tmp_path: Path) -> None:
    directory = new_store(tmp_path)
    with journal.writing(FS, directory, CLOCK) as writer:
        for number in (1, 2, 3):
            new = writer.append(payload(number), CLOCK.now())
            assert new == writer.head == head.read(FS, directory)
            assert numbers(directory) == list(range(1, number + 1))
    assert verify.prove(FS, directory).is_sound


def test_the_head_keeps_the_time_of_its_last_record(tmp_path: Path) -> None:
    directory = new_store(tmp_path)
    with journal.writing(FS, directory, CLOCK) as writer:
        assert writer.append(b'{"n":1}', "2027-01-01T00:00:00.000000Z").head.at == "2027-01-01T00:00:00.000000Z"
        with pytest.raises(ValueError, match="time goes back"):
            writer.append(b'{"n":2}', "2026-12-31T23:59:59.999999Z")
    assert head.read(FS, directory).seq == 1


def test_snapshots_are_published_with_a_record_or_not_at_all(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    listed = (head.SnapshotRef("snapshot-0000000001.jsonl", 1, "a" * 64, 1, "b" * 64),)
    before = head.read(NO_SYNC, directory)
    at = index_of(calls_of_a_commit(new_store(tmp_path, 2, name="probe")), "write", segment(directory).name)
    full = FailingFs(at, errno.ENOSPC, when="half")
    with journal.writing(full, directory, CLOCK) as writer:
        with pytest.raises(StorageFull):
            writer.append(payload(3), CLOCK.now(), snapshots=listed)
        assert writer.head == before
    assert head.read(NO_SYNC, directory) == before
    with journal.writing(NO_SYNC, directory, CLOCK) as writer:
        made = writer.append(payload(3), CLOCK.now(), snapshots=listed)
        assert (made.seq, made.snapshots) == (3, listed)
        assert writer.append(payload(4), CLOCK.now()).snapshots == listed
    assert head.read(NO_SYNC, directory).snapshots == listed


def test_a_record_over_the_limit_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = new_store(tmp_path, 2)
    before = contents(directory)
    monkeypatch.setattr(frame, "MAX_RECORD_BYTES", 20)
    with pytest.raises(LimitExceeded):
        append(directory, 3)
    assert contents(directory) == before


def test_a_payload_that_could_not_be_read_back_changes_nothing(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    before = contents(directory)
    with journal.writing(FS, directory, CLOCK) as writer, pytest.raises(ValueError, match="one JSON object"):
        writer.append(b"{}\n{}", CLOCK.now())
    assert contents(directory) == before


def test_short_writes_are_completed(tmp_path: Path) -> None:
    class Stingy(LoggingFs):
        def _run(self, kind, method, args):
            if kind == "write":
                args = (args[0], bytes(args[1])[:7])
            return super()._run(kind, method, args)

    directory = new_store(tmp_path, 1)
    append(directory, 2, fs=Stingy())
    assert numbers(directory) == [1, 2]


def test_a_full_disk_in_the_middle_of_a_record_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    before = contents(directory)
    at = index_of(calls_of_a_commit(new_store(tmp_path, 2, name="probe")), "write", segment(directory).name)
    with pytest.raises(StorageFull) as caught:
        append(directory, 3, fs=FailingFs(at, errno.ENOSPC, when="half"))
    path = segment(directory)
    assert caught.value.message == f"cannot append to {path}: No space left on device"
    assert contents(directory) == before
    assert append(directory, 3).seq == 3


def test_a_part_of_a_record_that_cannot_be_cut_off_is_still_not_applied(tmp_path: Path) -> None:
    class Full(LoggingFs):
        def _run(self, kind, method, args):
            if kind == "ftruncate":
                raise OSError(errno.EIO, "x")
            if kind == "write":
                method(args[0], bytes(args[1])[:10])
                raise OSError(errno.ENOSPC, "x")
            return super()._run(kind, method, args)

    directory = new_store(tmp_path, 2)
    with pytest.raises(StorageFull):
        append(directory, 3, fs=Full())
    assert segment(directory).stat().st_size == head.read(FS, directory).head.length + 10
    append(directory, 4)
    assert numbers(directory) == [1, 2, 4]


def test_a_write_that_fails_with_every_byte_in_place_is_uncertain(tmp_path: Path) -> None:
    """A cut that is not synced could be undone by a power failure, and the record would be whole again."""
    directory = new_store(tmp_path, 2)
    at = index_of(calls_of_a_commit(new_store(tmp_path, 2, name="probe")), "write", segment(directory).name)
    with pytest.raises(CommitUncertain):
        append(directory, 3, fs=FailingFs(at, when="after"))


def test_the_writer_can_go_on_after_an_undone_write(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    at = index_of(calls_of_a_commit(new_store(tmp_path, 2, name="probe")), "write", segment(directory).name)
    with journal.writing(FailingFs(at, errno.ENOSPC, when="half"), directory, CLOCK) as writer:
        with pytest.raises(StorageFull):
            writer.append(payload(3), CLOCK.now())
        writer.append(payload(3), CLOCK.now())
    assert numbers(directory) == [1, 2, 3]


@pytest.mark.parametrize(("kind", "when"), [("open", "before"), ("write", "half"), ("fsync", "before")])
@pytest.mark.parametrize(("code", "error"), [(errno.ENOSPC, StorageFull), (errno.EACCES, ReadOnlyStore)])
def test_no_room_for_the_head_takes_the_record_back(tmp_path: Path, kind: str, when: str, code: int, error) -> None:
    directory = new_store(tmp_path, 2)
    before = contents(directory)
    at = index_of(calls_of_a_commit(new_store(tmp_path, 2, name="probe")), kind, "head.json.tmp")
    fs = FailingFs(at, code, when=when)
    with pytest.raises(error):
        append(directory, 3, fs=fs)
    assert contents(directory) == before
    last = [call for call in fs.calls if call[0] in {"ftruncate", "fsync"}][-2:]
    assert last == [("ftruncate", segment(directory).name), ("fsync", segment(directory).name)]
    assert append(directory, 3).seq == 3


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("fsync", "journal-0000000001.jsonl"),
        ("fstat", "journal-0000000001.jsonl"),
        ("write", "head.json.tmp"),
        ("fsync", "head.json.tmp"),
        ("replace", "head.json"),
        ("fsync_dir", "main"),
    ],
)
def test_a_failure_after_the_record_was_written_is_uncertain(tmp_path: Path, kind: str, name: str) -> None:
    directory = new_store(tmp_path, 2)
    at = index_of(calls_of_a_commit(new_store(tmp_path / "probe", 2)), kind, name)
    fs = FailingFs(at, errno.EIO)
    with pytest.raises(CommitUncertain) as caught:
        append(directory, 3, fs=fs)
    assert caught.value.message.startswith("record 3 was written, but may not be durable: cannot ")
    assert caught.value.applied == "unknown"
    failed = index_of(fs.calls, kind, name)
    assert not [call for call in fs.calls[failed + 1 :] if call[0] in {"fsync", "fsync_dir", "replace"}]
    assert append(directory, 4).seq == 4
    assert numbers(directory) == [1, 2, 3, 4]


def test_a_failed_writer_takes_no_more_records(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    at = index_of(calls_of_a_commit(new_store(tmp_path / "probe", 2)), "fsync", segment(directory).name)
    with journal.writing(FailingFs(at), directory, CLOCK) as writer:
        with pytest.raises(CommitUncertain):
            writer.append(payload(3), CLOCK.now())
        with pytest.raises(StorageError, match=r"the writer of .* has failed; open the branch again"):
            writer.append(payload(4), CLOCK.now())


def test_writing_needs_a_store(tmp_path: Path) -> None:
    with pytest.raises(UnknownBranch), journal.writing(FS, tmp_path / "nothing", CLOCK):
        pass
    assert not (tmp_path / "nothing").exists()


def test_a_symbolic_link_to_a_store_is_not_written_to(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 1)
    (tmp_path / "link").symlink_to(directory)
    with pytest.raises(StorageError, match="it is a symbolic link"):
        append(tmp_path / "link", 2)


def test_a_head_that_is_older_than_a_later_segment_is_refused(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    (directory / layout.segment_name(3)).write_bytes(next_line(directory))
    with pytest.raises(HeadDamaged) as caught:
        append(directory, 3)
    assert caught.value.message == (
        f"{directory}/head.json is older than the journal: it does not name journal-0000000003.jsonl"
    )
    assert numbers(directory) == [1, 2]


def test_an_empty_later_segment_is_a_leftover_and_harmless(tmp_path: Path) -> None:
    directory = new_store(tmp_path, 2)
    (directory / layout.segment_name(3)).touch()
    assert append(directory, 3).seq == 3


def attempt(directory: Path, number: int, fs: FailingFs) -> str:
    """Commit a record; return whether it was applied, as the answer says."""
    try:
        append(directory, number, fs=fs)
    except KBError as error:
        return error.applied
    return "yes"


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("when", ["before", "half", "after"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EROFS, errno.EINTR], ids=errno.errorcode.get)
def test_every_failing_call_is_answered_with_the_truth(tmp_path: Path, code: int, when: str, lasting: bool) -> None:
    count = len(calls_of_a_commit(new_store(tmp_path, 2, name="probe")))
    seen: set[str] = set()
    for at in range(count):
        directory = new_store(tmp_path, 2, name=f"at{at}")
        fs = FailingFs(at, code, when=when, lasting=lasting, inner=NO_SYNC)
        answer = attempt(directory, 3, fs)
        fs.close_all()
        seen.add(answer)
        present_at_once = 3 in numbers(directory)
        append(directory, 4)
        present = 3 in numbers(directory)
        assert present_at_once <= present
        assert answer == "unknown" or present == (answer == "yes"), (at, fs.calls[at], answer)
        assert verify.prove(FS, directory).is_sound
        assert numbers(directory) in ([1, 2, 3, 4], [1, 2, 4])
    assert seen >= {"no", "yes"} if not lasting else "no" in seen
