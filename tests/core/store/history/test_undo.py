"""A revert takes back what a record changed, and refuses what was changed since."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kbcore.errors import (
    BranchMoved,
    ChangesetIdReused,
    InvalidChangeset,
    InvalidQuery,
    NotFound,
    RevertConflict,
    StaleBase,
)
from kbcore.ids import link_id
from kbcore.store.answers import Outcome
from kbcore.store.write_request import Author
from tests.core.store.history.undoing import conflicts, edge, entity, revert, rollback
from tests.support.repository.project import Project, req


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


def test_a_revert_is_refused_where_a_record_after_the_expected_one_changed_the_same(project: Project) -> None:
    project.apply(entities=[entity("A"), entity("B")])
    project.apply(entities=[{"id": "A", "status": "done"}], edges=[edge("A", "B")])
    project.apply(entities=[{"id": "A", "status": "blocked"}])
    project.apply(entities=[entity("C")])
    assert revert(project, 2, force=True, dry_run=True, expected_seq=3).updated == ("A",)
    project.apply(edges=[edge("A", "B", confidence=0.5)])
    with pytest.raises(StaleBase, match=r"^'A depends_on B' changed at seq 5, after 3") as refused:
        revert(project, 2, force=True, expected_seq=3)
    assert refused.value.details[0].code == "stale"
    with pytest.raises(InvalidChangeset, match="no seq 6 yet; the head is 5"):
        revert(project, 2, force=True, expected_seq=6)
    assert project.seq() == 5
    revert(project, 2, force=True, expected_seq=5)
    assert project.edges("A") == set()


def test_what_was_removed_after_the_expected_record_does_not_come_back(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[{"id": "A", "status": "done"}])
    project.delete(entities=[{"id": "A", "expected_version": 2}])
    with pytest.raises(StaleBase, match=r"^'A' changed at seq 3, after 2"):
        revert(project, 2, force=True, expected_seq=2)
    assert project.node("A") is None


def test_a_new_edge_that_a_forced_revert_would_break_counts_as_a_change(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[entity("B")])
    project.apply(edges=[edge("A", "B")])
    with pytest.raises(StaleBase, match=r"^'A depends_on B' changed at seq 3, after 2"):
        revert(project, 2, force=True, expected_seq=2)


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


@pytest.mark.sliced(3)
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


def test_an_entity_that_was_made_again_since_is_a_conflict(project: Project) -> None:
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


def test_a_concept_of_the_vocabulary_stays_where_others_use_it_when_its_first_use_is_undone(project: Project) -> None:
    archived = {"id": "Domain:Archived", "type": "Domain", "title": "Archived"}
    into = {"type": "belongs_to_domain", "to": "Domain:Archived"}
    project.apply(entities=[archived, entity("A")], edges=[into | {"from": "A"}])
    project.apply(entities=[entity("B")], edges=[into | {"from": "B"}])
    revert(project, 1)
    assert project.node("A") is None
    assert project.edges("B") == {("B", "belongs_to_domain", "Domain:Archived", True)}
    revert(project, 2)
    assert project.node("B") is None


def test_undoing_the_creation_of_an_edge_is_refused_while_there_is_an_edge_about_it(project: Project) -> None:
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


def test_a_dry_run_says_what_a_revert_would_do_and_writes_nothing(project: Project) -> None:
    project.apply(entities=[entity("A")])
    outcome = revert(project, 1, dry_run=True)
    assert outcome.deleted == ("A",)
    assert not outcome.applied
    assert project.seq() == 1


def test_a_revert_sent_twice_takes_effect_once_and_its_id_means_it_alone(project: Project) -> None:
    project.apply(entities=[entity("A")])
    project.apply(entities=[{"id": "A", "status": "done"}])
    first = revert(project, 2, changeset_id="undo-1")
    again = revert(project, 2, changeset_id="undo-1")
    assert (again.seq, again.duplicate, again.updated) == (first.seq, True, ("A",))
    with pytest.raises(ChangesetIdReused):
        revert(project, 1, changeset_id="undo-1")
    with pytest.raises(ChangesetIdReused):
        revert(project, 2, changeset_id="undo-1", expected_seq=2)


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
