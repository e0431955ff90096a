"""Texts, answers and errors of goals and clauses are read and shown alike by each engine."""

from __future__ import annotations

import pytest

from kbcore.errors import PrologFailed
from tests.support.logic.workspaces import LogicProject


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("goal", "answer"),
    [
        ("term_to_atom(X, 'a #= b')", "(a#=b)"),
        ("atom_to_term('A #= b', _ #= X, _)", "b"),
        ('term_string(X, "a #= b")', "(a#=b)"),
        ('term_string(X, "a #= b", [])', "(a#=b)"),
        ("term_to_atom(a #= b, X)", "'a#=b'"),
        ("format(atom(X), '~w ~q ~p', [a #= b, a #= b, a #= b])", "'a#=b a#=b a#=b'"),
        ("with_output_to(string(X), (print(a #= b), write(a in b)))", '"a#=ba in b"'),
        ("X = (in - ins)", "(in)-(ins)"),
    ],
)
def test_texts_in_a_goal_have_the_operators_of_the_libraries(logic: LogicProject, goal: str, answer: str) -> None:
    assert logic.values(goal, "X") == [answer]


@pytest.mark.parametrize("text", ["", " ", "% a comment", "/* another */"])
def test_a_query_that_has_no_goal_is_a_syntax_error_that_says_so(logic: LogicProject, text: str) -> None:
    error = logic.failure(text)
    assert (error.data["kind"], error.message) == (
        "syntax_error",
        "Syntax error: a query is expected, and there is none.",
    )


@pytest.mark.sliced
def test_a_library_that_is_loaded_later_brings_its_operators(logic: LogicProject) -> None:
    assert logic.failure("term_to_atom(X, '~ a')").data["kind"] == "syntax_error"
    logic.add(":- use_module(library(clpb)).")
    assert logic.values("term_to_atom(X, '~ a'), X = ~(Y)", "Y") == ["a"]


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("goal", "bindings", "residual"),
    [
        ("X = [a|X]", {"X": "[a|X]"}, []),
        ("X = f(X, Y, Z), Y = g(Y, Z)", {"X": "f(X, Y, Z)", "Y": "g(Y, Z)"}, []),
        ("X = f(X, _), Y = X", {"X": "f(X, _A)", "Y": "X"}, []),
        ("X = f(_Z), _Z = [_Z|W]", {"X": "f(_Z)"}, ["_Z=[_Z|W]"]),
        ("findall(X, X = [X], L)", {"L": "[_A]"}, ["_A=[_A]"]),
        ("A = f(A), dif(X, g(A))", {"A": "f(A)"}, ["dif(X, g(A))"]),
        ("X = [Y, Y], Y = g(h), Z = [X, Z]", {"X": "[g(h), g(h)]", "Y": "g(h)", "Z": "[[g(h), g(h)], Z]"}, []),
    ],
)
def test_a_cyclic_term_contains_the_name_that_it_has(
    logic: LogicProject, goal: str, bindings: dict[str, str], residual: list[str]
) -> None:
    [answer] = logic.answers(goal)
    assert (answer["bindings"], answer.get("residual", [])) == (bindings, residual)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("/* no end", 1),
        ("a.\n\n/* no end\n\n", 3),
        ("a.\np :-\n  q, /* an end */\n  r /* none\n\n.", 4),
        ("p('/*', \"/*\", 0'/) :- % /*\n  /* /* */ q,\n  `/*` = X, /* none /*\n /*", 3),
        ("a. % /*\n% /*\n\n /* none", 4),
    ],
)
def test_a_comment_without_an_end_is_reported_at_the_line_where_it_begins(
    logic: LogicProject, text: str, line: int
) -> None:
    wrong = logic.add(text).outcomes[-1]
    assert (wrong.line, wrong.message) == (line, "Syntax error: End of file in /* ... */ comment.")


