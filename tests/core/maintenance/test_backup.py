"""The acknowledged records that a restore gives up, compared with the records that the two stores have."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import msgspec
import pytest

from kbcore.maintenance import epochs
from kbcore.maintenance.backup import RestoredBranch, back_up, restore
from kbcore.storage import head, journal
from kbcore.storage.fs import RealFs
from kbcore.store.history.log import log
from tests.support.disk.damage import is_proven, put, put_back, reset
from tests.support.repository.project import AUTHOR, Project

STEPS = ("", "W", "EW", "WE", "EWE")
"""The steps of a copy of a store: W is a write, E is a new epoch."""

Written = dict[int, tuple[str, str]]
"""The hash of each record, and the store id under which it was acknowledged."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "repo")


def do(project: Project, steps: str, written: Written, keys: str) -> Written:
    """Carry out the steps; return the records of the store as they were acknowledged."""
    found = dict(written)
    for number, step in enumerate(steps):
        if step == "E":
            epochs.accept(project.workspace(), "main", AUTHOR)
        else:
            put(project, [f"{keys}{number}"])
        of = head.read(RealFs(), project.workspace().folders.directory_of("main"))
        found[of.seq] = (of.hash, of.store_id)
    return found


def replaced(project: Project, file: Path) -> RestoredBranch:
    project.pool.close()
    dry = restore(project.workspace(), file, AUTHOR, dry_run=True).branches[0]
    (one,) = restore(project.workspace(), file, AUTHOR, replaces=True).branches
    assert dry.given_up == one.given_up
    return one


def rows_of(one: RestoredBranch) -> dict[str, tuple[int, int]]:
    return {row.store_id: (row.first, row.last) for row in one.given_up}


@pytest.mark.sliced
@pytest.mark.parametrize(("saved", "present"), [*itertools.product(STEPS, STEPS)])
def test_a_restore_names_each_record_of_the_replaced_store_that_it_lacks(
    saved: str, present: str, project: Project, tmp_path: Path
) -> None:
    common = do(project, "WWW", {}, "C")
    directory, file = project.workspace().folders.directory_of("main"), tmp_path / "kb.backup"
    older = shutil.copytree(directory, tmp_path / "older")
    theirs = do(project, saved, common, "S")
    back_up(project.workspace(), file, tool="kb/test")
    reset(project, older, directory)
    ours = do(project, present, common, "P")
    one = replaced(project, file)
    wanted = dict[str, list[int]]()
    for seq, (hash_, store_id) in ours.items():
        if seq not in theirs or theirs[seq][0] != hash_:
            wanted.setdefault(store_id, []).append(seq)
    assert rows_of(one) == {store_id: (seqs[0], seqs[-1]) for store_id, seqs in wanted.items()}
    assert one.is_same_store
    assert all(row.is_first_known for row in one.given_up)
    of = head.read(RealFs(), directory)
    for store_id, seqs in wanted.items():
        ended = of.epoch_of(store_id)
        assert ended is not None
        assert ended.seen >= seqs[-1], "a reference to it is known to be of a lost record"
        assert ended.seq == (max(seq for seq in theirs if seq <= ended.seq) if ended.seq else 0)
    said = " ".join(row["repair"] for row in log(project.view()) if row["seq"] > len(theirs))
    for seqs in wanted.values():
        rows = f"are lost: {seqs[0]} to {seqs[-1]}." if len(seqs) > 1 else f"Record {seqs[0]} is lost."
        assert rows in said
    found = {entry.frame.seq: entry.frame.sum for entry in journal.scan(RealFs(), directory, of)}
    assert {seq: found[seq] for seq in theirs} == {seq: hash_ for seq, (hash_, _) in theirs.items()}
    assert is_proven(project)


def test_a_backup_of_a_later_epoch_gives_up_what_the_present_store_wrote_under_the_old_id(
    project: Project, tmp_path: Path
) -> None:
    put(project, "ABCDE")
    directory, file = project.workspace().folders.directory_of("main"), tmp_path / "kb.backup"
    older = shutil.copytree(directory, tmp_path / "older")
    old = head.read(RealFs(), directory)
    do(project, "EW", {}, "S")
    back_up(project.workspace(), file, tool="kb/test")
    reset(project, older, directory)
    put(project, "FGH")
    one = replaced(project, file)
    assert rows_of(one) == {old.store_id: (6, 8)}
    of = head.read(RealFs(), directory)
    ended = of.epoch_of(old.store_id)
    assert ended is not None
    assert (ended.seq, ended.hash, ended.seen) == (5, old.hash, 8)
    repair = log(project.view(), limit=1)[0]["repair"]
    assert f"3 records are lost: 6 to 8. They were records of the store {old.store_id}." in repair


