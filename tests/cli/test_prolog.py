"""``kb prolog``: goals from options, from standard input and at a prompt, statements, and the engines."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import signal
import tarfile
import time
from pathlib import Path

import pytest

from tests.support.logic.engines import engine_variables
from tests.support.processes.cli import LOGIN, write
from tests.support.processes.terminal import Terminal
from tests.support.repository.repos import git

WINE = "likes(ann, X) :- wine(X).\nwine(red).\nwine(white).\n"


@pytest.fixture
def any_engine(user):
    """One engine, whichever this machine has."""
    for name, value in engine_variables("auto").items():
        user.setenv(name, value)


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


def test_json_says_that_no_goal_was_run_without_an_engine(synced, kb, user):
    user.setenv("KB_LOGIC_ENGINE", "native")
    user.setenv("KB_SWIPL", "/nowhere/swipl")
    [answer] = kb("prolog", "-g", "true", "--json").json["answers"]
    assert answer["status"] == "not_run"


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
def test_what_a_statement_adds_is_a_record_that_log_and_revert_know(synced, kb, engine):
    ran = kb("prolog", "-g", f":assert {WINE}", "-g", "likes(ann, X)")
    assert ran.status == 0, ran.err
    assert ran.out == "3 clauses added. Branch main is at seq 2.\nX = red ;\nX = white.\n"
    assert kb("prolog", "-g", ":snapshot").out == WINE
    assert kb("prolog", "-g", ":symbols").out == "likes/2\nwine/1\n"
    assert kb("prolog", "-g", ":retract wine(_). wine(red).").status == 32
    assert kb("prolog", "-g", "wine(X)").out == "X = white.\n"
    assert kb("prolog", "-g", "wine(X)", "--at", "2").out == "X = red ;\nX = white.\n"
    assert kb("revert", "3").status == 0
    assert kb("prolog", "-g", "wine(X)").out == "X = red ;\nX = white.\n"
    ran = kb("prolog", "-g", ":reset")
    assert ran.out == "3 clauses removed. Branch main is at seq 5.\n"
    assert ran.err == "`kb revert 5` brings them back.\n"
    assert kb("prolog", "-g", ":snapshot").err == "There is no clause.\n"


@pytest.mark.sliced
def test_one_wrong_clause_keeps_no_other_from_being_added(synced, kb, engine):
    ran = kb("prolog", "-g", ":assert p(1). p(. p(2). append(a, b, c).")
    assert ran.status == 32
    assert ran.out == "2 clauses added. Branch main is at seq 2.\n"
    lines = ran.err.splitlines()
    assert lines[0] == "error: 2 clauses not added."
    assert lines[1].startswith("  p(.: Syntax error: ")
    assert lines[2] == (
        "  append(a, b, c).: `append/3` is refused as the head of a clause: it is built in, or of a library. "
        "Choose another name."
    )
    assert "Nothing was written" not in ran.err
    found = kb("prolog", "-g", ":assert p(", "--json").json["error"]
    assert (found["code"], found["applied"], "added" in found) == ("prolog_error", "no", False)
    found = kb("prolog", "-g", ":assert p(3). p(", "--json").json["error"]
    assert (found["applied"], found["added"], found["seq"]) == ("yes", ["p(3)."], 3)
    assert [one["path"] for one in found["details"]] == ["p("]


@pytest.mark.sliced
def test_files_are_imported_listed_and_removed(synced, kb, engine, tmp_path):
    write(synced, {"rules/wine.pl": f"{WINE}% the end\n", "bad.pl": "p(1).\np(.\n:- initialization(main).\n"})
    assert kb("prolog", "-g", ":files").err == "No file is imported.\n"
    ran = kb("prolog", "-g", ":import wine.pl", cwd=synced / "rules")
    assert ran.out == "3 clauses of rules/wine.pl added. Branch main is at seq 2.\n"
    again = kb("prolog", "-g", ":import rules/wine.pl")
    assert (again.status, "rules/wine.pl is imported already." in again.err) == (32, True)
    bad = kb("prolog", "-g", ":import bad.pl")
    assert bad.status == 32
    assert [line.partition(": ")[0] for line in bad.err.splitlines()[1:3]] == ["  bad.pl:2", "  bad.pl:3"]
    write(synced, {"rules/wine.pl": "wine(rose).\n"})
    listed = kb("prolog", "-g", ":files").out.splitlines()
    assert re.fullmatch(r"rules/wine\.pl\s+3\s+\S+ \S+ UTC\s+changed since", listed[1])
    assert re.fullmatch(r"bad\.pl\s+1\s+\S+ \S+ UTC\s*", listed[2])
    assert kb("prolog", "-g", ":unimport 'rules/wine.pl'").out.startswith("3 clauses of rules/wine.pl removed.")
    gone = kb("prolog", "-g", ":unimport rules/wine.pl")
    assert (gone.status, "rules/wine.pl is not imported." in gone.err) == (32, True)
    outside = tmp_path / "outside"
    write(outside, {"a.pl": "a(1).\n"})
    refused = kb("prolog", "-g", f":import {outside / 'a.pl'}")
    assert (refused.status, "--kb-roots" in refused.err) == (32, True)
    assert kb("prolog", "-g", f":import {outside / 'a.pl'}", "--kb-roots", outside).status == 0


def test_a_file_of_another_folder_is_unimported_without_that_folder(synced, kb, any_engine, tmp_path):
    outside = tmp_path / "outside"
    write(outside, {"a.pl": "a(1).\n", "b.pl": "b(1).\n"})
    write(synced, {"c.pl": "c(1).\n"})
    for name in (outside / "a.pl", outside / "b.pl", "c.pl"):
        assert kb("prolog", "-g", f":import {name}", "--kb-roots", outside).status == 0
    (synced / "c.pl").unlink()
    (synced / "c.pl").symlink_to(outside / "a.pl")
    listed = kb("prolog", "-g", ":files").out.splitlines()[1:]
    assert [line.split("UTC")[1].strip() for line in listed] == ["outside of the folders"] * 3
    found = kb("prolog", "-g", ":files", "--json").json["answers"][0]["files"]
    assert [(one["is_changed"], one["problem"]) for one in found] == [(False, "file_path_violation")] * 3
    (outside / "b.pl").unlink()
    for name in (outside / "a.pl", outside / "b.pl", "c.pl"):
        ran = kb("prolog", "-g", f":unimport {name}")
        assert (ran.status, ran.out[:12]) == (0, "1 clause of "), ran.err
    gone = kb("prolog", "-g", f":unimport {outside / 'a.pl'}")
    assert (gone.status, "is not imported" in gone.err) == (32, True)


def test_what_a_record_says_of_a_file_outside_is_unimported_by_that_name(synced, kb, any_engine):
    clause = {"text": "p(1).", "key": "a", "name": "p/1", "kind": "clause", "order": 1, "file": "../../../etc/passwd"}
    entity = {"id": "clause:00000000000000aa", "type": "clause", "attributes": clause}
    write(synced, {"changeset.json": json.dumps({"entities": [entity]})})
    assert kb("apply", "changeset.json").status == 0
    assert kb("prolog", "-g", ":unimport ../../../etc/passwd").out.startswith(
        "1 clause of ../../../etc/passwd removed."
    )


def test_an_entity_of_the_type_of_clauses_with_another_id_is_refused_with_the_form_of_the_id(synced, kb):
    entity = {"id": "mine", "type": "clause", "attributes": {"text": "p(1)."}}
    write(synced, {"changeset.json": json.dumps({"entities": [entity]})})
    ran = kb("apply", "changeset.json")
    assert "'mine' is no id of an entity of KB's own type 'clause'" in ran.err
    assert "`clause:` and 16 hexadecimal digits" in ran.err


@pytest.mark.sliced
def test_a_file_of_a_run_is_in_no_record(synced, kb, engine):
    write(synced, {"wine.pl": WINE, "bad.pl": "p(1).\n\np(.\n"})
    kb("prolog", "-g", ":assert wine(rose).")
    ran = kb("prolog", "-f", "wine.pl", "-g", "likes(ann, X)", "-g", ":assert wine(sweet).", "-g", "wine(X)")
    assert ran.status == 0, ran.err
    assert "X = red ;\nX = white ;\nX = rose.\n" in ran.out
    assert ran.out.endswith("X = red ;\nX = white ;\nX = rose ;\nX = sweet.\n")
    assert kb("prolog", "-g", "wine(X)").out == "X = rose ;\nX = sweet.\n"
    bad = kb("prolog", "-f", "bad.pl", "-g", "p(X)")
    assert (bad.status, bad.out) == (32, "")
    assert bad.err.splitlines()[0] == "error: 1 clause cannot be used; no goal was run."
    assert bad.err.splitlines()[1].startswith("  bad.pl:3: Syntax error: ")
    assert kb("prolog", "-f", "-", "-g", "q(X)", stdin="q(7).").out == "X = 7.\n"


@pytest.mark.sliced
def test_standard_input_is_goals_and_statements(synced, kb, engine):
    ran = kb("prolog", stdin=f"% first\n:assert {WINE.replace(chr(10), ' ')}\nlikes(ann,\n  X).\n?- wine(X). wine(red)")
    assert ran.status == 0, ran.err
    assert ran.out.endswith("X = red ;\nX = white.\nX = red ;\nX = white.\ntrue.\n")


@pytest.mark.parametrize(
    ("given", "out"),
    [
        ("X = 1.\nhalt.\nX = 2.\n", "X = 1.\n"),
        ("X = 1. halt. X = 2.\n", "X = 1.\n"),
        ("X = 1.\nhalt", "X = 1.\n"),
        ("halt.\n", ""),
        ("  halt. % leave\n", ""),
        ("X = halt.\n", "X = halt.\n"),
    ],
)
def test_halt_ends_standard_input_as_its_end_does(synced, kb, any_engine, given, out):
    ran = kb("prolog", stdin=given)
    assert (ran.status, ran.out, ran.err) == (0, out, "")


def test_halt_ends_the_goals_of_options_and_keeps_the_status_of_those_before(synced, kb, any_engine):
    ran = kb("prolog", "-g", "fail", "-g", "halt", "-g", "X = 1")
    assert (ran.status, ran.out, ran.err) == (1, "false.\n", "")
    assert [one["goal"] for one in kb("prolog", "--json", stdin="X = 1.\nhalt.\n").json["answers"]] == ["X = 1."]


def test_an_error_ends_standard_input_with_its_status(synced, kb, any_engine):
    for wrong in ("shell(ls).", "foo bar.", ":nope", "X is foo + 1."):
        ran = kb("prolog", stdin=f"X = 1.\n{wrong}\nX = 2.\nhalt.\n")
        assert (ran.status in {2, 32}, ran.out) == (True, "X = 1.\n"), wrong


def test_a_predicate_that_is_declared_is_listed_and_marked(synced, kb, any_engine):
    words = ("prolog", "-g", ":assert :- dynamic d/1, p/1. p(1).", "-g", ":symbols")
    assert kb(*words).out.splitlines()[-2:] == ["d/1  % declared, no clause", "p/1"]
    [answer] = kb("prolog", "-g", ":symbols", "--json").json["answers"]
    assert answer == {"statement": ":symbols", "predicates": ["d/1", "p/1"], "declared": ["d/1"]}


def test_a_clause_whose_record_has_any_key_is_retracted(synced, kb, any_engine):
    clause = {"text": "h(3).", "key": "00", "kind": "clause", "name": "h/1", "order": 1}
    entity = {"id": "clause:0000000000000002", "type": "clause", "attributes": clause}
    write(synced, {"changeset.json": json.dumps({"entities": [entity]})})
    assert kb("apply", "changeset.json").status == 0
    assert kb("prolog", "-g", ":retract h(3).").status == 0
    assert kb("prolog", "-g", "h(X)").status == 32


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
def test_libraries_are_loaded_by_option_and_by_directive(synced, kb, engine):
    goal = "list_to_assoc([a-1], A), get_assoc(a, A, X)"
    refused = kb("prolog", "-g", goal)
    assert refused.status == 32
    assert "`list_to_assoc/2` needs library(assoc), which is not loaded." in refused.err
    assert "X = 1" in kb("prolog", "-l", "assoc", "-g", goal).out
    ran = kb("prolog", "--kb-libraries", "process,assoc", "-g", "true")
    assert kb("prolog", "-l", "dif,lists", "-g", "true").err == ""
    assert ran.err.startswith("warning: The library 'process' cannot be loaded; these can be: assoc, ")
    kb("prolog", "-g", ":assert :- use_module(library(assoc)).")
    assert "X = 1" in kb("prolog", "-g", goal).out


WRONG = {
    ("-g", "lieks(ann, X)"): (32, "Unknown predicate lieks/2.", "Did you mean 'likes/2'?"),
    ("-g", "foo(X) bar"): (32, "Syntax error: Operator expected.", ""),
    ("-g", "a. b."): (32, "Syntax error: one query is expected, and there are several.", ""),
    ("-g", ""): (32, "Syntax error: a query is expected, and there is none.", ""),
    ("-g", "assertz(p(1))"): (32, "`assertz/1` is refused in a goal", "`:assert CLAUSE.` adds a clause"),
    ("-g", "shell('ls')"): (32, "`shell/1` is refused", ""),
    ("-g", ":- dynamic foo/1"): (32, "Unknown predicate (:-)/1.", "`:assert :- dynamic name/1.`"),
    ("-g", ":asert p(1)."): (2, "There is no statement ':asert'.", "Did you mean ':assert'?"),
    ("-g", ":assert"): (2, "`:assert` needs CLAUSE. after its name.", "`:assert CLAUSE.`"),
    ("-g", ":files now"): (2, "`:files` takes nothing after its name.", "`:files` alone"),
    ("-g", ":import docs"): (32, "is a folder.", "Name a file in it."),
    ("-g", ":import nothing.pl"): (32, "There is no file ", ""),
    ("-g", ":import /etc/passwd"): (32, "is outside of the folders whose files may be read.", "--kb-roots"),
    ("-g", "true", "--at", "99"): (2, "There is no record 99 yet.", "The head is at seq 2."),
    ("-g", ":assert p(1).", "--at", "1"): (2, "as of seq 1, which cannot be changed", "Leave out --at."),
    ("-g", "true", "--limit", "0"): (2, "--limit must be from 1 to ", ""),
    ("-g", "true", "--mode", "fast"): (2, "'fast' is none of engine, standard.", ""),
    ("-f", "none.pl", "-g", "true"): (2, "none.pl", ""),
    ("-f", "-"): (2, "-f - reads standard input", "Give the goals with -g."),
    ("likes(ann, X)",): (2, "kb prolog has no command 'likes(ann, X)'. Give a goal with -g", ""),
    (): (2, "Standard input has no goal.", "Give one with -g"),
}


@pytest.mark.sliced(6)
@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_wrong_input_is_refused_with_what_to_do(synced, kb, any_engine, words):
    kb("prolog", "-g", ":assert likes(ann, wine).")
    status, message, hint = WRONG[words]
    ran = kb("prolog", *words)
    assert (ran.status, ran.out) == (status, "")
    assert message in ran.err
    assert hint in ran.err.partition("hint:")[2]
    assert "Traceback" not in ran.err


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


@pytest.mark.sliced
def test_without_an_engine_what_needs_none_still_works(synced, kb, any_engine, user, tmp_path):
    kb("prolog", "-g", ":assert p(1).")
    user.setenv("KB_LOGIC_ENGINE", "wasm")
    user.setenv("XDG_DATA_HOME", str(tmp_path / "nothing"))
    ran = kb("prolog", "-g", "p(X)")
    assert ran.status == 31
    assert ran.err.splitlines()[0] == "error: There is no Prolog engine on this machine."
    assert ran.err.splitlines()[1].startswith("  wasm: ")
    assert "kb prolog install" in ran.err
    assert kb("prolog", "-g", ":snapshot").out == "p(1).\n"
    assert kb("prolog", "-g", ":symbols").out == "p/1\n"
    assert kb("prolog", "-g", ":reset").status == 0
    assert kb("query", "req").status == 0
    shown = kb("prolog", "engines")
    assert (shown.status, "missing   wasm: " in shown.out) == (31, True)
    user.setenv("KB_LOGIC_ENGINE", "fast")
    assert kb("prolog", "-g", "true").status == 63


@pytest.mark.sliced
def test_the_engines_of_the_machine_are_listed(synced, kb, engine):
    name = engine["KB_LOGIC_ENGINE"]
    ran = kb("prolog", "engines")
    assert ran.status == 0
    assert re.search(rf"^used      {name}: SWI-Prolog \d+\.\d+\.\d+, run by /", ran.out, re.MULTILINE)
    found = kb("prolog", "engines", "--json").json
    assert found["used"] == name
    assert [one["name"] for one in found["engines"]] == ["native", "wasm"]


def _npm(folder, archive):
    """Make a program `npm` that packs a file, or fails as without a connection."""
    folder.mkdir()
    script = folder / "npm"
    works = f'#!/bin/sh\nwhile [ "$1" != --pack-destination ]; do shift; done\ncp {archive} "$2/p.tgz"\n'
    script.write_text(works if archive else "#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\nexit 1\n")
    script.chmod(0o755)


def test_an_install_without_a_connection_says_what_is_missing(synced, kb, user, tmp_path):
    _npm(tmp_path / "bin", None)
    user.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    user.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    ran = kb("prolog", "install")
    assert ran.status == 31
    assert "error: npm could not fetch swipl-wasm@" in ran.err
    assert "npm says: npm error code ENOTFOUND" in ran.err
    assert "`kb prolog install` again" in ran.err
    assert not [*(tmp_path / "data").rglob("*.wasm")]


def test_a_package_with_another_digest_is_refused(synced, kb, user, tmp_path):
    archive = tmp_path / "other.tgz"
    with tarfile.open(archive, "w:gz") as made:
        made.addfile(tarfile.TarInfo("package/package.json"), io.BytesIO())
    _npm(tmp_path / "bin", archive)
    user.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    user.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    ran = kb("prolog", "install")
    assert ran.status == 31
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    assert f"its SHA-512 is {digest}, not " in ran.err
    assert "Nothing was installed." in ran.err
    assert not [*(tmp_path / "data").rglob("package.json")]


@pytest.mark.sliced
def test_a_package_that_is_there_is_not_fetched_again(synced, kb, user):
    for name, value in engine_variables("wasm").items():
        user.setenv(name, value)
    ran = kb("prolog", "install")
    assert (ran.status, "was there already, in" in ran.out) == (0, True)
    assert kb("prolog", "install", "--json").json["status"] == "present"


def at_prompt(cwd, state, engine, *words):
    return Terminal(cwd, state, "?- ", "prolog", *words, env=engine)


def interrupt(at, until=""):
    """Interrupt what runs, and see that the prompt answers; return what was shown."""
    return at.interrupt(until) + at.type("X is 40 + 2.\n", until="X = 42.\r\n?- ")


@pytest.mark.sliced
def test_the_prompt_shows_one_solution_after_the_other(synced, tmp_path, engine):
    at = at_prompt(synced, tmp_path / "state", engine)
    at.type("member(X, [1, 2, 3]).\n", until="X = 1 ")
    at.type(";", until=";\nX = 2 ".replace("\n", "\r\n"))
    assert at.type(";") == ";\nX = 3.\n"
    at.type("member(X, [1, 2, 3]).\n", until="X = 1 ")
    assert at.type("\n") == ".\n"
    at.type("( X = 1 ; fail ).\n", until="X = 1 ")
    at.type("h", until="any other key")
    assert "false.\n" in at.type(";")
    assert at.leave("halt.\n") == 0


@pytest.mark.sliced
def test_a_goal_runs_over_several_lines_until_its_full_stop(synced, tmp_path, engine):
    at = at_prompt(synced, tmp_path / "state", engine)
    at.type("member(X,\n", until="|    ")
    at.type("[only])\n", until="|    ")
    assert "X = only.\n" in at.type(".\n")
    at.type(":assert p(1) :-\n", until="|    ")
    assert "1 clause added. Branch main is at seq 2.\n" in at.type("true.\n")
    assert "X = 1.\n" in at.type("p(X).\n")
    at.type("/* a comment.\n", until="|    ")
    assert "true.\n" in at.type("*/ true.\n")
    assert "error: Syntax error: Operator expected.\n" in at.type("foo bar.\n")
    assert "error: Unknown predicate foo/1.\n" in at.type("foo(1).\n")
    assert ":snapshot" in at.type(":help\n")
    assert at.leave() == 0
    kept = tmp_path / "state" / "kb" / "prolog-history"
    assert ":assert p(1) :-" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


@pytest.mark.sliced
def test_ctrl_c_ends_the_goal_and_not_the_prompt(synced, tmp_path, engine):
    at = at_prompt(synced, tmp_path / "state", engine)
    at.type(":assert p(1).\n")
    at.type("p(X), foo", until="foo")
    interrupt(at)
    at.type("repeat, fail.\n", until="fail.\r\n")
    time.sleep(0.3)
    interrupt(at, until="Interrupted.\r\n")
    assert "X = 1.\n" in at.type("p(X).\n")
    at.type("repeat.\n", until="true ")
    interrupt(at, until="Interrupted.\r\n")
    assert "X = 1.\n" in at.type("p(X).\n")
    assert at.leave() == 0


@pytest.mark.sliced
def test_the_prompt_completes_predicates_and_statements(synced, tmp_path, engine):
    at = at_prompt(synced, tmp_path / "state", engine)
    at.type(":assert my_own_predicate(1).\n")
    at.type("my_o\t", until="my_own_predicate")
    assert "X = 1.\n" in at.type("(X).\n")
    at.type(":snap\t", until=":snapshot")
    assert "my_own_predicate(1).\n" in at.type("\n")
    assert at.leave() == 0


@pytest.mark.sliced
def test_the_prompt_follows_the_branch_that_is_checked_out(synced, tmp_path, engine, kb):
    kb("prolog", "-g", ":assert p(1).")
    at = at_prompt(synced, tmp_path / "state", engine)
    at.type("p(X) ; X = 2.\n", until="X = 1 ")
    git(synced, "switch", "--quiet", "--create", "other")
    shown = at.type(";")
    assert "error: The query was lost: the branch is another one now.\nhint: Ask it again.\n" in shown
    assert "other has no store yet" in shown
    assert "other has no store yet" not in at.type("p(X).\n")
    assert "Branch other is at seq 3." in at.type(":assert p(3).\n")
    assert at.leave() == 0
    assert kb("prolog", "-g", "p(X)", "--branch", "main").out == "X = 1.\n"
    assert kb("prolog", "-g", "p(X)").out == "X = 1 ;\nX = 3.\n"


@pytest.mark.sliced
def test_no_engine_outlives_the_prompt_that_is_killed(synced, tmp_path, engine):
    at = at_prompt(synced, tmp_path / "state", engine)
    at.type("repeat, fail.\n", until="fail.\r\n")
    children = _children(at.child, 2)
    os.kill(at.child, signal.SIGKILL)
    assert at.leave("") == -signal.SIGKILL
    end = time.monotonic() + 20
    while alive := [one for one in children if Path(f"/proc/{one}/stat").exists()]:
        assert time.monotonic() < end, alive
        time.sleep(0.05)


def _children(pid, least):
    """Return the children of a process once it has so many."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if len(found) >= least:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{pid} has no {least} children")


@pytest.mark.sliced
def test_the_prompt_follows_what_others_write(synced, tmp_path, engine, kb):
    at = at_prompt(synced, tmp_path / "state", engine, "-f", "/dev/null")
    assert "error: Unknown predicate q/1." in at.type("q(X).\n")
    assert kb("prolog", "-g", ":assert q(5).").status == 0
    assert "X = 5.\n" in at.type("q(X).\n")
    assert at.leave() == 0


def test_of_an_import_with_very_many_faults_the_first_ones_are_described_and_all_are_counted(synced, kb, any_engine):
    write(synced, {"many.pl": "a b.\n" * 1000 + "c.\n"})
    ran = kb("prolog", "-g", ":import many.pl", "--json")
    assert ran.status == 32
    error = ran.json["error"]
    assert error["message"] == "1000 clauses of many.pl not added."
    assert (len(error["details"]), error["details"][-1]["path"]) == (200, "many.pl:200")
    assert kb("prolog", "-g", ":snapshot").out == "c.\n"
