"""Edges fit the types of their ends, and what is deleted leaves none."""

from __future__ import annotations

import pytest

from kbcore.errors import (
    DerivedFact,
    IntegrityViolation,
    InvalidChangeset,
    NotFound,
    StaleBase,
)
from kbcore.model.changeset import parse
from kbcore.store.planning.plan import reads
from tests.core.store.planning.requests import edge, faults, req
from tests.support.repository.project import Project, document


def test_what_leads_from_any_entity_does_not_lead_from_an_edge(project: Project) -> None:
    project.apply(entities=[req("A"), req("B")], edges=[edge("depends_on", "A", "B")])
    with pytest.raises(IntegrityViolation, match="leads from any entity to any entity, not from link to req"):
        project.apply(edges=[edge("relates_to", project.link("A", "depends_on", "B").id, "A", kind="about")])


def test_unknown_names_get_the_nearest_known_one(project: Project) -> None:
    project.apply(entities=[req("REQ-100")])
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(
            entities=[{"id": "A", "type": "reqs", "title": "T", "status": "x"}],
            edges=[edge("depend_on", "REQ-100", "REQ-100"), edge("depends_on", "REQ-10", "REQ-100")],
        )
    hints = {problem.path: problem.hint for problem in refused.value.details}
    assert "'req'" in hints["$.entities[0].type"]
    assert "'depends_on'" in hints["$.edges[0].type"]
    assert "'REQ-100'" in hints["$.edges[1].from"]


def test_an_edge_that_leads_the_other_way_is_named_with_its_ends_swapped(project: Project) -> None:
    project.apply(entities=[req("R"), {"id": "T", "type": "test", "title": "T", "status": "active"}])
    swapped = "`verified_by` leads the other way: `kb link R verified_by T`."
    with pytest.raises(InvalidChangeset) as unknown:
        project.apply(edges=[edge("verifies", "T", "R")])
    assert unknown.value.details[0].hint.startswith(swapped)
    with pytest.raises(IntegrityViolation) as wrong:
        project.apply(edges=[edge("verified_by", "T", "R")])
    assert wrong.value.details[0].hint == swapped
    with pytest.raises(InvalidChangeset) as mistyped:
        project.apply(edges=[edge("verified", "R", "T")])
    assert mistyped.value.details[0].hint.startswith("Did you mean 'verified_by'?")


def test_an_entity_that_is_refused_is_not_reported_again_at_its_edges(project: Project) -> None:
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(entities=[req("A"), {**req("B"), "type": "odd"}], edges=[edge("depends_on", "A", "B")])
    assert faults(refused.value) == {("$.entities[1].type", "unknown_type")}


def test_relates_to_needs_a_kind_and_no_other_edge_takes_one(project: Project) -> None:
    entities = [req("A"), req("B")]
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(entities=entities, edges=[edge("relates_to", "A", "B"), edge("depends_on", "A", "B", kind="k")])
    assert faults(refused.value) == {("$.edges[0].kind", "missing_field"), ("$.edges[1].kind", "unknown_field")}
    both = [edge("relates_to", "A", "B", kind="one"), edge("relates_to", "A", "B", kind="two")]
    assert project.apply(entities=entities, edges=both).edges.created == 2


def test_an_edge_may_be_about_an_edge_where_the_schema_says_so(project: Project) -> None:
    project.write({".kb/schema/links.yaml": "edges:\n  doubts: {from: [req], to: [link], description: d}\n"})
    project.apply(entities=[req("A"), req("B")], edges=[edge("depends_on", "A", "B")])
    about = project.link("A", "depends_on", "B").id
    project.apply(edges=[edge("doubts", "A", about)])
    assert project.edges(about) == {("A", "doubts", about, True)}
    with pytest.raises(IntegrityViolation):
        project.apply(edges=[edge("depends_on", "A", about)])
    with pytest.raises(IntegrityViolation):
        project.delete(edges=[edge("depends_on", "A", "B")])
    project.delete(edges=[edge("depends_on", "A", "B")], cascade=True)
    assert project.edges("A") == set()


