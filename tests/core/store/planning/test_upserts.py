"""The fields that an upsert sets, merges, removes and overwrites."""

from __future__ import annotations

from typing import Any

import pytest

from kbcore.errors import (
    IntegrityViolation,
    InvalidChangeset,
    NotFound,
    StaleBase,
)
from kbcore.store.history import authorship
from kbcore.store.write_request import Author
from tests.core.store.planning.requests import edge, faults, req
from tests.support.repository.project import AUTHOR, Project, document

ZOE = Author("zoe", "test", "test/1")


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


def test_nothing_is_left_over_when_an_edge_is_refused(project: Project) -> None:
    with pytest.raises(IntegrityViolation) as refused:
        project.apply(
            entities=[req("A"), req("B")],
            edges=[edge("depends_on", "A", "NOPE"), edge("verified_by", "A", "B"), edge("depends_on", "A", "B")],
        )
    assert faults(refused.value) == {("$.edges[0].to", "unknown_entity"), ("$.edges[1]", "endpoint_type")}
    assert (project.seq(), project.node("A")) == (0, None)


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
    assert refused.value.hint == 'Choose other ids for what is new; what exists is changed with the mode "update".'


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


def test_who_removes_an_edge_or_an_entity_that_another_actor_stated_is_warned(project: Project) -> None:
    made = edge("depends_on", "A", "B", confidence=0.9)
    project.apply(author=ZOE, entities=[req("A"), req("B"), req("C", owner="zoe")], edges=[made])
    ends = {"type": "depends_on", "from": "A", "to": "B"}
    project.apply(author=ZOE, edges=[{**ends, "metadata": {"why": "x"}}])

    def warned(**request) -> list[str]:
        return [one for one in project.delete(**request).warnings if one.startswith("This removes")]

    [warning] = warned(edges=[ends])
    said = "stated by 'zoe' at seq 1, `confidence` was 0.9, set by 'zoe' at seq 1, `metadata.why` was 'x', set by"
    assert warning == f"This removes what another actor had stated of A depends_on B: {said} 'zoe' at seq 2."
    [warning] = warned(entities=[{"id": "C"}])
    assert warning.startswith("This removes what another actor had stated of 'C': stated by 'zoe' at seq 1, ")
    project.apply(edges=[ends])
    assert warned(edges=[ends]) == []


def test_warnings_of_what_is_overwritten_are_bounded_and_show_no_secret(project: Project) -> None:
    ids = [f"R-{number}" for number in range(220)]
    secret = "ghp_" + "a1B2" * 9
    project.apply(author=ZOE, entities=[req(key, owner=secret) for key in ids])
    warnings = project.apply(entities=[{"id": key, "owner": "me"} for key in ids]).warnings
    found = [warning for warning in warnings if "overwrite" in warning or "looked up" in warning]
    assert len(found) == 22
    assert found[-2:] == (
        [
            "Of 180 more elements it overwrites or removes what another actor or session had set.",
            "It changes or removes 20 more elements; who had set those was not looked up.",
        ]
    )
    assert "`owner` was what looks like a secret, set by 'zoe' at seq 1" in found[0]
    assert secret not in "".join(found)
