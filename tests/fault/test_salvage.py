"""D2: what is left of a damaged store is kept, and what is gone is said; also when the salvage itself is interrupted.

The messages of damage are followed word by word: the commands that they name are executed as they stand there.
"""

from __future__ import annotations

import errno
import json
import re
import shlex
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest

from kbcore import interrupting, limits
from kbcore.errors import (
    Damaged,
    FormatTooNew,
    InvalidQuery,
    JournalCorrupt,
    KBError,
    StatementTimeout,
    StoreWentBack,
)
from kbcore.maintenance import epochs
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.repair import rebuild_head
from kbcore.maintenance.salvage import Salvaged, salvage
from kbcore.storage import head, journal, layout, verify
from kbcore.storage.fs import RealFs
from kbcore.storage.places import MissingRecords
from kbcore.store import branches
from kbcore.store.history.log import Selection, log, record_json
from kbcore.store.history.moment import read_at
from kbcore.view.history import state_at
from tests.fault.test_damage_told import (
    KINDS,
    PROVEN_AFTERWARDS,
    Kind,
    done,
    forget_views,
    harmed,
    ids,
    kb,
    models,
    put,
)
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
    reset,
)
from tests.support.disk.damage import (
    put as put_keys,
)
from tests.support.disk.faultfs import Crash, CrashingFs, FailingFs, LoggingFs, NoSyncFs
from tests.support.effort.scale import tries
from tests.support.processes.cli import Ran
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git

__all__ = ["harmed", "models"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "repo")


def salvaged(project: Project, branch: str = "main") -> list[Salvaged]:
    project.pool.close()
    return salvage(project.workspace(), branch, AUTHOR)


@pytest.mark.fault("D2")
def test_one_flipped_byte_in_a_sealed_segment_costs_no_entity(project: Project, tally) -> None:
    count = tries(2_001, 40_001)
    for start in range(0, count, 2_500):
        keys = range(start, min(start + 2_500, count))
        project.apply(entities=[requirement(f"R{number}") for number in keys])
    project.apply(entities=[requirement("LAST")])
    compact(project.workspace(), "main")
    project.apply(entities=[requirement("AFTER")])
    forget(project)
    directory = project.workspace().folders.directory_of("main")
    flip(directory / FIRST, b'Title of R1"')
    tally.tried()
    (one,) = salvaged(project)
    assert [(hole.first, hole.last) for hole in one.holes] == [(1, 1)]
    assert one.entities == count + 2 == len(entities(project))
    assert is_proven(project)
    tally.done()


@pytest.mark.fault("D2")
def test_records_before_and_after_the_missing_ones_are_kept_and_named(project: Project, tally) -> None:
    directory = filled(project, "ABCDEFG", seal_after="E")
    before = head.read(RealFs(), directory)
    flip(directory / FIRST, b"Title of C")
    forget(project)
    tally.tried()
    with pytest.raises(Damaged):
        entities(project)
    (one,) = salvaged(project)
    of = head.read(RealFs(), directory)
    assert of.features_required == ("git_directory", "holes")
    assert [(hole.first, hole.last) for hole in of.holes] == [(3, 3)]
    assert (of.store_id, of.seq) == (before.store_id, 8)
    assert entities(project) == set("ABCDEFG")
    assert [row["seq"] for row in log(project.view())] == [8, 7, 6, 5, 4, 2, 1]
    store = project.workspace().store("main")
    told = record_json(store, project.view(), 8)
    assert told["holes"] == msgspec.to_builtins(one.holes)
    assert (told["holes"][0]["before"], told["holes"][0]["after"]) == (of.holes[0].before, of.holes[0].after)
    for seq, names in ((1, "A"), (2, "AB"), (5, "ABCDE"), (8, "ABCDEFG")):
        assert read_at(store, str(seq), lambda view, at: {*state_at(view, at).nodes}) == set(names)
    with pytest.raises(KBError, match="seq 4 is not proven: record 3 is missing"):
        read_at(store, "4", state_at)
    again = project.apply(entities=[requirement("C")], changeset_id="for-C")
    assert again.duplicate, "the snapshot knows the changeset of a missing record"
    assert "record 3 is missing since the salvage that record 8 documents" in again.warnings[0]
    assert "prun" not in " ".join(again.warnings)
    assert salvaged(project)[0].copy == "", "there is nothing left to salvage"
    tally.done()


