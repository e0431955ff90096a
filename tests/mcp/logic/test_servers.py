"""Several servers of the toolset logic, on one branch, on several and in worktrees, and the history of clauses."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest

from tests.mcp.agents import WAIT_S, raw
from tests.mcp.prolog_agents import prolog_agent
from tests.support.processes.cli import run_kb
from tests.support.repository.repos import git


@pytest.mark.sliced
def test_two_servers_on_one_branch_see_each_others_clauses_at_the_next_call(project, engine):
    with prolog_agent(project.root, engine, name="one") as one, prolog_agent(project.root, engine, name="two") as two:
        one.add("p(1).")
        assert two.solutions("p(X)") == [{"X": "1"}]
        two.add("p(2).", "q(X) :- p(X).")
        assert one.solutions("q(X)") == [{"X": "1"}, {"X": "2"}]
        one.remove("p(1)")
        assert two.solutions("q(X)") == [{"X": "2"}]
        two.import_("a.pl", "p(3).")
        assert one.solutions("p(X)") == [{"X": "2"}, {"X": "3"}]
        assert one.error("files", operation="import", filename="a.pl")["kind"] == "already_imported"
        assert one.files() == two.files()
        one.reset()
        assert two.refusal("p(X)")["kind"] == "unknown_predicate"
        assert (one.snapshot(), two.snapshot()) == ("", "")
        two.add("p(9).")
        assert one.snapshot() == two.snapshot() == "p(9)."


@pytest.mark.sliced
def test_a_query_is_that_of_its_connection(project, engine):
    with prolog_agent(project.root, engine) as one, prolog_agent(project.root, engine) as two:
        one.add("p(1).", "p(2).")
        one.call("query_start", query="p(X)")
        assert two.error("query_next")["kind"] == "no_active_session"
        assert one.call("query_next")["bindings"] == {"X": "1"}
        two.add("p(3).")
        assert two.solutions("p(X)") == [{"X": "1"}, {"X": "2"}, {"X": "3"}]
        assert one.call("query_next")["bindings"] == {"X": "2"}


@pytest.mark.sliced
def test_another_branch_has_its_own_clauses_and_loses_the_open_query(project, own_prolog):
    own_prolog.add("p(1).", "p(2).")
    own_prolog.first("p(X)")
    project.switch("feature", create=True)
    error = own_prolog.error("query_next")
    assert error["kind"] == "query_lost"
    own_prolog.add("p(feature).")
    assert own_prolog.snapshot() == "p(1).\np(2).\np(feature)."
    assert [one["X"] for one in own_prolog.solutions("p(X)")] == ["1", "2", "feature"]
    project.switch("main")
    assert own_prolog.snapshot() == "p(1).\np(2)."
    answer = own_prolog.first("p(X), X \\== 1")
    assert (answer["bindings"], answer["branch"]) == ({"X": "2"}, "main")


@pytest.mark.sliced
def test_three_worktrees_have_each_the_clauses_of_its_branch(project, engine, tmp_path):
    with prolog_agent(project.root, engine) as prolog:
        prolog.add("p(0).")
    roots = [project.root, tmp_path / "two", tmp_path / "three"]
    for number, root in enumerate(roots[1:], 2):
        git(project.root, "worktree", "add", "-q", "-b", f"branch{number}", str(root))
    with ExitStack() as stack:
        agents = [stack.enter_context(prolog_agent(root, engine)) for root in roots]
        # A branch begins with the clauses that its parent has when it is first written to.
        for number, one in reversed([*enumerate(agents, 1)]):
            one.add(f"p({number}).")
            one.import_("own.pl", f"own({number}).")
        for number, one in enumerate(agents, 1):
            assert one.solutions("p(X)") == [{"X": "0"}, {"X": str(number)}]
            assert one.solutions("own(X)") == [{"X": str(number)}]
            assert [file["filename"] for file in one.files()] == [str(one.root / "own.pl")]


@pytest.mark.sliced
def test_history_and_undo_apply_to_clauses(project, own_prolog):
    first = own_prolog.add("p(1).", "p(2).")
    own_prolog.remove("p(1).")
    own_prolog.import_("a.pl", "q(1).")
    own_prolog.reset()
    log = own_prolog.call("kb_history", action="log")["records"]
    messages = [one["message"] for one in log]
    assert messages == ["Reset the workspace", "Import a.pl", "Remove clauses", "Add clauses"]
    assert {one["actor"] for one in log} == {"tester/1.2"}
    clause = first["outcomes"][0]["id"]
    assert own_prolog.call("kb_history", action="log", id=clause)["records"]
    shown = own_prolog.call("kb_history", action="show", seq=first["seq"])
    assert clause in json.dumps(shown)
    own_prolog.call("kb_history", action="revert", seq=log[0]["seq"])
    assert own_prolog.snapshot() == "p(2).\nq(1)."
    assert own_prolog.solutions("q(X)") == [{"X": "1"}]
    ran = run_kb(project.root, "log")
    assert "Import a.pl" in ran.out
    assert not run_kb(project.root, "revert", str(log[1]["seq"])).status
    assert own_prolog.snapshot() == "p(2)."
    assert not run_kb(project.root, "revert", str(log[2]["seq"])).status
    assert own_prolog.snapshot() == "p(1).\np(2)."
    assert [one["X"] for one in own_prolog.solutions("p(X)")] == ["1", "2"]


@pytest.mark.sliced
def test_a_workspace_of_the_session_is_not_recorded(project, engine):
    project.write({".kb/config.json": '{"logic": {"workspace": "session"}}'})
    with prolog_agent(project.root, engine) as one, prolog_agent(project.root, engine) as two:
        before = one.call("kb_query")["seq"]
        answer = one.add("p(1).")
        assert (answer["branch"], answer["seq"]) == ("main", before)
        one.import_("a.pl", "p(2).")
        assert one.solutions("p(X)") == [{"X": "1"}, {"X": "2"}]
        assert (one.snapshot(), two.snapshot()) == ("p(1).\np(2).", "")
        assert len(one.files()) == 1
        assert one.call("kb_query")["seq"] == before


@pytest.mark.sliced(1)
@pytest.mark.parametrize("workspace", ["branch", "session"])
def test_a_client_that_follows_the_workspace_is_notified(project, engine, workspace):
    project.write({".kb/config.json": json.dumps({"logic": {"workspace": workspace}})})
    uri = "prolog://workspace/snapshot"
    with raw(project.root, "--toolsets", "core,logic", env=engine) as server:
        server.greet()
        server.send("resources/subscribe", {"uri": uri}, "follow")
        server.reply("follow")
        entity = {"id": "R", "type": "req", "title": "t", "status": "open"}
        server.call(1, "kb_upsert", {"entities": [entity]})
        server.answer(1)
        server.call(2, "clauses", {"operation": "assert", "clauses": "p(1)."})
        server.answer(2)
        notice = server._next(lambda one: one.get("method") == "notifications/resources/updated", "a change", WAIT_S)
        assert notice["params"]["uri"] == uri