def test_delete_is_refused_while_others_point_at_it_unless_cascade(project: Project) -> None:
    entities = [req("A"), req("B"), {**req("T"), "type": "test"}]
    project.apply(entities=entities, edges=[edge("depends_on", "A", "B"), edge("verified_by", "B", "T")])
    with pytest.raises(IntegrityViolation, match="A depends_on B") as refused:
        project.delete(entities=[{"id": "B"}])
    assert faults(refused.value) == {("$.entities[0]", "in_use")}
    assert refused.value.hint == "Remove these edges first, or use --cascade, which removes them too."
    assert project.delete(entities=[{"id": "A"}]).edges.deleted == 1
    outcome = project.delete(entities=[{"id": "T"}], cascade=True)
    assert (outcome.deleted, outcome.edges.deleted) == (("T",), 1)
    assert project.edges("B") == set()


def test_things_that_point_at_each_other_can_leave_together(project: Project) -> None:
    project.apply(entities=[req("A"), req("B")], edges=[edge("depends_on", "A", "B"), edge("depends_on", "B", "A")])
    assert project.delete(entities=[{"id": "A"}, {"id": "B"}]).edges.deleted == 2


def test_a_delete_honours_the_version_that_was_read(project: Project) -> None:
    project.apply(entities=[req("A")])
    project.apply(entities=[{"id": "A", "status": "done"}])
    with pytest.raises(StaleBase):
        project.delete(entities=[{"id": "A", "expected_version": 1}])
    assert project.delete(entities=[{"id": "A", "expected_version": 2}]).deleted == ("A",)


def test_a_delete_of_something_unknown_names_the_nearest(project: Project) -> None:
    project.apply(entities=[req("REQ-1")])
    with pytest.raises(NotFound) as refused:
        project.delete(entities=[{"id": "req-1"}], edges=[edge("depends_on", "REQ-1", "REQ-2")])
    assert faults(refused.value) == {("$.entities[0].id", "not_found"), ("$.edges[0]", "not_found")}
    assert "'REQ-1'" in next(problem.hint for problem in refused.value.details if "entities" in problem.path)


def test_a_project_type_is_validated_like_kbs_own(project: Project) -> None:
    risk = "{attributes: {level: {required: true, values: [low, high]}}, statuses: [open, closed]}"
    project.write({".kb/schema/risk.yaml": f"entities:\n  risk: {risk}\n"})
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(entities=[{"id": "R", "type": "risk", "title": "T", "status": "odd"}])
    assert faults(refused.value) == {
        ("$.entities[0].attributes.level", "missing_field"),
        ("$.entities[0].status", "unknown_status"),
    }
    project.apply(
        entities=[{"id": "R", "type": "risk", "title": "T", "status": "open", "attributes": {"level": "low"}}]
    )
    with pytest.raises(InvalidChangeset):
        project.apply(entities=[{"id": "R", "attributes": {"level": "odd"}}])


def test_an_entity_changes_its_type_only_while_its_edges_fit(project: Project) -> None:
    project.apply(entities=[req("A"), req("B"), req("C")], edges=[edge("depends_on", "A", "B")])
    with pytest.raises(IntegrityViolation):
        project.apply(entities=[{"id": "A", "type": "test"}])
    assert project.apply(entities=[{"id": "C", "type": "test"}]).updated == ("C",)


def test_a_client_cannot_bring_about_an_edge_that_a_file_states_and_that_does_not_fit(project: Project) -> None:
    project.sync(
        {
            "docs/requirements/1.md": document(
                "REQ-1", title="T", status="open", links="[{type: verified_by, target: X}]"
            )
        }
    )
    with pytest.raises(IntegrityViolation, match="REQ-1 verified_by X") as refused:
        project.apply(entities=[{"id": "X", "type": "req", "title": "T", "status": "open"}])
    assert faults(refused.value) == {("$.entities[0].type", "endpoint_type")}
    problem = refused.value.details[0]
    assert problem.source == "docs/requirements/1.md"
    assert "docs/requirements/1.md" in problem.message
    assert "docs/requirements/1.md" in problem.hint
    assert project.apply(entities=[{"id": "X", "type": "test", "title": "T", "status": "active"}]).edges.updated == 1
    with pytest.raises(IntegrityViolation) as refused:
        project.apply(entities=[{"id": "X", "type": "req"}])
    assert faults(refused.value) == {("$.entities[0].type", "endpoint_type")}


