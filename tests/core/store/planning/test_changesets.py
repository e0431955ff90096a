"""A changeset is read and checked whole: every fault of shape and meaning is reported at once."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from kbcore.checks.introduced import written
from kbcore.errors import (
    ChangesetIdReused,
    IntegrityViolation,
    InvalidChangeset,
    LimitExceeded,
    NotFound,
    StaleBase,
)
from kbcore.model.changeset import digest_of, parse, parse_deletion
from kbcore.model.request_reader import kind_of
from tests.core.store.planning.requests import edge, faults, req
from tests.support.repository.project import AUTHOR, Project, document


@pytest.mark.parametrize("key", ["{n}", "REQ-{n}-x", "REQ-{m}"])
def test_braces_that_stand_for_no_number_are_in_no_new_id_of_a_client(project: Project, key: str) -> None:
    with pytest.raises(InvalidChangeset, match="means the next free number") as refused:
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
    """These digests are in journals: when this test fails, the code is wrong."""
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


def test_a_number_with_a_point_is_distinguished_from_a_whole_one() -> None:
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
