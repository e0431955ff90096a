"""Clones with the same files have the same state, whatever each of them has seen before."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbcore.model.graph import former_ids
from kbcore.share.merging import merge
from kbcore.sync.comparison import default_statuses
from tests.support.repository.clones import Clone, clone_of, upstream
from tests.support.repository.project import req

DOCUMENT = "docs/requirements/REQ-1.md"
RENAMED = {DOCUMENT: None, "docs/requirements/REQ-9.md": req("REQ-9", former_ids="[REQ-1]")}


def edges(clone: Clone) -> list[tuple[str, str, str, bool]]:
    """Return the edges of a clone: the type, the ends, and whether they are resolved."""
    return sorted((one.type, one.from_id, one.to_id, one.is_resolved) for one in clone.state().links.values())


def edge_id(clone: Clone, from_id: str, to_id: str = "") -> str:
    """Return the id of the edge of a clone that has these ends."""
    [key] = [one.id for one in clone.state().links.values() if one.from_id == from_id and one.to_id.startswith(to_id)]
    return key


def about(clone: Clone, from_id: str, edge: str) -> None:
    """State an edge about an edge."""
    clone.apply(edges=[{"type": "supersedes", "from": from_id, "to": edge}])


def all_of(clone: Clone) -> tuple[Any, ...]:
    """Return what a clone has of entities and edges."""
    return clone.facts(), edges(clone)


def published(clone: Clone) -> Clone:
    """Commit and push all that a clone has."""
    clone.commit()
    clone.push()
    return clone


@pytest.mark.parametrize("is_seen_before", [True, False])
def test_what_clients_state_of_a_document_follows_its_id(
    ann: Clone, clone: Callable[..., Clone], *, is_seen_before: bool
) -> None:
    bob = clone("bob")
    bob.add("REQ-1", owner="bob")
    bob.link("REQ-1", "REQ-2", confidence=0.5)
    published(bob)
    if is_seen_before:
        ann.pull()
        ann.sync()
    ann.sync(RENAMED)
    ann.commit()
    ann.pull()
    published(ann)
    bob.pull()
    bob.sync()
    fresh = clone("fresh")
    assert all_of(ann) == all_of(bob) == all_of(fresh)
    assert fresh.state().nodes["REQ-9"].fields["owner"] == "bob"
    assert ("relates_to", "REQ-9", "REQ-2", True) in edges(fresh)

    published(ann).sync({"docs/requirements/REQ-9.md": req("REQ-9")})
    published(ann)
    assert all_of(ann) == all_of(clone("later"))
    assert "owner" not in ann.state().nodes["REQ-9"].fields
    assert ("relates_to", "REQ-1", "REQ-2", False) in edges(ann)

    ann.sync({"docs/requirements/REQ-9.md": req("REQ-9", former_ids="[REQ-1]")})
    published(ann)
    assert all_of(ann) == all_of(clone("last")) == all_of(fresh)


def test_an_edge_at_a_former_id_of_a_document_follows_the_other_end(ann: Clone, clone: Callable[..., Clone]) -> None:
    bob = clone("bob")
    published(ann).sync(RENAMED)
    published(ann)
    bob.rename("FACT-1", "FACT-5")
    bob.commit()
    bob.pull()
    published(bob)
    ann.pull()
    ann.sync()
    assert ("relates_to", "FACT-5", "REQ-9", True) in edges(ann)
    assert all_of(ann) == all_of(bob) == all_of(clone("fresh"))


def test_a_value_of_a_document_that_takes_an_earlier_id_is_no_value_of_the_one_that_had_it(
    ann: Clone, clone: Callable[..., Clone]
) -> None:
    ann.sync(RENAMED)
    ann.sync({DOCUMENT: req("REQ-1"), "docs/requirements/REQ-9.md": req("REQ-9")})
    ann.add("REQ-1", owner="both")
    ann.add("REQ-9", owner="both")
    published(ann)
    fresh = clone("fresh")
    assert [fresh.state().nodes[key].fields["owner"] for key in ("REQ-1", "REQ-9")] == ["both", "both"]
    assert all_of(fresh) == all_of(ann)


def test_an_edge_about_an_edge_that_only_a_document_states_is_shared(ann: Clone, clone: Callable[..., Clone]) -> None:
    ann.sync({DOCUMENT: req("REQ-1", relates_to="REQ-2")})
    [stated] = [link.id for link in ann.state().links.values() if link.to_id == "REQ-2"]
    ann.apply(edges=[{"type": "supersedes", "from": "FACT-1", "to": stated}])
    published(ann)
    assert not ann.sync().problems
    fresh = clone("fresh")
    assert ("supersedes", "FACT-1", stated, True) in edges(fresh)
    assert all_of(fresh) == all_of(ann)


@pytest.mark.parametrize("is_whole", [True, False])
def test_what_a_document_covers_of_a_merged_branch_holds_once_it_gives_it_up(tmp_path: Path, *, is_whole: bool) -> None:
    one = clone_of(upstream(tmp_path, {".kb/config.json": "{}\n", DOCUMENT: req("REQ-1")}), "one")
    path, key = ("docs/requirements/REQ-7.md", "REQ-7") if is_whole else (DOCUMENT, "REQ-1")
    one.begin("topic")
    one.sync()
    if is_whole:
        one.fact(key, owner="topic")
    else:
        one.add(key, owner="topic")
    one.switch("main")
    one.sync({path: req(key, owner="document")})
    merge(one.workspace(), "main", "topic", one.author())
    assert one.state().nodes[key].fields["owner"] == "document"
    one.sync({path: None if is_whole else req(key)})
    assert one.state().nodes[key].fields["owner"] == "topic"
    one.close()


def test_a_file_with_an_edge_that_does_not_fit_what_a_merged_branch_brings_is_read_again(
    ann: Clone, clone: Callable[..., Clone]
) -> None:
    ann.begin("topic")
    ann.fact("FACT-7")
    ann.switch("main")
    ann.sync({DOCUMENT: req("REQ-1", specified_by="FACT-7")})
    merge(ann.workspace(), "main", "topic", ann.author())
    assert [one.code for _, one in ann.sync().problems] == ["endpoint_type"]
    published(ann)
    assert all_of(ann) == all_of(clone("fresh"))
    assert not [one for one in edges(ann) if one[0] == "specified_by"]
    ann.remove("FACT-7")
    ann.sync()
    assert ("specified_by", "REQ-1", "FACT-7", False) in edges(ann)


def test_a_file_that_a_merge_has_read_again_and_that_is_deleted_before_takes_what_it_stated_along(ann: Clone) -> None:
    ann.begin("topic")
    ann.fact("FACT-7")
    ann.switch("main")
    ann.sync({DOCUMENT: req("REQ-1", specified_by="FACT-7")})
    merge(ann.workspace(), "main", "topic", ann.author())
    (ann.root / DOCUMENT).unlink()
    ann.sync()
    assert "REQ-1" not in ann.state().nodes
    assert not [one for one in edges(ann) if one[0] == "specified_by"]


def test_a_conflict_names_the_file_of_a_change_that_was_in_none_before(ann: Clone, clone: Callable[..., Clone]) -> None:
    bob = clone("bob")
    ann.add("FACT-1", title="Of ann")
    bob.add("FACT-1", title="Of bob")
    published(bob)
    ann.pull()
    ann.sync()

    def named(one: Clone) -> list[list[str | None]]:
        values = one.state().nodes["FACT-1"].fields["contested.title"]
        return [[change.get("file") for change in value["changes"]] for value in values]

    assert [None] in named(ann)
    published(ann)
    assert named(ann) == named(clone("fresh"))
    assert [None] not in named(ann)


def test_a_document_gets_an_id_that_was_a_former_one_and_that_a_change_gives_as_well(
    ann: Clone, clone: Callable[..., Clone]
) -> None:
    bob = clone("bob")
    ann.sync({DOCUMENT: req("REQ-4", former_ids="[REQ-8]")})
    ann.commit()
    bob.add("REQ-8", type="req", title="Of bob", status="draft")
    published(bob).write({"docs/requirements/REQ-8.md": req("REQ-8")})
    published(bob)
    ann.pull()
    ann.sync()
    assert ann.state().nodes["REQ-8"].path == "docs/requirements/REQ-8.md"
    published(ann)
    assert all_of(ann) == all_of(clone("fresh"))


@pytest.mark.parametrize("by_merge", [True, False])
def test_links_without_a_type_mean_what_their_ends_are_once_one_is_retyped_and_another_one_goes(
    ann: Clone, clone: Callable[..., Clone], *, by_merge: bool
) -> None:
    ann.fact("FACT-2")
    ann.sync({DOCUMENT: req("REQ-1", links="[FACT-1, FACT-2]")})
    ann.commit()
    ann.begin("topic")
    ann.add("FACT-2", type="scenario")
    ann.remove("FACT-1")
    if not by_merge:
        ann.commit()
    ann.switch("main")
    ann.sync()
    if by_merge:
        merge(ann.workspace(), "main", "topic", ann.author())
    else:
        ann.git("merge", "--quiet", "topic")
        ann.sync()
    meant = [("", "REQ-1", "FACT-1", False), ("specified_by", "REQ-1", "FACT-2", True)]
    assert edges(ann) == meant
    assert ann.sync().is_idle
    published(ann)
    assert all_of(ann) == all_of(clone("fresh"))
    assert edges(ann) == meant


def test_an_edge_of_a_client_follows_both_of_its_ends_in_one_sync(ann: Clone, clone: Callable[..., Clone]) -> None:
    bob = clone("bob")
    ann.sync(RENAMED)
    ann.rename("FACT-1", "FACT-5")
    published(ann)
    bob.pull()
    bob.sync()
    assert edges(bob) == [("relates_to", "FACT-5", "REQ-9", True)]
    assert all_of(ann) == all_of(bob) == all_of(clone("fresh"))


@pytest.mark.parametrize("by_command", [True, False])
def test_an_edge_about_an_edge_of_a_document_follows_both_of_its_ends(
    ann: Clone, clone: Callable[..., Clone], *, by_command: bool
) -> None:
    ann.sync({DOCUMENT: req("REQ-1", relates_to="FACT-1")})
    about(ann, "FACT-1", edge_id(ann, "REQ-1", "FACT-1"))
    published(ann)
    bob = clone("bob")
    if by_command:
        ann.rename("REQ-1", "REQ-9")
    else:
        ann.sync({**RENAMED, "docs/requirements/REQ-9.md": req("REQ-9", former_ids="[REQ-1]", relates_to="FACT-1")})
    ann.rename("FACT-1", "FACT-5")
    published(ann)
    bob.pull()
    bob.sync()
    assert all_of(ann) == all_of(bob) == all_of(clone("fresh"))
    assert all(is_resolved for *_, is_resolved in edges(ann))

    ann.delete(edges=[{"type": "supersedes", "from": "FACT-5", "to": edge_id(ann, "REQ-9")}])
    published(ann)
    assert all_of(ann) == all_of(clone("later"))
    assert len(edges(ann)) == 2


@pytest.mark.parametrize("is_shared", [True, False])
def test_an_edge_about_an_edge_that_is_not_there_follows_an_entity_that_gets_another_id(
    ann: Clone, clone: Callable[..., Clone], *, is_shared: bool
) -> None:
    bob = clone("bob")
    bob.fact("FACT-2")
    if is_shared:  # and taken back at once by ann
        about(published(bob), "FACT-2", edge_id(bob, "FACT-1", "REQ-1"))
        published(bob)
        ann.delete(edges=[{"type": "relates_to", "kind": "see_also", "from": "FACT-1", "to": "REQ-1"}])
        ann.commit()
        ann.pull()
    else:
        bob.link("FACT-1", "REQ-2")
        bob.commit()
        about(bob, "FACT-2", edge_id(bob, "FACT-1", "REQ-2"))
        bob.commit()
        bob.git("push", "--quiet", "origin", "HEAD:topic")
        ann.git("fetch", "--quiet")
        ann.git("cherry-pick", "origin/topic")
    ann.sync()
    ann.rename("FACT-1", "FACT-5")
    ann.sync()
    published(ann)
    assert [is_resolved for *_, is_resolved in edges(ann)].count(False) == 1
    assert all_of(ann) == all_of(clone("fresh"))
    if not is_shared:
        ann.git("cherry-pick", "origin/topic~1")
        published(ann)
        assert all(is_resolved for *_, is_resolved in edges(ann))
        assert all_of(ann) == all_of(clone("later"))


def test_an_edge_about_an_edge_that_is_not_there_is_removed_in_every_clone_after_a_rename(
    ann: Clone, clone: Callable[..., Clone]
) -> None:
    bob = clone("bob")
    bob.fact("FACT-2")
    about(published(bob), "FACT-2", edge_id(bob, "FACT-1", "REQ-1"))
    published(bob)
    ann.delete(edges=[{"type": "relates_to", "kind": "see_also", "from": "FACT-1", "to": "REQ-1"}])
    ann.commit()
    ann.pull()
    ann.sync()
    ann.rename("FACT-1", "FACT-5")
    [left] = ann.state().links.values()
    ann.delete(edges=[{"type": left.type, "from": left.from_id, "to": left.to_id}])  # before a sync gives it another id
    published(ann)
    assert not edges(ann)
    assert all_of(ann) == all_of(clone("fresh"))


def test_an_edge_about_an_edge_that_a_document_gave_up_follows_a_document_that_gets_another_id(
    ann: Clone, clone: Callable[..., Clone]
) -> None:
    ann.sync({DOCUMENT: req("REQ-1", relates_to="REQ-2")})
    about(ann, "FACT-1", edge_id(ann, "REQ-1", "REQ-2"))
    ann.sync({DOCUMENT: req("REQ-1")})
    published(ann)
    ann.rename("REQ-1", "REQ-9")
    published(ann)
    assert ann.sync().is_idle
    assert all_of(ann) == all_of(clone("fresh"))


@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize(
    ("second", "kept"),
    [
        (req("REQ-7"), {"REQ-7": ["REQ-5"]}),
        (req("REQ-8", former_ids="[REQ-5]"), {"REQ-7": ["REQ-5"], "REQ-8": []}),
        (req("REQ-5"), {"REQ-7": [], "REQ-5": []}),
    ],
    ids=["one id", "one former id", "an id that is a former id"],
)
def test_two_documents_that_state_one_id_are_decided_alike_in_every_clone(
    ann: Clone, clone: Callable[..., Clone], second: str, kept: dict[str, list[str]], *, is_first: bool
) -> None:
    bob = clone("bob")
    bob.sync({"docs/requirements/a.md": req("REQ-7", former_ids="[REQ-5]")})
    ann.sync({"docs/requirements/b.md": second})
    one, other = (ann, bob) if is_first else (bob, ann)
    published(one)
    other.commit()
    other.pull()
    published(other)
    one.pull()
    one.sync()
    found = {key: [*former_ids(node)] for key, node in ann.state().nodes.items()}
    assert {key: found[key] for key in kept} == kept
    clones = [ann, bob, clone("fresh")]
    problems = [[(path, problem.code) for path, problem in each.sync().problems] for each in clones]
    stated = [{key: (node.path, former_ids(node)) for key, node in each.state().nodes.items()} for each in clones]
    assert stated == [stated[0]] * 3
    assert [all_of(each) for each in clones] == [all_of(ann)] * 3
    assert problems == [problems[0]] * 3
    assert len(problems[0]) == 1
    for path in ("a", "b"):  # and back once one of them gives it up
        ann.sync({f"docs/requirements/{path}.md": None})
        published(ann)
        assert all_of(ann) == all_of(clone(f"without-{path}"))


def test_an_entity_of_a_client_keeps_a_former_id_that_a_document_states_as_its_own(
    ann: Clone, clone: Callable[..., Clone]
) -> None:
    bob = clone("bob")
    ann.rename("FACT-1", "FACT-5")
    ann.commit()
    bob.sync({"docs/requirements/F.md": req("FACT-1")})
    published(bob)
    ann.pull()
    published(ann)
    fresh = clone("fresh")
    assert former_ids(fresh.state().nodes["FACT-5"]) == ("FACT-1",)
    assert all_of(ann) == all_of(fresh)


def test_a_document_that_has_another_id_uncovers_what_clients_stated_of_the_earlier_one(
    ann: Clone, clone: Callable[..., Clone]
) -> None:
    ann.add("REQ-1", owner="ann")
    ann.sync(RENAMED)
    path = "docs/requirements/REQ-9.md"
    ann.sync({path: req("REQ-9", former_ids="[REQ-1]", owner="document")})
    published(ann)
    ann.sync({path: req("REQ-9", former_ids="[REQ-1]")})
    published(ann)
    assert ann.state().nodes["REQ-9"].fields["owner"] == "ann"
    assert all_of(ann) == all_of(clone("fresh"))


def test_an_edge_goes_back_to_an_id_that_another_document_states_as_its_own(
    ann: Clone, clone: Callable[..., Clone]
) -> None:
    ann.sync({"docs/requirements/a.md": req("REQ-7")})
    ann.link("FACT-1", "REQ-7")
    ann.rename("REQ-7", "REQ-8")
    assert ("relates_to", "FACT-1", "REQ-8", True) in edges(ann)
    ann.sync({"docs/requirements/b.md": req("REQ-7")})
    published(ann)
    assert ("relates_to", "FACT-1", "REQ-7", True) in edges(ann)
    assert all_of(ann) == all_of(clone("fresh"))


def default_status_ids(clone: Clone) -> frozenset[str]:
    """Return the entities whose status is the default of a document: what `kb set` writes into the document."""
    store = clone.workspace().store(clone.branch)
    return store.read(lambda view: default_statuses(view, view.nodes(sorted(statuses(clone))), store.claims))


def statuses(clone: Clone) -> dict[str, str | None]:
    """Return the status of each entity."""
    return {key: node.fields.get("status") for key, node in clone.state().nodes.items()}


@pytest.mark.parametrize("by_revert", [True, False])
def test_a_document_without_a_status_has_the_default_again_once_no_change_gives_it_one(
    ann: Clone, clone: Callable[..., Clone], *, by_revert: bool
) -> None:
    ann.sync({"docs/symbols.yaml": "symbols:\n- {id: REQ-7, type: req}\n"})
    ann.commit()
    ann.add("REQ-7", status="met")
    published(ann)
    bob = clone("bob")
    if by_revert:
        ann.git("revert", "--no-edit", "HEAD")
    else:  # what was stated of REQ-7 is not stated of the later id
        ann.sync({"docs/symbols.yaml": "symbols:\n- {id: REQ-9, type: req, former_ids: [REQ-7]}\n"})
        ann.commit()
        assert statuses(ann)["REQ-9"] == "met"
        ann.sync({"docs/symbols.yaml": "symbols:\n- {id: REQ-9, type: req}\n"})
    published(ann)
    bob.pull()
    bob.sync()
    assert statuses(ann)["REQ-7" if by_revert else "REQ-9"] == "draft"
    assert statuses(ann) == statuses(bob) == statuses(clone("fresh"))


def test_a_status_of_a_client_is_no_default_of_a_document_where_a_change_file_brought_it(
    ann: Clone, clone: Callable[..., Clone]
) -> None:
    ann.fact("FACT-7")
    ann.sync({"docs/symbols.yaml": "symbols:\n- {id: FACT-7, type: req}\n"})
    published(ann)
    bob = clone("bob")
    ann.sync({"docs/symbols.yaml": "symbols:\n- {id: FACT-7, type: req, title: Another}\n"})
    published(ann)
    bob.pull()
    bob.sync()
    assert statuses(ann)["FACT-7"] == "active"
    assert statuses(ann) == statuses(bob) == statuses(clone("fresh"))
    assert default_status_ids(ann) == default_status_ids(bob) == frozenset({"REQ-1", "REQ-2"})
    assert not bob.sync(rebuild=True).outcome.applied


def test_change_files_that_workers_read_give_the_state_of_those_read_in_one_process(
    ann: Clone, clone: Callable[..., Clone]
) -> None:
    bob = clone("bob")
    for number in range(10, 14):
        ann.fact(f"FACT-{number}")
        published(ann)
    path = min(ann.committed())
    broken = f"{path.removesuffix('.jsonl')}0.jsonl"
    ann.sync({broken: (ann.root / path).read_bytes() + b"{"})
    ann.commit()
    ann.push()
    bob.pull()
    answer = bob.sync(workers=2, least_files=1)
    assert (answer.unread, answer.changed) == (1, 5)
    assert "FACT-13" in bob.state().nodes
    assert all_of(bob) == all_of(clone("fresh"))
