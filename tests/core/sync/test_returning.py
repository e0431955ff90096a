"""Statements of clients about an entity outlive the absence of its file, and types decide whichever file came first."""

from __future__ import annotations

from kbcore.maintenance.compacting import compact
from tests.support.repository.project import Project, document, req

REQS = "docs/requirements"


def test_what_clients_stated_goes_with_the_file_by_name_and_comes_back_with_the_id(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1")})
    project.apply(entities=[{"id": "REQ-1", "owner": "bob", "attributes": {"note": "mine"}}])
    left = project.sync({f"{REQS}/1.md": None})
    assert any("REQ-1" in one and "attributes.note, owner" in one for one in left.outcome.warnings)
    back = project.sync({f"{REQS}/one.md": req("REQ-1", owner="ann")})
    fields = project.node("REQ-1").fields
    assert (fields["attributes.note"], fields["owner"]) == ("mine", "ann")
    assert "attributes.note" not in project.node("REQ-1").owners
    assert any("REQ-1 is back" in one and "attributes.note" in one for one in back.outcome.warnings)
    assert project.sync().outcome.applied is False


def said_of_one(project: Project) -> None:
    """State facts and edges of REQ-1, as a client does."""
    project.sync({f"{REQS}/1.md": document("REQ-1", title="T"), f"{REQS}/2.md": req("REQ-2")})
    edges = [
        {"type": "depends_on", "from": one, "to": other} for one, other in (("REQ-1", "REQ-2"), ("REQ-2", "REQ-1"))
    ]
    project.apply(entities=[{"id": "REQ-1", "owner": "bob", "severity": "high", "status": "blocked"}], edges=edges)


MOVED = {("REQ-9", "depends_on", "REQ-2", True), ("REQ-2", "depends_on", "REQ-9", True)}


def test_what_clients_stated_comes_back_when_an_entity_that_exists_takes_the_former_id(project: Project) -> None:
    said_of_one(project)
    plain = document("REQ-9", title="T", owner="ann")
    assert "REQ-1 was removed" in project.sync({f"{REQS}/1.md": plain}).outcome.warnings[0]
    assert {one[3] for one in project.edges("REQ-1")} == {False}
    answer = project.sync({f"{REQS}/1.md": document("REQ-9", title="T", owner="ann", former_ids="[REQ-1]")})
    assert answer.outcome.warnings == ("REQ-9 takes over REQ-1, with what clients had stated of it: severity, status.",)
    node = project.node("REQ-9")
    assert {name: node.fields[name] for name in ("owner", "severity", "status")} == {
        "owner": "ann",
        "severity": "high",
        "status": "blocked",
    }
    assert project.edges("REQ-9") == MOVED
    assert project.edges("REQ-1") == set()
    assert project.sync().outcome.applied is False
    project.sync({f"{REQS}/1.md": req("REQ-1")})
    assert project.node("REQ-1").fields["severity"] == "high"
    assert {one[3] for one in project.edges("REQ-1")} == {True}


def test_an_entity_that_exists_takes_over_one_that_goes_in_the_same_sync(project: Project) -> None:
    said_of_one(project)
    project.sync({f"{REQS}/9.md": req("REQ-9")})
    project.apply(entities=[{"id": "REQ-9", "severity": "low"}])
    answer = project.sync({f"{REQS}/1.md": None, f"{REQS}/9.md": req("REQ-9", former_ids="[REQ-1]")})
    assert answer.outcome.warnings == ("REQ-9 takes over REQ-1, with what clients had stated of it: owner.",)
    fields = project.node("REQ-9").fields
    assert (fields["severity"], fields["owner"]) == ("low", "bob")
    assert project.edges("REQ-9") == MOVED
    assert project.sync(rebuild=True).outcome.applied is False


def test_of_two_entities_that_state_a_former_id_one_takes_over_what_clients_stated(project: Project) -> None:
    said_of_one(project)
    project.sync({f"{REQS}/1.md": None, f"{REQS}/8.md": req("REQ-8"), f"{REQS}/9.md": req("REQ-9")})
    former = {f"{REQS}/{key}.md": req(f"REQ-{key}", former_ids="[REQ-1]") for key in (8, 9)}
    project.sync({**former, f"{REQS}/7.md": req("REQ-7", former_ids="[REQ-1]")})
    owners = {key: project.node(key).fields.get("owner") for key in ("REQ-7", "REQ-8", "REQ-9")}
    assert sorted(owners.values(), key=str) == [None, None, "bob"]
    [holder] = [key for key, owner in owners.items() if owner]
    assert project.view().renamed(["REQ-1"]) == {"REQ-1": holder}
    assert len(project.edges(holder)) == 2


def test_a_status_that_a_client_gave_comes_back_and_a_default_one_is_not_worth_a_word(project: Project) -> None:
    bare = {"title": "T"}
    project.sync({f"{REQS}/1.md": document("REQ-1", **bare), f"{REQS}/2.md": document("REQ-2", **bare)})
    project.apply(entities=[{"id": "REQ-1", "status": "open"}])
    left = project.sync({f"{REQS}/1.md": None, f"{REQS}/2.md": None})
    assert [one for one in left.outcome.warnings if "REQ-2" in one] == []
    project.sync({f"{REQS}/1.md": document("REQ-1", **bare), f"{REQS}/2.md": document("REQ-2", **bare)})
    assert (project.node("REQ-1").fields["status"], project.node("REQ-2").fields["status"]) == ("open", "draft")


def test_what_clients_stated_comes_back_whatever_the_type_and_not_when_somebody_deleted_it(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1")})
    project.apply(entities=[{"id": "REQ-1", "owner": "bob"}])
    project.sync({f"{REQS}/1.md": None})
    project.sync({"docs/adr/1.md": req("REQ-1")})
    assert project.node("REQ-1").fields["owner"] == "bob"
    project.sync({"docs/adr/1.md": None, f"{REQS}/1.md": req("REQ-1")})
    assert project.node("REQ-1").fields["owner"] == "bob"
    own = {"id": "REQ-2", "type": "req", "title": "T", "status": "open", "owner": "bob"}
    project.apply(entities=[own])
    project.delete(entities=[{"id": "REQ-2"}])
    project.sync({f"{REQS}/2.md": req("REQ-2")})
    assert "owner" not in project.node("REQ-2").fields


def test_what_clients_stated_comes_back_only_as_far_as_the_new_type_allows_it(project: Project) -> None:
    types = "entities:\n  task: {statuses: [todo, done], statusDefault: todo, attributes: {size: {type: number}}}\n"
    project.sync({".kb/schema/own.yaml": types, f"{REQS}/1.md": document("X-1", title="T")})
    given = {"kind": "nonsense", "size": "large", "note": "mine"}
    project.apply(entities=[{"id": "X-1", "status": "open", "owner": "bob", "attributes": given}])
    project.sync({f"{REQS}/1.md": None})
    back = project.sync({"docs/tests/1.md": document("X-1", title="T")})
    [kept, left] = [one for one in back.outcome.warnings if one.startswith("X-1 is back")]
    assert kept.endswith(": attributes.note, attributes.size, owner, status.")
    assert "as a test" in left
    assert "`attributes.kind` must be one of unit, integration, e2e" in left
    assert "attributes.kind" not in project.node("X-1").fields
    project.sync({"docs/tests/1.md": None})
    back = project.sync({f"{REQS}/1.md": document("X-1", title="T", type="task")})
    assert any("`attributes.size`" in one and "`status`" in one for one in back.outcome.warnings)
    fields = project.node("X-1").fields
    assert (fields["status"], fields["owner"], fields.get("attributes.size")) == ("todo", "bob", None)
    assert project.sync().outcome.applied is False


def test_a_default_status_goes_with_the_type_that_it_was_the_default_of(project: Project) -> None:
    bare = {"title": "T"}
    project.sync({f"{REQS}/1.md": document("X-1", type="adr", **bare)})
    assert project.node("X-1").fields["status"] == "proposed"
    answer = project.sync({f"{REQS}/1.md": document("X-1", type="req", **bare)})
    assert project.node("X-1").fields["status"] == "draft"
    assert [one.code for one in answer.notes] == ["default_status"]
    assert project.sync({f"{REQS}/1.md": None}).outcome.warnings == ()
    assert project.sync({f"{REQS}/1.md": document("X-1", type="req", **bare)}).outcome.warnings == ()
    project.apply(entities=[{"id": "X-1", "status": "open"}])
    project.sync({f"{REQS}/1.md": document("X-1", type="adr", **bare)})
    assert project.node("X-1").fields["status"] == "open"


def test_a_sync_of_named_paths_takes_in_no_edit_of_another_file(project: Project) -> None:
    link = req("REQ-1", links="[{type: verified_by, target: X-1}]")
    project.sync({f"{REQS}/1.md": link, "docs/tests/x.md": req("X-1")})
    project.write({f"{REQS}/1.md": link.replace("Title of", "New title of")})
    project.sync({"docs/tests/x.md": req("X-1", type="adr")}, paths=("docs/tests/x.md",))
    assert project.node("REQ-1").fields["title"] == "Title of REQ-1"
    answer = project.sync()
    assert [one.code for _, one in answer.problems] == ["endpoint_type"]
    assert project.edges("REQ-1") == set()


def test_a_typed_link_that_waits_for_an_id_is_refused_when_the_id_comes_as_a_type_that_does_not_fit(
    project: Project,
) -> None:
    waiting = req("REQ-1", links="[{type: verified_by, target: X-1}]")
    project.sync({f"{REQS}/1.md": waiting})
    answer = project.sync({"docs/adr/x.md": req("X-1")})
    assert [(path, one.code) for path, one in answer.problems] == [(f"{REQS}/1.md", "endpoint_type")]
    assert project.edges("REQ-1") == set()
    assert project.sync(rebuild=True).outcome.applied is False
    project.sync({"docs/adr/x.md": None, "docs/tests/x.md": req("X-1")})
    assert project.edges("REQ-1") == {("REQ-1", "verified_by", "X-1", True)}


def test_an_end_that_gets_another_type_has_the_file_that_states_the_edge_read_again(project: Project) -> None:
    link = req("REQ-1", links="[{type: verified_by, target: X-1}]")
    project.sync({f"{REQS}/1.md": link, "docs/tests/x.md": req("X-1")})
    answer = project.sync({"docs/tests/x.md": req("X-1", type="adr")})
    assert [one.code for _, one in answer.problems] == ["endpoint_type"]
    assert project.edges("REQ-1") == set()
    assert project.sync(rebuild=True).outcome.applied is False


def test_pruning_says_what_clients_had_stated_of_entities_that_are_gone(project: Project) -> None:
    project.sync({f"{REQS}/1.md": req("REQ-1"), f"{REQS}/2.md": req("REQ-2")})
    project.apply(entities=[{"id": "REQ-1", "owner": "bob"}])
    project.sync({f"{REQS}/1.md": None, f"{REQS}/2.md": None})
    compact(project.workspace(), "main")
    project.apply(entities=[{"id": "X", "type": "req", "title": "T", "status": "open"}])
    answer = compact(project.workspace(), "main", prune_before=4)
    assert [one for one in answer.warnings if "REQ-1, gone with their files" in one and "REQ-2" not in one]
    project.sync({f"{REQS}/1.md": req("REQ-1")})
    assert "owner" not in project.node("REQ-1").fields


def test_another_default_status_reaches_what_nobody_stated(project: Project) -> None:
    project.sync(
        {"docs/requirements/1.md": document("REQ-1", title="T"), "docs/requirements/2.md": document("REQ-2", title="T")}
    )
    project.apply(entities=[{"id": "REQ-2", "status": "blocked"}])
    project.write({".kb/schema/own.yaml": "entities: {req: {statusDefault: open}}\n"})
    answer = project.sync()
    assert answer.outcome.updated == ("REQ-1",)
    assert [project.node(key).fields["status"] for key in ("REQ-1", "REQ-2")] == ["open", "blocked"]


def test_a_default_status_is_no_word_of_a_client_whatever_the_default_is_now(project: Project) -> None:
    name = "docs/requirements/1.md"
    project.sync({name: document("REQ-1", title="T")})
    project.write({".kb/schema/own.yaml": "entities: {req: {statusDefault: open}}\n", name: None})
    assert project.sync().outcome.warnings == ()
    answer = project.sync({name: document("REQ-1", title="T")})
    assert answer.outcome.warnings == ()
    assert project.node("REQ-1").fields["status"] == "open"


def test_a_status_that_a_client_states_is_its_own_also_when_it_is_the_default(project: Project) -> None:
    project.sync({"docs/requirements/1.md": document("REQ-1", title="T")})
    project.apply(entities=[{"id": "REQ-1", "status": "open"}])
    project.apply(entities=[{"id": "REQ-1", "status": "draft"}])
    project.write({".kb/schema/own.yaml": "entities: {req: {statusDefault: open}}\n"})
    project.sync()
    assert project.node("REQ-1").fields["status"] == "draft"
