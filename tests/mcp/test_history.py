"""The answers of ``kb_history``: log, show, diff and revert."""

from __future__ import annotations

import json

import pytest

from kbcore.view.view import View
from tests.mcp.agents import agent, answer_of, direct, pages_of, text_of
from tests.support.repository.project import req
from tests.support.repository.repos import git

COUNT = 45


def entity(key, **fields):
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


@pytest.fixture(scope="module", autouse=True)
def stored(shared):
    """Records 1 to 45 make an entity each; 46 makes many, 47 one with long values, 48 changes it."""
    for number in range(COUNT):
        shared.apply(entities=[entity(f"E-{number:02}", owner="o" * 300)], message=f"number {number}")
    edges = [{"type": "depends_on", "from": f"M-{number:03}", "to": "E-00"} for number in range(1, 200)]
    shared.apply(entities=[entity(f"M-{number:03}") for number in range(200)], edges=edges)
    shared.apply(
        entities=[entity("LONG", attributes={"body": "x" * 60_000}, tags=[f"{number:040}" for number in range(500)])]
    )
    shared.apply(entities=[{"id": "LONG", "attributes": {"body": "y" * 60_000}}])


def test_the_log_says_who_changed_what(each_era):
    answer = each_era.call("kb_history", action="log", limit=3)
    assert (answer["branch"], answer["seq"], answer["total"]) == ("main", COUNT + 3, COUNT + 3)
    assert [one["seq"] for one in answer["records"]] == [COUNT + 3, COUNT + 2, COUNT + 1]
    assert answer["records"][2]["summary"] == {"created": 200, "updated": 0, "deleted": 0, "edges": 199}
    assert answer["records"][0]["actor"] == "tester"
    assert answer["note"].startswith("45 of 48 follow")


def test_paging_the_log_gives_every_record_once(kb):
    pages = list(pages_of(kb, "kb_history", "records", action="log", limit=20))
    assert [one["seq"] for page in pages for one in page] == list(range(COUNT + 3, 0, -1))


def test_the_log_of_one_entity(kb):
    answer = kb.call("kb_history", action="log", id="LONG", limit=1)
    assert ([one["seq"] for one in answer["records"]], answer["total"]) == ([COUNT + 3], 2)
    following = kb.call("kb_history", action="log", id="LONG", limit=1, cursor=answer["next_cursor"])
    assert ([one["seq"] for one in following["records"]], following["next_cursor"]) == ([COUNT + 2], None)
    assert kb.refused("kb_history", action="log", id="NOPE")["code"] == "not_found"


def test_a_page_of_the_log_is_not_moved_by_new_records(project):
    for number in range(4):
        project.apply(entities=[entity(f"A-{number}")])
    with agent(project.root) as found:
        first = found.call("kb_history", action="log", limit=2)
        project.apply(entities=[entity("LATE")])
        second = found.call("kb_history", action="log", limit=2, cursor=first["next_cursor"])
        assert [one["seq"] for one in first["records"] + second["records"]] == [4, 3, 2, 1]
        assert second["next_cursor"] is None


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("action", "rows", "points"),
    [
        ("log", "records", {"since": "2020-01-01"}),
        ("log", "records", {"until": "now"}),
        ("log", "records", {"since": "2020-01-01", "actor": "tester"}),
        ("diff", "entities", {"since": "2020-01-01", "until": "now"}),
    ],
)
def test_pages_between_points_go_on_where_they_were_when_something_is_written_meanwhile(project, action, rows, points):
    for number in range(4):
        project.apply(entities=[entity(f"A-{number}")])
    with agent(project.root) as found:
        first = found.call("kb_history", action=action, limit=2, **points)
        project.apply(entities=[entity("LATE")])
        second = found.call("kb_history", action=action, limit=2, cursor=first["next_cursor"], **points)
        assert len({json.dumps(one) for one in first[rows] + second[rows]}) == first["total"] == 4
        assert second["next_cursor"] is None
        other = {"until": "2030-01-01"} if "since" in points else {"since": "2020-01-01"}
        assert (
            found.refused("kb_history", action=action, cursor=first["next_cursor"], **(points | other))["applied"]
            == "no"
        )