@pytest.mark.fault("D2")
@pytest.mark.parametrize("length", [1, 512, 4096])
def test_zeroed_bytes_near_the_end_leave_the_other_records(length: int, project: Project, tally) -> None:
    keys = [f"K{number}" for number in range(30)]
    for key in keys:
        project.apply(entities=[requirement(key)])
    directory = project.workspace().folders.directory_of("main")
    forget(project)
    start = (directory / FIRST).stat().st_size - 6_000
    edit(directory / FIRST, lambda data: data[:start] + bytes(length) + data[start + length :])
    tally.tried()
    (one,) = salvaged(project)
    gone = {seq for hole in one.holes for seq in range(hole.first, hole.last + 1)}
    assert 1 <= len(gone) <= 2 + length // 400
    assert entities(project) == {f"K{number}" for number in range(30) if number + 1 not in gone}
    assert is_proven(project)
    project.apply(entities=[requirement("Z")])
    tally.done()


@pytest.mark.fault("D2")
@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b"\n", b"?", 1),
        lambda data: data[: data.index(b"\n") + 1] + data,
        lambda data: data + b"garbage\n",
    ],
    ids=["line ends", "mark", "newline", "doubled line", "grown"],
)
@pytest.mark.parametrize("file", ["sealed", "active"])
def test_damage_that_leaves_every_record_whole_costs_nothing(file: str, change, project: Project, tally) -> None:
    directory = filled(project, "ABCDEFG", seal_after="C")
    name = FIRST if file == "sealed" else "journal-0000000004.jsonl"
    sound = (directory / name).read_bytes()
    head_before = head.read(RealFs(), directory)
    edit(directory / name, change)
    forget(project)
    tally.tried()
    (one,) = salvaged(project)
    of = head.read(RealFs(), directory)
    assert one.holes == of.holes == ()
    assert of.features_required == ("git_directory",)
    assert of.store_id == head_before.store_id
    assert (directory / name).read_bytes().startswith(sound)
    assert entities(project) == set("ABCDEFG")
    assert is_proven(project)
    tally.done()


@pytest.mark.fault("D2")
def test_without_a_snapshot_the_facts_around_the_missing_records_are_carried_on(project: Project, tally) -> None:
    directory = filled(project, "AB")
    project.apply(entities=[requirement("NEW", tags=["x"]), {"id": "B", "title": "Lost title"}])
    project.apply(entities=[{"id": "NEW", "priority": "must"}])
    project.apply(entities=[{"id": "A", "priority": "could"}], edges=[{"type": "depends_on", "from": "A", "to": "B"}])
    flip(directory / FIRST, b"Lost title")
    forget(project)
    tally.tried()
    (one,) = salvaged(project)
    assert [(hole.first, hole.last) for hole in one.holes] == [(3, 3)]
    assert entities(project) == {"A", "B"}
    node = project.node("A")
    assert node is not None
    assert node.fields["priority"] == "could"
    assert project.edges("A") == {("A", "depends_on", "B", True)}
    assert any("too little is left: NEW" in doubt for doubt in one.doubts)
    assert any("changeset ids are forgotten" in doubt for doubt in one.doubts)
    assert is_proven(project)
    project.apply(entities=[requirement("NEW")])
    tally.done()


@pytest.mark.fault("D2")
def test_what_only_a_cached_view_knows_enters_as_a_record_marked_unproven(project: Project, tally) -> None:
    directory = filled(project, "AB")
    project.apply(
        entities=[requirement("NEW", tags=["x"]), {"id": "B", "title": "Lost title"}],
        edges=[{"type": "depends_on", "from": "NEW", "to": "A"}],
    )
    project.apply(entities=[{"id": "NEW", "priority": "must"}])
    project.pool.close()
    shutil.rmtree(project.workspace().folders.cache_of("main"), ignore_errors=True)
    project.view()  # builds and publishes the view of the head
    project.pool.close()
    wanted = state_at(project.view(), 4)
    flip(directory / FIRST, b"Lost title")
    tally.tried()
    (one,) = salvaged(project)
    forget(project)
    found = state_at(project.view(), one.seq)
    assert {key: node.fields for key, node in found.nodes.items()} == {
        key: node.fields for key, node in wanted.nodes.items()
    }
    assert found.links.keys() == wanted.links.keys()
    assert {key: node.source.startswith("unproven:") for key, node in found.nodes.items()} == {
        "A": False,
        "B": True,
        "NEW": True,
    }
    told = record_json(project.workspace().store("main"), project.view(), 5)
    assert (told["source"], told["unproven"]["seq"]) == ("unproven", 4)
    assert [row["seq"] for row in log(project.view(), Selection(source="unproven"))] == [5]
    assert is_proven(project)
    tally.done()