@pytest.mark.parametrize(
    ("goal", "output"),
    [
        ("format('~~@')", "~@"),
        ("format('~a~~@~~W', [x])", "x~@~W"),
        ("format('~`~t~3|@')", "~~~@"),
        ("format('~*c@W', [2, 0'x])", "xx@W"),
    ],
)
def test_a_format_that_calls_nothing_is_accepted(logic: LogicProject, goal: str, output: str) -> None:
    assert logic.answers(goal) == [{"bindings": {}, "output": output}]


@pytest.mark.parametrize("text", ["~@", "~~~@", "~~~~~W", "~a~@", "~3@", "~*@", "~:@", "~`@t~W"])
def test_a_format_that_calls_a_goal_is_refused(logic: LogicProject, text: str) -> None:
    assert logic.failure(f"format('{text}', [true, true])").data["kind"] == "refused"


OWN_NAMES = (
    "list_to_assoc([], []). list_to_assoc([X | Xs], [y(X) | Ys]) :- list_to_assoc(Xs, Ys).",
    "all(L) :- list_to_assoc([1, 2], L).",
)
"""Clauses of a predicate that has the name of one of library(assoc), which is not loaded, and a caller."""


@pytest.mark.parametrize("texts", [OWN_NAMES, OWN_NAMES[::-1], [" ".join(OWN_NAMES[::-1])]])
def test_clauses_of_one_request_may_call_each_other_in_any_order(logic: LogicProject, texts: tuple[str, ...]) -> None:
    assert [one.message for one in logic.add(*texts).outcomes] == ["", "", ""]
    assert logic.values("all(L)", "L") == ["[y(1), y(2)]"]
    logic.reset()
    assert logic.prolog.import_file(logic.source(), "a.pl", "\n".join(texts)).errors == ()
    assert logic.values("all(L)", "L") == ["[y(1), y(2)]"]


@pytest.mark.parametrize(
    "definition",
    ["put_assoc(a, b) --> put_assoc(c, d).", ":- dynamic put_assoc/4.", "workspace:put_assoc(1, 2, 3, 4)."],
)
def test_a_grammar_rule_and_a_declaration_define_a_name_as_well(logic: LogicProject, definition: str) -> None:
    assert logic.add("p :- put_assoc(a, b, c, d).", definition).succeeded == 2


def test_a_clause_that_is_refused_defines_nothing_for_the_others_of_its_request(logic: LogicProject) -> None:
    found = logic.add("a :- get_assoc(1, 2, 3).", "get_assoc(1, 2, 3) :- put_assoc(1, 2, 3, 4), halt.", "b.").outcomes
    assert [one.status for one in found] == ["error", "error", "success"]
    assert found[0].message.startswith("`get_assoc/3` needs library(assoc), which is not loaded.")
    assert logic.failure("get_assoc(1, 2, 3)").data["reason"] == "library"


def test_a_library_that_one_text_of_a_request_loads_is_there_for_all(logic: LogicProject) -> None:
    texts = ["p(X) :- list_to_assoc([], X).", "q(~ a).", ":- use_module(library(assoc))."]
    assert [one.status for one in logic.add(*texts, ":- use_module(library(clpb)).").outcomes] == ["success"] * 4
    assert logic.values("p(X)", "X") == ["t"]


@pytest.mark.sliced(3)
@pytest.mark.parametrize(
    ("goal", "hint"),
    [
        ("wines(X)", "Did you mean 'wine/1'?"),
        ("wine(X, Y)", "Did you mean 'wine/1'?"),
        ("entitty(A, B, C, D)", "Did you mean 'entity/4'?"),
        ("edge(A, B)", "Did you mean 'edge/3' or 'edge/4'?"),
        ("appendd(A, B)", "Did you mean 'append/2' or 'append/3'?"),
        ("lenght(A, B)", "Did you mean 'length/2'?"),
        ("memberr(A, B)", "Did you mean 'member/2'?"),
        ("vintage(A)", ""),
        ("person(A, B)", ""),
        ("p(A)", ""),
        ("colour(A, B)", ""),
    ],
)
def test_an_unknown_predicate_is_compared_with_own_ones_before_those_of_the_system(
    logic: LogicProject, goal: str, hint: str
) -> None:
    logic.add("wine(red).")
    failure = logic.failure(goal)
    assert failure.data["kind"] == "unknown_predicate"
    assert failure.hint == (hint or PrologFailed.default_hint)


