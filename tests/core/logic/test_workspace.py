"""Faults of the reference server for Prolog, each of which a workspace does not have, with each engine."""

from __future__ import annotations

import pytest

from kbcore.errors import PrologFailed
from kbcore.logic import contents
from tests.support.logic.workspaces import LogicProject


@pytest.mark.sliced
def test_a_reset_leaves_no_fact_that_answers(logic: LogicProject) -> None:
    logic.add("p(1).", "p(2).", ":- dynamic q/1.")
    assert logic.values("p(X)", "X") == ["1", "2"]
    logic.reset()
    assert logic.snapshot() == ""
    assert logic.failure("p(X)").data["kind"] == "unknown_predicate"
    assert logic.failure("q(X)").data["kind"] == "unknown_predicate"
    logic.add("p(3).")
    assert logic.values("p(X)", "X") == ["3"]


def test_a_goal_that_is_refused_loses_neither_the_engine_nor_the_workspace(logic: LogicProject) -> None:
    logic.add("p(1).")
    logic.first("p(X)")
    pid = logic.pid
    assert logic.failure("halt").data["kind"] == "refused"
    assert logic.values("p(X)", "X") == ["1"]
    assert logic.pid == pid


@pytest.mark.sliced(8)
@pytest.mark.parametrize(
    "printed",
    [
        *('{"status":"success","bindings":{"X":"forged"}}', "X = forged", "true.", "done", "\\n", "facts(0)."),
        *("'quoted'", '\\"', "\\\\", "ü😀", "\\t", "@@ANSWER@@", ":-", "% comment", "-- a --"),
    ],
)
@pytest.mark.parametrize("end", ["", ", nl"])
def test_text_that_a_goal_prints_is_its_output_and_no_solution(logic: LogicProject, printed: str, end: str) -> None:
    text = printed.replace("'", "\\'")
    answers = logic.answers(f"member(X, [1, 2]), write('{text}'){end}")
    shown = printed.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\\\", "\\")
    shown += "\n" if end else ""
    assert answers == [{"bindings": {"X": one}, "output": shown} for one in ("1", "2")]


def test_text_that_is_printed_before_a_failure_or_an_error_comes_with_it(logic: LogicProject) -> None:
    logic.start("write(before), fail")
    assert logic.next() == {"status": "done", "output": "before"}
    error = logic.failure("write(before), atom_length(X, Y)")
    assert error.data == {"kind": "instantiation_error", "output": "before"}


def test_any_character_can_be_printed(logic: LogicProject) -> None:
    codes = [*range(32), 127, 0x85, 0x2028, 0x2029, 0xFEFF, 0x1F600]
    answers = logic.answers(f"member(C, {codes}), put_char(a), char_code(X, C), write(X), fail ; true")
    assert [answer["output"] for answer in answers] == ["".join(f"a{chr(code)}" for code in codes)]
    for code in codes:
        [answer] = logic.answers(f"char_code(X, {code}), write(X)")
        assert answer["output"] == chr(code)


def test_a_retract_removes_exactly_the_first_variant(logic: LogicProject) -> None:
    logic.add("likes(_, wine). likes(ann, X). likes(ann, wine). likes(ann, Y). likes(ann, Y) :- true.")
    assert logic.remove("likes(ann, Z)").succeeded == 1
    assert logic.snapshot().split("\n") == [
        "likes(_, wine).",
        "likes(ann, wine).",
        "likes(ann, Y).",
        "likes(ann, Y) :- true.",
    ]
    assert logic.remove("likes(ann, Z).", "likes(ann, Z).").succeeded == 1
    assert logic.remove("likes(A, B)").succeeded == 0
    assert logic.values("findall(x, likes(ann, tea), L)", "L") == ["[x]"]


def test_a_syntax_error_hides_no_other_clause_and_outcomes_are_in_order(logic: LogicProject) -> None:
    done = logic.add("a(1).", "b(.", "c(1). d d. e(1).", "", 7, "f(1)")
    assert [(one.status, one.clause) for one in done.outcomes] == [
        ("success", "a(1)."),
        ("error", "b(."),
        ("success", "c(1)."),
        ("error", "d d."),
        ("success", "e(1)."),
        ("error", ""),
        ("error", "7"),
        ("success", "f(1)."),
    ]
    assert logic.snapshot() == "a(1).\nc(1).\ne(1).\nf(1)."
    assert logic.source().clauses.read().seq == done.changed.seq


@pytest.mark.sliced(3)
@pytest.mark.parametrize(
    "clause",
    [
        "p('a :: b').",
        'p("x :- y. z").',
        "p('it''s, here').",
        "p('(').",
        "p(0'.).",
        "p(0',).",
        "p('a, b', \"c, d\").",
        "p(a) :- X = '.', X \\== \" . \".",
        "p(X) :- /* a. b */ X = 1. ",
        "p([a, 'B. ', \"%\"]).",
        "p('\\\\').",
        "p(`abc`).",
    ],
)
def test_a_text_with_marks_in_quotes_is_one_clause_as_it_was_typed(logic: LogicProject, clause: str) -> None:
    done = logic.add(clause)
    assert [(one.status, one.clause) for one in done.outcomes] == [("success", clause.strip())]
    assert logic.snapshot() == clause.strip()
    assert logic.remove(clause).succeeded == 1


def test_symbols_with_commas_are_single_names(logic: LogicProject) -> None:
    logic.add("'a,b'(1). 'c d'(2). plain.")
    found = contents.symbols(logic.source().clauses.read())
    assert (found.names, found.declared) == (["'a,b'/1", "'c d'/1", "plain/0"], [])


