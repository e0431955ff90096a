"""The effects of ``kb_upsert`` and ``kb_delete``, and their errors."""

from __future__ import annotations

import json

import pytest

from tests.mcp.agents import agent, answer_of, direct, raw, text_of
from tests.support.repository.project import req


def entity(key, **fields):
    return {"id": key, "type": "req", "title": f"Title of {key}", "status": "open", **fields}


def test_a_changeset_is_written_and_read_back(each_era):
    test = {"id": "W-T", "type": "test", "title": "t", "status": "active"}
    edge = {"type": "verified_by", "from": "W-1", "to": "W-T", "confidence": 0.5}
    each_era.call("kb_upsert", entities=[entity("W-1", tags=["a"]), test], edges=[edge], message="why")
    answer = each_era.call("kb_query", ids=["W-1"], edges=True, provenance=True)
    [found], [stated] = answer["entities"], answer["edges"]
    assert found["tags"] == ["a"]
    assert found["source"] == "mcp:tester"
    assert stated["to"] == "W-T"
    assert stated["created_by"] == "tester/1.2"


def test_a_dry_run_changes_nothing(kb):
    before = kb.call("kb_query", limit=1)["seq"]
    answer = kb.call("kb_upsert", entities=[entity("DRY")], dry_run=True)
    assert (answer["created"], answer["applied"], answer["dry_run"]) == (["DRY"], False, True)
    assert kb.call("kb_query", ids=["DRY"]) == kb.call("kb_query", ids=["DRY"]) | {"total": 0, "seq": before}


def test_an_agent_that_creates_what_another_one_created_is_refused_and_is_warned_of_what_it_overwrites(shared):
    with agent(shared.root, name="one") as one, agent(shared.root, name="two") as two:
        one.call("kb_upsert", entities=[entity("OWNED", owner="one")], mode="create")
        error = two.refused("kb_upsert", entities=[entity("OWNED", owner="two")], mode="create")
        assert error["code"] == "stale_base"
        assert "created by 'one" in error["message"]
        assert ("`PREFIX-{n}`" in error["hint"], "send the request again" in error["hint"]) == (True, False)
        new = two.call("kb_upsert", entities=[entity("OWNED-{n}")], mode="create")["created"]
        mixed = {"entities": [entity("OWNED"), entity(new[0])], "mode": "create"}
        assert "`PREFIX-{n}`" in two.refused("kb_upsert", **mixed)["hint"]
        answer = two.call("kb_upsert", entities=[{"id": "OWNED", "owner": "two"}])
        assert [("`owner` was 'one', set by 'one" in warning) for warning in answer["warnings"]] == [True]
        error = two.refused("kb_upsert", entities=[entity("FORGED", created_at="2020-01-01", source="one")])
        assert {problem["code"] for problem in error["details"]} == {"set_by_kb"}


def test_a_dry_run_and_a_write_warn_of_a_circle(kb):
    ways = [
        {"type": "depends_on", "from": one, "to": other} for one, other in (("LOOP-1", "LOOP-2"), ("LOOP-2", "LOOP-1"))
    ]
    kb.call("kb_upsert", entities=[entity("LOOP-1"), entity("LOOP-2")], edges=ways[:1])
    for dry_run in (True, False):
        warnings = kb.call("kb_upsert", edges=ways[1:], dry_run=dry_run)["warnings"]
        assert [warning.startswith("acyclic (error): depends_on forms a cycle") for warning in warnings] == [True]


def test_the_same_changeset_takes_effect_once(kb):
    request = {"changeset_id": "once", "entities": [entity("ONCE")]}
    first, again = kb.call("kb_upsert", **request), kb.call("kb_upsert", **request)
    assert (first["duplicate"], again["duplicate"]) == (False, True)
    assert first["seq"] == again["seq"]
    error = kb.refused("kb_upsert", changeset_id="once", entities=[entity("TWICE")])
    assert error["code"] == "changeset_id_reused"
    assert "Nothing was written" in error["message"]