@pytest.mark.parametrize(
    ("goal", "residual"),
    [
        ("dif(X, workspace:a)", ["dif(X, workspace:a)"]),
        ("dif(X, kb_guard:run(a))", ["dif(X, kb_guard:run(a))"]),
        ("freeze(X, p(workspace:a))", ["freeze(X, p(workspace:a))"]),
        ("freeze(X, workspace:p(a))", ["freeze(X, p(a))"]),
        ("freeze(X, (G, write(workspace:a)))", ["freeze(X, (G, write(workspace:a)))"]),
        ("when(ground(X), maplist(G, [workspace:a]))", ["when(ground(X), maplist(G, [workspace:a]))"]),
        ("freeze(X, findall(Y, (G ; \\+ H), Z))", ["freeze(X, findall(Y, (G;\\+H), Z))"]),
    ],
)
def test_a_constraint_shows_the_data_and_the_goals_of_the_user(
    logic: LogicProject, goal: str, residual: list[str]
) -> None:
    [answer] = logic.answers(goal)
    assert answer["residual"] == residual


def test_a_clause_shows_the_data_and_the_goals_of_the_user(logic: LogicProject) -> None:
    logic.add("p(X) :- call(X), q(workspace:a), findall(Y, X, Y), format('~w', kb_guard:run(b)).")
    body = "(call(A), q(workspace:a), findall(B, A, B), format('~w', kb_guard:run(b)))"
    assert logic.values("clause(p(A), (_, _, findall(B, _, _), _)), clause(p(A), Body)", "Body") == [
        body.replace("findall(B, A, B)", "findall(_A, A, _A)")
    ]
    assert logic.answers("portray_clause(p(workspace:a))")[0]["output"] == "p(workspace:a).\n"
    assert logic.values("dif(X, workspace:a), copy_term(X, a, Goals)", "Goals") == ["[dif(a, workspace:a)]"]


@pytest.mark.parametrize(
    "goal", ["halt()", "call(halt())", "findall(X, halt(), L)", "G = halt(), call(G)", "p, halt()"]
)
def test_a_goal_with_empty_parentheses_is_refused_by_its_name(logic: LogicProject, goal: str) -> None:
    logic.add("p.")
    assert logic.failure(goal).data == {"kind": "refused", "name": "halt/0", "reason": "not_allowed"}


def test_a_goal_with_empty_parentheses_is_none(logic: LogicProject) -> None:
    logic.add("p.")
    assert logic.failure("p()").data["kind"] == "type_error"
    assert "`halt/0` is refused" in logic.add("q :- halt().").outcomes[0].message


def test_a_predicate_of_a_library_is_refused_with_the_library_and_one_that_is_loaded_is_not_said_to_be_missing(
    logic: LogicProject,
) -> None:
    assert "needs library(assoc), which is not loaded" in logic.failure("list_to_assoc([], A)").message
    assert "of library(readutil) is refused" in logic.failure("read_file_to_string(a, S, [])").message
    assert logic.failure("group_by(a, b, c, d)").data["reason"] == "not_allowed"
    logic.add(":- use_module(library(solution_sequences)).")
    assert logic.failure("group_by(a, b, c, d)").data["reason"] == "not_allowed"


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("goal", "error"),
    [
        ("call(1)", "type_error(callable, 1)"),
        ("call((fail, 1))", "type_error(callable, (fail, 1))"),
        ("call((true ; 1))", "type_error(callable, (true;1))"),
        ("call(1, a)", "type_error(callable, 1)"),
        ("\\+ 1", "type_error(callable, 1)"),
        ("findall(X, 1, _)", "type_error(callable, 1)"),
        ("setof(X, Y^1, _)", "type_error(callable, 1)"),
        ("maplist(1, [a])", "type_error(callable, 1)"),
        ("forall(true, 1)", "type_error(callable, 1)"),
        ("catch(1, never, true)", "type_error(callable, 1)"),
    ],
)
def test_a_goal_can_catch_that_what_it_calls_is_none(logic: LogicProject, goal: str, error: str) -> None:
    assert logic.values(f"catch({goal}, error(E, _), true)", "E") == [error]
    assert logic.add(f"k(E) :- catch({goal}, error(E, _), true).").succeeded == 1
    assert logic.values("k(E)", "E") == [error]
    assert logic.failure(goal).data["kind"] == "type_error"


