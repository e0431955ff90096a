"""D2: a salvaged store is read, copied, compacted and pruned, and writers go on when damage is gone."""

from __future__ import annotations

import json

import pytest

from kbcore.errors import (
    Damaged,
    InvalidQuery,
    JournalCorrupt,
    StoreWentBack,
)
from kbcore.maintenance import epochs
from kbcore.maintenance.compacting import compact
from kbcore.maintenance.salvage import salvage
from kbcore.storage import head
from kbcore.storage.fs import RealFs
from kbcore.store import branches
from kbcore.store.history.log import log
from tests.fault.damaged_stores import (
    KINDS,
    done,
    forget_views,
    harmed,
    ids,
    kb,
    models,
    put,
)
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
    requirement,
)
from tests.support.processes.advice import spelled_out
from tests.support.processes.cli import Ran
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git

__all__ = ["harmed", "models"]


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
        assert f"`kb help prune` describes for the branch main gives them up as well, with the seq {answer}" in (
            refused.value.hint
        )
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
def test_writers_refuse_a_sealed_file_of_another_size_without_a_note_of_damage(change, project: Project, tally) -> None:
    directory = filled(project, "ABCDE", seal_after="D")
    project.view()
    edit(directory / FIRST, change)
    tally.tried()
    with pytest.raises(Damaged):
        project.apply(entities=[requirement("F")])
    assert head.read(RealFs(), directory).seq == 5
    tally.done()


@pytest.mark.fault("D2")
def test_no_epoch_begins_in_a_damaged_journal_and_no_salvage_gives_records_up_unasked(project, tally) -> None:
    directory = went_back(project)
    forget(project)
    before = contents(directory)
    tally.tried()
    with pytest.raises(JournalCorrupt, match=r"line 3.*No epoch was begun") as refused:
        epochs.accept(project.workspace(), "main", AUTHOR)
    assert "`kb doctor --salvage --branch main`" in spelled_out(refused.value.hint)
    with pytest.raises(JournalCorrupt):
        epochs.question(project.workspace(), "main")
    with pytest.raises(StoreWentBack, match="records 6 to 8 are missing") as unasked:
        salvaged(project)
    assert "`kb doctor --salvage --branch main`" in spelled_out(unasked.value.hint)
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