@pytest.mark.fault("D2")
def test_a_cached_view_that_is_slow_to_read_is_waited_for_or_ends_the_salvage(project, monkeypatch, tally) -> None:
    directory = filled(project, "AB")
    project.apply(entities=[{"id": "B", "title": "Lost title"}])
    project.apply(entities=[{"id": "B", "priority": "must"}])
    project.pool.close()
    shutil.rmtree(project.workspace().folders.cache_of("main"), ignore_errors=True)
    project.view()
    project.pool.close()
    flip(directory / FIRST, b"Lost title")
    before = head.read(RealFs(), directory)
    with monkeypatch.context() as slow:
        slow.setattr(limits, "MAINTENANCE_STATEMENT_S", 0.0)
        tally.tried()
        with pytest.raises(StatementTimeout):
            salvage(project.workspace(), "main", AUTHOR)
    assert head.read(RealFs(), directory) == before
    token = interrupting._statement_s.set(0.0)
    try:
        tally.tried()
        (one,) = salvaged(project)
    finally:
        interrupting._statement_s.reset(token)
    forget(project)
    assert state_at(project.view(), one.seq).nodes["B"].fields["title"] == "Lost title"
    tally.done()


@pytest.mark.fault("D2")
def test_a_view_that_saw_another_history_is_no_source(project: Project, tally) -> None:
    directory = filled(project, "AB")
    project.view()
    shutil.copytree(directory, project.root / "earlier")
    project.apply(entities=[requirement("OTHER")])
    project.apply(entities=[requirement("OTHER2")])
    project.pool.close()
    shutil.rmtree(project.workspace().folders.cache_of("main"), ignore_errors=True)
    project.view()
    project.pool.close()
    shutil.rmtree(directory)
    shutil.move(project.root / "earlier", directory)
    project.workspace().witness("main").accept(head.read(RealFs(), directory))
    kept = project.workspace().folders.cache_of("main")
    saved = project.root / "saved-cache"
    shutil.copytree(kept, saved)
    shutil.rmtree(kept)
    for key in "CDE":
        project.apply(entities=[requirement(key)])
    forget(project)
    shutil.copytree(saved, kept)
    flip(directory / FIRST, b"Title of C")
    tally.tried()
    salvaged(project)
    assert entities(project) == set("ABDE")
    tally.done()


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
@pytest.mark.parametrize("repair", [salvage, rebuild_head])
def test_a_changed_character_in_the_name_of_a_feature_shuts_no_store(repair, project: Project, tally) -> None:
    directory = filled(project, "ABC")
    edit(directory / layout.HEAD, lambda data: data.replace(b"git_directory", b"git_directOry"))
    forget(project)
    tally.tried()
    repair(project.workspace(), "main", AUTHOR)
    assert head.read(RealFs(), directory).features_required == ("git_directory",)
    put_keys(project, "D")
    assert entities(project) == set("ABCD")
    assert is_proven(project)
    tally.done()


@pytest.mark.fault("D2")
def test_a_damaged_head_with_an_unknown_feature_is_left_to_a_newer_kb(project: Project, tally) -> None:
    directory = filled(project, "ABC")
    edit(directory / layout.HEAD, lambda data: data.replace(b"git_directory", b"other_feature"))
    forget(project)
    before = contents(directory)
    for repair in (salvage, rebuild_head):
        tally.tried()
        with pytest.raises(FormatTooNew, match="other_feature"):
            repair(project.workspace(), "main", AUTHOR)
    assert contents(directory) == before
    tally.done()


@pytest.mark.fault("D2")
def test_a_lost_head_and_a_damaged_record_at_once(project: Project, tally) -> None:
    directory = filled(project, "ABCDE")
    flip(directory / FIRST, b"Title of C")
    (directory / layout.HEAD).unlink()
    forget(project)
    tally.tried()
    (one,) = salvaged(project)
    assert [(hole.first, hole.last) for hole in one.holes] == [(3, 3)]
    assert one.doubts[0].startswith("The head file was lost")
    assert entities(project) == set("ABDE")
    assert is_proven(project)
    tally.done()