def test_a_client_cannot_bring_about_an_edge_of_another_client_that_does_not_fit(project: Project) -> None:
    project.sync({"docs/requirements/2.md": document("REQ-2", title="T", status="open")})
    project.apply(entities=[req("A")], edges=[edge("depends_on", "A", "REQ-2")])
    project.sync({"docs/requirements/2.md": None})
    assert project.edges("A") == {("A", "depends_on", "REQ-2", False)}
    with pytest.raises(IntegrityViolation, match="A depends_on REQ-2 would be resolved") as refused:
        project.apply(entities=[{**req("REQ-2"), "type": "test"}])
    assert "delete that edge" in refused.value.hint
    assert project.apply(entities=[req("REQ-2")]).edges.updated == 1


def test_an_edge_that_the_changeset_names_itself_is_reported_once(project: Project) -> None:
    project.apply(entities=[req("A"), req("B")], edges=[edge("depends_on", "A", "B")])
    with pytest.raises(IntegrityViolation) as refused:
        project.apply(entities=[{"id": "B", "type": "test"}], edges=[edge("depends_on", "A", "B", confidence=0.5)])
    assert faults(refused.value) == {("$.edges[0]", "endpoint_type")}


def test_one_problem_gives_the_error_its_words_and_several_are_counted(project: Project) -> None:
    project.sync({"docs/requirements/1.md": document("REQ-1", title="T", status="open")})
    with pytest.raises(DerivedFact) as refused:
        project.apply(entities=[{"id": "REQ-1", "title": "Mine"}])
    assert refused.value.details[0].message in refused.value.message
    assert refused.value.hint == refused.value.details[0].hint
    with pytest.raises(InvalidChangeset, match=r"as it is: 2 problems\.$") as several:
        project.apply(entities=[req("A", type="reqs"), req("B", type="tset")])
    assert not {problem.message for problem in several.value.details} & {several.value.message}


def test_an_edge_of_a_document_that_a_client_writes_as_well_remains_without_the_document(project: Project) -> None:
    project.apply(entities=[req("B")])
    links = "[{type: depends_on, target: B}]"
    project.sync({"docs/requirements/a.md": document("A", title="A", status="open", links=links)})
    assert project.apply(edges=[edge("depends_on", "A", "B")]).applied
    assert len(project.link("A", "depends_on", "B").statements) == 2
    project.sync({"docs/requirements/a.md": document("A", title="A", status="open")})
    assert project.edges("B") == {("A", "depends_on", "B", True)}


def test_an_edge_that_was_removed_after_it_was_read_is_not_made_again_unseen(project: Project) -> None:
    project.apply(entities=[req("A"), req("B")], edges=[edge("depends_on", "A", "B")])
    project.delete(edges=[{"type": "depends_on", "from": "A", "to": "B"}])
    with pytest.raises(StaleBase, match="A depends_on B was removed at seq 2, after 1"):
        project.apply(edges=[edge("depends_on", "A", "B")], expected_seq=1)
    assert project.apply(edges=[edge("depends_on", "A", "B")], expected_seq=2).edges.created == 1


def test_naming_the_type_that_a_hub_has_does_not_read_its_edges(project: Project) -> None:
    spokes = [req(f"S-{number}") for number in range(30)]
    edges = [edge("depends_on", one["id"], "HUB") for one in spokes]
    project.apply(entities=[req("HUB"), *spokes], edges=edges)
    same = parse({"entities": [{"id": "HUB", "type": "req", "owner": "bob"}]})
    assert project.view().gather(reads(same)).links == {}
    other = parse({"entities": [{"id": "HUB", "type": "test"}]})
    assert len(project.view().gather(reads(other)).links) == 30