def test_a_record_is_shown_with_before_and_after(kb):
    answer = kb.call("kb_history", action="show", seq=1)
    [operation] = answer["operations"]
    assert (answer["seq"], answer["message"], operation["id"], operation["before"]) == (1, "number 0", "E-00", None)
    assert operation["after"]["title"] == "Title of E-00"
    error = kb.refused("kb_history", action="show", seq=99)
    assert error["code"] == "not_found"


@pytest.mark.parametrize("seq", [COUNT + 2, COUNT + 3])
def test_a_record_with_long_values_is_cut_and_says_so(seq, kb):
    result = kb.result("kb_history", {"action": "show", "seq": seq})
    answer = answer_of(result)
    assert len(text_of(result)) <= 20_000
    assert "Long values are cut: kb_query" in answer["note"]
    assert "(60000 characters)" in json.dumps(answer["operations"], ensure_ascii=False)


def test_paging_a_record_gives_every_operation_once(kb):
    pages = list(pages_of(kb, "kb_history", "operations", action="show", seq=COUNT + 1, limit=100))
    found = [one for page in pages for one in page]
    assert sorted(one["id"] for one in found if one["element"] == "entity") == [f"M-{at:03}" for at in range(200)]
    assert sum(one["element"] == "edge" for one in found) == 199


def test_a_diff_has_what_changed_between_two_seqs(kb):
    answer = kb.call("kb_history", action="diff", seq=1, to=3)
    assert (answer["from"], answer["to"]) == (1, 3)
    assert [(one["id"], one["change"]) for one in answer["entities"]] == [("E-01", "created"), ("E-02", "created")]
    back = kb.call("kb_history", action="diff", seq=3, to=1)
    assert {one["change"] for one in back["entities"]} == {"deleted"}
    assert kb.refused("kb_history", action="diff", seq=1, to=999)["code"] == "invalid_query"


def test_paging_a_diff_gives_every_element_once(kb):
    pages = list(pages_of(kb, "kb_history", "entities", action="diff", seq=COUNT, limit=300))
    found = [one["id"] for page in pages for one in page]
    assert sorted(found) == sorted({*found})
    assert len(found) == 201


@pytest.mark.parametrize("asked", [{"action": "show", "seq": COUNT + 1}, {"action": "diff", "seq": COUNT}])
def test_a_page_reads_no_more_than_it_shows(asked, shared, monkeypatch):
    read, rows = [], View.rows

    def counted(*arguments):
        found = rows(*arguments)
        read.append(len(found))
        return found

    with direct(shared.root) as found:
        first = found.answer("kb_history", **asked, limit=2)
        assert first["total"] >= 399
        monkeypatch.setattr(View, "rows", counted)
        second = found.answer("kb_history", **asked, limit=2, cursor=first["next_cursor"])
    shown = sum(len(page.get(key, ())) for page in (first, second) for key in ("operations", "entities", "edges"))
    assert shown > 2
    assert second["total"] == first["total"]
    assert second["note"].startswith(f"{first['total'] - shown} of {first['total']} follow")
    assert 0 < sum(read) < 2 * 64 + 20


@pytest.mark.parametrize("action", ["show", "diff", "revert"])
def test_an_action_that_needs_a_record_says_so(action, kb):
    error = kb.refused("kb_history", action=action)
    assert error["details"][0]["path"] == "$.seq"
    assert "kb_history with action log" in error["hint"]