@pytest.mark.fault("D2")
def test_a_lost_head_and_a_lost_end_leave_the_seqs_that_the_second_witness_saw_unused(project: Project, tally) -> None:
    directory = filled(project, "ABCDE")
    before = head.read(RealFs(), directory)
    edit(directory / FIRST, lambda data: b"".join(data.splitlines(keepends=True)[:3]))
    (directory / layout.HEAD).unlink()
    forget(project)
    tally.tried()
    (one,) = salvaged(project)
    of = head.read(RealFs(), directory)
    assert [(hole.first, hole.last, hole.after) for hole in one.holes] == [(4, 5, before.hash)]
    assert (of.seq, of.store_id) == (6, before.store_id)
    assert entities(project) == set("ABC")
    assert is_proven(project)
    project.apply(entities=[requirement("D")])
    tally.done()


@pytest.mark.sliced
@pytest.mark.fault("D2")
@pytest.mark.parametrize(("lost", "answered"), [("CFI", set()), ("FI", {5}), ("HI", {5, 7})])
@pytest.mark.parametrize("word", ["query", "kip"])
def test_a_cursor_from_before_a_salvage_is_answered_or_refused_as_the_same_seq_is(
    word: str, lost: str, answered: set[int], harmed, tally
) -> None:
    root = harmed(KINDS["corrupt before the head"]._replace(harm=ids))

    def first() -> list[str]:
        if word == "kip":
            return ["kip", 'FIND(?x.id) WHERE { ?x {type: "$ConceptType"} } LIMIT 1', "--json"]
        return ["query", "--limit", "1", "--json"]

    def after(cursor: str) -> Ran:
        if word == "kip":
            return kb(root, "kip", first()[1] + f' CURSOR "{cursor}"', "--json")
        return kb(root, *first(), "--cursor", cursor)

    def cursor_now() -> str:
        found = done(kb(root, *first())).json
        return str(found.get("next_cursor") or found["result"]["next_cursor"])

    def page(ran: Ran) -> object:
        return [one["id"] for one in ran.json["entities"]] if word == "query" else ran.json["result"]

    cursors = {5: cursor_now()}
    put(root, "FG")
    cursors[7] = cursor_now()
    put(root, "HI")
    pages = {seq: page(done(after(cursor))) for seq, cursor in cursors.items()}
    assert all(pages.values())
    for key in lost:
        flip(root / ".git/kb/branches/main" / FIRST, f"Title of {key}".encode())
    forget_views(root)
    done(kb(root, "doctor", "--salvage"))
    tally.tried()
    for seq, cursor in cursors.items():
        direct, ran = kb(root, "query", "--at", str(seq), "--json"), after(cursor)
        if seq in answered:
            assert direct.status == 0
            assert page(done(ran)) == pages[seq]
            continue
        assert direct.status == 66
        said = json.dumps(ran.json)
        assert direct.error["message"] in said, (seq, said, direct.error)
        assert "prun" not in direct.error["message"]
    tally.done()


@pytest.mark.fault("D2")
def test_a_salvaged_store_can_be_copied_compacted_and_pruned(project: Project, tally) -> None:
    directory = filled(project, "ABCDEFG", seal_after="E")
    flip(directory / FIRST, b"Title of C")
    forget(project)
    salvaged(project)
    tally.tried()
    git(project.root, "branch", "copy")
    branches.ensure(project.workspace(), "copy")
    assert entities(project, "copy") == set("ABCDEFG")
    assert is_proven(project, "copy")
    compact(project.workspace(), "main")
    assert is_proven(project)
    compact(project.workspace(), "main", prune_before=9)
    of = head.read(RealFs(), directory)
    assert (of.features_required, of.holes) == (("git_directory",), ())
    forget(project)
    assert entities(project) == set("ABCDEFG")
    assert is_proven(project)
    tally.done()