@pytest.mark.parametrize(
    "goal", ["call((shell(ls), 1))", "G = (1, shell(ls)), call(G)", "catch(call((1, shell(ls))), _, fail)"]
)
def test_a_goal_of_which_a_part_is_none_runs_no_other_part(logic: LogicProject, goal: str) -> None:
    try:
        assert logic.answers(goal) == []
    except PrologFailed as error:
        assert error.data["kind"] in {"refused", "type_error"}  # noqa: PT017 - one goal fails


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    ("goal", "residual"),
    [("X = f(X), freeze(Y, X)", "freeze(Y, X)"), ("X = f(X), freeze(Y, (p, X = 1))", "freeze(Y, (p, X=1))")],
)
def test_a_constraint_with_a_cyclic_term_is_shown_as_it_was_typed(
    logic: LogicProject, goal: str, residual: str
) -> None:
    assert logic.first(goal)["residual"] == [residual]
    copied = logic.first(f"{goal}, copy_term(Y, Y1, Goals)")["bindings"]["Goals"]
    assert "kb_" not in copied
    assert copied.startswith("[freeze(Y1, ")


@pytest.mark.sliced
@pytest.mark.parametrize("text", ["d(X) :- Y = _{v: 3}, X = Y.v.", "a(1).b(2).", "p('.'(a, b))."])
def test_a_full_stop_inside_of_a_clause_is_a_syntax_error_that_says_so(logic: LogicProject, text: str) -> None:
    [before, wrong, after] = logic.add(f"c(1).\n{text}\nc(2).").outcomes
    assert (before.status, wrong.status, after.status, wrong.line) == ("success", "error", "success", 2)
    assert wrong.message.startswith("Syntax error: a full stop needs a space or the end of the line after it")
    assert logic.failure("Y = _{v: 3}, X = Y.v").data["kind"] == "syntax_error"
    assert logic.values("X = '.', atom(X)", "X") == ["'.'"]


@pytest.mark.parametrize("text", ["X = 'a\\x0\\b'", 'X = "\\x0\\"'])
def test_a_nul_in_a_term_is_shown_by_its_escape(logic: LogicProject, text: str) -> None:
    [value] = logic.values(text, "X")
    assert ("\0" in value, "\\u0000" in value) == (False, True)


@pytest.mark.sliced(1)
def test_a_term_that_is_cut_in_a_message_has_the_same_mark(logic: LogicProject) -> None:
    message = logic.failure(f"atom_length({'f(' * 40}x{')' * 40}, _)").message
    assert ("..." in message, "\u2026" in message) == (True, False)


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    "name",
    [
        "process_create/3", "call_with_time_limit/2", "alarm/3", "message_queue_create/1", "tcp_socket/1",
        "thread_exit/1", "(:=)/2", "await/2", "fetch/3", "js_run_script/1", "dict_same_keys/2", "write_length/3",
        "parse_url/2", "malloc_property/1", "subseq/3", "ord_range/4", "foldall/4", "mapdict/2", "top_sort/3",
        "random_numlist/4", "lambda_calls/2",
    ],
)  # fmt: skip
def test_a_predicate_that_not_every_engine_has_is_refused_by_its_name(logic: LogicProject, name: str) -> None:
    functor, _, arity = name.rpartition("/")
    goal = f"{functor.strip('()')}({', '.join('a' * int(arity))})"
    found = logic.failure(goal).data
    assert (found["kind"], found["name"]) == ("refused", name)
    assert found["reason"] in {"not_allowed", "library"}
    assert "is refused" in logic.add(f"calls :- {goal}.").outcomes[0].message