def test_an_agent_undoes_its_own_mistake(project):
    project.apply(entities=[entity("A"), entity("B")])
    with agent(project.root) as found:
        mistake = found.call("kb_upsert", entities=[{"id": "A", "title": "Oops"}, entity("C")])
        undone = found.call("kb_history", action="revert", seq=mistake["seq"], message="my mistake")
        assert (undone["updated"], undone["deleted"]) == (["A"], ["C"])
        assert found.call("kb_query", ids=["A"])["entities"][0]["title"] == "Title of A"
        assert found.call("kb_history", action="log", limit=1)["records"][0]["message"] == "my mistake"
        again = found.call("kb_history", action="revert", seq=undone["seq"])
        assert again["created"] == ["C"]


def test_a_rename_is_named_to_be_undone_where_its_document_states_the_former_id_no_more(project):
    path = "docs/requirements/a.md"
    text = "---\nid: {}\ntitle: A\nstatus: open\n---\n"
    project.sync({path: text.format("REQ-1")})
    with agent(project.root) as found:
        renamed = found.call("kb_upsert", rename={"REQ-1": "REQ-2"})["seq"]
        project.sync({path: text.format("REQ-2")})
        for options in ({}, {"dry_run": True}):
            error = found.refused("kb_history", action="revert", seq=renamed, **options)
            assert (error["code"], "with `files` true" in error["hint"]) == ("derived_fact", True)
        assert found.call("kb_history", action="revert", seq=renamed, files=True, dry_run=True)["files"] == [path]
        undone = found.call("kb_history", action="revert", seq=renamed, files=True, message="the old one")
        assert (undone["files"], (project.root / path).read_text()) == ([path], text.format("REQ-1"))
        assert found.call("kb_history", action="show", seq=undone["seq"])["message"] == "the old one"


def test_a_rollback_takes_a_point_and_changes_files_back_when_asked(project):
    path = "docs/requirements/a.md"
    text = "---\nid: {}\ntitle: A\nstatus: open\n---\n"
    project.sync({path: text.format("REQ-1")})
    with agent(project.root) as found:
        found.call("kb_upsert", rename={"REQ-1": "REQ-2"})
        renamed = (project.root / path).read_text()
        for options in ({}, {"dry_run": True}):
            error = found.refused("kb_history", action="rollback", to=1, **options)
            assert (error["code"], "with `files` true" in error["hint"]) == ("derived_fact", True)
        planned = found.call("kb_history", action="rollback", to="1", files=True, dry_run=True)
        assert (planned["files"], (project.root / path).read_text()) == ([path], renamed)
        done = found.call("kb_history", action="rollback", to=1, files=True, message="back")
        assert (done["seq"], (project.root / path).read_text()) == (3, text.format("REQ-1"))
        assert found.call("kb_history", action="diff", seq=1)["total"] == 0
        said = found.call("kb_history", action="rollback", to="now", dry_run=True)
        assert "seq 3 is the last record until then." in json.dumps(said)
        assert found.refused("kb_history", action="rollback")["details"][0]["path"] == "$.to"
        assert found.refused("kb_history", action="rollback", to="nowhere")["details"][0]["path"] == "$.to"


def test_a_difference_takes_points_of_time_and_of_git(project):
    project.apply(entities=[entity("A")])
    git(project.root, "add", "-A")
    git(project.root, "commit", "-qm", "one", "--allow-empty")
    project.apply(entities=[entity("B")])
    with agent(project.root) as found:
        answer = found.call("kb_history", action="diff", seq="1", to="now")
        assert (answer["from"], answer["to"]) == (1, 2)
        assert "seq 2 is the last record until then." in json.dumps(answer)
        assert found.call("kb_history", action="diff", seq=0, to="HEAD")["to"] == 2
        assert found.refused("kb_history", action="diff", seq="nowhere")["details"][0]["path"] == "$.seq"


def test_a_record_is_shown_and_reverted_by_a_commit(project):
    project.apply(entities=[entity("A")])
    git(project.root, "commit", "-qm", "one", "--allow-empty")
    with agent(project.root) as found:
        for action in ("show", "revert"):
            answer = found.call("kb_history", action=action, seq="HEAD")
            assert "seq 1 is the last record" in json.dumps(answer)
            assert found.refused("kb_history", action=action, seq="nowhere")["details"][0]["path"] == "$.seq"
        assert answer["deleted"] == ["A"]