@pytest.mark.fault("D2")
def test_pruning_a_salvaged_store_gives_up_no_more_than_was_asked(project: Project, tally) -> None:
    directory = filled(project, "ABCDEFGHIJKL")
    flip(directory / FIRST, b"Title of E")
    forget(project)
    salvaged(project)
    for before, answer in ((6, "13"), (8, "13"), (12, "13")):
        tally.tried()
        kept = contents(directory)
        with pytest.raises(InvalidQuery, match=f"before seq {before} alone: .* records {before} to 12") as refused:
            compact(project.workspace(), "main", prune_before=before)
        assert f"--prune-before {answer}`" in refused.value.hint
        assert contents(directory) == kept
        tally.done()
    assert [row["seq"] for row in log(project.view())] == [13, 12, 11, 10, 9, 8, 7, 6, 4, 3, 2, 1]
    compact(project.workspace(), "main", prune_before=13)
    assert is_proven(project)
    assert entities(project) == set("ABCDFGHIJKL")
    assert [row["seq"] for row in log(project.view())] == [13]


@pytest.mark.fault("D2")
def test_a_view_is_not_used_further_when_records_before_a_gap_are_pruned(project: Project, tally) -> None:
    directory = filled(project, "ABCDEFGHIJKL", seal_after="C")
    flip(directory / "journal-0000000004.jsonl", b"Title of F")
    forget(project)
    salvaged(project)
    project.view()
    tally.tried()
    compact(project.workspace(), "main", prune_before=4)
    assert head.read(RealFs(), directory).holes
    assert is_proven(project)
    assert log(project.view())[-1]["seq"] == 4
    tally.done()


@pytest.mark.fault("D2")
def test_a_lost_snapshot_of_pruned_history_leaves_what_later_records_state(project: Project, tally) -> None:
    directory = filled(project, "ABC", seal_after="C")
    compact(project.workspace(), "main", prune_before=4)
    project.apply(entities=[requirement("D"), {"id": "A", "title": "Another title"}])
    (directory / "snapshot-0000000003.jsonl").unlink()
    forget(project)
    tally.tried()
    (one,) = salvaged(project)
    assert any("were pruned" in doubt for doubt in one.doubts)
    assert any("too little is left: A" in doubt for doubt in one.doubts)
    assert entities(project) == {"D"}
    assert is_proven(project)
    tally.done()


def prepared(root: Path) -> tuple[Project, Path, Path]:
    """Return a damaged store, its directory, and a copy of that."""
    project = Project(root / "repo")
    directory = filled(project, "ABCDEFG", seal_after="E")
    flip(directory / FIRST, b"Title of C")
    flip(directory / "journal-0000000006.jsonl", b"Title of G")
    forget(project)
    shutil.copytree(directory, root / "saved")
    return project, directory, root / "saved"


@pytest.mark.fault("D2")
@pytest.mark.parametrize("when", ["before", "after", "half"])
def test_a_salvage_that_ends_at_any_call_can_be_repeated(when: str, tmp_path: Path, tally) -> None:
    project, directory, saved = prepared(tmp_path)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    salvaged(project)
    for at in range(0, len(probe.calls), tries(25, 1)):
        reset(project, saved, directory)
        project.machine.fs = dying = CrashingFs(at, when=when, inner=NoSyncFs())
        with pytest.raises(Crash):
            salvaged(project)
        dying.close_all()
        project.machine.fs = NoSyncFs()
        tally.tried()
        salvaged(project)
        forget(project)
        if entities(project) != set("ABCDEF") or not is_proven(project):
            tally.violated((when, at, probe.calls[at]), entities(project))
    tally.done(at_least=tries(3, 10))


@pytest.mark.fault("D2")
def test_an_accepted_salvage_that_ends_at_any_call_can_be_repeated(tmp_path: Path, tally) -> None:
    project, directory, saved = prepared(tmp_path)
    lose_an_end(project.root)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
    for at in range(0, len(probe.calls), tries(25, 1)):
        reset(project, saved, directory)
        lose_an_end(project.root)
        project.machine.fs = dying = CrashingFs(at, when="half", inner=NoSyncFs())
        with pytest.raises(Crash):
            salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
        dying.close_all()
        project.machine.fs = NoSyncFs()
        tally.tried()
        salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
        forget(project)
        is_settled = project.workspace().loss_of("main") is None
        if entities(project) != set("ABDEF") | {"C"} or not is_proven(project) or not is_settled:
            tally.violated((at, probe.calls[at]), entities(project))
    tally.done(at_least=tries(3, 10))


