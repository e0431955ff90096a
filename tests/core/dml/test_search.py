"""Backtracking, cuts and control of programs with special predicates in them, and the memory that the model sees."""

from __future__ import annotations

import pytest

from tests.support.dml.runs import body, ran
from tests.support.dml.scripts import GIVES_UP, Script, done

Engine = dict[str, str]


def test_the_next_request_has_only_what_is_on_the_path_to_its_goal(engine: Engine) -> None:
    code = body("""system("s"),
        ( user("first"), task("a") ; user("second"), task("b") ),
        findall(X, ( member(X, [1, 2]), user("in findall {X}") ), _),
        forall(member(Y, [1]), user("in forall {Y}")),
        \\+ \\+ user("in negation"),
        catch(( user("before the error"), throw(x) ), x, user("in the recovery")),
        ( user("condition") -> user("then") ; user("else") ),
        ( fail -> true ; user("other branch") ),
        once(( user("once") ; user("never") )),
        ignore(( user("ignored"), fail )),
        aggregate_all(count, user("counted"), _),
        call(( user("called") )),
        task("c")""")
    model = Script(GIVES_UP, done(), done())
    assert ran(code, engine, model=model).outcome == "success"
    assert model.conversation(0) == ["system: s", "user: first", "user: a"]
    assert model.conversation(1) == ["system: s", "user: second", "user: b"]
    assert model.conversation(2) == [
        "system: s", "user: second", "user: b", "assistant: ", "tool: ok", "user: in the recovery", "user: condition",
        "user: then", "user: other branch", "user: once", "user: called", "user: c",
    ]  # fmt: skip


def test_all_solutions_of_a_body_are_found_and_a_task_is_asked_once(engine: Engine) -> None:
    code = """
    agent_main :- task("t", X), member(Y, [1, 2, 3]), log("{X}{Y}"), Y >= 3, log(end).
    """
    model = Script(done(X="a"))
    assert ran(code, engine, model=model).logs == ["a1", "a2", "a3", "end"]
    model = Script(done(X=1))
    found = ran('agent_main :- task("t", X), fail.\nagent_main :- log("other").', engine, model=model)
    assert (found.logs, model.left) == (["other"], 0)


def test_a_cut_is_local_to_its_clause(engine: Engine) -> None:
    code = """
    agent_main :- p(X), q(Y), log("{X} {Y}"), Y == 2, !, log(done).
    agent_main :- log(never).
    p(1) :- log("p1"), !.
    p(2) :- log("p2").
    q(1).
    q(2).
    """
    assert ran(code, engine).logs == ["p1", "1 1", "1 2", "done"]


def test_control_goals_work_with_special_predicates_inside(engine: Engine) -> None:
    code = body("""once(member(X, [1, 2])), log("{X}"), ignore(( log(i), fail )), call(( log(a), log(b) )),
        not(( log(n), fail )), ( log(t) *-> log(u) ; log(v) ), forall(member(A, [1, 2]), log("f{A}")),
        findall(B, ( member(B, [1, 2]), log("g{B}") ), Bs), log("{Bs}"),
        aggregate_all(count, ( member(C, [x, y]), log("h{C}") ), N), log("{N}"),
        aggregate_all(bag(D), ( member(D, [p, q]), log(D) ), Ds), log("{Ds}"),
        maplist([E, F]>>( log("m{E}"), F = E ), [1, 2], Fs), log("{Fs}"), maplist(log, [x, y]),
        foldl([G, S0, S]>>( log("s{G}"), S is S0 + G ), [1, 2], 0, Sum), log("{Sum}"),
        freeze(V, log("woken {V}")), V = 1, call_cleanup(log(w), log(c)), call(log, z),
        catch(( log(try), throw(oops) ), Ball, log("caught {Ball}"))""")
    assert ran(code, engine).logs == (
        ["1", "i", "a", "b", "n", "t", "u", "f1", "f2", "g1", "g2", "[1,2]", "hx", "hy", "2", "p",
         "q", '["p","q"]', "m1", "m2", "[1,2]", "x", "y", "s1", "s2", "3", "woken 1", "w", "c", "z", "try",
         "caught oops"]
    )  # fmt: skip