@pytest.mark.parametrize(
    ("library", "name"),
    [
        ("lists", "subseq/3"), ("ordsets", "ord_range/4"), ("aggregate", "foldall/4"), ("dicts", "mapdict/2"),
        ("ugraphs", "top_sort/3"), ("ugraphs", "ugraph_layers/2"), ("random", "random_numlist/4"),
        ("strings", "string/4"), ("rbtrees", "rb_visit_range/4"), ("yall", "lambda_calls/3"), ("dcg/basics", "csym/3"),
    ],
)  # fmt: skip
def test_a_clause_may_define_what_only_some_versions_of_a_library_export(
    logic: LogicProject, library: str, name: str
) -> None:
    functor, _, arity = name.rpartition("/")
    own = f"{functor}({', '.join(['own'] * int(arity))})"
    first = functor + "(" + ", ".join(["X"] + ["_"] * (int(arity) - 1)) + ")"
    assert logic.add(f":- use_module(library({library})).", f"{own}.", f"calls(X) :- {first}.").succeeded == 3
    for _ in ("the engine that was there", "another one"):
        assert logic.values("calls(X)", "X") == logic.values(first, "X") == ["own"]
        assert logic.prolog.held_back == {}
        logic.prolog.close()


def test_an_export_that_only_some_versions_have_is_refused_also_where_its_library_is_loaded(
    logic: LogicProject,
) -> None:
    logic.add(":- use_module(library(dicts)). :- use_module(library(ugraphs)).")
    for goal in ("mapdict(G, D)", "top_sort(a, b, c)", "ugraph_layers(a, b)"):
        assert logic.failure(goal).data["reason"] == "not_allowed"


@pytest.mark.parametrize("head", ["a / b", "[X]>>p(X)", "print(X)", "dict_same_keys(a, b)", "thread_join(a, b)"])
def test_a_name_that_goals_have_from_kb_or_from_another_version_cannot_be_defined(
    logic: LogicProject, head: str
) -> None:
    [outcome] = logic.add(f"{head}.").outcomes
    assert "is refused as the head of a clause" in outcome.message


def test_a_predicate_of_a_user_may_have_the_name_of_one_of_a_library_that_another_engine_has(
    logic: LogicProject,
) -> None:
    logic.add("alarm(X, Y, Z) :- X = Y, Y = Z.", "ring(X) :- alarm(X, X, 1).")
    assert logic.values("ring(X)", "X") == ["1"]


def test_a_format_predicate_that_is_refused_is_named_and_is_not_suggested(logic: LogicProject) -> None:
    assert logic.failure("sformat(X, a, b)").data["name"] == "sformat/3"
    assert "sformat" not in logic.failure("sformat(a)").hint


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("goal", "name"),
    [
        ("nothere(1)", "nothere/1"),
        ("maplist(nothere, [1])", "nothere/1"),
        ("catch(nothere, foo, true)", "nothere/0"),
        ("phrase(nothere, [a])", "nothere/2"),
        ("findall(X, nothere(X), _)", "nothere/1"),
    ],
)
def test_the_error_of_an_unknown_predicate_names_no_module(logic: LogicProject, goal: str, name: str) -> None:
    assert logic.values(f"catch({goal}, error(existence_error(procedure, Name), _), true)", "Name") == [name]


def test_an_exception_that_is_caught_binds_as_one_of_the_bare_engine(logic: LogicProject) -> None:
    assert logic.values("catch(catch(throw(a(B)), b(B), true), a(1), X = B)", "X") == ["B"]
    assert logic.values("catch(member(X, [1, 2]), _, true)", "X") == ["1", "2"]
    assert logic.values("bagof(X, catch(member(X-Y, [1-a, 2-b]), _, true), L)", "L") == ["[1]", "[2]"]
    assert logic.failure("catch(throw(mine), other, true)").message == "Uncaught exception: `mine`."


@pytest.mark.sliced
def test_the_goals_of_copy_term_can_be_called(logic: LogicProject) -> None:
    goal = "X in 1..3, copy_term(X, Y, Goals), maplist(call, Goals), fd_dom(Y, Domain)"
    assert logic.values(goal, "Domain") == ["1..3"]
    logic.add("like(X, Y) :- copy_term(X, Y, Goals), solve(Goals).", "solve([]).", "solve([G|Gs]) :- G, solve(Gs).")
    assert logic.values("X #> Y, Y #> 3, like(X, Z), fd_inf(Z, Least)", "Least") == ["5"]