def test_the_steps_are_named_that_undo_a_record_with_a_rename_and_more(project):
    path = "docs/requirements/a.md"
    text = "---\nid: {}\ntitle: {}\nstatus: open\n---\n"
    project.sync({path: text.format("REQ-1", "A")})
    project.sync({path: text.format("REQ-2\nformer_ids: [REQ-1]", "B")})
    with agent(project.root) as found:
        error = found.refused("kb_history", action="revert", seq=2)
        assert (error["code"], error["renamed"], error["rest"]) == (
            "derived_fact",
            {"REQ-1": "REQ-2"},
            ["`title` of REQ-2"],
        )
        assert "gives 'REQ-2' the id 'REQ-1' back. Then the revert of the record undoes the rest." in error["hint"]
        found.call("kb_upsert", rename={"REQ-2": "REQ-1"})
        assert found.call("kb_history", action="revert", seq=2)["updated"] == ["REQ-1"]


def test_the_message_of_a_revert_is_checked_as_that_of_a_changeset(project):
    project.apply(entities=[entity("A")])
    with agent(project.root) as found:
        for message, code in (("nul \0", "bad_text"), ("long" * 20_000, "too_long")):
            error = found.refused("kb_history", action="revert", seq=1, message=message)
            [problem] = error["details"]
            assert (error["code"], problem["path"], problem["code"]) == ("invalid_changeset", "$.message", code)
        assert found.call("kb_query")["seq"] == 1


def test_all_that_a_session_wrote_is_undone_as_one_record(project):
    project.apply(entities=[entity("BEFORE")])
    with agent(project.root) as found:
        for key in ("A", "B"):
            found.call("kb_upsert", entities=[entity(key)])
        [last] = found.call("kb_history", action="log", limit=1)["records"]
        outcome = found.call("kb_history", action="revert", session=last["session"], since=1)
        assert (outcome["seq"], sorted(outcome["deleted"])) == (4, ["A", "B"])
        assert [one["id"] for one in found.call("kb_query")["entities"]] == ["BEFORE"]
        [revert] = found.call("kb_history", action="log", limit=1)["records"]
        assert revert["message"] == f"revert session {last['session']} (2 records)"
        assert found.refused("kb_history", action="revert", actor="nobody")["code"] == "not_found"
        for wrong in ({"seq": 2, "actor": "a"}, {"files": True, "actor": "a"}, {"since": 0, "seq": 2}):
            assert found.refused("kb_history", action="revert", **wrong)["code"] == "invalid_query"


def test_a_revert_that_would_undo_later_work_is_refused(project):
    with agent(project.root) as found:
        first = found.call("kb_upsert", entities=[entity("A")])["seq"]
        changed = found.call("kb_upsert", entities=[{"id": "A", "title": "Second"}])["seq"]
        found.call("kb_upsert", entities=[{"id": "A", "title": "Third"}])
        for seq in (first, changed):
            error = found.refused("kb_history", action="revert", seq=seq)
            assert error["code"] == "revert_conflict"
            assert "--force" not in error["hint"]
            assert "kb_history" in error["hint"]
            assert "nothing was written" in error["message"].lower()
        assert found.call("kb_query", ids=["A"])["entities"][0]["title"] == "Third"


def test_a_revert_of_what_was_renamed_since_undoes_it_under_its_present_id(project):
    with agent(project.root) as found:
        made = found.call("kb_upsert", entities=[entity("A"), entity("B")])["seq"]
        changed = found.call("kb_upsert", entities=[{"id": "A", "title": "Second"}])["seq"]
        renamed = found.call("kb_upsert", rename={"A": "C"})["seq"]
        assert found.call("kb_history", action="revert", seq=changed)["updated"] == ["C"]
        found.call("kb_history", action="revert", seq=renamed)
        assert found.call("kb_query", ids=["A"])["entities"][0]["title"] == "Title of A"
        assert found.call("kb_history", action="revert", seq=made)["deleted"] == ["A", "B"]
        again = found.call("kb_history", action="revert", seq=made)
        assert (again["applied"], "Record 1 is undone already" in again["warnings"][0]) == (False, True)


