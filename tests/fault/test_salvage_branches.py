"""D2: records that another branch has fill a hole only where they are the missing ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from kbcore.errors import (
    StoreWentBack,
)
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.salvage import salvage
from kbcore.storage import head, journal, layout
from kbcore.storage.fs import RealFs
from kbcore.storage.places import MissingRecords
from kbcore.store import branches
from kbcore.store.history.log import log
from tests.fault.salvaging import salvaged, went_back
from tests.support.disk.damage import (
    FIRST,
    contents,
    edit,
    entities,
    filled,
    flip,
    forget,
    is_proven,
    put_back,
    requirement,
)
from tests.support.disk.damage import (
    put as put_keys,
)
from tests.support.processes.advice import spelled_out
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git


@pytest.mark.sliced
@pytest.mark.fault("D2")
def test_a_file_that_branches_share_is_salvaged_for_all_of_them(project: Project, tally) -> None:
    directory = filled(project, "ABCDE", seal_after="E")
    for name in ("one", "two"):
        git(project.root, "branch", name)
        branches.ensure(project.workspace(), name)
    project.apply(branch="one", entities=[requirement("ONE")])
    others = {name: project.workspace().folders.directory_of(name) for name in ("one", "two")}
    assert (directory / FIRST).stat().st_nlink == 3
    flip(directory / FIRST, b"Title of C")
    damaged = (directory / FIRST).read_bytes()
    project.pool.close()
    for name in ("main", "one", "two"):
        shutil.rmtree(project.workspace().folders.cache_of(name), ignore_errors=True)
    tally.tried()
    made = salvaged(project)
    assert [one.branch for one in made] == ["main", "one", "two"]
    assert all([(hole.first, hole.last) for hole in one.holes] == [(3, 3)] for one in made)
    assert (directory / FIRST).read_bytes() == damaged, "a shared file was written to"
    files = [folder / "journal-0000000004.jsonl" for folder in (directory, *others.values())]
    assert len({file.stat().st_ino for file in files}) == 3
    for name, wanted in (("main", "ABCDE"), ("one", "ABCDE"), ("two", "ABCDE")):
        assert entities(project, name) - {"ONE"} == set(wanted)
        assert is_proven(project, name)
    assert "ONE" in entities(project, "one")
    tally.done()


@pytest.mark.fault("D2")
def test_records_that_another_branch_has_sound_are_taken_from_there(project: Project, tally) -> None:
    directory = filled(project, "ABCDE")
    git(project.root, "branch", "copy")
    branches.ensure(project.workspace(), "copy")
    other = project.workspace().folders.directory_of("copy")
    sound = (directory / FIRST).read_bytes()
    flip(directory / FIRST, b"Title of C")
    forget(project)
    tally.tried()
    (one,) = salvaged(project)
    assert one.holes == ()
    assert any("came from" in sentence for sentence in one.done)
    assert (directory / FIRST).read_bytes().startswith(sound)
    assert (other / FIRST).read_bytes() == sound
    assert entities(project) == set("ABCDE")
    tally.done()


@pytest.mark.sliced(1)
@pytest.mark.fault("D2")
@pytest.mark.parametrize("left", [None, 0, 1, 2], ids=["no file", "no record", "one record", "two records"])
def test_a_lost_end_that_another_branch_has_is_written_into_the_own_file(left, project, tally) -> None:
    directory = filled(project, "ABCDEFG", seal_after="C")
    git(project.root, "branch", "copy")
    branches.ensure(project.workspace(), "copy")
    active = directory / "journal-0000000004.jsonl"
    if left is None:
        active.unlink()
    else:
        edit(active, lambda data: b"".join(data.splitlines(keepends=True)[:left]))
    forget(project)
    tally.tried()
    (one,) = salvaged(project)
    assert one.holes == ()
    assert entities(project) == set("ABCDEFG")
    assert is_proven(project)
    project.apply(entities=[requirement("H")])
    tally.done()


SEEN = 8
"""The last record of main, before it is damaged or goes back."""


OTHERS = "OPQRSTUV"


def with_branch(project: Project, copied_at: int, *, own: int, seal_at: int = 0) -> Path:
    """Fill main; let another branch, made after a record, write records of its own. Return the directory of main."""
    directory = project.workspace().folders.directory_of("main")
    for seq, key in enumerate("ABCDEFGH", start=1):
        put_keys(project, key)
        if seq == seal_at:
            compact(project.workspace(), "main")
        if seq == copied_at:
            git(project.root, "branch", "other")
            branches.ensure(project.workspace(), "other")
            put_keys(project, OTHERS[:own], "other")
        if seq == 5:
            shutil.copytree(directory, project.root.with_name("earlier"))
    forget(project)
    return directory


def lose(directory: Path, seqs: Iterable[int]) -> None:
    """Damage records of a store, each in the file that has it, and remove its snapshots."""
    for path in directory.glob("snapshot-*"):
        path.unlink()
    for seq in seqs:
        for path in directory.glob("journal-*"):
            flip(path, b"Title of " + "ABCDEFGH"[seq - 1].encode())


def is_as_it_was(project: Project, was: dict[int, str], holes: Iterable[MissingRecords]) -> bool:
    """Tell whether main has each record that it had, but for those that are named as missing, and no other."""
    now, gone = sums(project), {seq for hole in holes for seq in range(hole.first, hole.last + 1)}
    return {seq: value for seq, value in now.items() if seq <= SEEN} == {
        seq: value for seq, value in was.items() if seq not in gone
    }


def sums(project: Project) -> dict[int, str]:
    """Return the hash of each record of main that is there."""
    directory = project.workspace().folders.directory_of("main")
    of = head.read(RealFs(), directory)
    return {entry.frame.seq: entry.frame.sum for entry in journal.scan(RealFs(), directory, of)}


@pytest.mark.sliced
@pytest.mark.fault("D2")
@pytest.mark.parametrize(("own", "seal_at"), [(1, 0), (4, 0), (4, 3)])
@pytest.mark.parametrize(
    ("copied_at", "lost", "filled_to"),
    [
        (2, (3, 4), ()),  # the other branch wrote its own records in the place of all that are missing
        (3, (3, 4), ()),  # and here in the place of the last one: nothing leads back to the first
        (4, (3, 4), (3, 4)),
        (2, (2,), (2,)),  # before the other branch was made
        (2, (3,), ()),
        (5, (7, 8), ()),
        (6, (7, 8), ()),
        (7, (7, 8), ()),
        (8, (7, 8), (7, 8)),  # the head names the last one
        (2, (1, 2, 5), (1, 2)),
        (4, (1, 2, 3, 4, 5, 6, 7, 8), ()),
        (8, (1, 2, 3, 4, 5, 6, 7, 8), (1, 2, 3, 4, 5, 6, 7, 8)),
    ],
)
def test_records_that_another_branch_wrote_after_it_was_made_never_enter(
    copied_at: int, lost: tuple[int, ...], filled_to: tuple[int, ...], own: int, seal_at: int, project, tally
) -> None:
    directory = with_branch(project, copied_at, own=own, seal_at=seal_at)
    was = sums(project)
    shared = [path for path in directory.glob("journal-*") if path.stat().st_nlink > 1]
    for path in shared:  # only the file of main is to be damaged
        data = path.read_bytes()
        path.unlink()
        path.write_bytes(data)
    lose(directory, lost)
    tally.tried()
    [one, *_] = salvaged(project)
    gone = {seq for hole in one.holes for seq in range(hole.first, hole.last + 1)}
    # A sealed file states the hash of its last record: what leads to that is proven as well.
    proven_by_seal = {seq for seq in lost if seq <= seal_at <= copied_at}
    assert gone == set(lost) - set(filled_to) - proven_by_seal
    assert is_as_it_was(project, was, one.holes)
    assert not entities(project) & set(OTHERS)
    assert is_proven(project)
    assert salvaged(project)[0].copy == "", "the second salvage found more to do"
    tally.done()


@pytest.mark.sliced
@pytest.mark.fault("D2")
@pytest.mark.parametrize("head_is", ["whole", "lost"])
@pytest.mark.parametrize("own", [1, 4])
@pytest.mark.parametrize(("copied_at", "is_all"), [(3, False), (5, False), (6, False), (7, False), (8, True)])
def test_only_what_leads_to_the_noted_record_fills_a_lost_end(
    copied_at: int, is_all: bool, own: int, head_is: str, project, tally
) -> None:
    directory = with_branch(project, copied_at, own=own)
    was = sums(project)
    put_back(project, project.root.with_name("earlier"), directory)
    lose(directory, [2, 5])
    if head_is == "lost":
        (directory / layout.HEAD).unlink()
    forget(project)
    tally.tried()
    [one, *_] = salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
    gone = {seq for hole in one.holes for seq in range(hole.first, hole.last + 1)}
    # A lost head names no hash of record 5: only the noted record leads to it then.
    ends = set() if is_all else {6, 7, 8} if head_is == "whole" and copied_at >= 5 else {5, 6, 7, 8}
    assert gone == ends
    assert is_as_it_was(project, was, one.holes)
    assert not entities(project) & set(OTHERS)
    assert is_proven(project)
    tally.done()


@pytest.mark.fault("D2")
def test_a_record_of_a_partly_found_end_names_only_what_is_missing_of_it(project: Project, tally) -> None:
    directory = with_branch(project, 8, own=1)
    put_back(project, project.root.with_name("earlier"), directory)
    lose(directory, [2])
    lose(project.workspace().folders.directory_of("other"), [6])
    forget(project)
    shutil.rmtree(project.workspace().folders.cache_of("other"))
    tally.tried()
    [one, *_] = salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
    assert [(hole.first, hole.last) for hole in one.holes] == [(6, 6)]
    assert entities(project) == set("ABCDEGH")
    said = log(project.view())[0]["repair"]
    assert "seen: 8, now: 5; of records 6 to 8, record 6 could not be found. A person accepted the loss." in said
    assert "6 to 8 are missing" not in said
    tally.done()


@pytest.mark.fault("D2")
def test_records_up_to_the_noted_one_do_not_follow_another_record_of_the_store(project: Project, tally) -> None:
    directory = with_branch(project, 8, own=1)
    workspace = project.workspace()
    noted = workspace.place.read("main")
    assert noted is not None
    put_back(project, project.root.with_name("earlier"), directory)
    workspace.witness("main").accept(head.read(RealFs(), directory))
    put_keys(project, "X")
    forget(project)
    was = sums(project)
    assert workspace.place.write("main", noted)
    lose(directory, [2])
    tally.tried()
    [one, *_] = salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
    assert [(hole.first, hole.last) for hole in one.holes] == [(7, 8)]
    assert {seq: value for seq, value in sums(project).items() if seq <= SEEN} == was
    assert entities(project) == set("ABCDEX")
    assert is_proven(project)
    tally.done()


@pytest.mark.fault("D2")
def test_the_note_of_another_store_with_the_same_history_is_no_end_of_this_one(project: Project, tally) -> None:
    directory = with_branch(project, 5, own=4)
    workspace = project.workspace()
    noted = workspace.place.read("other")
    assert noted is not None
    assert workspace.place.write("main", noted)
    was = sums(project)
    put_back(project, project.root.with_name("earlier"), directory)
    edit(directory / layout.HEAD, lambda data: data.replace(b'"branch":"main"', b'"branch":"maim"'))
    forget(project)
    lose(directory, [2])
    tally.tried()
    with pytest.raises(StoreWentBack, match="Another store has the place"):
        salvaged(project)
    [one, *_] = salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
    assert one.holes == ()
    assert {seq: value for seq, value in sums(project).items() if seq <= 5} == {seq: was[seq] for seq in range(1, 6)}
    assert not entities(project) & set(OTHERS)
    tally.done()


@pytest.mark.fault("D2")
def test_the_loss_of_a_branch_that_shares_a_file_is_accepted_by_a_command_of_its_own(project: Project, tally) -> None:
    directory = filled(project, "ABCDE", seal_after="E")
    git(project.root, "branch", "other")
    branches.ensure(project.workspace(), "other")
    put_keys(project, "O", "other")
    other = project.workspace().folders.directory_of("other")
    saved = {
        name: shutil.copytree(store, project.root.with_name(name))
        for name, store in (("main", directory), ("other", other))
    }
    put_keys(project, "FG")
    put_keys(project, "PQ", "other")
    forget(project)
    shutil.rmtree(project.workspace().folders.cache_of("other"), ignore_errors=True)
    put_back(project, saved["main"], directory)
    put_back(project, saved["other"], other)
    (other / FIRST).unlink()
    (other / FIRST).hardlink_to(directory / FIRST)
    lose(directory, [3])
    before = contents(other)
    tally.tried()
    made = salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
    assert [(one.branch, bool(one.copy)) for one in made] == [("main", True), ("other", False)]
    [doubt] = made[1].doubts
    assert "records 7 to 8 are missing" in doubt
    assert "`kb doctor --salvage --branch other`" in spelled_out(doubt)
    assert contents(other) == before
    [one, *_] = salvage(project.workspace(), "other", AUTHOR, accepts_loss=True)
    assert [(hole.first, hole.last) for hole in one.holes] == [(3, 3), (7, 8)]
    assert is_proven(project, "other")
    tally.done()


@pytest.mark.sliced(1)
@pytest.mark.fault("D2")
@pytest.mark.parametrize("source", ["another branch", "a cached view"])
def test_what_can_be_proven_of_a_lost_end_is_kept(source: str, project: Project, tally) -> None:
    directory = went_back(project, branch=source == "another branch")
    if source == "another branch":
        forget(project)
        tally.tried()
        (one,) = salvaged(project)
        assert (one.holes, head.read(RealFs(), directory).epochs) == ((), ())
    else:
        project.pool.close()
        tally.tried()
        (one,) = salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
        [newest, *_] = log(project.view())
        assert newest["source"] == "unproven"
    assert entities(project) == set("ABCDEFGH")
    assert is_proven(project)
    tally.done()
