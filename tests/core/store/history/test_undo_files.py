"""Facts of files are reverted or rolled back until the next sync states them again."""

from __future__ import annotations

import pytest

from kbcore.errors import NotFound
from tests.core.store.history.undoing import edge, entity, revert, rollback
from tests.support.repository.project import Project, document, req


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