def test_a_request_that_names_nothing_or_ids_alone_is_answered_with_the_form_of_one(kb):
    assert "`rename`, or `sync` true" in kb.refused("kb_upsert")["hint"]
    wrong = kb.refused("kb_delete", entities=["TEST-44"])["hint"]
    assert wrong.startswith('For example {"id": "REQ-1", "expected_version": 5}.')
    assert kb.refused("kb_delete", edges=["A"])["hint"].startswith('For example {"type": ')


def test_all_faults_of_a_request_are_reported_at_once(kb):
    error = kb.refused(
        "kb_upsert",
        mesage="why",
        dry_run="yes",
        entities=[{"id": "", "title": 3}, {"id": "A", "titel": "x"}, 7],
        edges=[{"type": "verified_by", "from": "A"}],
    )
    assert error["code"] == "invalid_changeset"
    assert {one["path"] for one in error["details"]} == {
        "$.mesage",
        "$.dry_run",
        "$.entities[0].id",
        "$.entities[0].title",
        "$.entities[1].titel",
        "$.entities[2]",
        "$.edges[0].to",
    }
    hints = {one["path"]: one.get("hint", "") for one in error["details"]}
    assert hints["$.mesage"].startswith("Did you mean 'message'?")
    assert "kb_upsert" in error["hint"]


def test_a_refused_changeset_says_what_was_not_changed_and_what_to_do(kb):
    error = kb.refused("kb_upsert", edges=[{"type": "depends_on", "from": "W-9", "to": "W-8"}])
    assert error["applied"] == "no"
    assert "nothing was written" in error["message"].lower()
    assert error["details"]


def test_a_stale_changeset_is_refused(shared, kb):
    read = kb.call("kb_upsert", entities=[entity("STALE")])["seq"]
    shared.apply(entities=[{"id": "STALE", "title": "Theirs"}])
    error = kb.refused("kb_upsert", entities=[{"id": "STALE", "title": "Mine"}], expected_seq=read)
    assert error["code"] == "stale_base"
    assert "kb_query" in error["hint"]
    assert kb.call("kb_query", ids=["STALE"])["entities"][0]["title"] == "Theirs"


def test_facts_of_a_file_name_the_file(project):
    project.sync({"docs/requirements/a.md": req("FILE-1")})
    with agent(project.root) as found:
        error = found.refused("kb_upsert", entities=[{"id": "FILE-1", "title": "Mine"}])
        assert error["code"] == "derived_fact"
        assert "docs/requirements/a.md:" in error["message"] + str(error["details"])
        assert found.call("kb_upsert", entities=[{"id": "FILE-1", "owner": "ann"}])["updated"] == ["FILE-1"]


def test_deleting_needs_the_version_that_was_read(kb):
    version = kb.call("kb_upsert", entities=[entity("GONE")])["seq"]
    missing = kb.refused("kb_delete", entities=[{"id": "GONE"}])
    assert missing["details"][0]["path"] == "$.entities[0].expected_version"
    assert kb.refused("kb_delete", entities=[{"id": "GONE", "expected_version": version - 1}])["code"] == "stale_base"
    plan = kb.call("kb_delete", entities=[{"id": "GONE", "expected_version": version}], dry_run=True)
    assert plan["deleted"] == ["GONE"]
    assert kb.call("kb_delete", entities=[{"id": "GONE", "expected_version": version}])["deleted"] == ["GONE"]
    assert kb.call("kb_query", ids=["GONE"])["total"] == 0


def test_what_others_point_at_is_kept_unless_asked_otherwise(kb):
    edge = {"type": "depends_on", "from": "C-1", "to": "C-2"}
    version = kb.call("kb_upsert", entities=[entity("C-1"), entity("C-2")], edges=[edge])["seq"]
    target = {"id": "C-2", "expected_version": version}
    error = kb.refused("kb_delete", entities=[target])
    assert error["applied"] == "no"
    assert kb.call("kb_delete", entities=[target], cascade=True)["edges"]["deleted"] == 1