def test_a_backup_from_before_an_epoch_gives_up_the_records_of_each_id_under_that_id(
    project: Project, tmp_path: Path
) -> None:
    put(project, "ABC")
    directory, file = project.workspace().folders.directory_of("main"), tmp_path / "kb.backup"
    back_up(project.workspace(), file, tool="kb/test")
    first = head.read(RealFs(), directory).store_id
    put(project, "DE")
    do(project, "EW", {}, "P")
    second = head.read(RealFs(), directory).store_id
    one = replaced(project, file)
    assert rows_of(one) == {first: (4, 5), second: (6, 7)}
    of = head.read(RealFs(), directory)
    assert [(past.store_id, past.seq, past.seen) for past in of.epochs] == [(first, 3, 5), (second, 0, 7)]
    repairs = [row["repair"] for row in log(project.view(), limit=2)]
    assert "2 records are lost: 4 to 5." in repairs[1]
    assert f"2 records are lost: 6 to 7. They were records of the store {second}." in repairs[0]


def test_a_backup_that_has_the_records_of_an_accepted_loss_names_only_those_written_since(
    project: Project, tmp_path: Path
) -> None:
    put(project, "ABC")
    directory, file = project.workspace().folders.directory_of("main"), tmp_path / "kb.backup"
    older = shutil.copytree(directory, tmp_path / "older")
    put(project, "DE")
    back_up(project.workspace(), file, tool="kb/test")
    put(project, "F")
    put_back(project, older, directory)
    first = head.read(RealFs(), directory).store_id
    do(project, "EW", {}, "P")
    second = head.read(RealFs(), directory).store_id
    assert rows_of(replaced(project, file)) == {first: (6, 6), second: (4, 5)}


def test_the_second_witness_alone_names_exactly_the_records_of_each_id(project: Project, tmp_path: Path) -> None:
    put(project, "ABC")
    directory, file = project.workspace().folders.directory_of("main"), tmp_path / "kb.backup"
    first = head.read(RealFs(), directory).store_id
    back_up(project.workspace(), file, tool="kb/test")
    do(project, "WEW", {}, "P")
    second = head.read(RealFs(), directory).store_id
    project.pool.close()
    shutil.rmtree(directory)
    (one,) = restore(project.workspace(), file, AUTHOR).branches
    assert {row.store_id: (row.first, row.last, row.is_first_known) for row in one.given_up} == {
        first: (4, 4, True),
        second: (5, 6, True),
    }
    said = " ".join(row["repair"] for row in log(project.view(), limit=2))
    assert "Record 4 is lost." in said
    assert "2 records are lost: 5 to 6." in said
    assert "1 to 6" not in said


def test_where_a_note_does_not_tell_which_records_an_id_had_no_first_record_is_named(
    project: Project, tmp_path: Path
) -> None:
    put(project, "ABC")
    directory, file = project.workspace().folders.directory_of("main"), tmp_path / "kb.backup"
    back_up(project.workspace(), file, tool="kb/test")
    do(project, "WEW", {}, "P")
    second = head.read(RealFs(), directory).store_id
    place = project.workspace().place
    seen = place.read("main")
    assert seen is not None
    place.write("main", msgspec.structs.replace(seen, epochs=()))  # as an older KB notes it
    project.pool.close()
    shutil.rmtree(directory)
    (one,) = restore(project.workspace(), file, AUTHOR).branches
    assert [(row.store_id, row.last, row.is_first_known) for row in one.given_up] == [(second, 6, False)]
    repair = log(project.view(), limit=1)[0]["repair"]
    assert "Records up to 6 are lost; the first of them is not known." in repair
    assert "1 to 6" not in repair


def test_a_store_of_a_later_epoch_that_lacks_noted_records_of_the_old_id_is_a_loss(
    project: Project, tmp_path: Path
) -> None:
    put(project, "ABCDE")
    directory = project.workspace().folders.directory_of("main")
    older = shutil.copytree(directory, tmp_path / "older")
    old = head.read(RealFs(), directory)
    do(project, "E", {}, "S")
    project.pool.close()
    later = shutil.copytree(directory, tmp_path / "later")
    reset(project, older, directory)
    put(project, "FGH")
    put_back(project, later, directory)
    loss = project.workspace().witness("main").check(head.read(RealFs(), directory))
    assert loss is not None
    assert (loss.kind, loss.store_id, loss.is_first_known, loss.seen) == ("replaced", old.store_id, False, 8)
    assert f"record 8 of the store {old.store_id[:12]} and some before it may be missing" in loss.sentence()
    epochs.accept(project.workspace(), "main", AUTHOR)
    ended = head.read(RealFs(), directory).epoch_of(old.store_id)
    assert ended is not None
    assert (ended.seq, ended.hash, ended.seen) == (5, old.hash, 8)
    assert "Records up to 8 are lost; the first of them is not known." in log(project.view(), limit=1)[0]["repair"]