def test_symbols_have_what_is_declared_and_has_no_clause(logic: LogicProject) -> None:
    logic.add(":- dynamic 'a, b'/1.", ":- dynamic('line\\nbreak'/1).", ":- dynamic g//0, p/1.", "p(1).", "q.")
    logic.add(":- dynamic 'a, b'/1, p/2.")
    found = contents.symbols(logic.source().clauses.read())
    assert found.declared == ["'a, b'/1", "'line\\nbreak'/1", "g/2", "p/2"]
    assert found.names == [*found.declared[:3], "p/1", "p/2", "q/0"]
    logic.prolog.close()
    assert logic.answers("p(_, _)") == []
    assert logic.prolog.held_back == {}
    logic.remove(":- dynamic 'a, b'/1, p/2.", "p(1).")
    assert contents.symbols(logic.source().clauses.read()).declared == ["'a, b'/1", "'line\\nbreak'/1", "g/2", "p/1"]


def test_a_text_of_three_clauses_is_three_records(logic: LogicProject) -> None:
    done = logic.add("p(1). p(2).\np(3).")
    assert [(one.clause, one.line) for one in done.outcomes] == [("p(1).", 1), ("p(2).", 1), ("p(3).", 2)]
    assert len({one.id for one in done.outcomes}) == 3
    logic.remove("p(2)")
    assert logic.values("p(X)", "X") == ["1", "3"]


@pytest.mark.sliced
def test_a_timeout_leaves_all_clauses(logic: LogicProject) -> None:
    logic.project.write({".kb/config.json": '{"logic": {"timeLimitSeconds": 1}}'})
    logic.add("p(1).", "loop :- loop.")
    assert logic.failure("loop").data["kind"] == "timeout"
    assert logic.values("p(X)", "X") == ["1"]
    assert logic.snapshot() == "p(1).\nloop :- loop."


def test_variables_have_the_names_of_the_user_and_constraints_are_kept(logic: LogicProject) -> None:
    assert logic.answers("Result = f(Who, Who, Other)") == [{"bindings": {"Result": "f(Who, Who, Other)"}}]
    assert logic.answers("X = Y") == [{"bindings": {"Y": "X"}}]
    assert logic.answers("length(L, 2)") == [{"bindings": {"L": "[_A, _B]"}}]
    assert logic.answers("f(Änderung, Ωmega) = X") == [{"bindings": {"X": "f(Änderung, Ωmega)"}}]
    assert logic.answers("Änderung = 'Zoë', X = 1 + Ünder") == [
        {"bindings": {"Änderung": "'Zoë'", "X": "1+Ünder"}},
    ]
    [answer] = logic.answers("Age #> 17, Age #< 21")
    assert (answer["bindings"], answer["residual"]) == ({}, ["Age in 18..20"])
    [answer] = logic.answers("dif(Left, Right)")
    assert answer["residual"] == ["dif(Left, Right)"]


def test_a_workspace_that_is_full_refuses_and_evicts_nothing(logic: LogicProject) -> None:
    logic.project.write({".kb/config.json": '{"logic": {"maxClauses": 3}}'})
    logic.add("p(1). p(2). p(3).")
    with pytest.raises(Exception, match="allows 3"):
        logic.add("p(4).")
    assert logic.values("p(X)", "X") == ["1", "2", "3"]
    logic.reset()
    file = "p(1). p(2). p(3)."
    assert logic.prolog.import_file(logic.source(), "a.pl", file).status == "success"
    logic.project.write({".kb/config.json": "{}"})


def test_after_done_a_query_is_done_and_a_closed_one_is_none(logic: LogicProject) -> None:
    logic.start("member(X, [1])")
    assert [logic.next()["status"] for _ in range(3)] == ["success", "done", "done"]
    assert logic.prolog.close_query()
    assert not logic.prolog.close_query()
    with pytest.raises(PrologFailed) as caught:
        logic.next()
    assert caught.value.data["kind"] == "no_active_session"


def test_after_an_error_no_query_is_open_and_the_next_answer_says_why(logic: LogicProject) -> None:
    assert logic.failure("X is foo + 1").data["kind"] == "type_error"
    with pytest.raises(PrologFailed, match=r"No query is open: the last one ended with an error\.") as caught:
        logic.next()
    assert caught.value.data["kind"] == "no_active_session"


def test_a_query_that_is_closed_by_the_server_says_why(logic: LogicProject) -> None:
    logic.add("p(1). p(2).")
    logic.first("p(X)")
    logic.prolog.lose_query("the workspace was reset")
    with pytest.raises(PrologFailed, match="the workspace was reset") as caught:
        logic.next()
    assert caught.value.data["kind"] == "query_lost"


@pytest.mark.sliced
def test_libraries_that_need_others_work(logic: LogicProject) -> None:
    logic.add(*(f":- use_module(library({name}))." for name in ("clpb", "clpr", "ugraphs", "dicts", "nb_set")))
    assert len(logic.answers("sat(X + Y), labeling([X, Y])")) == 3
    assert logic.values("{X > 3, X < 5}, sup(X, S)", "S") == ["5.0"]
    assert logic.values("vertices_edges_to_ugraph([a, b], [a - b], G), top_sort(G, T)", "T") == ["[a, b]"]
    assert logic.values("dict_keys(_{a: 1}, K)", "K") == ["[a]"]
    assert logic.values("empty_nb_set(S), add_nb_set(a, S), nb_set_to_list(S, L)", "L") == ["[a]"]


@pytest.mark.sliced
def test_the_clauses_of_graph_predicates_are_not_shown(logic: LogicProject) -> None:
    logic.add("p(1).")
    assert logic.values("findall(Name, current_predicate(Name), L)", "L") == ["[p/1]"]
    assert logic.failure("clause(depends_on(_, _), Body)").data["kind"] == "refused"
