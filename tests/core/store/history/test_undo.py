"""Revert and rollback: what comes back, what refuses, and what is said about files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kbcore.editing import renaming
from kbcore.editing.documents import WriteTarget
from kbcore.errors import BranchMoved, ChangesetIdReused, InvalidChangeset, InvalidQuery, NotFound, RevertConflict
from kbcore.ids import link_id
from kbcore.model.graph import former_ids
from kbcore.store.answers import Outcome
from kbcore.store.history import undo
from kbcore.store.history.undo import UndoOptions
from kbcore.store.write_request import Author
from tests.support.repository.project import AUTHOR, Project, document, req


def revert(project: Project, *seqs: int, force: bool = False, **options: Any) -> Outcome:
    asked = UndoOptions(force=force, **options)
    return undo.revert(project.workspace(), "main", AUTHOR, seqs, asked, follows_head=True)


def rollback(project: Project, to_seq: int, **options: Any) -> Outcome:
    return undo.rollback(project.workspace(), "main", AUTHOR, to_seq, UndoOptions(**options), follows_head=True)


def entity(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def edge(from_id: str, to_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": "depends_on", "from": from_id, "to": to_id, **fields}


def conflicts(error: pytest.ExceptionInfo[RevertConflict]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = error.value.as_json()["conflicts"]
    return found


def test_a_revert_puts_back_only_the_fields_that_the_record_changed(project: Project) -> None:
    project.apply(entities=[entity("A", priority="low", tags=["x"])])
    project.apply(entities=[{"id": "A", "priority": "high", "owner": "ann"}])
    project.apply(entities=[{"id": "A", "status": "done"}])
    outcome = revert(project, 2)
    node = project.node("A")
    assert node
    assert outcome.seq == 4
    assert outcome.updated == ("A",)
    assert (node.fields["priority"], node.fields["status"]) == ("low", "done")
    assert "owner" not in node.fields


def test_reverting_a_revert_brings_the_change_back(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[{"id": "A", "title": "New"}, entity("B")], edges=[edge("A", "B")])
    revert(project, 2)
    assert project.node("B") is None
    revert(project, 3)
    node = project.node("A")
    assert node
    assert node.fields["title"] == "New"
    assert project.edges("A") == {("A", "depends_on", "B", True)}


def test_a_later_change_of_the_same_field_refuses_the_revert_and_is_listed(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[{"id": "A", "status": "done"}])
    project.apply(entities=[{"id": "A", "status": "blocked"}])
    with pytest.raises(RevertConflict) as refused:
        revert(project, 2)
    assert conflicts(refused) == [
        {"seq": 3, "id": "A", "change": "updated", "field": "status", "before": "done", "after": "blocked"}
    ]
    assert "Record 3 changed `status` of A" in refused.value.message
    assert "--force" in refused.value.details[0].hint
    assert project.seq() == 3


def test_force_takes_the_old_value_all_the_same(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[{"id": "A", "status": "done"}])
    project.apply(entities=[{"id": "A", "status": "blocked", "title": "Kept"}])
    revert(project, 2, force=True)
    node = project.node("A")
    assert node
    assert (node.fields["status"], node.fields["title"]) == ("open", "Kept")


def test_a_later_change_that_ended_where_the_revert_leads_is_no_conflict_and_no_record(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[{"id": "A", "status": "done"}])
    revert(project, 2)
    outcome = revert(project, 2)
    assert not outcome.applied
    assert project.seq() == 3


def test_later_changes_that_led_back_to_what_the_record_had_set_are_no_conflict(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B")])
    project.apply(entities=[{"id": "A", "status": "done"}], edges=[edge("A", "B", confidence=0.5)])
    project.apply(entities=[{"id": "A", "status": "blocked"}], edges=[edge("A", "B", confidence=0.9)])
    project.apply(entities=[{"id": "A", "status": "done"}], edges=[edge("A", "B", confidence=0.5)])
    revert(project, 2)
    node = project.node("A")
    assert node
    assert node.fields["status"] == "open"
    assert project.edges("A") == set()


def test_a_creation_is_undone_when_what_was_changed_since_is_as_it_was(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[{"id": "A", "owner": "ann"}])
    project.apply(entities=[{"id": "A", "owner": None}])
    assert revert(project, 1).deleted == ("A",)


def test_several_records_are_reverted_newest_first_in_one_record(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[{"id": "A", "status": "one"}])
    project.apply(entities=[{"id": "A", "status": "two", "owner": "ann"}])
    project.apply(entities=[entity("B")], edges=[edge("B", "A")])
    outcome = revert(project, 2, 4, 3)
    node = project.node("A")
    assert node
    assert outcome.seq == 5
    assert node.fields["status"] == "open"
    assert "owner" not in node.fields
    assert outcome.deleted == ("B",)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"message": "half \ud800"}, "bad_text"),
        ({"message": "nul \0"}, "bad_text"),
        ({"message": "long" * 20_000}, "too_long"),
        ({"changeset_id": "half \ud800"}, "bad_id"),
        ({"changeset_id": "x" * 65}, "bad_id"),
        ({"changeset_id": " x"}, "bad_id"),
    ],
)
@pytest.mark.parametrize("undoing", [revert, rollback])
def test_an_undo_takes_no_message_and_no_id_that_a_changeset_would_not(
    project: Project, undoing: Callable[..., Outcome], options: dict[str, str], code: str
) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[{"id": "A", "status": "done"}])
    with pytest.raises(InvalidChangeset) as refused:
        undoing(project, 1, dry_run=True, **options)
    [name] = options
    assert {problem.path for problem in refused.value.details} == {f"$.{name}"}
    assert code in {problem.code for problem in refused.value.details}
    with pytest.raises(InvalidChangeset):
        undoing(project, 1, **options)
    assert project.seq() == 2


def test_a_gap_between_reverted_records_is_a_conflict(project: Project) -> None:
    project.apply(entities=[entity("A")])
    for status in ("one", "two", "three"):
        project.apply(entities=[{"id": "A", "status": status}])
    with pytest.raises(RevertConflict) as refused:
        revert(project, 4, 2)
    assert [one["seq"] for one in conflicts(refused)] == [3]


def test_a_removed_entity_comes_back_with_its_beginning_its_source_and_its_edges(project: Project) -> None:
    project.apply(author=Author("ann", "mcp:agent", "t"), entities=[entity("A"), entity("B")], edges=[edge("A", "B")])
    before, link = project.node("B"), project.link("A", "depends_on", "B")
    project.delete(entities=[{"id": "B"}], cascade=True)
    assert project.edges("A") == set()
    revert(project, 2)
    node, back = project.node("B"), project.link("A", "depends_on", "B")
    assert before
    assert node
    assert (node.created_at, node.source, node.fields) == (before.created_at, "mcp:agent", before.fields)
    assert (back.created_at, back.created_by, back.statements) == (link.created_at, "ann", link.statements)
    assert back.is_resolved


def test_an_entity_that_was_made_anew_since_is_a_conflict(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.delete(entities=[{"id": "A"}])
    project.apply(entities=[entity("A", title="Another")])
    with pytest.raises(RevertConflict) as refused:
        revert(project, 2)
    assert conflicts(refused) == [{"seq": 3, "id": "A", "change": "created"}]
    revert(project, 2, force=True)
    node = project.node("A")
    assert node
    assert node.fields["title"] == "Title of A"


def test_a_change_of_what_was_removed_since_is_a_conflict_and_force_brings_it_back(project: Project) -> None:
    project.apply(entities=[entity("A", owner="ann")])
    project.apply(entities=[{"id": "A", "status": "done"}])
    project.delete(entities=[{"id": "A"}])
    with pytest.raises(RevertConflict) as refused:
        revert(project, 2)
    assert conflicts(refused) == [{"seq": 3, "id": "A", "change": "deleted"}]
    revert(project, 2, force=True)
    node = project.node("A")
    assert node
    assert (node.fields["status"], node.fields["owner"]) == ("open", "ann")


def test_undoing_a_creation_is_refused_when_somebody_changed_it_since(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[{"id": "A", "owner": "ann"}])
    with pytest.raises(RevertConflict) as refused:
        revert(project, 1)
    assert [(one["seq"], one["field"]) for one in conflicts(refused)] == [(2, "owner")]
    revert(project, 1, force=True)
    assert project.node("A") is None


def test_undoing_a_creation_is_refused_while_others_point_at_it(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[entity("B")], edges=[edge("B", "A")])
    with pytest.raises(RevertConflict) as refused:
        revert(project, 1)
    assert [problem.code for problem in refused.value.details] == ["broken_edge"]
    assert "B depends_on A" in refused.value.message
    revert(project, 1, force=True)
    assert project.edges("B") == {("B", "depends_on", "A", False)}


def test_undoing_the_creation_of_an_edge_is_refused_while_an_edge_about_it_stands(project: Project) -> None:
    project.write({".kb/schema/own.yaml": "edges: {doubts: {from: [req], to: [link], description: About an edge}}\n"})
    project.apply(entities=[entity("A"), entity("B")])
    project.apply(edges=[edge("A", "B")])
    project.apply(edges=[{"type": "doubts", "from": "A", "to": link_id("depends_on", "", "A", "B")}])
    with pytest.raises(RevertConflict) as refused:
        revert(project, 2)
    assert [problem.code for problem in refused.value.details] == ["broken_edge"]
    revert(project, 2, 3)
    assert project.edges("A") == set()


def test_an_edge_is_undone_field_by_field(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B")], edges=[edge("A", "B", confidence=0.5)])
    project.apply(edges=[edge("A", "B", confidence=0.9, metadata={"why": "seen"})])
    project.apply(edges=[edge("A", "B", metadata={"why": "proved"})])
    with pytest.raises(RevertConflict) as refused:
        revert(project, 2)
    name = {"type": "depends_on", "from": "A", "to": "B"}
    assert conflicts(refused) == [
        {"seq": 3, "edge": name, "change": "updated", "field": "metadata.why", "before": "seen", "after": "proved"}
    ]
    revert(project, 3, 2)
    assert project.link("A", "depends_on", "B").fields == {"confidence": 0.5}


def test_an_edge_that_got_another_field_since_is_not_unmade_in_silence(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B")])
    project.apply(edges=[edge("A", "B")])
    project.apply(edges=[edge("A", "B", metadata={"why": "seen"})])
    with pytest.raises(RevertConflict) as refused:
        revert(project, 2)
    assert [(one["seq"], one["field"]) for one in conflicts(refused)] == [(3, "metadata.why")]
    revert(project, 2, force=True)
    assert project.edges("A") == set()


def test_an_edge_that_is_no_more_is_not_undone_without_force(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B")], edges=[edge("A", "B", confidence=0.5)])
    project.apply(edges=[edge("A", "B", confidence=0.9)])
    project.delete(edges=[edge("A", "B")])
    with pytest.raises(RevertConflict):
        revert(project, 2)
    revert(project, 2, force=True)
    assert project.link("A", "depends_on", "B").fields == {"confidence": 0.5}


def test_an_edge_whose_end_is_gone_does_not_come_back_in_silence(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B")], edges=[edge("A", "B")])
    project.delete(edges=[edge("A", "B")])
    project.delete(entities=[{"id": "B"}])
    with pytest.raises(RevertConflict) as refused:
        revert(project, 2)
    assert refused.value.details[0].code == "broken_edge"
    revert(project, 3, 2)
    assert project.edges("A") == {("A", "depends_on", "B", True)}


def test_an_edge_that_a_file_states_as_well_stays_when_the_client_takes_its_word_back(project: Project) -> None:
    project.sync({"docs/requirements/b.md": req("B"), "docs/requirements/a.md": req("A")})
    project.apply(edges=[edge("A", "B", metadata={"why": "seen"})])
    project.sync({"docs/requirements/a.md": req("A", depends_on="B")})
    revert(project, 2)
    link = project.link("A", "depends_on", "B")
    assert [statement.src for statement in link.statements] == ["docs/requirements/a.md"]
    assert link.fields == {}
    assert link.is_resolved


def test_a_type_is_not_put_back_under_an_edge_that_would_not_fit_it(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B", type="test")])
    project.apply(entities=[{"id": "B", "type": "req"}])
    project.apply(edges=[edge("A", "B")])
    with pytest.raises(RevertConflict) as refused:
        revert(project, 2)
    assert "`depends_on` does not lead from req to test" in refused.value.message


def test_a_bare_link_finds_its_edge_when_a_revert_brings_the_target_back(project: Project) -> None:
    project.apply(entities=[entity("T", type="test")])
    project.delete(entities=[{"id": "T"}])
    project.sync({"docs/requirements/a.md": req("A", links="[T]")})
    assert project.edges("A") == {("A", "", "T", False)}
    assert revert(project, 2).seq == 4
    record = project.workspace().store("main").record_at(project.view(), 4)
    assert record
    assert {(type(op).__name__, op.base) for op in record.ops} == {
        ("PutNode", 0),
        ("WithdrawLink", 3),
        ("StateLink", 0),
    }
    assert project.edges("A") == {("A", "verified_by", "T", True)}


def test_a_change_of_nothing_but_the_time_of_the_update_is_undone_too(project: Project) -> None:
    project.import_(entities=[entity("A", updated_at="2020-01-01")])
    project.import_(entities=[{"id": "A", "updated_at": "2021-01-01"}])
    revert(project, 2)
    node = project.node("A")
    assert node
    assert node.updated_at == "2020-01-01T00:00:00.000000Z"


def test_facts_of_files_are_reverted_with_a_warning_and_the_next_sync_states_them_again(project: Project) -> None:
    path = "docs/requirements/a.md"
    project.sync({path: req("A")})
    project.sync({path: req("A", status="done", priority="must")})
    outcome = revert(project, 2)
    assert [path in warning for warning in outcome.warnings] == [True]
    node = project.node("A")
    assert node
    assert node.fields["status"] == "open"
    assert node.owners["status"] == path
    answer = project.sync()
    assert answer.outcome.applied
    node = project.node("A")
    assert node
    assert (node.fields["status"], node.fields["priority"]) == ("done", "must")
    assert not project.sync().outcome.applied


def test_the_next_sync_mends_what_a_partial_revert_left_between_two_contents_of_a_file(project: Project) -> None:
    path = "docs/requirements/a.md"
    old = req("A", priority="low")
    project.sync({path: old})
    project.sync({path: req("A", priority="high")})
    project.sync({path: req("A", priority="high", status="done")})
    revert(project, 2)
    node = project.node("A")
    assert node
    assert (node.fields["priority"], node.fields["status"]) == ("low", "done")
    project.sync()
    node = project.node("A")
    assert node
    assert (node.fields["priority"], node.fields["status"]) == ("high", "done")
    revert(project, 2, force=True)
    project.sync({path: old})
    node = project.node("A")
    assert node
    assert (node.fields["priority"], node.fields["status"]) == ("low", "open")


def test_facts_of_a_file_that_is_gone_do_not_stay_for_ever(project: Project) -> None:
    path = "docs/requirements/a.md"
    project.sync({path: req("A")})
    project.apply(entities=[{"id": "A", "owner": "ann"}])
    project.sync({path: None})
    assert project.node("A") is None
    revert(project, 2, force=True)
    node = project.node("A")
    assert node
    assert node.path == path
    project.sync()
    assert project.node("A") is None


def test_reverting_a_sync_forgets_the_file_so_that_it_is_read_again(project: Project) -> None:
    project.sync({"docs/requirements/a.md": req("A"), "docs/requirements/b.md": req("B", depends_on="A")})
    outcome = revert(project, 1)
    assert outcome.deleted == ("A", "B")
    assert project.view().rows("select count(*) from source") == [(0,)]
    assert set(project.sync().outcome.created) == {"A", "B"}


def test_a_dry_run_says_what_a_revert_would_do_and_writes_nothing(project: Project) -> None:
    project.apply(entities=[entity("A")])
    outcome = revert(project, 1, dry_run=True)
    assert outcome.deleted == ("A",)
    assert not outcome.applied
    assert project.seq() == 1


def test_a_revert_sent_twice_takes_effect_once_and_its_id_stands_for_it_alone(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[{"id": "A", "status": "done"}])
    first = revert(project, 2, changeset_id="undo-1")
    again = revert(project, 2, changeset_id="undo-1")
    assert (again.seq, again.duplicate, again.updated) == (first.seq, True, ("A",))
    with pytest.raises(ChangesetIdReused):
        revert(project, 1, changeset_id="undo-1")


@pytest.mark.parametrize("seq", [0, 5, -1])
def test_a_record_that_does_not_exist_cannot_be_reverted(project: Project, seq: int) -> None:
    project.apply(entities=[entity("A")])
    with pytest.raises(NotFound, match="There is no record"):
        revert(project, seq)


def test_reverting_nothing_is_refused(project: Project) -> None:
    with pytest.raises(InvalidQuery):
        revert(project)


def test_a_revert_is_refused_when_head_is_on_another_branch(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.switch("other", create=True)
    with pytest.raises(BranchMoved):
        revert(project, 1)
    assert project.view("main").seq == 1


def test_a_rollback_leads_to_how_everything_stood_and_erases_nothing(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B")], edges=[edge("A", "B", confidence=1)])
    project.apply(entities=[{"id": "A", "title": "New"}, entity("C")], edges=[edge("C", "A")])
    project.delete(entities=[{"id": "B"}], cascade=True)
    outcome = rollback(project, 1)
    assert outcome.seq == 4
    assert (outcome.created, outcome.updated, outcome.deleted) == (("B",), ("A",), ("C",))
    assert project.edges("A") == {("A", "depends_on", "B", True)}
    assert not rollback(project, 1).applied
    rollback(project, 3)
    assert project.node("B") is None


def test_a_rollback_can_lead_back_to_nothing(project: Project) -> None:
    project.sync({"docs/requirements/a.md": req("A")})
    outcome = rollback(project, 0)
    assert outcome.deleted == ("A",)
    assert "docs/requirements/a.md" in outcome.warnings[0]
    assert project.sync().outcome.created == ("A",)


def test_a_rollback_to_a_seq_that_is_not_there_is_refused(project: Project) -> None:
    project.apply(entities=[entity("A")])
    for seq in (-1, 2):
        with pytest.raises(NotFound, match="no seq"):
            rollback(project, seq)


def test_a_sync_comes_to_the_right_answer_by_itself_after_a_rollback(project: Project) -> None:
    project.sync({"docs/requirements/a.md": req("A"), "docs/tests/t.md": document("T", title="T", links="[A]")})
    project.sync({"docs/requirements/a.md": req("A", status="done"), "docs/tests/t.md": None})
    rollback(project, 1)
    assert project.edges("A") == {("A", "verified_by", "T", True)}
    project.sync()
    node = project.node("A")
    assert node
    assert node.fields["status"] == "done"
    assert project.node("T") is None
    assert project.edges("A") == set()


def test_a_link_that_waited_for_an_entity_may_wait_again(project: Project) -> None:
    project.sync({"docs/requirements/a.md": req("A", depends_on="B")})
    project.apply(entities=[entity("B")])
    assert project.edges("A") == {("A", "depends_on", "B", True)}
    revert(project, 2)
    assert project.edges("A") == {("A", "depends_on", "B", False)}


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