@pytest.mark.parametrize("goal", ["lists:append([a], [b], L)", "call(lists:append([a]), [b], L)"])
def test_a_goal_with_the_library_of_an_allowed_predicate_is_that_predicate(logic: LogicProject, goal: str) -> None:
    assert logic.values(goal, "L") == ["[a, b]"]


@pytest.mark.sliced
def test_a_goal_with_a_library_that_has_not_this_predicate_is_refused(logic: LogicProject) -> None:
    logic.add("own(1).")
    for goal in ("lists:own(X)", "assoc:list_to_assoc([], X)", "lists:maplist(X, [])", "G = lists:shell(ls), call(G)"):
        assert logic.failure(goal).data["reason"] == "module"


@pytest.mark.sliced(2)
@pytest.mark.parametrize(
    ("clause", "body"),
    [
        ("h(G) :- call(G), true.", "(call(A), true)"),
        ("h(_) :- call(foo, 1).", "call(foo, 1)"),
        ("h(X) :- catch(X, E, print(E)), \\+ writeln(a).", "(catch(A, _A, print(_A)), \\+writeln(a))"),
        ("h(X) :- workspace:g(X), lists:append(X, [], []).", "(workspace:g(A), lists:append(A, [], []))"),
    ],
)
def test_clause_gives_the_body_that_was_asserted(logic: LogicProject, clause: str, body: str) -> None:
    logic.add(clause)
    assert logic.values("clause(h(A), B)", "B") == [body]


def test_clause_gives_the_body_of_a_grammar_rule_as_it_is_translated(logic: LogicProject) -> None:
    logic.add("h([A]) --> call(A), !.")
    assert logic.values("clause(h([A], B, C), Body)", "Body") == ["(call(A, B, _A), !, C=_A)"]


def test_clause_reads_the_clauses_of_now_in_their_order(logic: LogicProject) -> None:
    clauses = ["h(1) :- write(a).", "h(2).", "h(3) :- call(b)."]
    logic.add(*clauses)
    assert logic.values("clause(h(_), B)", "B") == ["write(a)", "true", "call(b)"]
    logic.remove(clauses[0])
    logic.add(clauses[0])
    assert logic.values("clause(h(X), B)", "B") == ["true", "call(b)", "write(a)"]
    assert logic.values("clause(h(X), call(B))", "X") == ["3"]


@pytest.mark.sliced
def test_an_answer_with_more_variables_than_can_be_shown_is_cut_before_they_are_named(logic: LogicProject) -> None:
    for goal in ("length(L, 1000000), N = 1", "length(L0, 1000000), L =.. [f|L0], L0 = [_|_], N = 1"):
        [answer] = logic.answers(goal)
        assert (answer["truncated"], answer["bindings"]["N"]) == (True, "1")
        assert answer["bindings"]["L"][:8] in {"[_A, _B,", "f(A, _B,", "f(_A, _B"}


@pytest.mark.sliced
def test_a_predicate_of_a_library_that_another_engine_loads_by_itself_needs_the_library(logic: LogicProject) -> None:
    assert "needs library(assoc)" in logic.failure("is_assoc(t)").message
    logic.add(":- use_module(library(assoc)).")
    assert logic.answers("is_assoc(t)") == [{"bindings": {}}]


@pytest.mark.sliced
def test_every_name_that_can_be_called_is_defined(logic: LogicProject) -> None:
    known = logic.prolog.known_names(logic.source())
    called = "functor(G, Name, Arity), catch(call_with_depth_limit(G, 50, _), E, true)"
    failed = f"once(({called})), nonvar(E), subsumes_term(error(existence_error(procedure, _), _), E)"
    for start in range(0, len(known), 100):
        names = ", ".join(known[start : start + 100])
        assert logic.values(f"member(Name/Arity, [{names}]), {failed}", "Name") == []
