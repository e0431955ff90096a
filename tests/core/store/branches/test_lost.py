"""A store that lacks acknowledged records is named and refused until somebody accepts the loss."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kbcore.errors import StoreWentBack
from kbcore.maintenance import epochs, repair
from kbcore.maintenance.adopting import adopt
from kbcore.maintenance.compacting import compact
from kbcore.storage import head as heads
from kbcore.storage import journal
from kbcore.store import branches
from kbcore.store.branches import lost
from kbcore.store.branches.choosing import choose_noted
from kbcore.view.cache_files import AHEAD
from tests.core.store.branches.losing import (
    accepted,
    copied,
    fresh,
    put,
    put_back,
    refused,
    sentence,
    store_of,
    went_back,
)
from tests.support.processes.advice import spelled_out
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git


def test_a_store_that_is_as_it_was_left_is_no_loss(project: Project) -> None:
    put(project, "A", "B")
    assert sentence(project) == ""
    assert sentence(fresh(project)) == ""
    assert project.workspace().place.read("main").seq == 2


def test_a_store_that_was_put_back_is_named_with_the_seqs_and_refused(project: Project) -> None:
    went_back(project)
    said = "The store of main went back to an earlier state. seen: 4, now: 2; records 3 to 4 are missing."
    assert sentence(project) == said
    assert refused(fresh(project)) == said
    assert heads.read(project.machine.fs, store_of(project)).seq == 2


def test_what_reads_a_store_that_went_back_warns_every_time(project: Project) -> None:
    went_back(project)
    for _ in range(2):
        store, _, _ = branches.open_branch(project.workspace(), None)
        assert store.read(lambda view: view.seq) == 2
        assert "seen: 4, now: 2" in store.warnings[0]


def test_the_view_of_the_missing_records_is_kept(project: Project) -> None:
    put(project, "A")
    copy = copied(project)
    put(project, *"BCD")
    fresh(project).node("A")
    put_back(project, copy)
    other = fresh(project)
    other.node("A")
    accepted(other)
    other.node("A")
    assert [path.name[:8] for path in project.workspace().folders.cache_of("main").glob(f"{AHEAD}*")] == ["ahead-4-"]


@pytest.mark.parametrize("write", [
    lambda project: compact(project.workspace(), "main"),
    lambda project: repair.rebuild_snapshots(project.workspace(), "main", AUTHOR),
    lambda project: branches.copy_from(project.workspace(), "main", "topic", replaces=True),
    lambda project: project.apply(dry_run=True, entities=[{"id": "Z", "type": "req", "title": "T", "status": "open"}]),
])  # fmt: skip
def test_nothing_else_writes_to_a_store_that_went_back(project: Project, write: Callable[[Project], object]) -> None:
    git(project.root, "branch", "topic")
    put(project, "A")
    branches.ensure(project.workspace(), "topic")
    went_back(project)
    before = (store_of(project) / "head.json").read_bytes()
    with pytest.raises(StoreWentBack):
        write(project)
    assert (store_of(project) / "head.json").read_bytes() == before


def test_accepting_gives_the_store_a_new_id_and_says_what_is_forgotten(project: Project) -> None:
    old = went_back(project)
    begun = accepted(project)
    assert begun.done[1] == f"2 records are lost: 3 to 4. {epochs.forgotten()}"
    now = heads.read(project.machine.fs, store_of(project))
    assert now.store_id != old
    assert [(one.store_id, one.seq, one.seen) for one in now.epochs] == [(old, 2, 4)]
    put(fresh(project), "C")
    assert sentence(project) == ""


def test_restoring_the_files_ends_the_refusal(project: Project) -> None:
    put(project, "A", "B")
    old = copied(project)
    put(project, "C")
    new = project.root.parent / "new"
    shutil.copytree(store_of(project), new)
    put_back(project, old)
    refused(project)
    put_back(project, new)
    put(project, "D")
    assert sentence(project) == ""


def test_a_newer_state_than_the_one_that_was_seen_is_taken_over(project: Project) -> None:
    put(project, "A")
    seen = project.workspace().place.read("main")
    put(project, "B", "C")
    assert project.workspace().place.write("main", seen)
    other = fresh(project)
    assert sentence(other) == ""
    assert other.workspace().place.read("main").seq == 3


@pytest.mark.parametrize("compacts", [False, True])
def test_records_that_took_the_place_of_lost_ones_are_noticed(project: Project, compacts: bool) -> None:
    put(project, "A", "B")
    copy = copied(project)
    put(project, "C", "D")
    seen = project.workspace().place.read("main")
    put_back(project, copy)
    shutil.rmtree(project.workspace().place.folder())
    other = fresh(project)
    if compacts:
        compact(other.workspace(), "main")
    put(other, "X", "Y", "Z")
    other.workspace().place.write("main", seen)
    assert "The store of main has another record 4 than the one that was acknowledged" in sentence(fresh(project))


@pytest.mark.parametrize("what", ["branches/main", "branches", ""])
def test_a_store_that_is_gone_is_named_and_no_other_is_made(project: Project, what: str) -> None:
    put(project, "A", "B")
    project.close()
    (project.root / ".kb").mkdir(exist_ok=True)
    target = store_of(project) if what == "branches/main" else store_of(project).parent
    shutil.rmtree(target if what else store_of(project).parent.parent)
    (project.root / ".kb").mkdir(exist_ok=True)
    (project.root / ".kb/config.json").write_text("{}")
    other = fresh(project)
    assert sentence(other) == "The store of main is missing. seen: 2, now: no store; records 1 to 2 are missing."
    assert "is missing" in refused(other)
    with pytest.raises(StoreWentBack):
        branches.open_to_read(other.workspace(), None)
    begun = accepted(other)
    assert begun.seq == 1
    put(other, "C")
    assert sentence(fresh(other)) == ""


def test_the_store_of_another_branch_answers_for_one_that_is_gone_and_says_so(project: Project) -> None:
    put(project, "A")
    project.switch("topic", create=True)
    put(project, "B")
    project.close()
    shutil.rmtree(store_of(project, "topic"))
    workspace = project.workspace()
    _, choice, ensured = branches.open_to_read(workspace, None)
    assert (choice.branch, workspace.answering("topic"), ensured.is_warning) == ("topic", "main", True)
    assert "seen: 2, now: no store; records 1 to 2 are missing" in ensured.notice
    accepted(project, "topic")
    assert project.seq() == 2  # the one record of main, and the one of the new epoch


def test_a_store_that_another_was_put_in_the_place_of_by_hand_is_missed(project: Project) -> None:
    put(project, "A", "B")
    other = Project(project.root.parent / "other")
    put(other, "X", "Y", "Z")
    put_back(project, copied(other))
    said = sentence(fresh(project))
    assert "Another store has the place of the one of main. seen: 2, now: 3" in said
    accepted(project)
    put(project, "C")
    assert sentence(fresh(project)) == ""
    other.close()


def adopted_by(project: Project) -> list[str]:
    """Return what the advice about the store of main says to take over."""
    [loss] = [one for one in lost.losses(project.workspace()) if one.branch == "main"]
    found = re.findall(r"`kb doctor --adopt (.*?)`", lost.remedy(project.workspace(), loss))
    return [word for one in found for word in shlex.split(one)]


def moved_aside(project: Project, name: str = "kb-moved") -> Path:
    """Return a copy of all stores, in a folder as the remedy of another setting names it."""
    data = store_of(project).parent.parent
    return Path(shutil.copytree(data, data.with_name(name))) / "branches"


def test_a_store_that_was_moved_aside_is_advised_only_where_it_has_the_missing_records(project: Project) -> None:
    git(project.root, "branch", "topic")
    put(project, "A")
    project.apply(branch="topic", entities=[{"id": "T", "type": "req", "title": "T", "status": "open"}])
    put(project, "B")
    copy = copied(project)
    put(project, "C")
    whole = moved_aside(project, "kb-moved-2")
    put_back(project, copy)
    moved_aside(project)
    assert adopted_by(project) == []  # the branch has a store
    project.close()
    shutil.rmtree(store_of(project))
    assert adopted_by(project) == [str(whole / "main")]  # topic has a store
    project.close()
    shutil.rmtree(store_of(project, "topic"))
    assert adopted_by(fresh(project)) == [str(whole)]
    adopt(project.workspace(), whole)
    assert lost.losses(fresh(project).workspace()) == []


def test_a_store_that_was_moved_aside_and_ends_before_the_loss_is_not_advised(project: Project) -> None:
    put(project, "A")
    moved_aside(project)
    put(project, "B")
    damaged = moved_aside(project, "kb-moved-2")
    (damaged / "main/head.json").write_bytes(b"{}")
    project.close()
    shutil.rmtree(store_of(project))
    assert adopted_by(fresh(project)) == []


def test_an_older_head_file_is_no_loss_as_long_as_the_records_are_there(project: Project) -> None:
    put(project, "A", "B")
    old = (store_of(project) / "head.json").read_bytes()
    put(project, "C")
    project.close()
    (store_of(project) / "head.json").write_bytes(old)
    assert sentence(fresh(project)) == ""
    put(project, "D")
    assert project.seq() == 4


def test_what_kb_puts_away_itself_is_no_loss(project: Project) -> None:
    put(project, "A")
    project.switch("topic", create=True)
    put(project, "B")
    git(project.root, "switch", "--quiet", "main")
    git(project.root, "branch", "spare")
    branches.ensure(project.workspace(), "spare")
    branches.copy_from(project.workspace(), "topic", "spare", replaces=True)
    assert sentence(project, "topic") == ""
    branches.restore(project.workspace(), "topic")
    assert sentence(project, "topic") == ""
    git(project.root, "branch", "-m", "topic", "feature")
    project.switch("feature")
    put(project, "C")
    assert sentence(project, "feature") == ""
    project.switch("main")
    git(project.root, "branch", "-D", "feature")
    branches.collect(project.workspace())
    trash = store_of(project).parent / branches.TRASH
    shutil.rmtree(trash)
    assert lost.losses(fresh(project).workspace()) == []


def test_gc_keeps_a_store_that_lacks_records_and_one_that_is_gone_can_be_given_up(project: Project) -> None:
    put(project, "A")
    project.switch("topic", create=True)
    put(project, "B")
    copy = copied(project, "topic")
    put(project, "C")
    put_back(project, copy, "topic")
    project.switch("main")
    git(project.root, "branch", "-D", "topic")
    collected = branches.collect(project.workspace())
    assert (collected.removed, collected.reasons["topic"]) == ((), "acknowledged records are missing from it")
    project.close()
    shutil.rmtree(store_of(project, "topic"))
    assert choose_noted(project.workspace(), "topic") == "topic"
    assert accepted(project, "topic").seq == 0
    assert lost.losses(project.workspace()) == []


@pytest.mark.parametrize("is_main_noted", [False, True])
def test_a_deleted_branch_is_given_up_while_the_folder_of_the_stores_is_missing(
    project: Project, is_main_noted: bool
) -> None:
    if is_main_noted:
        put(project, "A")
    project.switch("topic", create=True)
    put(project, "B")
    project.switch("main")
    git(project.root, "branch", "-D", "topic")
    project.close()
    folder = store_of(project).parent
    shutil.rmtree(folder)
    (project.root / ".kb").mkdir(exist_ok=True)
    (project.root / ".kb/config.json").write_text("{}")
    project = fresh(project)
    # The command is the one that the refusal names.
    [of_topic] = [one for one in lost.losses(project.workspace()) if one.branch == "topic"]
    assert "`kb doctor --new-epoch --branch topic`" in spelled_out(lost.remedy(project.workspace(), of_topic))
    assert accepted(project, "topic").seq == 0
    assert not folder.exists()
    assert [one.branch for one in lost.losses(project.workspace())] == (["main"] if is_main_noted else [])
    if is_main_noted:
        accepted(project)
    put(project, "C")


def test_a_commit_between_reading_the_head_and_the_witness_is_no_loss(project: Project) -> None:
    put(project, "A")
    old = journal.read_head(project.machine.fs, store_of(project))
    put(project, "B")
    assert project.workspace().witness("main").check(old) is None


def test_a_head_that_was_read_before_a_compaction_and_a_commit_is_no_loss(project: Project) -> None:
    put(project, "A")
    old = journal.read_head(project.machine.fs, store_of(project))
    compact(project.workspace(), "main")
    put(project, "B")
    assert project.workspace().witness("main").check(old) is None


@pytest.mark.parametrize(("keys", "said"), [("A", "record 1 is missing"), ("AB", "records 1 to 2 are missing")])
def test_a_single_missing_record_is_not_called_several(project: Project, keys: str, said: str) -> None:
    put(project, *keys)
    project.close()
    shutil.rmtree(store_of(project))
    assert sentence(project).endswith(f"; {said}.")
    begun = accepted(project)
    assert epochs.forgotten(is_one=keys == "A") in begun.done[1]
