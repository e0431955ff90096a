"""Facts of clients that one branch has and another lacks, as a changeset that brings them there."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.editing.documents import WriteTarget
from kbcore.editing.renaming import rename
from kbcore.ids import link_id
from kbcore.store.facts_export import Export, missing_on, parts
from tests.core.kip.test_run import asked
from tests.support.repository.project import AUTHOR, Project
from tests.support.repository.repos import git

DOCUMENT = "docs/requirements/1.md"
ONE = "---\nid: REQ-1\ntitle: One\nstatus: open\n---\n"
SEE = {"type": "relates_to", "kind": "see", "from": "NEW", "to": "REQ-1"}


def req(key: str, **more: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **more}


@pytest.fixture
def topic(project: Project) -> Project:
    """A project on branch topic, made from main, which has a document and an entity of a client's."""
    project.sync({DOCUMENT: ONE})
    project.apply(entities=[req("OLD")])
    project.switch("topic", create=True)
    project.view("topic")
    return project


def missing(project: Project, branch: str = "topic", other: str = "main") -> Export:
    return missing_on(project.view(other), project.view(branch))


def bring(project: Project) -> None:
    for part in parts(missing(project)):
        project.apply(branch="main", **part)


def nothing(found: Export) -> bool:
    return found == Export([], [], 0)


def test_a_branch_of_which_nothing_was_written_lacks_nothing(topic: Project) -> None:
    assert nothing(missing(topic))


def test_what_clients_wrote_is_missing_until_it_is_brought(topic: Project) -> None:
    topic.apply(
        entities=[
            req("NEW", attributes={"why": "w"}),
            {"id": "REQ-1", "owner": "ines"},
            {"id": "OLD", "status": "done"},
        ],
        edges=[{**SEE, "confidence": 0.5}],
    )
    found = missing(topic)
    assert found.entities == [
        req("NEW", attributes={"why": "w"}),
        {"id": "OLD", "status": "done"},
        {"id": "REQ-1", "owner": "ines"},
    ]
    assert found.edges == [{**SEE, "confidence": 0.5}]
    bring(topic)
    assert nothing(missing(topic))
    assert topic.view("main").nodes(["REQ-1"])[0].fields["owner"] == "ines"


def test_what_files_state_is_not_missing_although_it_differs(topic: Project) -> None:
    topic.sync({DOCUMENT: ONE.replace("One", "Two"), "docs/requirements/2.md": ONE.replace("REQ-1", "REQ-2")})
    assert nothing(missing(topic))


def test_what_the_other_branch_changed_is_not_taken_back(topic: Project) -> None:
    topic.apply(branch="main", entities=[{"id": "OLD", "status": "done"}])
    assert nothing(missing(topic))


def test_what_a_file_states_with_the_same_words_is_not_missing(topic: Project) -> None:
    topic.apply(entities=[{"id": "REQ-1", "owner": "ines"}])
    git(topic.root, "switch", "-q", "main")
    topic.sync({DOCUMENT: ONE.replace("status: open\n", "status: open\nowner: ines\n")})
    assert nothing(missing(topic))


def test_what_both_branches_changed_or_the_other_deleted_is_left_out_and_counted(topic: Project) -> None:
    topic.apply(entities=[req("X"), req("Y")], branch="main")
    topic.switch("second", create=True)
    topic.apply(entities=[{"id": key, "status": "done"} for key in ("OLD", "X", "Y")])
    topic.apply(entities=[{"id": "OLD", "status": "dropped"}], branch="main")
    topic.delete(entities=[{"id": "X"}], branch="main")
    assert missing(topic, "second") == Export([{"id": "Y", "status": "done"}], [], 2)


def test_attributes_that_the_other_branch_has_stay(topic: Project) -> None:
    topic.apply(branch="main", entities=[{"id": "OLD", "attributes": {"theirs": 1}}])
    topic.apply(entities=[{"id": "OLD", "attributes": {"mine": 2}}])
    assert missing(topic).entities == [{"id": "OLD", "attributes": {"mine": 2}}]
    bring(topic)
    fields = topic.view("main").nodes(["OLD"])[0].fields
    assert (fields["attributes.mine"], fields["attributes.theirs"]) == (2, 1)


