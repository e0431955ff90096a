"""``kb prolog``: how goals run and how their answers are shown, as text and as JSON."""

from __future__ import annotations

import json

import pytest

from tests.support.processes.cli import LOGIN, write


@pytest.mark.sliced
def test_solutions_are_shown_as_a_prolog_system_shows_them(synced, kb, engine):
    ran = kb("prolog", "-g", "member(X-Y, [1-a, 'B c'-\"t\"])", "-g", "true", "-g", "X #> 3", "-g", "X = Y")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "X = 1,\nY = a ;\nX = 'B c',\nY = \"t\".\ntrue.\nX in 4..sup.\nY = X.\n"


@pytest.mark.sliced
def test_the_status_says_whether_each_goal_has_a_solution(synced, kb, engine):
    ran = kb("prolog", "-g", "fail", "-g", "true")
    assert (ran.status, ran.out) == (1, "false.\ntrue.\n")
    assert kb("prolog", "-g", "true").status == 0


@pytest.mark.sliced(1)
@pytest.mark.parametrize("mode", ["engine", "standard"])
def test_both_modes_give_the_same_solutions(synced, kb, engine, mode):
    goal = "member(X, [3, 1, 2]), writeln(X), X > 1"
    ran = kb("prolog", "--mode", mode, "-g", goal)
    assert (ran.status, ran.out) == (0, "3\nX = 3 ;\n1\n2\nX = 2.\n")


@pytest.mark.sliced
def test_an_error_comes_after_the_solutions_before_it(synced, kb, engine):
    goal = "member(X, [1, 2, 3]), Y is 6 / (X - 2)"
    ran = kb("prolog", "-g", goal, "-g", "true")
    assert ran.status == 32
    assert ran.out == "X = 1,\nY = -6 ;\n"
    assert ran.err.startswith("error: Arithmetic: evaluation error: ")
    found = kb("prolog", "-g", "true", "-g", goal, "--json").json
    assert found["error"]["kind"] == "evaluation_error"
    assert [one["status"] for one in found["answers"]] == ["success", "error"]
    assert found["answers"][1]["solutions"] == [{"bindings": {"X": "1", "Y": "-6"}}]


@pytest.mark.sliced
def test_json_is_one_document_with_all_solutions(synced, kb, engine):
    ran = kb("prolog", "-g", "member(X, [1, 2]), print(X)", "-g", "X #> 3", "-g", "print(x), fail", "--json")
    assert (ran.status, ran.err) == (1, "")
    assert ran.json == {
        "branch": "main",
        "answers": [
            {
                "goal": "member(X, [1, 2]), print(X)",
                "status": "success",
                "solutions": [{"bindings": {"X": "1"}, "output": "1"}, {"bindings": {"X": "2"}, "output": "2"}],
                "is_complete": True,
            },
            {
                "goal": "X #> 3",
                "status": "success",
                "solutions": [{"bindings": {}, "residual": ["X in 4..sup"]}],
                "is_complete": True,
            },
            {"goal": "print(x), fail", "status": "failed", "solutions": [], "is_complete": True, "output": "x"},
        ],
    }


@pytest.mark.parametrize(
    ("goal", "status"),
    [
        ("shell(ls)", "not_run"),
        ("foo bar", "not_run"),
        ("G = shell(ls), call(G)", "error"),
        ("nope(1)", "error"),
        ("fail", "failed"),
    ],
)
def test_json_tells_a_goal_that_was_not_run_from_one_that_failed(synced, kb, any_engine, goal, status):
    found = kb("prolog", "-g", "true", "-g", goal, "--json").json
    assert [one["status"] for one in found["answers"]] == ["success", status]


def test_a_clause_that_was_written_without_an_engine_is_held_back_and_named(synced, kb, any_engine):
    clause = {"text": "p(X) :- shell(X).", "key": "a", "name": "p/1", "kind": "clause", "order": 1}
    entity = {"id": "clause:00000000000000aa", "type": "clause", "attributes": clause}
    write(synced, {"changeset.json": json.dumps({"entities": [entity]})})
    assert kb("apply", "changeset.json").status == 0
    for goal, status in (("X = 1", 0), ("p(X)", 32)):
        ran = kb("prolog", "-g", goal)
        assert ran.status == status
        assert f"warning: The clause {entity['id']} is not loaded: `shell/1` is refused" in ran.err
        found = kb("prolog", "-g", goal, "--json").json["held_back"]
        assert (found["count"], [one["id"] for one in found["clauses"]]) == (1, [entity["id"]])
    assert kb("delete", entity["id"]).status == 0
    assert "warning" not in kb("prolog", "-g", "X = 1").err