CLEANUPS: dict[str, list[str]] = {
    "catch(setup_call_cleanup(true, ( X = 1, throw(a) ), ( var(X), log(c) )), E, log(E))": ["c", "a"],
    "catch(setup_call_cleanup(true, throw(a), throw(b)), E, log(E))": ["a"],
    "catch(setup_call_cleanup(true, throw(a), throw(error(type_error(x, y), _))), E, ( E = error(F, _), log(F) ))": [
        "type_error(x,y)"
    ],
    "catch(setup_call_cleanup(true, throw(error(type_error(x, y), _)), throw(a)), E, ( E = error(F, _), log(F) ))": [
        "type_error(x,y)"
    ],
    "catch(setup_call_cleanup(true, log(g), throw(b)), E, log(E))": ["g", "b"],
    "catch(setup_call_cleanup(throw(s), log(g), log(c)), E, log(E))": ["s"],
    "catch(setup_call_cleanup(true, throw(a), fail), E, log(E))": ["a"],
    "catch(( setup_call_cleanup(true, member(_, [1, 2]), log(c)), throw(a) ), E, log(E))": ["c", "a"],
    "forall(setup_call_cleanup(log(s), member(X, [1, 2]), log(c)), log(X))": ["s", "1", "c", "2"],
    "setup_call_cleanup(log(s), member(X, [1, 2]), log(c)), log(X), !, log(on)": ["s", "1", "c", "on"],
    "catch(( call_cleanup(( member(X, [1, 2]), ( X > 1 -> throw(a) ; true ) ), log(c)), log(X), fail ), E, log(E))": [
        *("1", "c", "a")
    ],
}


@pytest.mark.parametrize("goal", CLEANUPS)
def test_a_cleanup_runs_when_that_of_the_system_does_and_its_errors_are_as_urgent(engine: Engine, goal: str) -> None:
    found = ran(body(goal), engine)
    assert (found.logs, found.outcome) == (CLEANUPS[goal], "success")


def test_a_program_succeeds_fails_or_ends_with_an_error(engine: Engine) -> None:
    assert ran(body("true"), engine).outcome == "success"
    assert ran(body("fail"), engine).outcome == "failure"
    found = ran(body("throw(oops(_, 'A b'))"), engine)
    assert found.error.content == "The program ended with an error: Uncaught exception: `oops(_A,'A b')`."
    found = ran(body("missing(1)"), engine)
    assert found.error.content == "The program ended with an error: Unknown predicate missing/1."


def test_contexts_nest_and_an_empty_stack_is_a_warning(engine: Engine) -> None:
    code = body("""system(s), user(u), push_context, user(v), task(a), push_context, system(t), task(b), pop_context,
        task(c), pop_context, task(d), pop_context, log(on)""")
    model = Script(done(), done(), done(), done())
    found = ran(code, engine, model=model)
    assert (found.outcome, found.logs) == ("success", ["on"])
    assert found.notes == [("warning", "pop_context: no context was pushed")]
    assert model.conversation(0) == ["system: s", "user: v", "user: a"]
    assert model.conversation(1) == ["system: s", "system: t", "user: b"]
    assert model.conversation(2)[:3] == ["system: s", "user: v", "user: a"]
    assert model.conversation(3) == ["system: s", "user: u", "user: d"]
    code = body("user(u), ( push_context, fail ; true ), pop_context, task(a)")
    model = Script(done())
    assert ran(code, engine, model=model).notes == [("warning", "pop_context: no context was pushed")]
    assert model.conversation(0) == ["user: u", "user: a"]


def test_clauses_and_variables_of_a_run_change_and_are_gone_after_it(engine: Engine) -> None:
    code = """
    :- dynamic seen/1.
    agent_main :-
        \\+ seen(_), assertz(seen(1)), asserta(seen(0)), assertz((twice(X, Y) :- seen(X), Y is X * 2, log("in {Y}"))),
        findall(X, seen(X), Xs), log("{Xs}"), twice(1, T), log("{T}"),
        retract(seen(0)), retractall(seen(_)), \\+ seen(_), retract((twice(_, _) :- _)),
        nb_setval(k, v), b_setval(b, w), nb_getval(k, V), b_getval(b, W), log("{V}{W}"),
        ( nb_setval(n, 1), fail ; nb_getval(n, N) ), log("{N}"),
        catch(nb_getval(kb_memory, _), error(existence_error(A, B), _), log("{A} {B}")),
        nb_setval(kb_memory, 99), nb_setval(kb_answered, x), user(safe), ( seen(9) ; log(end) ).
    """
    for _ in range(2):
        found = ran(code, engine)
        assert found.outcome == "success", found.events
        assert found.logs == ["[0,1]", "in {Y}", "2", "vw", "1", "variable kb_memory", "end"]
        assert found.messages == ["user: safe"]


def test_clauses_that_may_not_be_added_are_refused(engine: Engine) -> None:
    tries = {
        "assertz(tool(x(1)))": "tool_added",
        "assertz((tool(x(1), d) :- true))": "tool_added",
        "assertz((foo :- shell(ls)))": "not_allowed",
        "assertz(append(a, b, c))": "head",
        "assertz(log(x))": "program_head",
        "assertz(kb_program:own_tool(x, 1))": "module",
        "retract(append(_, _, _))": "clause",
        "dynamic(exec/2)": "program_head",
        "assertz(entity(a, b, c, d))": "program_head",
        "assertz('$kb_filled'(a, b))": "system_name",
        "assertz(string(a, b, c, d))": "program_head",
    }
    goals = ", ".join(
        f'catch(( {goal}, log("not refused") ), error(kb_refused(_, W{at}), _), log(W{at}))'
        for at, goal in enumerate(tries)
    )
    assert ran(body(goals), engine).logs == [*tries.values()]