def test_what_the_other_branch_writes_after_the_export_stays(topic: Project) -> None:
    topic.apply(branch="main", entities=[{"id": "OLD", "attributes": {"theirs": 1}}])
    topic.apply(entities=[{"id": "OLD", "attributes": {"mine": 2}}])
    exported = [*parts(missing(topic))]
    topic.apply(branch="main", entities=[{"id": "OLD", "attributes": {"theirs": 99}}])
    for part in exported:
        topic.apply(branch="main", **part)
    fields = topic.view("main").nodes(["OLD"])[0].fields
    assert (fields["attributes.mine"], fields["attributes.theirs"]) == (2, 99)


def test_a_null_among_attributes_does_not_replace_those_that_the_other_branch_has(topic: Project) -> None:
    topic.apply(branch="main", entities=[{"id": "OLD", "attributes": {"theirs": 1}}])
    topic.apply(entities=[{"id": "OLD", "replace": True, "attributes": {"mine": 2, "none": None}}])
    assert missing(topic) == Export([{"id": "OLD", "attributes": {"mine": 2}}], [], 1)
    topic.apply(entities=[{**req("NEW"), "replace": True, "attributes": {"none": None}}])
    assert missing(topic).entities[0] == {**req("NEW"), "replace": True, "attributes": {"none": None}}
    bring(topic)
    assert topic.view("main").nodes(["OLD"])[0].fields["attributes.theirs"] == 1


def test_what_cannot_be_written_there_is_counted(topic: Project) -> None:
    topic.sync({DOCUMENT: ONE, "docs/requirements/2.md": ONE.replace("REQ-1", "REQ-2")})
    # An attribute and an edge of an entity whose document is on topic alone, and a field that main has in a document.
    topic.apply(
        entities=[req("NEW"), {"id": "REQ-2", "owner": "ines"}, {"id": "REQ-1", "owner": "ines"}],
        edges=[{**SEE, "to": "REQ-2"}],
    )
    git(topic.root, "switch", "-q", "main")
    topic.sync({DOCUMENT: ONE.replace("open\n", "open\nowner: otto\n"), "docs/requirements/2.md": None})
    assert missing(topic) == Export([req("NEW")], [], 3)


def test_an_edge_that_is_there_is_not_missing(topic: Project) -> None:
    edge = {"type": "relates_to", "kind": "see", "from": "OLD", "to": "REQ-1"}
    topic.apply(edges=[edge])
    topic.apply(branch="main", edges=[edge])
    assert nothing(missing(topic))
    topic.apply(edges=[{**edge, "confidence": 0.5}])
    assert missing(topic) == Export([], [{**edge, "confidence": 0.5}], 0)


def test_statements_about_links_come_after_what_they_are_about(topic: Project) -> None:
    answer = asked(
        topic,
        """UPSERT {
          CONCEPT { {type: "$ConceptType", name: "Thing"} SET ATTRIBUTES {description: "A thing."} }
          CONCEPT { {type: "$PropositionType", name: "doubts"} SET ATTRIBUTES {description: "Doubts it."} }
          CONCEPT ?t { {type: "Thing", name: "x"} }
          CONCEPT ?e { {type: "Event", name: "e"} }
          PROPOSITION ?l { (?e, "doubts", ?t) }
          PROPOSITION ?m { (?t, "doubts", ?l) }
          PROPOSITION { (?e, "doubts", ?m) SET ATTRIBUTES {why: "because"} }
        }""",
    )
    assert not answer.is_error, answer.response
    found = missing(topic)
    assert (len(found.edges), found.waiting) == (3, 0)
    bring(topic)
    assert nothing(missing(topic))


def test_a_branch_without_a_store_lacks_all_that_clients_wrote(topic: Project) -> None:
    topic.apply(entities=[req("NEW")])
    found = missing_on(None, topic.view("topic"))
    assert [item["id"] for item in found.entities] == ["NEW", "OLD"]