def test_an_edge_is_deleted_by_its_ends(kb):
    edge = {"type": "relates_to", "kind": "twin", "from": "E-1", "to": "E-2"}
    kb.call("kb_upsert", entities=[entity("E-1"), entity("E-2")], edges=[edge])
    assert kb.call("kb_delete", edges=[edge])["edges"]["deleted"] == 1


def test_a_long_answer_keeps_to_its_budget_and_counts_what_it_leaves_out(kb):
    many = [entity(f"{'MANY' * 20}-{number}") for number in range(600)]
    result = kb.result("kb_upsert", {"entities": many, "dry_run": True})
    answer = answer_of(result)
    assert len(text_of(result)) <= 20_000
    assert len(answer["created"]) + answer["omitted"]["created"] == 600


def test_a_long_error_keeps_to_its_budget(kb):
    result = kb.result("kb_upsert", {"entities": [{"id": f"BAD-{number}", "x" * 90: 1} for number in range(200)]})
    answer = answer_of(result)
    assert len(text_of(result)) <= 10_000
    assert answer["omitted"]["details"] > 0


@pytest.mark.parametrize("size", [5_000_000, 8_000_000])
def test_an_argument_of_megabytes_is_refused(kb, size):
    error = kb.refused("kb_upsert", entities=[entity("HUGE", attributes={"body": "x" * size})])
    assert error["code"] == "limit_exceeded"
    assert kb.refused("kb_query", text="x" * size)["code"] == "limit_exceeded"
    assert kb.call("kb_query", ids=["HUGE"])["total"] == 0