def test_a_range_of_the_log_means_both_its_ends_and_one_that_is_turned_round_is_said(project):
    for number in range(4):
        project.apply(entities=[entity(f"A-{number}")])
    with agent(project.root) as found:

        def seqs(since, **more):
            return [one["seq"] for one in found.call("kb_history", action="log", since=since, **more)["records"]]

        assert seqs("1..3") == [3, 2]
        assert seqs("2..") == seqs("2..main") == [4, 3]
        assert seqs("..2") == [2, 1]
        page = found.call("kb_history", action="log", since="1..4", limit=2)
        assert seqs("1..4", limit=2, cursor=page["next_cursor"]) == [2]
        turned = found.call("kb_history", action="log", since=3, until=1)
        assert turned["records"] == []
        assert "`since` begins after seq 3, and `until` ends at seq 1." in turned["note"]
        for arguments in ({"since": "1..3", "until": 4}, {"since": "1...3"}):
            assert found.refused("kb_history", action="log", **arguments)["code"] == "invalid_query"


def test_a_dry_run_of_a_revert_writes_nothing(project):
    with agent(project.root) as found:
        found.call("kb_upsert", entities=[entity("A")])
        planned = found.call("kb_history", action="revert", seq=1, dry_run=True)
        assert (planned["dry_run"], planned["applied"], planned["deleted"]) == (True, False, ["A"])
        assert found.call("kb_query", ids=["A"])["seq"] == 1
        error = found.refused("kb_history", action="log", dry_run=True)
        assert error["details"][0]["path"] == "$.dry_run"


@pytest.mark.sliced(1)
@pytest.mark.parametrize("arguments", [{"action": "revert", "seq": 2}, {"action": "rollback", "to": 1}])
def test_an_undo_that_changes_what_no_file_states_any_more_is_refused(project, arguments):
    project.sync({"docs/requirements/1.md": req("REQ-1")})
    project.apply(entities=[{"id": "REQ-1", "attributes": {"size": 1}}])
    (project.root / "docs/requirements/1.md").unlink()
    with agent(project.root) as found:
        error = found.refused("kb_history", **arguments)
        assert (error["code"], error["details"][0]["path"]) == ("not_synced", "REQ-1")
        assert "kb_upsert with `sync`" in error["hint"], error
        found.call("kb_upsert", sync=True)
        assert found.call("kb_query", ids=["REQ-1"])["entities"] == []


def test_who_wrote_a_field_when_and_why(project):
    project.apply(entities=[entity("A", priority="must")], message="the first plan")
    project.apply(entities=[{"id": "A", "priority": "should"}], message="it can wait")
    project.apply(entities=[{"id": "A", "owner": "ann"}])
    project.apply(entities=[{"id": "A", "priority": None}], message="nobody asked for one")
    with agent(project.root) as found:
        answer = found.call("kb_history", action="who", id="A", field="title")
        (first,) = answer["written"]
        assert (first["seq"], first["actor"], first["message"]) == (1, "tester", "the first plan")
        assert first["fields"] == ["title"]
        assert first["at"].startswith("20")
        (gone,) = found.call("kb_history", action="who", id="A", field="priority")["written"]
        assert (gone["seq"], gone["message"]) == (4, "nobody asked for one")
        written = found.call("kb_history", action="who", id="A")["written"]
        assert [(one["seq"], one["fields"]) for one in written] == [(3, ["owner"]), (1, ["status", "title", "type"])]