@pytest.mark.fault("D2")
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
def test_a_salvage_in_which_a_call_fails_says_truly_whether_it_counts(code: int, tmp_path: Path, tally) -> None:
    project, directory, saved = prepared(tmp_path)
    project.machine.fs = probe = LoggingFs(NoSyncFs())
    salvaged(project)
    for at in range(0, len(probe.calls), tries(25, 1)):
        reset(project, saved, directory)
        before = (directory / layout.HEAD).read_bytes()
        project.machine.fs = failing = FailingFs(at, code, when="half", lasting=True, inner=NoSyncFs())
        tally.tried()
        try:
            salvaged(project)
        except KBError as error:
            is_old = (directory / layout.HEAD).read_bytes() == before
            if error.applied == "no" and not is_old:
                tally.violated((at, probe.calls[at]), f"{error.code} says that nothing was applied")
        failing.close_all()
        project.machine.fs = NoSyncFs()
        salvaged(project)
        forget(project)
        if entities(project) != set("ABCDEF") or not is_proven(project):
            tally.violated((code, at, probe.calls[at]), entities(project))
    tally.done(at_least=tries(3, 10))


@pytest.mark.fault("D2")
def test_two_salvages_at_once_leave_one(tmp_path: Path, tally) -> None:
    project, directory, saved = prepared(tmp_path)
    for _ in range(tries(2, 10)):
        reset(project, saved, directory)
        tally.tried()
        both = [Project(project.root, is_new=False) for _ in range(2)]
        with ThreadPoolExecutor(2) as pool:
            made = list(pool.map(salvaged, both))
        assert sorted(bool(one[0].copy) for one in made) == [False, True]
        forget(project)
        assert entities(project) == set("ABCDEF")
        assert is_proven(project)
    tally.done()


@pytest.mark.fault("D2")
@pytest.mark.parametrize("by", ["a reader", "another writer"])
def test_writers_refuse_damage_that_was_found_and_go_on_when_it_is_gone(by: str, project: Project, tally) -> None:
    directory = filled(project, "ABCDE", seal_after="D")
    path = directory / FIRST
    sound = path.read_bytes()
    project.view()
    writer = Project(project.root, is_new=False)
    writer.view()  # warm: it reads no sealed file any more
    flip(path, b"Title of C")
    tally.tried()
    forget(project)
    with pytest.raises(Damaged):
        project.view() if by == "a reader" else project.apply(entities=[requirement("F")])
    with pytest.raises(Damaged):
        writer.apply(entities=[requirement("F")])
    with pytest.raises(Damaged):
        Project(project.root, is_new=False).apply(entities=[requirement("F")])
    path.write_bytes(sound)
    assert writer.apply(entities=[requirement("F")]).applied
    assert not (project.workspace().folders.cache_of("main") / "damaged.json").exists()
    tally.done()


@pytest.mark.fault("D2")
@pytest.mark.parametrize("change", [lambda data: data[:-5], lambda data: data + b"x\n"], ids=["cut", "grown"])
def test_writers_refuse_a_sealed_file_of_another_size_without_being_told(change, project: Project, tally) -> None:
    directory = filled(project, "ABCDE", seal_after="D")
    project.view()
    edit(directory / FIRST, change)
    tally.tried()
    with pytest.raises(Damaged):
        project.apply(entities=[requirement("F")])
    assert head.read(RealFs(), directory).seq == 5
    tally.done()


def commands_in(text: str) -> list[list[str]]:
    """Return the `kb` commands that a message names, as words, in their order."""
    return [shlex.split(command)[1:] for command in dict.fromkeys(re.findall(r"`(kb [^`]*)`", text))]


def remedies(root: Path) -> list[str]:
    """Return what `kb doctor` advises about damage, the gravest first."""
    found = kb(root, "doctor", "--json").json["findings"]
    return [one["remedy"] for one in found if one["severity"] == "error" and one["code"] not in {"", "no_head"}]


def follow(root: Path, advice: str, *, backup: Path | None) -> bool:
    """Execute the commands of an advice that repair something; return whether there was one."""
    has_repaired = False
    for words in commands_in(advice):
        if words[0] == "restore" and backup is not None:
            done(kb(root, *(str(backup) if word == "FILE" else word for word in words)))
            return True
        if words[0] == "doctor" and len(words) > 1 and backup is None:
            done(kb(root, *words))
            has_repaired = True
    return has_repaired


