"""What a client may ask for, and what it is told when it may not: every problem at once, nothing written."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from kbcore.checks.introduced import written
from kbcore.errors import (
    ChangesetIdReused,
    DerivedFact,
    IntegrityViolation,
    InvalidChangeset,
    KBError,
    LimitExceeded,
    NotFound,
    StaleBase,
)
from kbcore.model.changeset import Changeset, digest_of, parse, parse_deletion
from kbcore.model.request_reader import kind_of
from kbcore.store.history import authorship
from kbcore.store.planning.plan import reads
from kbcore.store.write_request import Author
from tests.support.repository.project import AUTHOR, Project, document

ZOE = Author("zoe", "test", "test/1")


def req(key: str, **fields: Any) -> dict[str, Any]:
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def edge(name: str, from_id: str, to_id: str, **fields: Any) -> dict[str, Any]:
    return {"type": name, "from": from_id, "to": to_id, **fields}


def faults(found: KBError | Changeset) -> set[tuple[str, str]]:
    problems = found.problems if isinstance(found, Changeset) else found.details
    assert len({problem.path for problem in problems}) == len(problems)
    return {(problem.path, problem.code) for problem in problems}


@pytest.mark.parametrize("key", ["{n}", "REQ-{n}-x", "REQ-{m}"])
def test_braces_that_stand_for_no_number_are_in_no_new_id_of_a_client(project: Project, key: str) -> None:
    with pytest.raises(InvalidChangeset, match="stands for the next free number") as refused:
        project.apply(entities=[req(key)], edges=[edge("depends_on", key, key)])
    assert faults(refused.value) == {("$.entities[0].id", "bad_id")}


def test_braces_are_no_fault_of_an_id_that_is_there_or_of_a_mark_that_gets_no_number_yet(project: Project) -> None:
    project.sync({"docs/requirements/a.md": document("REQ-{m}", title="T", status="open")})
    project.apply(entities=[{"id": "REQ-{m}", "type": "req", "attributes": {"x": 1}}])
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(entities=[req("REQ-{n}"), req("B", type="none")])
    assert faults(refused.value) == {("$.entities[1].type", "unknown_type")}


def test_every_fault_of_shape_is_reported_at_once() -> None:
    request = {
        "entities": [{"id": 7, "titel": "x", "tags": "a", "owner": 3}, "text", {"title": "no id"}],
        "edges": [{"type": "depends_on", "from": "A", "confidence": 2}],
        "expected_seq": "4",
        "dry_run": "yes",
        "more": 1,
    }
    parsed = parse(request)
    assert faults(parsed) == {
        ("$.more", "unknown_field"),
        ("$.entities[0].id", "wrong_type"),
        ("$.entities[0].titel", "unknown_field"),
        ("$.entities[0].tags", "wrong_type"),
        ("$.entities[0].owner", "wrong_type"),
        ("$.entities[1]", "wrong_type"),
        ("$.entities[2].id", "missing_field"),
        ("$.edges[0].to", "missing_field"),
        ("$.edges[0].confidence", "wrong_type"),
        ("$.expected_seq", "wrong_type"),
        ("$.dry_run", "wrong_type"),
    }
    hints = {problem.path: problem.hint for problem in parsed.problems}
    assert "'title'" in hints["$.entities[0].titel"]


def test_faults_of_shape_and_of_meaning_are_reported_together(project: Project) -> None:
    project.sync({"docs/requirements/1.md": document("REQ-1", title="T", status="open")})
    project.apply(entities=[req("REQ-2")])
    project.apply(entities=[{"id": "REQ-2", "status": "done"}])
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(
            expected_seq=2,
            message=7,
            entities=[
                {"id": "REQ-1", "title": "Mine", "owner": 3},
                {"id": "REQ-2", "owner": "bob"},
                {"id": "REQ-3", "type": "reqs", "tags": "x"},
                req("REQ-4", titel="x"),
            ],
            edges=[
                edge("depends_on", "REQ-4", "NOPE", confidence=2),
                edge("depend_on", "REQ-4", "REQ-2"),
                edge("verified_by", "REQ-1", "REQ-4"),
            ],
        )
    assert faults(refused.value) == {
        ("$.message", "wrong_type"),
        ("$.entities[0].title", "derived_fact"),
        ("$.entities[0].owner", "wrong_type"),
        ("$.entities[1]", "stale"),
        ("$.entities[2].type", "unknown_type"),
        ("$.entities[2].tags", "wrong_type"),
        ("$.entities[3].titel", "unknown_field"),
        ("$.edges[0].confidence", "wrong_type"),
        ("$.edges[0].to", "unknown_entity"),
        ("$.edges[1].type", "unknown_edge"),
    }
    assert (project.seq(), project.node("REQ-4")) == (3, None)


@pytest.mark.parametrize(
    ("entities", "only"),
    [
        ([req("B", title=5)], "$.entities[0].title"),
        ([{"id": "B", "tpye": "test", "title": "T", "status": "x"}], "$.entities[0].tpye"),
        ([req("B", type=5)], "$.entities[0].type"),
        ([req("B", type="odd")], "$.entities[0].type"),
        ([req("")], "$.entities[0].id"),
        ([{**req("B"), "id": 3}], "$.entities[0].id"),
        (["B"], "$.entities[0]"),
        ({"id": "B"}, "$.entities"),
        ([req("B"), req("B")], "$.entities[1]"),
        ([{"id": "A", "typ": "test"}, req("B")], "$.entities[0].typ"),
    ],
)
def test_what_refers_to_an_item_with_a_fault_is_not_reported_as_well(
    project: Project, entities: Any, only: str
) -> None:
    project.apply(entities=[req("A"), req("C")], edges=[edge("depends_on", "A", "C")])
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(entities=entities, edges=[edge("depends_on", "A", "B")])
    assert [problem.path for problem in refused.value.details] == [only]


def test_a_misspelt_list_does_not_make_everything_else_unknown(project: Project) -> None:
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(entitys=[req("A"), req("B")], edges=[edge("depends_on", "A", "B")])
    assert faults(refused.value) == {("$.entitys", "unknown_field")}


def test_an_edge_about_an_edge_that_is_refused_is_not_reported_as_well(project: Project) -> None:
    project.write({".kb/schema/links.yaml": "edges:\n  doubts: {from: [req], to: [link], description: d}\n"})
    about = parse({"edges": [edge("depends_on", "A", "NOPE")]}).edges[0].id
    with pytest.raises(IntegrityViolation) as refused:
        project.apply(entities=[req("A")], edges=[edge("doubts", "A", about), edge("depends_on", "A", "NOPE")])
    assert faults(refused.value) == {("$.edges[1].to", "unknown_entity")}


def test_faults_of_a_deletion_are_reported_together(project: Project) -> None:
    project.apply(entities=[req("A"), req("B"), req("C")], edges=[edge("depends_on", "A", "B")])
    items = [{"id": "B"}, {"id": "C", "expected_version": "x"}, {"id": "GONE"}]
    with pytest.raises(InvalidChangeset) as refused:
        project.delete(entities=items)
    assert faults(refused.value) == {
        ("$.entities[0]", "in_use"),
        ("$.entities[1].expected_version", "wrong_type"),
        ("$.entities[2].id", "not_found"),
    }
    for more in ({"casade": True}, {"cascade": "yes"}, {"edges": [{"from": "A", "to": "B"}]}):
        with pytest.raises(InvalidChangeset) as refused:
            project.delete(entities=[{"id": "B"}], **more)
        assert len(refused.value.details) == 1


def test_a_request_with_faults_is_refused_before_its_id_is_looked_up(project: Project) -> None:
    project.apply(changeset_id="c-1", entities=[req("A")])
    with pytest.raises(InvalidChangeset):
        project.apply(changeset_id="c-1", entities=[req("A", owner=1)])


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("a\0b", "bad_text"),
        ("half \ud800", "bad_text"),
        ("x" * 70_000, "too_long"),
        (["a", "b"], "wrong_type"),
        ("", "missing_field"),
        ("  ", "missing_field"),
    ],
)
def test_a_title_that_cannot_be_kept_is_refused(value: Any, code: str) -> None:
    assert faults(parse({"entities": [req("A", title=value)]})) == {("$.entities[0].title", code)}


def test_deep_and_endless_values_are_refused() -> None:
    deep: Any = 1
    for _ in range(1000):
        deep = [deep]
    for value, code in [
        (deep, "too_deep"),
        (float("nan"), "bad_number"),
        (2**70, "bad_number"),
        ("x" * 70_000, "too_long"),
    ]:
        parsed = parse({"entities": [req("A", attributes={"a": value})]})
        assert faults(parsed) == {("$.entities[0].attributes", code)}


def test_one_element_named_twice_is_refused() -> None:
    parsed = parse(
        {"entities": [req("A"), req("A")], "edges": [edge("depends_on", "A", "B"), edge("depends_on", "A", "B")]}
    )
    assert faults(parsed) == {("$.entities[1]", "duplicate"), ("$.edges[1]", "duplicate")}


def test_an_upsert_replaces_what_it_names_and_keeps_the_rest(project: Project) -> None:
    project.apply(entities=[req("A", owner="ann", tags=["x", "y"], attributes={"a": 1, "b": 2})])
    project.apply(entities=[req("B")], edges=[edge("depends_on", "A", "B")])
    made = project.node("A").created_at
    project.apply(entities=[{"id": "A", "status": "done", "tags": ["z"], "attributes": {"b": 3}}])
    node = project.node("A")
    assert node.fields == {
        "type": "req",
        "title": "Title of A",
        "status": "done",
        "owner": "ann",
        "tags": ["z"],
        "attributes.a": 1,
        "attributes.b": 3,
    }
    assert node.created_at == made
    assert project.edges("A") == {("A", "depends_on", "B", True)}


def test_null_removes_an_optional_field_and_never_a_required_one(project: Project) -> None:
    project.apply(entities=[req("A", owner="ann", attributes={"a": 1}, metadata={"m": 1})])
    project.apply(entities=[{"id": "A", "owner": None, "attributes": None}])
    assert project.node("A").fields.keys() == {"type", "title", "status", "metadata.m"}
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(entities=[{"id": "A", "title": None, "status": None}])
    assert faults(refused.value) == {
        ("$.entities[0].title", "required_field"),
        ("$.entities[0].status", "required_field"),
    }


def test_attributes_and_metadata_merge_by_key_and_null_removes_a_member(project: Project) -> None:
    project.apply(entities=[req("A", attributes={"a": {"x": 1}, "b": [None, True, 1, 1.5, {"c": "d"}]}), req("B")])
    project.apply(entities=[{"id": "A", "attributes": {"a": {"y": 2}, "c": None}, "metadata": {"m": 1, "n": 2}}])
    fields = project.node("A").fields
    assert {name: value for name, value in fields.items() if "." in name} == {
        "attributes.a": {"y": 2},
        "attributes.b": [None, True, 1, 1.5, {"c": "d"}],
        "metadata.m": 1,
        "metadata.n": 2,
    }
    project.apply(entities=[{"id": "A", "attributes": {"b": None}, "metadata": {"m": None}}])
    assert [name for name in project.node("A").fields if "." in name] == ["attributes.a", "metadata.n"]
    assert not project.apply(entities=[{"id": "A", "attributes": {"b": None}, "metadata": {}}]).applied


def test_attributes_and_metadata_of_an_edge_merge_by_key(project: Project) -> None:
    both = {"entities": [req("A"), req("B")], "edges": [edge("depends_on", "A", "B", metadata={"a": 1, "b": 2})]}
    project.apply(**both)
    project.apply(edges=[edge("depends_on", "A", "B", metadata={"b": None, "c": 3}, attributes={"why": "x"})])
    assert project.link("A", "depends_on", "B").fields == {"attributes.why": "x", "metadata.a": 1, "metadata.c": 3}
    project.apply(edges=[edge("depends_on", "A", "B", metadata={"d": 4}, replace=True)])
    assert project.link("A", "depends_on", "B").fields == {"attributes.why": "x", "metadata.d": 4}


def test_replace_sets_an_object_whole_and_keeps_null_as_a_value(project: Project) -> None:
    project.apply(entities=[req("A", attributes={"a": 1, "b": 2}, metadata={"m": 1})])
    project.apply(entities=[{"id": "A", "attributes": {"c": None}, "replace": True}])
    fields = {name: value for name, value in project.node("A").fields.items() if "." in name}
    assert fields == {"attributes.c": None, "metadata.m": 1}


def test_true_is_not_one(project: Project) -> None:
    project.apply(entities=[req("A", attributes={"a": 1})])
    assert project.apply(entities=[{"id": "A", "attributes": {"a": True}}]).updated == ("A",)
    assert project.node("A").fields["attributes.a"] is True


def test_a_changeset_that_changes_nothing_writes_no_record(project: Project) -> None:
    request: dict[str, Any] = {"entities": [req("A"), req("B")], "edges": [edge("depends_on", "A", "B")]}
    project.apply(**request)
    again = project.apply(**request)
    assert (again.seq, again.applied, again.unchanged, again.edges.unchanged) == (1, False, ("A", "B"), 1)


def test_nothing_is_left_behind_when_an_edge_is_refused(project: Project) -> None:
    with pytest.raises(IntegrityViolation) as refused:
        project.apply(
            entities=[req("A"), req("B")],
            edges=[edge("depends_on", "A", "NOPE"), edge("verified_by", "A", "B"), edge("depends_on", "A", "B")],
        )
    assert faults(refused.value) == {("$.edges[0].to", "unknown_entity"), ("$.edges[1]", "endpoint_type")}
    assert (project.seq(), project.node("A")) == (0, None)


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


def test_expected_seq_refuses_only_what_the_changeset_names(project: Project) -> None:
    project.apply(entities=[req("A"), req("B")])
    project.apply(entities=[{"id": "B", "status": "done"}])
    assert project.apply(expected_seq=1, entities=[{"id": "A", "status": "done"}]).applied
    with pytest.raises(StaleBase) as refused:
        project.apply(expected_seq=1, entities=[{"id": "A", "owner": "x"}, {"id": "B", "owner": "x"}])
    assert faults(refused.value) == {("$.entities[0]", "stale"), ("$.entities[1]", "stale")}
    project.delete(entities=[{"id": "B"}])
    with pytest.raises(StaleBase):
        project.apply(expected_seq=3, entities=[req("B")])


def test_an_expected_seq_beyond_the_head_is_refused_and_the_head_named(project: Project) -> None:
    project.apply(entities=[req("A")])
    with pytest.raises(InvalidChangeset, match="There is no seq 2 yet; the head is 1") as refused:
        project.apply(expected_seq=2, entities=[req("B")])
    assert faults(refused.value) == {("$.expected_seq", "out_of_range")}
    assert project.apply(expected_seq=1, entities=[req("B")]).applied


def test_the_same_changeset_id_takes_effect_once(project: Project) -> None:
    request: dict[str, Any] = {"changeset_id": "c-1", "entities": [req("A"), req("B")]}
    first = project.apply(**request)
    project.apply(entities=[{"id": "A", "status": "done"}])
    project.close()
    again = project.apply(**request)
    assert again.duplicate
    assert (again.seq, again.created, again.applied) == (first.seq, first.created, True)
    assert (project.seq(), project.node("A").fields["status"]) == (2, "done")
    with pytest.raises(ChangesetIdReused):
        project.apply(changeset_id="c-1", entities=[req("C")])


def test_neither_the_order_of_keys_nor_what_says_nothing_makes_another_changeset() -> None:
    digest = parse({"entities": [{"id": "A", "title": "t"}]}).digest
    assert parse({"edges": [], "message": "", "entities": [{"title": "t", "id": "A"}]}).digest == digest
    assert parse({"changeset_id": "x", "dry_run": True, "entities": [{"id": "A", "title": "t"}]}).digest == digest
    assert parse({"expected_seq": 0, "entities": [{"id": "A", "title": "t"}]}).digest != digest
    assert parse({"entities": [{"id": "A", "title": "u"}]}).digest != digest
    same = {"edges": [edge("depends_on", "A", "B")]}
    assert parse(same).digest != parse_deletion(same).digest


def test_the_digest_of_a_request_is_the_same_in_every_version_of_kb() -> None:
    """What is frozen here stands in journals: when this test fails, the code is wrong."""
    request = {
        "changeset_id": "c-1",
        "dry_run": False,
        "expected_seq": 12,
        "message": "why \u00e9 \U0001f600",
        "entities": [{"id": "A", "type": "req", "owner": None, "attributes": {"n": 1, "share": 0.25, "b": [True]}}],
        "edges": [edge("depends_on", "A", "B", confidence=1e-7)],
    }
    text = (
        '["kb-request",1,"upsert",{"edges":[{"confidence":1e-07,"from":"A","to":"B","type":"depends_on"}],"entities":'
        '[{"attributes":{"b":[true],"n":1,"share":0.25},"id":"A","owner":null,"type":"req"}],"expected_seq":12,'
        '"message":"why \u00e9 \U0001f600"}]'
    )
    assert parse(request).digest == hashlib.sha256(text.encode()).hexdigest()
    assert parse(request).digest == "d706515d35146dd20ead2688c0c7349a3bd6fa6d011c071a34948e83ac62f745"
    deletion = {"entities": [{"id": "A", "expected_version": 3}], "cascade": True}
    assert parse_deletion(deletion).digest == "ec3e8d91ec862f15d8f63c422f782019c4c74c9e72dd10d4b4b486c1973bee74"
    assert (
        digest_of("revert", {"seqs": [3, 2], "force": False, "message": ""})
        == "ba80a53f8475b367dd859de3053a574b67efbd8e1084cb9e05e2f78bb6eaf512"
    )


def test_a_dry_run_is_the_real_validation_and_writes_nothing(project: Project) -> None:
    outcome = project.apply(dry_run=True, entities=[req("A")])
    assert (outcome.dry_run, outcome.applied, outcome.created, outcome.seq) == (True, False, ("A",), 0)
    with pytest.raises(IntegrityViolation):
        project.apply(dry_run=True, entities=[req("A")], edges=[edge("depends_on", "A", "B")])
    assert project.node("A") is None


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


def test_limits_are_kept() -> None:
    with pytest.raises(LimitExceeded):
        parse_deletion({"entities": [{"id": str(number)} for number in range(101)]})
    with pytest.raises(LimitExceeded):
        parse({"entities": [{"id": str(number), "title": "t"} for number in range(10_001)]})
    assert faults(parse({"entities": [req("x" * 201)]})) == {("$.entities[0].id", "bad_id")}


def test_the_versions_are_required_where_the_caller_says_so() -> None:
    assert faults(parse_deletion({"entities": [{"id": "A"}]}, needs_version=True)) == {
        ("$.entities[0].expected_version", "missing_field")
    }


def test_what_only_kb_sets_is_refused_from_a_client(project: Project) -> None:
    entity = {**req("A"), "created_at": "2020-01-02", "updated_at": None, "source": "mcp", "created_by": "ann"}
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(
            entities=[entity, req("B")],
            edges=[edge("depends_on", "A", "B", created_by="ann", created_at="2020-01-02", source="mcp")],
        )
    assert faults(refused.value) == {
        (f"$.{place}", "set_by_kb")
        for place in (
            *("entities[0].created_at", "entities[0].updated_at", "entities[0].source", "entities[0].created_by"),
            *("edges[0].created_at", "edges[0].created_by", "edges[0].source"),
        )
    }
    assert "kb apply --import" in refused.value.hint
    assert project.seq() == 0


def test_an_import_keeps_the_provenance_that_it_names_and_is_marked(project: Project) -> None:
    project.import_(
        entities=[req("A", created_at="2020-01-02T03:04:05+02:00", source="old"), req("B")],
        edges=[edge("depends_on", "A", "B", created_by="zoe", created_at="2020-01-02", source="old")],
    )
    node, link = project.node("A"), project.link("A", "depends_on", "B")
    assert (node.created_at, node.source) == ("2020-01-02T01:04:05.000000Z", "old")
    assert (link.created_at, link.created_by, link.statements[0].via) == ("2020-01-02T00:00:00.000000Z", "zoe", "old")
    assert project.view().rows("select actor, source from record") == [(AUTHOR.actor, "import")]
    with pytest.raises(InvalidChangeset):
        project.import_(entities=[req("B", created_at="yesterday")])


def test_to_create_an_id_that_exists_is_refused_with_what_it_is_and_who_created_it(project: Project) -> None:
    project.apply(author=ZOE, entities=[req("A")])
    project.sync({"docs/requirements/b.md": document("B", title="From a file", status="open")})
    requests = ({"entities": [{**req("A"), "create": True}, req("C")]}, {"mode": "create", "entities": [req("A")]})
    for request in requests:
        with pytest.raises(StaleBase) as refused:
            project.apply(**request)
        [problem] = refused.value.details
        assert (problem.path, problem.code) == ("$.entities[0].id", "exists")
        assert problem.message == "'A' exists already: the req 'Title of A', created by 'zoe' at seq 1."
    with pytest.raises(StaleBase) as refused:
        project.apply(mode="create", entities=[req("B")])
    assert "'docs/requirements/b.md' states it" in refused.value.details[0].message
    assert project.apply(mode="create", changeset_id="c", entities=[req("C")]).created == ("C",)
    assert project.apply(mode="create", changeset_id="c", entities=[req("C")]).duplicate


def test_to_update_an_id_that_does_not_exist_is_refused(project: Project) -> None:
    project.apply(entities=[req("REQ-10"), req("REQ-20")])
    project.delete(author=ZOE, entities=[{"id": "REQ-20"}])
    with pytest.raises(NotFound) as refused:
        project.apply(mode="update", entities=[{"id": "REQ-1O", "owner": "ann"}, {"id": "REQ-20", "owner": "ann"}])
    near, removed = refused.value.details
    assert (near.code, removed.code) == ("not_found", "not_found")
    assert "Did you mean 'REQ-10'?" in near.hint
    assert "removed by 'zoe' at seq 2" in removed.message
    project.apply(mode="update", entities=[{"id": "REQ-10", "owner": "ann"}, {**req("NEW"), "create": True}])
    assert project.node("REQ-10").fields["owner"] == "ann"
    with pytest.raises(InvalidChangeset) as invalid:
        project.apply(mode="insert", entities=[req("X")])
    assert faults(invalid.value) == {("$.mode", "bad_value")}


def test_the_mode_of_a_changeset_holds_for_edges(project: Project) -> None:
    one = edge("depends_on", "A", "B", confidence=0.9)
    with pytest.raises(NotFound) as refused:
        project.apply(mode="update", entities=[{**req("A"), "create": True}, {**req("B"), "create": True}], edges=[one])
    assert refused.value.details[0].message == "There is no edge A depends_on B."
    project.apply(mode="create", entities=[req("A"), req("B")], edges=[one])
    for request in ({"mode": "create", "edges": [one]}, {"edges": [{**one, "create": True}]}):
        with pytest.raises(StaleBase) as exists:
            project.apply(**request)
        [problem] = exists.value.details
        assert (problem.path, problem.code) == ("$.edges[0]", "exists")
        assert problem.message == f"The edge A depends_on B exists already, created by '{AUTHOR.actor}' at seq 1."
    project.apply(mode="update", edges=[{**one, "confidence": 0.5}, {**edge("depends_on", "B", "A"), "create": True}])
    assert project.link("A", "depends_on", "B").fields["confidence"] == 0.5
    project.delete(author=ZOE, edges=[edge("depends_on", "A", "B")])
    with pytest.raises(NotFound, match="removed by 'zoe' at seq 3"):
        project.apply(mode="update", edges=[one])


def test_the_remedy_for_several_that_exist_is_no_other_seq(project: Project) -> None:
    project.apply(entities=[req("A"), req("B")], edges=[edge("depends_on", "A", "B")])
    with pytest.raises(StaleBase) as refused:
        project.apply(mode="create", entities=[req("A")], edges=[edge("depends_on", "A", "B")])
    assert refused.value.hint == 'Take other ids for what is new; what exists is changed with the mode "update".'


def test_who_overwrites_what_another_actor_set_is_warned(project: Project) -> None:
    project.apply(entities=[req("A", owner="ann", attributes={"cost": 3})])
    project.apply(author=ZOE, entities=[{"id": "A", "owner": "zoe", "priority": "must", "attributes": {"risk": 1}}])
    project.apply(entities=[{"id": "A", "tags": ["x"]}])
    change = {"id": "A", "title": "New", "owner": "bob", "priority": None, "attributes": {"cost": 4, "risk": 2}}
    expected = ((
        "This overwrites what another actor had set of 'A': `owner` was 'zoe', set by 'zoe' at seq 2, "
        "`attributes.risk` was 1, set by 'zoe' at seq 2, `priority` was 'must', set by 'zoe' at seq 2."
    ),)  # fmt: skip
    assert project.apply(dry_run=True, entities=[change]).warnings == expected
    assert project.apply(entities=[change]).warnings == expected
    assert project.apply(entities=[change]).warnings == ()
    assert project.apply(entities=[{"id": "A", "owner": "eve"}]).warnings == (), "its own value"


def test_another_version_of_the_same_program_is_not_another_actor(project: Project) -> None:
    first, later, other = (Author(name, "mcp", "kb/1") for name in ("bot/1.2", "bot/1.3-beta", "robot/1.2"))
    project.apply(author=first, entities=[req("A")])
    assert project.apply(author=later, entities=[{"id": "A", "title": "New"}]).warnings == ()
    [warning] = project.apply(author=other, entities=[{"id": "A", "title": "Newer"}]).warnings
    assert "set by 'bot/1.3-beta' at seq 2" in warning


def test_who_overwrites_what_another_session_of_the_same_actor_set_is_warned(project: Project) -> None:
    first, second, none = (Author("bot/1", "mcp", "kb/1", session) for session in ("s1", "s2", ""))
    made = edge("depends_on", "A", "B", confidence=0.9)
    project.apply(author=first, entities=[req("A", owner="ann"), req("B")], edges=[made])
    change: dict[str, Any] = {"entities": [{"id": "A", "owner": "bob"}], "edges": [{**made, "confidence": 0.5}]}
    assert project.apply(author=first, dry_run=True, **change).warnings == ()
    assert project.apply(author=none, dry_run=True, **change).warnings == (), "no session is not another one"
    entity, link = project.apply(author=second, **change).warnings
    assert entity == (
        "This overwrites what another session had set of 'A': "
        "`owner` was 'ann', set by 'bot/1' in session 's1' at seq 1."
    )
    assert "another session had set of A depends_on B: `confidence` was 0.9, set by 'bot/1' in session 's1'" in link
    project.apply(author=none, entities=[{"id": "B", "owner": "ann"}])
    assert project.apply(author=second, entities=[{"id": "B", "owner": "bob"}]).warnings == ()


def test_a_value_that_is_older_than_the_versions_looked_at_is_of_another_writer_only_if_there_is_one(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authorship, "_MOST_VERSIONS", 3)
    project.apply(entities=[req("A", owner="ann")])
    project.apply(author=ZOE, entities=[req("B", owner="ann")])
    for number in range(6):
        project.apply(entities=[{"id": key, "priority": f"p{number}"} for key in "AB"])
    changes = [{"id": key, "owner": "bob", "priority": "none"} for key in "AB"]
    [warning] = project.apply(entities=changes).warnings
    assert warning == ("This overwrites what another actor had set of 'B': `owner` was 'ann', set at seq 5 or earlier.")


def test_who_overwrites_a_member_of_an_edge_that_another_actor_set_is_warned(project: Project) -> None:
    made = edge("depends_on", "A", "B", confidence=0.9, metadata={"why": "x"})
    project.apply(author=ZOE, entities=[req("A"), req("B")], edges=[made])
    [warning] = project.apply(edges=[{**made, "confidence": 0.1, "metadata": {"seen": 1}}]).warnings
    assert "A depends_on B: `confidence` was 0.9, set by 'zoe' at seq 1." in warning


def test_warnings_of_what_is_overwritten_are_bounded_and_show_no_secret(project: Project) -> None:
    ids = [f"R-{number}" for number in range(220)]
    secret = "ghp_" + "a1B2" * 9
    project.apply(author=ZOE, entities=[req(key, owner=secret) for key in ids])
    warnings = project.apply(entities=[{"id": key, "owner": "me"} for key in ids]).warnings
    found = [warning for warning in warnings if "overwrite" in warning or "looked up" in warning]
    assert len(found) == 22
    assert found[-2:] == (
        [
            "Of 180 more elements it overwrites what another actor or session had set.",
            "It changes fields of 20 more elements; who had set those was not looked up.",
        ]
    )
    assert "`owner` was what looks like a secret, set by 'zoe' at seq 1" in found[0]
    assert secret not in "".join(found)


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
    with pytest.raises(IntegrityViolation, match="A depends_on REQ-2 would stand") as refused:
        project.apply(entities=[{**req("REQ-2"), "type": "test"}])
    assert "delete that edge" in refused.value.hint
    assert project.apply(entities=[req("REQ-2")]).edges.updated == 1


def test_an_edge_that_the_changeset_names_itself_is_told_once(project: Project) -> None:
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


def test_an_edge_of_a_document_that_a_client_writes_as_well_stands_without_the_document(project: Project) -> None:
    project.apply(entities=[req("B")])
    links = "[{type: depends_on, target: B}]"
    project.sync({"docs/requirements/a.md": document("A", title="A", status="open", links=links)})
    assert project.apply(edges=[edge("depends_on", "A", "B")]).applied
    assert len(project.link("A", "depends_on", "B").statements) == 2
    project.sync({"docs/requirements/a.md": document("A", title="A", status="open")})
    assert project.edges("B") == {("A", "depends_on", "B", True)}


def test_an_edge_that_was_removed_after_it_was_read_is_not_made_anew_unseen(project: Project) -> None:
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


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("tags", ["a", " "], "empty"),
        ("tags", ["a", "b", "a"], "duplicate"),
        ("links", ["https://example.org/a", "javascript:alert(1)"], "bad_url"),
        ("links", ["JavaScript://x/%0aalert(1)"], "bad_url"),
        ("links", ["docs/a.md"], "bad_url"),
        ("text_ref", "/etc/passwd", "bad_path"),
        ("text_ref", "C:\\docs\\a.md", "bad_path"),
        ("text_ref", "docs/../../a.md#x", "bad_path"),
    ],
)
def test_a_value_that_cannot_mean_what_it_says_is_refused(field: str, value: Any, code: str) -> None:
    assert faults(parse({"entities": [req("A", **{field: value})]})) == {(f"$.entities[0].{field}", code)}


def test_urls_of_the_web_of_mail_and_of_programs_are_links_and_a_path_inside_is_a_text_ref() -> None:
    links = [
        "https://example.org/a",
        "HTTP://example.org",
        "mailto:ann@example.org",
        "ftp://example.org/a",
        "ssh://git@x/y",
    ]
    assert not parse({"entities": [req("A", links=links, tags=["a", "b"], text_ref="docs/a..b.md#../x")]}).problems


def test_a_number_with_a_point_is_told_from_a_whole_one() -> None:
    assert [kind_of(number) for number in (2, 2.5, 2.0)] == [
        "a number",
        "a fraction",
        "a number with a point or an exponent",
    ]


def test_an_empty_changeset_id_is_refused() -> None:
    assert faults(parse({"changeset_id": "", "entities": [req("A")]})) == {("$.changeset_id", "bad_id")}


def test_an_unknown_member_that_is_no_list_hides_no_end_that_is_not_there(project: Project) -> None:
    project.apply(entities=[req("A")])
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(zzz=1, edges=[edge("depends_on", "A", "B")])
    assert faults(refused.value) == {("$.zzz", "unknown_field"), ("$.edges[0].to", "unknown_entity")}
    with pytest.raises(InvalidChangeset) as refused:
        project.apply(entitys=[req("B")], edges=[edge("depends_on", "A", "B")])
    assert faults(refused.value) == {("$.entitys", "unknown_field")}


def test_a_fact_of_a_file_is_named_with_its_line_beside_other_faults(project: Project) -> None:
    project.sync({"docs/requirements/a.md": document("A", title="T", status="open")})
    wanted = parse({"entities": [{"id": "A", "status": "x", "zzz": 1}]})
    with pytest.raises(InvalidChangeset) as refused:
        written.apply_changeset(project.workspace(), "main", AUTHOR, wanted, follows_head=True)
    (stated,) = (problem for problem in refused.value.details if problem.code == "derived_fact")
    assert stated.place == "docs/requirements/a.md:4"


def test_an_edge_type_that_does_not_exist_is_named_when_such_an_edge_is_to_go(project: Project) -> None:
    project.apply(entities=[req("A"), req("B")])
    with pytest.raises(NotFound) as refused:
        project.delete(edges=[edge("depend_on", "A", "C")])
    assert refused.value.details[0].hint == "There is no edge type 'depend_on' either. Did you mean 'depends_on'?"


def test_a_client_cannot_name_a_file_as_the_source_of_what_it_states_itself(project: Project) -> None:
    project.sync({"docs/requirements/1.md": document("REQ-1", title="T", status="open")})
    file = "docs/requirements/1.md"
    with pytest.raises(InvalidChangeset) as refused:
        project.import_(
            entities=[req("A", source=file), req("B", source="import of 2025")],
            edges=[edge("depends_on", "A", "B", source=file)],
        )
    assert faults(refused.value) == {
        ("$.entities[0].source", "foreign_source"),
        ("$.edges[0].source", "foreign_source"),
    }
    assert project.import_(entities=[{"id": "REQ-1", "source": file, "owner": "ann"}]).updated == ("REQ-1",)


@pytest.mark.parametrize("name", ["created_at", "created_by", "updated_at"])
def test_metadata_do_not_say_who_wrote_an_edge_and_when_but_for_imports(project: Project, name: str) -> None:
    project.apply(entities=[req("A"), req("B")])
    said = edge("depends_on", "A", "B", metadata={name: "2020-01-01T00:00:00Z"})
    with pytest.raises(InvalidChangeset) as caught:
        project.apply(edges=[said])
    assert [(one.path, one.code) for one in caught.value.details] == [(f"$.edges[0].metadata.{name}", "set_by_kb")]
    project.import_(edges=[said])


def test_metadata_do_not_say_who_made_an_entity_and_when_but_for_concepts_and_imports(project: Project) -> None:
    said = {"created_at": "2020-01-01T00:00:00Z", "created_by": "bob", "source": "talk", "author": "bob"}
    with pytest.raises(InvalidChangeset) as caught:
        project.apply(entities=[req("A", metadata=said)])
    assert [(one.path, one.code) for one in caught.value.details] == [
        ("$.entities[0].metadata.created_at", "set_by_kb"),
        ("$.entities[0].metadata.created_by", "set_by_kb"),
    ]
    project.apply(entities=[{"id": "Person:A", "type": "Person", "title": "A", "metadata": said}])
    project.import_(entities=[req("B", metadata=said)])
    assert project.node("B").fields["metadata.created_by"] == project.node("Person:A").fields["metadata.created_by"]