def test_who_wrote_names_the_file_that_states_it(project):
    project.sync({"docs/requirements/a.md": "---\nid: A\ntitle: a\nstatus: open\n---\n"})
    with agent(project.root) as found:
        (one,) = found.call("kb_history", action="who", id="A", field="status")["written"]
        assert one["files"] == ["docs/requirements/a.md"]


def test_who_wrote_an_attribute_and_who_deleted_an_entity(project):
    project.apply(entities=[entity("A", attributes={"x": 1, "y": 1})])
    project.apply(entities=[{"id": "A", "attributes": {"x": 2, "y": 1}}])
    with agent(project.root) as found:
        (one,) = found.call("kb_history", action="who", id="A", field="attributes")["written"]
        assert (one["seq"], one["fields"]) == (2, ["attributes.x"])
        (one,) = found.call("kb_history", action="who", id="A", field="attributes.y")["written"]
        assert one["seq"] == 1
        assert "'status'" in found.refused("kb_history", action="who", id="A", field="stauts")["hint"]
        project.delete(entities=[{"id": "A", "expected_version": 2}], message="not needed")
        (one,) = found.call("kb_history", action="who", id="A", field="status")["written"]
        assert (one["seq"], one["deleted"], one["message"]) == (3, True, "not needed")
        assert found.refused("kb_history", action="who", id="B")["code"] == "not_found"


@pytest.mark.sliced(3)
@pytest.mark.parametrize("message", ["because " * 40, '"' * 500, "\x01" * 500, "why"])
@pytest.mark.parametrize("key", ["src/" + "deep/" * 22 + "module.py#a_symbol", "A"])
def test_who_wrote_names_the_record_whatever_else_is_long(project, key, message):
    attributes = {f"part_{number}": 1 for number in range(60)}
    with agent(project.root, name="a client with a rather long name, and an even longer one") as found:
        found.call("kb_upsert", entities=[entity(key, attributes=attributes)], message=message)
        result = found.result("kb_history", {"action": "who", "id": key})
    assert len(text_of(result)) <= 400 + len(key)
    (one,) = result.structured_content["written"]
    assert (one["seq"], one["at"][:2], one["actor"][:8], one["message"][:1]) == (1, "20", "a client", message[0])
    assert len(one.get("fields", [])) + one["more_fields"] == 63


def test_who_wrote_steps_over_renames_also_undone_ones(project):
    project.apply(entities=[entity("R-1", owner="ann", severity="low")], message="first")
    project.apply(entities=[{"id": "R-1", "owner": "ben"}])
    with agent(project.root) as found:

        def written(key, field=""):
            answer = found.call("kb_history", action="who", id=key, **({"field": field} if field else {}))
            return answer["id"], [(one["seq"], one["fields"]) for one in answer["written"]]

        found.call("kb_upsert", rename={"R-1": "R-2"})
        found.call("kb_upsert", entities=[{"id": "R-2", "severity": "high"}])
        for key in ("R-1", "R-2"):
            assert written(key, "owner") == ("R-2", [(2, ["owner"])])
            assert written(key, "severity") == ("R-2", [(4, ["severity"])])
            assert written(key, "title") == ("R-2", [(1, ["title"])])
        assert written("R-2", "attributes") == ("R-2", [(3, ["attributes.former_ids"])])
        found.call("kb_upsert", rename={"R-2": "R-3"})
        assert written("R-1", "owner") == ("R-3", [(2, ["owner"])])
        found.call("kb_history", action="revert", seq=5)
        assert written("R-2", "owner") == ("R-2", [(2, ["owner"])])


def test_who_wrote_takes_at_most_100_tokens(project):
    project.apply(entities=[entity("A", attributes={f"part_{number}": 1 for number in range(60)})], message="w" * 900)
    for number in range(5):
        project.apply(entities=[{"id": "A", "owner": f"o{number}"}], message="m" * 900)
        project.apply(entities=[{"id": "A", "priority": f"p{number}"}], message="m" * 900)
    with agent(project.root, name="a client with a rather long name") as found:
        found.call("kb_upsert", entities=[{"id": "A", "severity": "low"}], message="because " * 40)
        for arguments in ({}, {"field": "severity"}, {"field": "attributes"}):
            result = found.result("kb_history", {"action": "who", "id": "A", **arguments})
            assert not result.is_error
            assert len(text_of(result)) <= 400
        assert found.call("kb_history", action="who", id="A")["earlier"] == 3