def renamed(project: Project, old: str, new: str, branch: str) -> None:
    workspace = project.workspace()
    read = workspace.store(branch).read
    rename(WriteTarget(workspace, branch, AUTHOR, read, follows_head=False), old, new)


@pytest.fixture
def linked(topic: Project) -> Project:
    """The topic branch made again, from a main that has an edge of a client's to OLD."""
    topic.apply(branch="main", entities=[req("END")], edges=[{**SEE, "from": "END", "to": "OLD"}])
    git(topic.root, "switch", "-q", "main")
    topic.switch("linked", create=True)
    topic.view("linked")
    return topic


def test_what_is_renamed_on_the_branch_is_brought_to_the_id_of_the_other_one_and_doubles_nothing(
    linked: Project,
) -> None:
    renamed(linked, "OLD", "RENAMED", "linked")
    found = missing(linked, "linked")
    assert found == Export([], [], 0, {"OLD": "RENAMED"})
    edge = {**SEE, "from": "END", "to": "RENAMED"}
    linked.apply(entities=[{"id": "RENAMED", "status": "done"}, req("NEW")], edges=[{**edge, "confidence": 0.5}])
    linked.apply(edges=[{**SEE, "to": "RENAMED"}])
    found = missing(linked, "linked")
    assert found.entities == [req("NEW"), {"id": "OLD", "status": "done"}]
    assert found.edges == [{**SEE, "from": "END", "to": "OLD", "confidence": 0.5}, {**SEE, "to": "OLD"}]
    for part in parts(found):
        linked.apply(branch="main", **part)
    assert {node.id for node in linked.view("main").nodes(["OLD", "RENAMED"])} == {"OLD"}
    assert missing(linked, "linked") == Export([], [], 0, {"OLD": "RENAMED"})
    renamed(linked, "OLD", "RENAMED", "main")
    assert nothing(missing(linked, "linked"))


def test_what_was_written_under_an_id_that_the_other_branch_renamed_is_brought_to_the_new_id(linked: Project) -> None:
    renamed(linked, "OLD", "RENAMED", "main")
    linked.apply(entities=[{"id": "OLD", "status": "done"}, req("NEW")], edges=[{**SEE, "to": "OLD"}])
    found = missing(linked, "linked")
    assert found.entities == [req("NEW"), {"id": "RENAMED", "status": "done"}]
    assert (found.edges, found.waiting, found.renamed) == ([{**SEE, "to": "RENAMED"}], 0, {})
    for part in parts(found):
        linked.apply(branch="main", **part)
    assert nothing(missing(linked, "linked"))


def test_an_edge_about_an_edge_whose_ends_have_another_id_there_is_about_that_one(linked: Project) -> None:
    schema = "edges: {doubts: {from: [req], to: [link], description: About an edge}}\n"
    linked.write({".kb/schema/own.yaml": schema})
    renamed(linked, "OLD", "RENAMED", "main")
    here, there = (link_id("relates_to", "see", "END", key) for key in ("OLD", "RENAMED"))
    linked.apply(edges=[{"type": "doubts", "from": "END", "to": here}])
    assert missing(linked, "linked") == Export([], [{"type": "doubts", "from": "END", "to": there}], 0)


def test_an_entity_that_both_branches_renamed_is_the_same_one(linked: Project) -> None:
    renamed(linked, "OLD", "MINE", "linked")
    renamed(linked, "OLD", "THEIRS", "main")
    linked.apply(entities=[{"id": "MINE", "status": "done"}])
    assert missing(linked, "linked") == Export([{"id": "THEIRS", "status": "done"}], [], 0, {"THEIRS": "MINE"})


def test_another_entity_with_the_id_of_a_renamed_one_is_not_taken_for_it(linked: Project) -> None:
    renamed(linked, "OLD", "NEW", "main")
    linked.apply(entities=[req("NEW"), {"id": "OLD", "status": "done"}])
    found = missing(linked, "linked")
    assert (found.entities, found.renamed) == ([], {})
    assert found.waiting > 0