DAMAGED = [
    name for name, kind in KINDS.items() if kind.verify and name in PROVEN_AFTERWARDS and name != "emptied folder"
]
LEFT = {
    "corrupt before the head": "ABDE",
    "converted line ends": "ABCDE",
    "last newline": "ABCDE",
    "missing journal": "",
    "mixed files": "ABCDEW",
}
"""What the advice for a store without a backup leads to, where that is less than undoing the damage by hand."""


@pytest.mark.sliced(7)
@pytest.mark.fault("D2")
@pytest.mark.parametrize("name", DAMAGED)
def test_the_advice_of_a_diagnosis_followed_word_by_word_leads_to_a_working_store(name: str, harmed, tally) -> None:
    kind = KINDS[name]
    root = harmed(kind)
    tally.tried()
    if kind.query[0]:
        said = kb(root, "query", "--json").error["hint"]
        assert any(words[0] == "doctor" for words in commands_in(said)), said
    for _ in range(3):
        advice = remedies(root)
        if not advice:
            break
        assert follow(root, advice[0], backup=None), advice
        forget_views(root)
    assert ids(root) == LEFT.get(name, kind.left)
    assert done(kb(root, "verify", "--json")).json["ok"]
    put(root, "Z")
    tally.done()


def lose_an_end(root: Path) -> None:
    """Note three acknowledged records after the last one of main: a store that lacks them went back."""
    workspace = Project(root, is_new=False).workspace()
    seen = workspace.place.read("main")
    assert seen is not None
    later = msgspec.structs.replace(seen, seq=seen.seq + 3, hash="e" * 64, length=seen.length + 900)
    assert workspace.place.write("main", later)


def consented(root: Path, words: list[str], before: tuple[list[str], ...] = ()) -> None:
    """Execute a repair, which a person confirms; where it is refused, follow the advice of the refusal."""
    assert words not in before, ("the advice leads in a circle", *before, words)
    ran = kb(root, *words, *(["--yes"] if "--new-epoch" in words else []), "--json")
    if ran.status:
        advised = [one for one in commands_in(ran.error["hint"]) if one[0] == "doctor" and len(one) > 1]
        assert advised, ran
        consented(root, advised[0], (*before, words))


@pytest.mark.sliced(5)
@pytest.mark.fault("D2")
@pytest.mark.parametrize("first", [0, -1], ids=["gravest first", "gravest last"])
@pytest.mark.parametrize("name", DAMAGED)
def test_the_advice_for_a_damaged_store_that_also_went_back_leads_to_a_working_store(
    name: str, first: int, harmed, tally
) -> None:
    kind = KINDS[name]
    root = harmed(kind._replace(harm=ids))
    kind.harm(root)
    lose_an_end(root)
    forget_views(root)
    tally.tried()
    for _ in range(4):
        advice = remedies(root)
        if not advice:
            break
        for words in commands_in(advice[first]):
            if words[0] == "doctor" and len(words) > 1:
                consented(root, words)
        forget_views(root)
    assert ids(root) == LEFT.get(name, kind.left)
    assert done(kb(root, "verify", "--json")).json["ok"]
    put(root, "Z")
    tally.done()


def went_back(project: Project, *, branch: bool = False) -> Path:
    """Fill a store, put an earlier copy of it in its place, and damage a record of that; return its directory."""
    directory = filled(project, "ABCDE")
    shutil.copytree(directory, project.root.with_name("earlier"))
    put_keys(project, "FGH")
    forget(project)
    project.view()  # builds and publishes the view of the head
    if branch:
        git(project.root, "branch", "other")
        branches.ensure(project.workspace(), "other")
        put_keys(project, "OP", "other")
    put_back(project, project.root.with_name("earlier"), directory)
    flip(directory / FIRST, b"Title of C")
    return directory


