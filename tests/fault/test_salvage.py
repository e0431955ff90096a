"""D2: what is left of a damaged store is kept, and what is gone is said."""

from __future__ import annotations

import json
import shutil

import msgspec
import pytest

from kbcore import limits
from kbcore.editing.renaming import rename
from kbcore.errors import (
    Damaged,
    FormatTooNew,
    KBError,
    StatementTimeout,
)
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.repair import rebuild_head
from kbcore.maintenance.salvage import salvage
from kbcore.process import interrupting
from kbcore.storage import head, layout, verify
from kbcore.storage.fs import RealFs
from kbcore.store.history.log import RecordFilter, log, record_json
from kbcore.store.history.moment import read_at
from kbcore.store.history.touched import touched
from kbcore.view.history import state_at
from tests.core.editing.renamed import target
from tests.fault.damaged_stores import (
    KINDS,
    done,
    harmed,
    kb,
    models,
)
from tests.fault.salvaging import salvaged
from tests.support.disk.damage import (
    FIRST,
    contents,
    edit,
    entities,
    filled,
    flip,
    forget,
    is_proven,
    requirement,
)
from tests.support.disk.damage import (
    put as put_keys,
)
from tests.support.effort.scale import tries
from tests.support.processes.advice import spelled_out
from tests.support.repository.project import AUTHOR, Project, req

__all__ = ["harmed", "models"]


@pytest.mark.sliced
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
    reported = record_json(store, project.view(), 8)
    assert reported["holes"] == msgspec.to_builtins(one.holes)
    assert (reported["holes"][0]["before"], reported["holes"][0]["after"]) == (of.holes[0].before, of.holes[0].after)
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


@pytest.mark.sliced(1)
@pytest.mark.fault("D2")
def test_records_before_the_missing_ones_have_the_changes_that_they_had(project: Project, tally) -> None:
    project.sync({"docs/requirements/A.md": req("A", depends_on="[B]")})
    project.sync({"docs/requirements/B.md": req("B")})
    rename(target(project), "B", "N")
    project.sync({"docs/requirements/B.md": None})
    put_keys(project, "XYZ")
    compact(project.workspace(), "main")
    view = project.view()
    seqs = range(1, 6)
    before = [one for one in log(view) if one["seq"] in seqs], touched(view, seqs, limit=10), log(view, id="A")
    assert [one["summary"]["edges"] for one in before[0]] == [0, 1, 0, 1, 1], "a record resolves an edge of others"
    flip(project.workspace().folders.directory_of("main") / FIRST, b"Title of Y")
    forget(project)
    tally.tried()
    salvaged(project)
    view = project.view()
    after = [one for one in log(view) if one["seq"] in seqs], touched(view, seqs, limit=10), log(view, id="A")
    assert after == before
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


@pytest.mark.sliced(3)
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
def test_an_entity_that_a_proven_record_creates_for_several_sources_keeps_the_fields_of_each(project, tally) -> None:
    files = {"docs/requirements/A.md": req("A"), "docs/requirements/B.md": req("B")}
    project.sync(files)
    project.apply(entities=[{"id": "A", "owner": "ada", "attributes": {"k": "v"}}])
    project.sync({"docs/requirements/A.md": None})
    project.sync(files)
    wanted = project.node("A")
    project.sync({"docs/requirements/B.md": req("B", title="Lost title")})
    flip(project.workspace().folders.directory_of("main") / FIRST, b"Lost title")
    forget(project)
    tally.tried()
    (one,) = salvaged(project)
    assert [(hole.first, hole.last) for hole in one.holes] == [(5, 5)]
    assert not any("too little is left" in doubt for doubt in one.doubts)
    assert project.node("A") == wanted
    assert wanted.fields["owner"] == "ada"
    assert is_proven(project)
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
    reported = record_json(project.workspace().store("main"), project.view(), 5)
    assert (reported["source"], reported["unproven"]["seq"]) == ("unproven", 4)
    assert [row["seq"] for row in log(project.view(), RecordFilter(source="unproven"))] == [5]
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
    assert "`kb doctor --salvage --branch main`" in spelled_out(refused.value.hint)
    (one,) = salvaged(project)
    assert [(hole.first, hole.last) for hole in one.holes] == [(2, 2)]
    assert entities(project) == set("ACDE")
    assert is_proven(project)
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
