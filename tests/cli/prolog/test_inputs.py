"""``kb prolog``: goals from options, from files and from standard input, and what is refused."""

from __future__ import annotations

import pytest

from tests.support.processes.cli import WINE, write


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