@pytest.mark.fault("D2")
def test_no_epoch_begins_in_a_damaged_journal_and_no_salvage_gives_records_up_unasked(project, tally) -> None:
    directory = went_back(project)
    forget(project)
    before = contents(directory)
    tally.tried()
    with pytest.raises(JournalCorrupt, match=r"line 3.*No epoch was begun") as refused:
        epochs.accept(project.workspace(), "main", AUTHOR)
    assert "`kb doctor --salvage --branch main --yes`" in refused.value.hint
    with pytest.raises(JournalCorrupt):
        epochs.question(project.workspace(), "main")
    with pytest.raises(StoreWentBack, match="records 6 to 8 are missing") as unasked:
        salvaged(project)
    assert "`kb doctor --salvage --branch main --yes`" in unasked.value.hint
    assert contents(directory) == before
    tally.done()


@pytest.mark.fault("D2")
def test_an_accepted_salvage_of_a_store_that_went_back_begins_an_epoch_and_uses_no_seq_twice(project, tally) -> None:
    directory = went_back(project)
    before = head.read(RealFs(), directory)
    forget(project)
    tally.tried()
    (one,) = salvage(project.workspace(), "main", AUTHOR, accepts_loss=True)
    of = head.read(RealFs(), directory)
    assert [(hole.first, hole.last) for hole in one.holes] == [(3, 3), (6, 8)]
    assert (of.seq, of.store_id != before.store_id) == (9, True)
    assert [(epoch.store_id, epoch.seq, epoch.seen) for epoch in of.epochs] == [(before.store_id, 8, 8)]
    assert entities(project) == set("ABDE")
    assert is_proven(project)
    assert project.workspace().loss_of("main") is None
    assert "A person accepted the loss." in log(project.view())[0]["repair"]
    assert not project.apply(entities=[requirement("F")]).warnings
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
    assert "`kb doctor --salvage --branch other --yes`" in doubt
    assert contents(other) == before
    [one, *_] = salvage(project.workspace(), "other", AUTHOR, accepts_loss=True)
    assert [(hole.first, hole.last) for hole in one.holes] == [(3, 3), (7, 8)]
    assert is_proven(project, "other")
    tally.done()


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


@pytest.mark.fault("D2")
def test_an_old_head_beside_a_damaged_record_costs_no_other_record(project: Project, tally) -> None:
    directory = filled(project, "ABC")
    old = (directory / layout.HEAD).read_bytes()
    compact(project.workspace(), "main")
    put_keys(project, "DE")
    (directory / layout.HEAD).write_bytes(old)
    flip(directory / FIRST, b"Title of B")
    (directory / "snapshot-0000000003.jsonl").unlink()
    forget(project)
    tally.tried()
    with pytest.raises(KBError, match="does not match") as refused:
        rebuild_head(project.workspace(), "main", AUTHOR)
    assert "`kb doctor --salvage --branch main`" in refused.value.hint
    (one,) = salvaged(project)
    assert [(hole.first, hole.last) for hole in one.holes] == [(2, 2)]
    assert entities(project) == set("ACDE")
    assert is_proven(project)
    tally.done()


@pytest.mark.sliced(4)
@pytest.mark.fault("D2")
@pytest.mark.parametrize(
    "name", [name for name in DAMAGED if KINDS[name].query[0] in {"journal_corrupt", "journal_truncated"}]
)
def test_the_advice_to_restore_followed_word_by_word_brings_everything_back(name: str, harmed, tmp_path, tally) -> None:
    kind: Kind = KINDS[name]
    saved = tmp_path / "saved.backup"
    root = harmed(kind._replace(harm=lambda _: None))
    wanted = ids(root)
    done(kb(root, "backup", str(saved)))
    kind.harm(root)
    forget_views(root)
    tally.tried()
    if kind.row == "mixed files":
        said = remedies(root)[0]
        assert "Put head.json and the journal back" in said
    else:
        assert any(follow(root, one, backup=saved) for one in remedies(root))
        forget_views(root)
        assert ids(root) == wanted
        assert done(kb(root, "verify", "--json")).json["ok"]
    tally.done()


@pytest.mark.fault("D2")
def test_an_export_as_of_the_last_good_record_works_beside_damage(harmed, tally) -> None:
    root = harmed(KINDS["corrupt before the head"])
    tally.tried()
    exported = json.loads(done(kb(root, "export", "-", "--at", "2")).out)
    assert [one["id"] for one in exported["entities"]] == ["A", "B"]
    assert kb(root, "export", "-").status == 40
    assert kb(root, "export", "-", "--at", "3").status == 40
    assert verify.prove(RealFs(), root / ".git/kb/branches/main").good_seq == 2
    tally.done()