@pytest.mark.parametrize(
    ("goal", "named"),
    [
        ("consult('a.pl')", "`:import FILE`"),
        ("[a]", "`:import FILE`"),
        ("use_module(library(assoc))", "`-l NAME`"),
        ("list_to_assoc([], A)", "`-l NAME`"),
        ("listing(p)", "`:snapshot`"),
        ("assertz(p)", "`:assert CLAUSE.`"),
    ],
)
def test_a_refused_predicate_of_other_systems_names_what_does_the_same(synced, kb, any_engine, goal, named):
    ran = kb("prolog", "-g", goal)
    assert (ran.status, named in ran.err) == (32, True)


@pytest.mark.parametrize("goal", ["shell(ls)", ":assert :- use_module(library(http))."])
def test_a_refusal_refers_to_no_tool(synced, kb, any_engine, goal):
    ran = kb("prolog", "-g", goal)
    assert ran.status == 32
    assert "topic" not in ran.err


@pytest.mark.sliced
def test_a_limit_ends_a_goal_that_has_more(synced, kb, engine):
    ran = kb("prolog", "-g", "repeat", "--limit", "2")
    assert (ran.status, ran.out) == (0, "true ;\ntrue .\n")
    assert "Stopped at solution 2 (--limit); there may be more." in ran.err
    assert kb("prolog", "-g", "member(X, [1, 2])", "--limit", "2").err == ""
    [answer] = kb("prolog", "-g", "repeat", "--limit", "3", "--json").json["answers"]
    assert (len(answer["solutions"]), answer["is_complete"]) == (3, False)


@pytest.mark.sliced
def test_the_graph_is_that_of_the_branch_and_of_the_files(synced, kb, engine):
    ran = kb("prolog", "-g", "entity(Id, requirement, Title, Status)", "--json")
    assert ran.status == 1
    ran = kb("prolog", "-g", "entity(Id, req, Title, Status)", "--json").json
    assert (ran["seq"], ran["freshness"], len(ran["answers"][0]["solutions"])) == (1, "current", 2)
    assert ran["answers"][0]["solutions"][0]["bindings"] == {
        "Id": "'REQ-1'",
        "Title": '"Log in"',
        "Status": "open",
    }
    write(synced, {"docs/requirements/new.md": LOGIN.replace("REQ-1", "REQ-9")})
    ran = kb("prolog", "-g", "entity('REQ-9', Type, _, _)")
    assert ran.out == "Type = req.\n"
    assert "note: 1 file differs from the records of main; the answer has what the files say." in ran.err
    past = kb("prolog", "-g", "entity('REQ-9', Type, _, _)", "--at", "1")
    assert (past.status, past.out) == (1, "false.\n")
    assert "as of seq 1" in past.err


def test_a_branch_is_named(synced, kb, any_engine):
    kb("branch", "ensure", "other", "--from", "main")
    ran = kb("prolog", "--branch", "nowhere", "-g", "true")
    assert ran.status == 62
    kb("prolog", "-g", ":assert here(1).")
    assert kb("prolog", "-g", "here(X)", "--json").json["branch"] == "main"


@pytest.mark.sliced
def test_a_goal_that_takes_too_long_ends_and_the_next_run_works(synced, kb, engine):
    settings = synced / ".kb" / "config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"logic": {"timeLimitSeconds": 1}}))
    ran = kb("prolog", "-g", "repeat, fail", "-g", "true")
    assert (ran.status, ran.out) == (32, "")
    assert "The step took longer than the 1 s it may; `logic.timeLimitSeconds` is the limit." in ran.err
    assert kb("prolog", "-g", "true").out == "true.\n"


def test_a_goal_that_takes_too_long_by_the_limit_of_the_user_is_ended_with_the_name_of_that_one(
    synced, kb, engine, user
):
    settings = synced / ".kb" / "config.json"
    settings.write_text(json.dumps(json.loads(settings.read_text()) | {"logic": {"timeLimitSeconds": 200}}))
    user.setenv("KB_LOGIC_TIME_SECONDS", "1")
    ran = kb("prolog", "-g", "repeat, fail")
    assert (
        "The step took longer than the 1 s it may; `KB_LOGIC_TIME_SECONDS` in the environment is the limit." in ran.err
    )
    assert "logic.timeLimitSeconds" not in ran.err


@pytest.mark.sliced
def test_stored_text_never_acts_on_the_terminal(synced, kb, engine):
    kb("prolog", "-g", ':assert t("a\x1b[31mb").')
    for goal in ("t(X)", "t(X), write(X)", ":snapshot"):
        assert "\x1b" not in kb("prolog", "-g", goal).out