@pytest.mark.parametrize(
    ("arguments", "path"), [({"action": "who"}, "$.id"), ({"action": "log", "field": "title"}, "$.field"),
                            ({"action": "who", "id": "E-00", "seq": 1}, "$.seq"),
                            ({"action": "revert", "seq": 1, "limit": 5}, "$.limit"),
                            ({"action": "who", "id": "E-00", "cursor": "x"}, "$.cursor"),
                            ({"action": "log", "message": "why"}, "$.message")],
)  # fmt: skip
def test_an_argument_that_who_lacks_or_does_not_take_is_named(kb, arguments, path):
    assert kb.refused("kb_history", **arguments)["details"][0]["path"] == path


@pytest.mark.sliced
def test_the_log_and_a_difference_are_narrowed_to_points_an_actor_and_a_session(project):
    project.apply(entities=[entity("A")])
    with agent(project.root) as found:
        seqs = [found.call("kb_upsert", entities=[entity(f"B-{number}")])["seq"] for number in range(3)]
        [newest, *_] = found.call("kb_history", action="log", limit=1)["records"]
        by = {"actor": newest["actor"], "session": newest["session"]}
    project.apply(entities=[entity("C")])
    with agent(project.root) as found:
        other = found.call("kb_upsert", entities=[entity("D")])["seq"]
        log, diff = ({"name": "kb_history", "action": action} for action in ("log", "diff"))
        assert [one["seq"] for one in found.call(**log, **by)["records"]] == seqs[::-1]
        assert [one["seq"] for one in found.call(**log, actor=by["actor"])["records"]] == [other, *seqs[::-1]]
        pages = [*pages_of(found, "kb_history", "records", action="log", session=by["session"], limit=2)]
        assert [len(page) for page in pages] == [2, 1]
        answer = found.call(**log, since="today", until=3)
        assert [one["seq"] for one in answer["records"]] == [3, 2, 1]
        assert "'today' is since" in answer["note"]
        answer = found.call(**diff, since="today", session=by["session"])
        assert [one["id"] for one in answer["entities"]] == ["B-0", "B-1", "B-2"]
        pages = [*pages_of(found, "kb_history", "entities", action="diff", seq=0, actor=by["actor"], limit=3)]
        assert [one["id"] for page in pages for one in page] == ["B-0", "B-1", "B-2", "D"]
        assert found.call(**diff, since=other)["entities"] == []
        wrong = by["actor"][:-1]
        for nothing in (found.call(**diff, seq=0, actor=wrong), found.call(**log, actor=wrong)):
            assert f"matches `actor` '{wrong}'. Did you mean '{by['actor']}'?" in nothing["note"]
        assert "matches `session` 'x'." in found.call(**diff, seq=0, session="x")["note"]
        about = {**log, "id": "B-1"}
        assert [one["seq"] for one in found.call(**about, actor=by["actor"])["records"]] == [seqs[1]]
        nothing = found.call(**log, id="A", actor=by["actor"])
        assert (nothing["records"], nothing["total"]) == ([], 0)
        assert f"matches `id` 'A' and `actor` '{by['actor']}'." in nothing["note"]
        assert "note" not in found.call(**about)
        for arguments in ({"action": "show", "seq": 1, "actor": "x"}, {"action": "diff", "seq": 1, "since": 1}):
            assert found.refused("kb_history", **arguments)["details"][0]["code"] == "not_for_action"
        assert found.refused("kb_history", action="log", since="soon")["details"][0]["path"] == "$.since"
