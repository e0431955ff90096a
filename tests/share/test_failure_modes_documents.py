"""Sharing beside documents, and what undoes, judges and reads what change files brought."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kbcore.checks.introduced.since import check_since
from kbcore.checks.introduced.staged import check_staged
from kbcore.model.graph import former_ids
from kbcore.share.merging import merge
from kbcore.store import branches
from kbcore.store.answers import Outcome
from kbcore.store.history import undo
from kbcore.store.history.undo import UndoOptions
from tests.support.repository.clones import Clone, clone_of, hold, upstream
from tests.support.repository.project import req


def test_a_claim_that_a_document_covers_holds_again_when_it_gives_the_field_up(ann: Clone, bob: Clone) -> None:
    ann.add("REQ-1", priority="must", attributes={"k": 1})
    ann.commit()
    ann.write({"docs/requirements/REQ-1.md": req("REQ-1", priority="should")})
    hold(ann)
    assert ann.state().nodes["REQ-1"].fields["priority"] == "should"
    ann.commit()
    ann.push()
    bob.pull()
    hold(bob)
    bob.write({"docs/requirements/REQ-1.md": req("REQ-1")})
    hold(bob)
    assert bob.state().nodes["REQ-1"].fields["priority"] == "must"
    bob.commit()
    bob.push()
    ann.pull()
    hold(ann)
    assert ann.facts() == bob.facts()


def test_what_a_document_covered_before_sharing_began_holds_again_with_the_first_file(tmp_path: Path) -> None:
    one = clone_of(upstream(tmp_path, {".kb/config.json": "{}\n"}), "one")
    one.fact("REQ-9", owner="ann")
    one.sync({"docs/requirements/REQ-9.md": req("REQ-9")})
    one.sync({"docs/requirements/REQ-9.md": None})
    one.commit()
    assert one.state().nodes["REQ-9"].fields["owner"] == "ann"
    hold(one)
    one.close()


@pytest.mark.parametrize("has_document", [False, True])
def test_what_was_withdrawn_does_not_come_back_with_a_document_of_the_same_id(
    ann: Clone, *, has_document: bool
) -> None:
    path = "docs/requirements/REQ-9.md"
    if has_document:  # it goes and comes back without the change
        ann.sync({path: req("REQ-9")})
        ann.add("REQ-9", owner="ann", tags=["red"])
    else:
        ann.fact("REQ-9", owner="ann", tags=["red"])
    ann.commit()
    ann.git("reset", "--quiet", "--hard", "HEAD~1")
    hold(ann)
    ann.write({path: req("REQ-9")})
    hold(ann)
    assert not {"owner", "tags"} & ann.state().nodes["REQ-9"].fields.keys()


def test_a_conflict_that_a_document_covers_is_none_until_it_gives_the_field_up(ann: Clone, bob: Clone) -> None:
    for one in (ann, bob):
        one.add("REQ-1", priority=f"of-{one.actor}")
        one.commit()
    bob.write({"docs/requirements/REQ-1.md": req("REQ-1", priority="stated")})
    bob.commit()
    ann.push()
    bob.pull()
    hold(bob)
    assert not bob.conflicts()
    bob.write({"docs/requirements/REQ-1.md": req("REQ-1")})
    hold(bob)
    assert bob.conflicts() == {("REQ-1", "priority")}


def test_a_document_takes_over_the_id_of_a_shared_entity_and_gives_it_back(ann: Clone, bob: Clone) -> None:
    ann.add("REQ-7", type="req", title="Of a client", status="draft", tags=["x"], attributes={"k": 1})
    ann.link("REQ-7", "REQ-1")
    ann.commit()
    ann.push()
    bob.pull()
    hold(bob)
    bob.write({"docs/requirements/REQ-7.md": req("REQ-7")})
    hold(bob)
    assert bob.titles()["REQ-7"] == "Title of REQ-7"
    bob.commit()
    ann.add("REQ-7", title="Meanwhile", attributes={"k": 2})
    ann.commit()
    ann.pull("--no-rebase", "../bob", "main")
    hold(ann)
    assert ann.titles()["REQ-7"] == "Title of REQ-7"
    ann.git("rm", "--quiet", "docs/requirements/REQ-7.md")
    ann.commit()
    hold(ann)
    assert ann.titles()["REQ-7"] == "Meanwhile"


def test_a_document_comes_with_the_id_of_an_entity_that_a_change_deletes_or_renames(ann: Clone, bob: Clone) -> None:
    bob.remove("FACT-1")
    bob.fact("FACT-2")
    bob.rename("FACT-2", "FACT-3")
    bob.commit()
    ann.add("FACT-1", title="Seen by ann alone")
    ann.write({"docs/requirements/FACT-3.md": req("FACT-3")})
    ann.commit()
    ann.pull("--no-rebase", "../bob", "main")
    hold(ann)
    ann.git("rm", "--quiet", "docs/requirements/FACT-3.md")
    hold(ann)


def _undone(clone: Clone, *, revert: int = 0, rollback: int = 0) -> Outcome:
    workspace = clone.workspace()
    _, choice, _ = branches.open_branch(workspace, None)
    author, options = clone.author(), UndoOptions()
    if revert:
        done = undo.revert(workspace, choice.branch, author, [revert], options, follows_head=choice.follows_head)
    else:
        done = undo.rollback(workspace, choice.branch, author, rollback, options, follows_head=choice.follows_head)
    clone.note_own()
    return done


def targets(clone: Clone) -> list[tuple[str, bool]]:
    """Return where the edges of the first document lead, and whether the entity is there."""
    links = clone.state().links.values()
    return [(one.to_id, one.is_resolved) for one in links if one.from_id == "REQ-1"]


def test_an_edge_of_a_document_leads_to_the_entity_with_its_id_else_to_the_one_that_had_it(
    clone: Callable[..., Clone],
) -> None:
    ann, bob, eve = map(clone, ("ann", "bob", "eve"))

    def all_lead_to(key: str) -> None:
        for one in (ann, bob, eve):
            one.pull()
            hold(one)
            assert targets(one) == [(key, True)], one.actor

    ann.fact("FACT-5")
    ann.rename("FACT-5", "FACT-7")
    ann.write({"docs/requirements/REQ-1.md": req("REQ-1", relates_to="FACT-5")})
    ann.commit()
    bob.fact("FACT-5", "Of bob")
    bob.commit()
    ann.push()
    eve.pull()
    hold(eve)
    assert targets(ann) == targets(eve) == [("FACT-7", True)]
    bob.pull()
    bob.push()
    all_lead_to("FACT-5")
    bob.remove("FACT-5")
    bob.commit()
    bob.push()
    all_lead_to("FACT-7")
    bob.git("revert", "--no-edit", "HEAD")
    bob.push()
    all_lead_to("FACT-5")
    fresh = clone("fresh")
    assert targets(fresh) == [("FACT-5", True)]
    assert fresh.facts() == ann.facts()


def test_of_several_that_had_an_id_an_edge_of_a_document_leads_to_the_first(clone: Callable[..., Clone]) -> None:
    ann, bob, eve = clones = [clone(actor) for actor in ("ann", "bob", "eve")]
    ann.sync({"docs/requirements/REQ-1.md": req("REQ-1", relates_to="FACT-5")})
    ann.commit()
    ann.push()
    bob.pull()
    for one, key in ((ann, "FACT-8"), (bob, "FACT-7")):
        one.fact("FACT-5")
        one.rename("FACT-5", key)
        one.git("checkout", "--quiet", "--", "docs")
        one.commit()
    ann.push()
    eve.pull()
    eve.sync()
    bob.pull()
    bob.push()
    for one in clones:
        one.pull()
        hold(one)
        assert targets(one) == [("FACT-7", True)], one.actor
    bob.remove("FACT-7")
    bob.commit()
    bob.push()
    for one in (ann, eve, clone("fresh")):
        one.pull()
        one.sync()
        assert targets(one) == [("FACT-8", True)], one.actor


def test_a_link_without_a_type_gets_one_when_a_change_brings_its_end(clone: Callable[..., Clone]) -> None:
    ann, bob = clone("ann"), clone("bob")
    ann.sync({"docs/requirements/REQ-1.md": req("REQ-1", links="[SCN-1]")})
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    ann.add("SCN-1", type="scenario", status="active", title="One")
    ann.commit()
    ann.push()
    bob.pull()
    bob.sync()
    for one in (ann, bob, clone("fresh")):
        links = [(link.type, link.to_id) for link in one.state().links.values() if link.from_id == "REQ-1"]
        assert links == [("specified_by", "SCN-1")], one.actor


def test_an_edge_of_a_document_follows_an_entity_that_a_merged_branch_renamed(ann: Clone) -> None:
    ann.sync({"docs/requirements/REQ-1.md": req("REQ-1", relates_to="FACT-1")})
    ann.commit()
    ann.begin("topic")
    ann.rename("FACT-1", "FACT-7")
    ann.git("checkout", "--quiet", "--", "docs")
    ann.switch("main")
    ann.sync()
    assert targets(ann) == [("FACT-1", True)]
    merge(ann.workspace(), "main", "topic", ann.author())
    ann.sync()
    assert targets(ann) == [("FACT-7", True)]
    assert ann.sync().is_idle


def test_a_link_without_a_type_gets_one_when_a_merged_branch_brings_or_changes_its_end(ann: Clone) -> None:
    ann.sync({"docs/requirements/REQ-1.md": req("REQ-1", links="[SCN-1, FACT-1]")})
    ann.commit()
    ann.begin("topic")
    ann.add("SCN-1", type="scenario", status="active", title="One")
    ann.add("FACT-1", type="scenario")
    ann.switch("main")
    ann.sync()
    merge(ann.workspace(), "main", "topic", ann.author())
    links = {(link.type, link.to_id) for link in ann.state().links.values() if link.from_id == "REQ-1"}
    assert links == {("specified_by", "SCN-1"), ("specified_by", "FACT-1")}
    assert ann.sync().is_idle


def test_an_edge_of_a_document_is_at_the_id_that_it_names_where_a_client_deletes_what_had_it(
    ann: Clone, clone: Callable[..., Clone]
) -> None:
    ann.fact("FACT-5")
    ann.rename("FACT-5", "FACT-7")
    ann.sync({"docs/requirements/REQ-1.md": req("REQ-1", relates_to="FACT-5")})
    ann.remove("FACT-7")
    ann.commit()
    ann.push()
    assert targets(ann) == targets(clone("fresh")) == [("FACT-5", False)]
    assert ann.sync().is_idle


def _former(clone: Clone) -> dict[str, list[str]]:
    """Return the ids that each entity had before, as it is recorded."""
    return {key: [*former_ids(node)] for key, node in clone.state().nodes.items() if key != "FACT-1"}


@pytest.mark.parametrize("is_first", ["change", "document"])
def test_a_former_id_of_a_document_is_left_out_while_a_change_gives_it_to_an_entity(
    clone: Callable[..., Clone], is_first: str
) -> None:
    ann, bob = clone("ann"), clone("bob")
    bob.write({"docs/requirements/REQ-1.md": req("REQ-1", former_ids="[FACT-2]")})
    if is_first == "document":
        bob.sync()
    ann.fact("FACT-2")
    for one in (ann, bob):
        one.commit()
    ann.pull("--no-rebase", "../bob", "main")
    ann.push()
    bob.pull()
    fresh = clone("fresh")
    for one in (ann, bob, fresh):
        one.sync()
        assert _former(one) == {"REQ-1": [], "REQ-2": [], "FACT-2": []}, one.actor
    ann.remove("FACT-2")
    ann.commit()
    ann.push()
    for one in (ann, bob, fresh, clone("later")):
        one.pull()
        one.sync()
        assert _former(one) == {"REQ-1": ["FACT-2"], "REQ-2": []}, one.actor


@pytest.mark.parametrize("merges", [True, False])
def test_a_former_id_of_a_document_is_left_out_where_a_merged_branch_has_an_entity_with_it(
    ann: Clone, *, merges: bool
) -> None:
    ann.sync({"docs/requirements/REQ-1.md": req("REQ-1")})
    ann.commit()
    ann.begin("topic")
    ann.fact("FACT-2")
    ann.switch("main")
    ann.sync({"docs/requirements/REQ-1.md": req("REQ-1", former_ids="[FACT-2]")})
    if merges:
        merge(ann.workspace(), "main", "topic", ann.author())
    ann.sync()
    assert _former(ann)["REQ-1"] == ([] if merges else ["FACT-2"])
    assert ann.sync().is_idle


def test_a_document_may_state_ids_that_only_changes_gave_before(ann: Clone, clone: Callable[..., Clone]) -> None:
    for old, new in (("REQ-8", "FACT-8"), ("REQ-9", "FACT-9")):
        ann.fact(old)
        ann.rename(old, new)
    ann.commit()
    ann.sync({"docs/requirements/REQ-9.md": req("REQ-9", former_ids="[REQ-8]")})
    ann.commit()
    ann.push()
    for one in (ann, clone("fresh")):
        former = {"REQ-1": [], "REQ-2": [], "REQ-9": ["REQ-8"], "FACT-8": ["REQ-8"], "FACT-9": ["REQ-9"]}
        assert _former(one) == former, one.actor


def test_what_changes_state_of_a_later_id_waits_when_a_document_has_its_id_of_before_again(
    ann: Clone, clone: Callable[..., Clone]
) -> None:
    ann.sync({"docs/requirements/REQ-1.md": req("REQ-5", former_ids="[REQ-1]")})
    ann.add("REQ-5", attributes={"later": 1})
    ann.link("REQ-5", "REQ-2")
    ann.commit()
    assert ann.state().nodes["REQ-5"].fields["attributes.note"] == "as agreed"
    ann.sync({"docs/requirements/REQ-1.md": req("REQ-1")})
    ann.commit()
    ann.push()
    hold(ann)
    assert ann.facts() == clone("fresh").facts()
    node = ann.state().nodes["REQ-1"]
    assert (node.fields["attributes.note"], "attributes.later" in node.fields) == ("as agreed", False)
    ann.sync({"docs/requirements/REQ-1.md": req("REQ-5", former_ids="[REQ-1]")})
    assert ann.state().nodes["REQ-5"].fields["attributes.later"] == 1


@pytest.mark.parametrize("how", ["revert", "rollback"])
def test_an_undone_sync_is_a_change_of_its_own_that_reaches_all(ann: Clone, bob: Clone, how: str) -> None:
    ann.add("FACT-1", title="Later", tags=["other"])
    ann.fact("FACT-2")
    ann.link("FACT-2", "FACT-1")
    ann.commit()
    ann.push()
    before, seq = bob.facts(), bob.seq()
    bob.pull()
    hold(bob)
    _undone(bob, **({"revert": bob.seq()} if how == "revert" else {"rollback": seq}))
    hold(bob)
    assert bob.facts() == before
    bob.commit()
    hold(bob)
    bob.push()
    ann.pull()
    hold(ann)
    assert ann.facts() == bob.facts()


def test_a_staged_merge_and_what_came_since_are_judged_with_the_changes_in_files(ann: Clone, bob: Clone) -> None:
    for one in (ann, bob):
        one.add("FACT-1", title=f"By {one.actor}")
        one.commit()
    ann.git("fetch", "--quiet", "../bob", "main")
    ann.git("merge", "--quiet", "--no-commit", "FETCH_HEAD")
    store, _, _ = branches.open_branch(ann.workspace(), None)
    found = store.read(lambda view: check_staged(ann.workspace(), view, only=["conflict"])).found
    assert [one.id for one in found.report.violations] == ["FACT-1"]
    ann.git("commit", "--quiet", "--no-edit")
    hold(ann)
    for since, count in (("HEAD~1", 1), ("HEAD", 0)):
        found = store.read(
            lambda view, since=since: check_since(ann.workspace(), view, "main", since, only=["conflict"])
        ).found
        assert len(found.report.violations) == count
        assert not found.fixed
    ann.resolve("FACT-1", "title", 1)
    ann.commit()
    found = store.read(lambda view: check_since(ann.workspace(), view, "main", "HEAD~1", only=["conflict"])).found
    assert not found.report.violations
    assert [one.id for one in found.fixed] == ["FACT-1"]
    ann.git("revert", "--no-commit", "HEAD")
    found = store.read(lambda view: check_staged(ann.workspace(), view, only=["conflict"])).found
    assert [one.id for one in found.report.violations] == ["FACT-1"]


def _at_once(*works: Callable[[], object]) -> None:
    gate, failed = threading.Barrier(len(works)), list[BaseException]()

    def run(work: Callable[[], object]) -> None:
        gate.wait()
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - it is raised below
            failed.append(error)

    threads = [threading.Thread(target=run, args=[work]) for work in works]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not failed, failed


def test_two_syncs_at_once_and_a_writer_take_all_changes_once(ann: Clone, bob: Clone) -> None:
    for number in range(3):
        ann.add("FACT-1", title=f"Title {number}", tags=[str(number)])
        ann.fact(f"FACT-A{number}")
        ann.commit()
        ann.push()
        bob.pull()
        others = [Clone(bob.root, "bob") for _ in range(2)]
        writer = Clone(bob.root, "bob")
        _at_once(*(one.sync for one in others), partial(writer.fact, f"FACT-W{number}"))
        bob.note_own()
        hold(bob)
        for one in (*others, writer):
            one.close()
    assert {f"FACT-{letter}{number}" for letter in "AW" for number in range(3)} <= bob.titles().keys()
