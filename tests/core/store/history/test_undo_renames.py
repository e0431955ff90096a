"""Undoing what was renamed since, and renames themselves."""

from __future__ import annotations

import pytest

from kbcore.editing import renaming
from kbcore.editing.documents import WriteTarget
from kbcore.errors import RevertConflict
from kbcore.model.graph import former_ids
from tests.core.store.history.undoing import conflicts, edge, entity, revert
from tests.support.repository.project import AUTHOR, Project


def rename(project: Project, old: str, new: str) -> None:
    workspace = project.workspace()
    renaming.rename(WriteTarget(workspace, "main", AUTHOR, workspace.store("main").read, follows_head=True), old, new)


def created_and_renamed(project: Project) -> None:
    """Make A, then B and C with an edge from A to B, then rename B to D."""
    project.apply(entities=[entity("A")])
    project.apply(entities=[entity("B"), entity("C")], edges=[edge("A", "B")])
    rename(project, "B", "D")


def test_a_creation_of_what_was_renamed_since_is_undone_under_its_present_id(project: Project) -> None:
    created_and_renamed(project)
    assert revert(project, 2).deleted == ("C", "D")
    assert project.edges("A") == set()
    revert(project, 4)
    node = project.node("D")
    assert node
    assert former_ids(node) == ("B",)
    assert project.edges("A") == {("A", "depends_on", "D", True)}


def test_a_creation_is_undone_together_with_the_rename_or_after_it(project: Project) -> None:
    created_and_renamed(project)
    assert revert(project, 3, 2, dry_run=True).deleted == ("C", "D")
    revert(project, 3)
    assert revert(project, 2).deleted == ("B", "C")
    assert project.edges("A") == set()


def test_a_field_and_an_edge_are_undone_under_the_id_that_two_renames_gave(project: Project) -> None:
    created_and_renamed(project)
    project.apply(entities=[{"id": "D", "status": "done"}], edges=[edge("D", "C")])
    rename(project, "D", "E")
    project.apply(entities=[{"id": "E", "owner": "ann"}])
    revert(project, 4)
    node = project.node("E")
    assert node
    assert (node.fields["status"], node.fields["owner"], former_ids(node)) == ("open", "ann", ("B", "D"))
    assert project.edges("E") == {("A", "depends_on", "E", True)}
    with pytest.raises(RevertConflict) as refused:
        revert(project, 2)
    assert [(one["seq"], one["id"], one["field"]) for one in conflicts(refused)] == [(6, "E", "owner")]
    assert "Record 6 changed `owner` of E" in refused.value.message


def test_a_change_of_the_same_field_after_the_rename_is_a_conflict_that_force_overrides(project: Project) -> None:
    created_and_renamed(project)
    project.apply(entities=[{"id": "D", "status": "one"}])
    rename(project, "D", "E")
    project.apply(entities=[{"id": "E", "status": "two"}])
    with pytest.raises(RevertConflict) as refused:
        revert(project, 4)
    assert conflicts(refused) == [
        {"seq": 6, "id": "E", "change": "updated", "field": "status", "before": "one", "after": "two"}
    ]
    revert(project, 4, force=True)
    node = project.node("E")
    assert node
    assert node.fields["status"] == "open"


def test_a_removal_after_the_rename_is_named_as_such(project: Project) -> None:
    created_and_renamed(project)
    project.apply(entities=[{"id": "D", "status": "done"}])
    project.delete(entities=[{"id": "D"}], cascade=True)
    with pytest.raises(RevertConflict) as refused:
        revert(project, 4)
    assert "Record 5 removed D." in refused.value.message
    assert "D (removed by record 5)" in revert(project, 2).warnings[0]


def test_a_rename_of_what_was_renamed_again_is_not_undone_beside_it(project: Project) -> None:
    created_and_renamed(project)
    rename(project, "D", "E")
    for force in (False, True):
        with pytest.raises(RevertConflict) as refused:
            revert(project, 3, force=force)
        assert conflicts(refused) == [{"seq": 4, "id": "D", "change": "renamed", "to": "E"}]
        assert "`kb revert 4`, `kb revert 3`;" in refused.value.hint
    revert(project, 4, 3)
    assert project.edges("A") == {("A", "depends_on", "B", True)}


def test_a_rename_is_undone_with_what_was_written_since_under_the_earlier_id(project: Project) -> None:
    created_and_renamed(project)
    project.apply(entities=[{"id": "D", "status": "done"}], edges=[edge("D", "C"), edge("A", "D", confidence=0.5)])
    revert(project, 3)
    node = project.node("B")
    assert node
    assert (node.fields["status"], former_ids(node), project.node("D")) == ("done", (), None)
    assert project.edges("B") == {("A", "depends_on", "B", True), ("B", "depends_on", "C", True)}
    assert project.link("A", "depends_on", "B").fields["confidence"] == 0.5
    revert(project, 5)
    node = project.node("D")
    assert node
    assert (node.fields["status"], former_ids(node)) == ("done", ("B",))
    assert project.edges("D") == {("A", "depends_on", "D", True), ("D", "depends_on", "C", True)}


def test_a_removed_entity_does_not_come_back_into_another_one_that_got_its_id(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B")])
    project.delete(entities=[{"id": "B"}])
    rename(project, "A", "B")
    for force in (False, True):
        with pytest.raises(RevertConflict) as refused:
            revert(project, 2, force=force)
        assert conflicts(refused) == [{"seq": 3, "id": "A", "change": "renamed", "to": "B"}]
    revert(project, 3, 2)
    titles = [node.fields["title"] for key in ("A", "B") if (node := project.node(key))]
    assert titles == ["Title of A", "Title of B"]


def test_a_rename_that_was_undone_and_made_again_can_be_undone(project: Project) -> None:
    created_and_renamed(project)
    revert(project, 3)
    outcome = revert(project, 3)
    assert not outcome.applied
    assert "Record 3 is undone already" in outcome.warnings[0]
    revert(project, 4)
    revert(project, 3)
    assert (project.node("B") is None, project.node("D") is None) == (False, True)


def test_what_was_removed_since_or_undone_already_is_said(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B")], edges=[edge("A", "B")])
    project.delete(entities=[{"id": "B"}], cascade=True)
    outcome = revert(project, 1)
    assert outcome.deleted == ("A",)
    assert outcome.warnings == ("Not there any more, so not undone: B (removed by record 2).",)
    again = revert(project, 1)
    assert not again.applied
    assert again.warnings == (
        "Record 1 is undone already: nothing of what was changed is left to undo.",
        "Not there any more, so not undone: A (removed by record 3), B (removed by record 2).",
    )


def test_an_edge_that_was_removed_since_is_said(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B")])
    project.apply(edges=[edge("A", "B")])
    project.delete(edges=[edge("A", "B")])
    assert "A depends_on B (removed by record 3)" in revert(project, 2).warnings[1]