def test_numbers_that_kb_cannot_hold_are_refused(shared):
    request = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"kb_upsert","arguments":{"entities":'
    request += b'[{"id":"N","type":"req","title":"t","status":"open","attributes":{"x":%s}}]}}}\n'
    with raw(shared.root) as server:
        server.greet()
        for key, number in enumerate((b"1e999", b"99999999999999999999999")):
            server.write(request % (key, number))
            reported = [(one["path"], one["code"]) for one in server.answer(key)["error"]["details"]]
            assert reported == [("$.entities[0].attributes", "bad_number")], number


def test_ids_named_twice_are_refused(kb):
    twice = kb.refused("kb_upsert", entities=[entity("D"), entity("D")])
    assert twice["details"][0]["code"] == "duplicate"


def test_a_client_with_a_hostile_name_is_escaped(project):
    with agent(project.root, name="evil\x1b[31m\u202e" + "x" * 500) as found:
        found.call("kb_upsert", entities=[entity("A")])
    node = project.node("A")
    assert node is not None
    assert node.source.startswith("mcp:evil\\u001b[31m\\u202exxx")
    assert len(node.source) < 100


def test_a_write_records_what_files_say_first_when_asked(project):
    project.write({"docs/requirements/1.md": req("REQ-1")})
    edge = {"type": "verified_by", "from": "REQ-1", "to": "T-1"}
    test = {"id": "T-1", "type": "test", "title": "T", "status": "active"}
    with direct(project.root) as found:
        assert "REQ-1" in found.answer("kb_upsert", entities=[test], edges=[edge])["error"]["message"]
        answer = found.answer("kb_upsert", entities=[test], edges=[edge], sync=True)
        assert (answer["seq"], answer["edges"]["created"]) == (2, 1)
        assert "What the files say was recorded first, up to seq 1." in answer["note"]
        project.write({"docs/requirements/2.md": req("REQ-2")})
        assert (found.answer("kb_upsert", sync=True)["created"]) == ["REQ-2"]
        assert found.answer("kb_query", ids=["REQ-2"])["freshness"] == "current"
        for name, value in (("message", "why"), ("changeset_id", "c-1"), ("expected_seq", 3), ("mode", "create")):
            misfit = found.answer("kb_upsert", sync=True, **{name: value})["error"]
            assert [one["path"] for one in misfit["details"]] == [f"$.{name}"], misfit
        refused = found.answer("kb_upsert", sync=True, dry_run=True)["error"]
        assert refused["details"][0]["path"] == "$.sync"
        project.write({"docs/requirements/3.md": req("REQ-3")})
        wrong = found.answer("kb_upsert", entities=[{"id": "T-2", "type": "test"}], sync=True)["error"]
        assert found.answer("kb_query", ids=["REQ-3"])["seq"] == 4, wrong
        recorded = "What the files say was recorded first, up to seq 4. Nothing else was written."
        assert (wrong["message"].endswith(recorded), wrong["applied"]) == (True, "no"), wrong


def test_a_write_names_the_file_of_an_entity_that_is_not_recorded_yet(project):
    said = "'docs/requirements/7.md' states 'REQ-7', but it is not recorded yet."
    project.write({"docs/requirements/7.md": req("REQ-7")})
    with direct(project.root) as found:
        found.answer("kb_upsert", entities=[entity("REQ-1")])
        for request in (
            {"entities": [entity("REQ-7")], "mode": "create"},
            {"edges": [{"type": "depends_on", "from": "REQ-1", "to": "REQ-7"}]},
            {"entities": [{"id": "REQ-7", "owner": "agent"}]},
            {"entities": [{"id": "REQ-7", "owner": "agent"}], "mode": "update"},
            {"rename": {"REQ-7": "REQ-8"}},
            {"rename": {"REQ-1": "REQ-7"}},
        ):
            error = found.answer("kb_upsert", **request)["error"]
            assert said in error["message"], request
            assert error["hint"] == "Call kb_upsert with `sync` true first.", request
        between = {"type": "depends_on", "from": "REQ-1", "to": "REQ-7"}
        error = found.answer("kb_delete", edges=[between])["error"]
        assert said in error["message"]
        error = found.answer("kb_upsert", edges=[{"type": "depends_on", "from": "REQ-1", "to": "REQ-77"}])["error"]
        assert "There is no entity 'REQ-77'" in error["message"]
        assert found.answer("kb_upsert", entities=[{"id": "REQ-7", "owner": "agent"}], sync=True)["updated"] == [
            "REQ-7"
        ]


def test_a_write_names_the_file_of_an_edge_that_is_not_recorded_yet(project):
    one, two = "docs/requirements/1.md", "docs/requirements/2.md"
    project.write({one: req("REQ-1"), two: req("REQ-2")})
    link = {"type": "depends_on", "from": "REQ-1", "to": "REQ-2"}
    with direct(project.root) as found:
        found.answer("kb_upsert", sync=True)
        linked = req("REQ-1").replace("\n---\n", "\nlinks: [{type: depends_on, target: REQ-2}]\n---\n", 1)
        project.write({one: linked})
        for tool, request in (
            ("kb_upsert", {"edges": [link], "mode": "create"}),
            ("kb_upsert", {"edges": [link], "mode": "update"}),
            ("kb_delete", {"edges": [link]}),
        ):
            error = found.answer(tool, **request)["error"]
            assert f"'{one}' states REQ-1 depends_on REQ-2, but it is not recorded yet." in error["message"], request
            assert error["hint"] == "Call kb_upsert with `sync` true first.", request


def test_a_write_says_what_its_sync_found_wrong_in_files(project):
    project.write({"docs/requirements/1.md": req("REQ-1"), "docs/requirements/2.md": "---\nid: [\n---\n"})
    linked = req("REQ-3").replace("\n---\n", "\nlinks: [NOWHERE]\n---\n", 1)
    project.write({"docs/requirements/3.md": linked})
    with direct(project.root) as found:
        alone = found.answer("kb_upsert", sync=True)["warnings"]
        assert [one.split(":")[:2] for one in alone] == [
            ["error", " docs/requirements/2.md"],
            ["error", " unresolved"],
        ]
        assert "REQ-3 links to NOWHERE (stated in docs/requirements/3.md)" in alone[1]
        assert found.answer("kb_upsert", sync=True)["warnings"] == alone
        found.answer("kb_upsert", entities=[{"id": "REQ-1", "owner": "agent"}])
        project.write({"docs/requirements/1.md": req("REQ-1").replace("\n---\n", "\nowner: Eva\n---\n", 1)})
        answer = found.answer("kb_upsert", entities=[entity("REQ-4")], sync=True)
        assert answer["created"] == ["REQ-4"]
        assert "now states `owner` of" in answer["warnings"][0]
        assert answer["warnings"][1:3] == alone
        refused = found.answer("kb_upsert", entities=[{"id": "T-2", "type": "test"}], sync=True)
        assert "docs/requirements/2.md" in str(refused)


def test_a_sync_that_is_done_succeeds_with_a_warning_of_a_broken_baseline(project):
    linked = req("REQ-3").replace("\n---\n", "\nlinks: [NOWHERE]\n---\n", 1)
    project.write({"docs/requirements/3.md": linked, ".kb/baseline.json": "{"})
    with direct(project.root) as found:
        answer = found.answer("kb_upsert", sync=True)
    assert (answer["seq"], answer["created"][0]) == (1, "REQ-3")
    assert ".kb/baseline.json is no baseline" in answer["warnings"][0]
    assert "NOWHERE" in answer["warnings"][1]


def test_a_new_entity_gets_the_next_number_and_every_answer_says_which(kb):
    first = kb.call("kb_upsert", entities=[entity("NUM-{n}"), entity("NUM-{n2}")], changeset_id="numbers")
    again = kb.call("kb_upsert", entities=[entity("NUM-{n}"), entity("NUM-{n2}")], changeset_id="numbers")
    assert first["ids"] == {"NUM-{n}": "NUM-1", "NUM-{n2}": "NUM-2"}
    assert first["created"] == again["created"] == ["NUM-1", "NUM-2"]


def test_an_edge_of_a_client_that_a_rename_in_files_moves_is_said_to_be_no_files(project):
    one, two = "docs/requirements/1.md", "docs/requirements/2.md"
    project.sync({one: req("REQ-1"), two: req("REQ-2")})
    edge = {"type": "relates_to", "kind": "example", "to": "REQ-2"}
    project.apply(edges=[{**edge, "from": "REQ-1"}])
    project.write({one: req("REQ-7").replace("\n---\n", "\nformer_ids: [REQ-1]\n---\n", 1)})
    with direct(project.root) as found:
        error = found.answer("kb_upsert", edges=[{**edge, "from": "REQ-7"}], mode="create")["error"]
    said = "A change file or a rename in files makes REQ-7 relates_to:example REQ-2, but it is not recorded yet."
    assert said in error["message"]
    assert error["hint"] == "Call kb_upsert with `sync` true first."


def test_an_entity_is_renamed_alone_in_a_call_and_its_former_id_still_names_it(kb):
    kb.call("kb_upsert", entities=[entity("OLD-1")])
    assert kb.call("kb_upsert", rename={"OLD-1": "NEW-1"}, dry_run=True)["applied"] is False
    answer = kb.call("kb_upsert", rename={"OLD-1": "NEW-1"}, message="why")
    assert answer["renamed"] == {"OLD-1": "NEW-1"}
    [found] = kb.call("kb_query", ids=["OLD-1"])["entities"]
    assert (found["id"], found["attributes"]) == ("NEW-1", {"former_ids": ["OLD-1"]})
    assert kb.refused("kb_upsert", entities=[entity("OLD-1")])["code"] == "integrity_violation"
    error = kb.refused("kb_upsert", rename={"NEW-1": "X"}, entities=[entity("Y")])
    assert [one["path"] for one in error["details"]] == ["$.rename"]
    assert kb.refused("kb_upsert", rename={"NEW-1": "X", "A": "B"})["code"] == "invalid_changeset"


def test_a_rename_takes_effect_once_and_only_on_what_was_read(project):
    project.apply(entities=[entity("R-1")])
    project.sync({"docs/requirements/f.md": req("F-1")})
    with agent(project.root) as found:
        for old, new in (("R-1", "R-2"), ("F-1", "F-2")):  # of the store, and of a file
            stale = found.refused("kb_upsert", rename={old: new}, expected_seq=0, changeset_id=old)
            assert (stale["code"], stale["details"][0]["path"]) == ("stale_base", "$.rename")
            ahead = found.refused("kb_upsert", rename={old: new}, expected_seq=99)
            assert [one["code"] for one in ahead["details"]] == ["out_of_range"]
            seq = found.call("kb_query", ids=[old])["seq"]
            request = {"rename": {old: new}, "expected_seq": seq, "changeset_id": f"id-{old}"}
            first, again = found.call("kb_upsert", **request), found.call("kb_upsert", **request)
            assert (first["duplicate"], first["changeset_id"]) == (False, f"id-{old}")
            assert (again["duplicate"], again["seq"], again["renamed"]) == (True, first["seq"], {old: new})
            other = found.refused("kb_upsert", rename={new: "X"}, changeset_id=f"id-{old}")
            assert other["code"] == "changeset_id_reused"
        error = found.refused("kb_upsert", rename={"R-2": "X"}, mode="create")
        assert [(one["path"], one["code"]) for one in error["details"]] == [("$.mode", "contradiction")]


def test_the_answer_to_a_rename_in_many_files_fits_and_counts_the_files_it_leaves_out(project):
    linked = {
        f"docs/requirements/{'n' * 150}{number}.md": req(f"L-{number}", depends_on="T-1") for number in range(130)
    }
    project.sync({"docs/requirements/t.md": req("T-1"), **linked})
    with agent(project.root) as found:
        result = found.result("kb_upsert", {"rename": {"T-1": "T-2"}, "dry_run": True})
        answer = answer_of(result)
        assert len(text_of(result)) <= 20_000
        assert answer["files"]
        assert len(answer["files"]) + answer["omitted"]["files"] == 131


def test_a_rename_records_the_files_first_where_that_is_asked_for(project):
    with agent(project.root) as found:
        project.write({"docs/requirements/a.md": "---\nid: A\ntitle: T\nstatus: open\n---\n"})
        assert found.refused("kb_upsert", rename={"A": "B"})["code"] == "not_synced"
        answer = found.call("kb_upsert", rename={"A": "B"}, sync=True)
        assert (answer["renamed"], answer["files"]) == ({"A": "B"}, ["docs/requirements/a.md"])
        assert "recorded first" in answer["note"]
        refused = found.refused("kb_upsert", rename={"NONE": "B"}, sync=True)
        assert refused["code"] == "not_found"


def test_a_rename_that_was_made_already_is_no_error(project):
    with agent(project.root) as found:
        project.apply(entities=[entity("A")])
        found.call("kb_upsert", rename={"A": "B"})
        answer = found.call("kb_upsert", rename={"A": "B"})
        assert (answer["applied"], answer["warnings"]) == (
            False,
            ["'A' is called 'B' already: nothing was left to do."],
        )
        assert found.refused("kb_upsert", rename={"A": "C"})["code"] == "not_found"


@pytest.mark.sliced
def test_a_function_is_renamed_by_its_code_and_one_call(project):
    pytest.importorskip("tree_sitter_python")
    settings = {"extractors": {"code": {"paths": ["src/**/*.py"]}}}
    project.write({".kb/config.json": json.dumps(settings), "src/a.py": "def old(price):\n    return price * 2 + 1\n"})
    with agent(project.root) as found:
        found.call("kb_upsert", sync=True)
        about = {"type": "relates_to", "kind": "about", "from": "N", "to": "src/a.py#old"}
        found.call("kb_upsert", entities=[{"id": "N", "type": "note", "title": "Rounds up"}], edges=[about])
        refused = found.refused("kb_upsert", rename={"src/a.py#old": "src/a.py#new"})
        assert "Rename it in the code of 'src/a.py'" in refused["hint"]
        project.write({"src/a.py": "def new(price):\n    return price * 2 + 1\n"})
        answer = found.call("kb_upsert", rename={"src/a.py#old": "src/a.py#new"}, sync=True)
        assert answer["warnings"] == ["'src/a.py#old' is called 'src/a.py#new' already: nothing was left to do."]
        [edge] = found.call("kb_query", ids=["N"], edges=True)["edges"]
        assert edge["to"] == "src/a.py#new"
