"""The libraries that a program may load, each used."""

from __future__ import annotations

from tests.support.dml.runs import body, ran

Engine = dict[str, str]


def test_each_library_of_the_language_is_there(engine: Engine) -> None:
    code = """
    :- use_module(library(lists)).
    :- use_module(library(apply), [maplist/3, foldl/4]).
    :- use_module(library(aggregate)).
    :- use_module(library(clpfd)).
    :- use_module(library(clpr)).
    :- use_module(library(strings)).
    :- use_module(library(readutil)).
    :- use_module(library(quasi_quotations)).
    agent_main :-
        append(A, [c], [a, b, c]), sum_list([1, 2], B), log("{A} {B}"),
        maplist([X, Y]>>( Y is X + 1 ), [1, 2], C), foldl([X2, S0, S]>>( S is S0 + X2 ), C, 0, D), log("{C} {D}"),
        aggregate_all(max(E), member(E, [3, 1]), F), aggregate_all(bag(G-H), member(G-H, [a-1]), I), log("{F} {I}"),
        J in 1..9, J * J #= 49, K #> 2, K #< 4, log("{J} {K}"),
        findall(L-M, ( [L, M] ins 1..3, L #< M, label([L, M]) ), N), log("{N}"),
        { 2 * O = 3.0, P = O + 1 }, log("{O} {P}"),
        dedent_lines("  a\\n   b", Q, []), string_lines(Q, R), log("{R}"),
        split_string("a,b", ",", "", T), log("{T}"), log({|string(B)||quoted {B}|}).
    """
    assert ran(code, engine).logs == [
        '["a","b"] 3', "[2,3] 5", '3 ["a-1"]', "7 3", '["1-2","1-3","2-3"]', "1.5 2.5", '["a"," b"]', '["a","b"]',
        "quoted 3",
    ]  # fmt: skip


def test_constraints_hold_over_special_predicates(engine: Engine) -> None:
    code = """
    :- use_module(library(clpfd)).
    agent_main :- X in 1..3, freeze(X, log("bound {X}")), ( X #> 2 ; true ), label([X]), log("{X}"), X =:= 2.
    """
    assert ran(code, engine).logs == ["bound 3", "3", "bound 1", "1", "bound 2", "2"]


def test_a_library_that_is_not_listed_is_refused_and_one_that_is_not_loaded_named(engine: Engine) -> None:
    directives = ":- use_module(library(process)).\n:- use_module('evil.pl').\n:- initialization(x).\n"
    code = f"{directives}agent_main :- limit(1, true)."
    details = ran(code, engine).error.data["details"]
    assert [(one["code"], one["source"]) for one in details] == [
        ("not_listed", "program:1"), ("program_directive", "program:2"), ("program_directive", "program:3"),
        ("library", "program:4"),
    ]  # fmt: skip
    assert details[-1]["hint"] == "Write `:- use_module(library(solution_sequences)).` at the top of the program."
    assert ran(body("true", "a :- b.", "foo.:-"), engine).error.data["details"][0]["code"] == "syntax_error"
