"""`{Name}` in texts: which texts, which names, and what is filled in."""

from __future__ import annotations

import pytest

from tests.support.dml.runs import body, ran
from tests.support.dml.scripts import Script, done

Engine = dict[str, str]


def test_names_are_filled_in_once_and_all_other_braces_stay(engine: Engine) -> None:
    code = body("""X = "v{Y}", Y = 2, Größe = 3, Ünï_1 = x, _Under = u,
        log("{X} {{X}} {x} {} { X } {{}} {{{Y}}} {Y}{Y} {_} {Größe} {Ünï_1} {_Under}"),
        log("{\\"a\\": {\\"b\\": {Y}}, \\"c\\": []}"), log('atom {Y}'), log(plain), log(12), log([1, Y]),
        log(_{a: Y})""")
    assert ran(code, engine).logs == [
        "v{Y} {X} {x} {} { X } {{}} {{Y}} 22 {_} 3 x u", '{"a": {"b": 2}, "c": []}', "atom 2", "plain", "12", "[1,2]",
        '{"a":2}',
    ]  # fmt: skip


def test_values_are_texts_or_json(engine: Engine) -> None:
    code = body("""A = _{a: 1, b: [1, 2.5, "x", null, true, -0.0], 'C d': "é\\n"}, B = 'A b', C = f(x, "y"), D = [],
        E = [''],
        F = '', G is 2 ** 100, H = "{A} \\\\ \\"", I = 1r3, log("{A}|{B}|{C}|{D}|{E}|{F}|{G}|{H}|{I}")""")
    assert ran(code, engine).logs == [
        '{"C d":"é\\u000a","a":1,"b":[1,2.5,"x",null,true,-0.0]}|A b|f(x,"y")|[]|[""]||' + f'{2**100}|{{A}} \\ "|1r3'
    ]


def test_names_are_filled_in_wherever_a_text_is_an_argument_of_a_goal_that_is_called(engine: Engine) -> None:
    code = """
    my(Goal) :- call(Goal).
    greet --> [hello], { log("dcg") }, name(N), { log("name {N}") }.
    name(X) --> [X].
    agent_main :- X = 1,
        call(log("call {X}")), once(log("once {X}")), forall(member(E, [a, b]), log("{E} {X}")),
        findall(F, ( member(F, [c, d]), log("{F} {X}") ), _), maplist([G]>>log("lambda {G} {X}"), [e]),
        maplist([H]>>( log("{H}"), log("{X}") ), [f]), ( true -> log("then {X}") ; true ), \\+ \\+ log("not {X}"),
        catch(throw(y), Y, log("{Y} {X}")), phrase(greet, [hello, bob]), my(( true, log("own {X}") )),
        my(task("own {X}", R)), log("{R}"), K = task("kept {X}"), call(K), maplist(task("closure {X}"), [S]),
        log("{S}").
    """
    model = Script(done(R="r"), done(), done(Output1="s"))
    found = ran(code, engine, model=model)
    assert found.logs == [
        "call 1", "once 1", "a 1", "b 1", "c 1", "d 1", "lambda e 1", "f", "1", "then 1", "not 1", "y 1", "dcg",
        "name bob", "own 1", "r", "s",
    ]  # fmt: skip
    assert [asked[-1].text.partition("\n")[0] for asked in model.asked] == ["own 1", "kept 1", "closure 1"]


def test_texts_that_are_no_literal_argument_stay_as_they_are(engine: Engine) -> None:
    code = body("""X = 1, Y = "{X}", log(Y), string_concat("a{X}", "b", S), log(S), maplist(log, ["{X}"]), call(log,
        "{X}"),
        format(string(F), "{X} ~w", [x]), log(F), G = log("{X}"), call(G), assertz(( h :- log("{X}") )), h""")
    assert ran(code, engine).logs == ["{X}", "a{X}b", "{X}", "{X}", "{X} x", "{X}", "{X}"]


def test_an_unknown_name_is_an_error_before_anything_runs(engine: Engine) -> None:
    code = 'agent_main :- log("first").\np :- task("{X} {Nope}", X), exec(t([k, "{Also}"]), _).\nq --> { log("{Q}") }.'
    found = ran(code, engine)
    [first, second] = found.error.data["details"]
    assert (first["code"], first["source"]) == ("unknown_name", "program:2")
    assert first["message"] == "The text has `{Nope}`, and the clause has no variable `Nope`."
    assert first["hint"] == "Name a variable of the clause, or write `{{Nope}}` for these characters."
    assert (second["code"], second["source"], found.logs) == ("unknown_name", "program:3", [])


@pytest.mark.parametrize("value", ["_", "[a, _]", "f(_)", "_{a: _}", "[a|_]"])
def test_a_name_without_a_whole_value_is_an_error_that_names_it(engine: Engine, value: str) -> None:
    found = ran(body(f'Name = {value}, log("{{Name}}")'), engine)
    assert found.error.content == (
        "The program ended with an error: `Name` of `{Name}` has no value when the goal is called."
    )
    assert found.error.data["hint"] == "Bind it before."


def test_values_that_json_does_not_have_are_refused_with_the_reason(engine: Engine) -> None:
    tries = {
        "X = f(X), log(X)": "A value contains itself.",
        "X = [X], exec(t(X), _)": "A value contains itself.",
        'X = [a|X], log("{X}")': "A value contains itself.",
        "X is 10 ** 4000, exec(t(X), _)": "A number has more than 4,000 digits.",
        "numlist(1, 300, L), foldl([_, A, [A]]>>true, L, x, D), log(D)": "A value is nested more than 200 times.",
        "exec(t([1, _]), _)": "A value has an unbound variable: `_A`.",
        "X is nan, exec(t(X), _)": "Arithmetic: evaluation error: `undefined`.",
    }
    for goal, message in tries.items():
        assert ran(body(goal), engine).error.content == f"The program ended with an error: {message}"


def test_a_quasi_quotation_is_a_text_in_any_goal(engine: Engine) -> None:
    code = """
    :- use_module(library(strings)).
    :- use_module(library(quasi_quotations)).
    agent_main :- Y = 1, Z = q,
        X = {|string(Y)||a {Y} {{Z}} "q" {b: 1} \\n|}, log(X), log({|string(Y, Z)||{Y} {Z}|}), W = {|string||{Z}|},
        log(W),
        atom_length({|string(Y)||ab{Y}|}, N), log("{N}"),
        findall(A, ( member(B, [1, 2]), A = {|string(B)||<{B}>|} ), L), log("{L}"),
        forall(member(C, [x, yy]), ( string_length({|string(C)||{C}{C}|}, M), log("{M}") )),
        assertz(kept(f({|string(Y)||v{Y}|}, _{k: {|string(Z)||{Z}|}}))), kept(f(V, D)), get_dict(k, D, K),
        log("{V}{K}"),
        N2 = "Ann", log({|string(N2)||
            | Dear {N2},
            |
            |   regards
            |}).
    """
    assert ran(code, engine).logs == [
        'a 1 {Z} "q" {b: 1} \\n', "1 q", "{Z}", "3", '["<1>","<2>"]', "2", "4", "v1q", "Dear Ann,\n\n  regards\n",
    ]  # fmt: skip


def test_a_quasi_quotation_that_cannot_be_used_says_why(engine: Engine) -> None:
    code = """agent_main :- X = {|string(Y)||{Nope}|}, log(X, Y).
a({|string(Y)||{Y}|}) :- b(Y).
b(_) :- X = {|html(X)||{X}|}.
string(a, b, c, d)."""
    details = ran(code, engine).error.data["details"]
    assert [(one["source"], one["code"], one["message"]) for one in details] == [
        (
            "program:1",
            "unlisted_name",
            "The text has `{Nope}`, and `Nope` is not in the parentheses of its `string(…)`.",
        ),
        ("program:2", "quoted_head", "A quasi quotation with names is in the head of a clause."),
        ("program:3", "syntax_error", "Syntax error: the only quasi quotation is {|string(Name, ...)||text|}."),
        ("program:4", "program_head", "`string/4` is built in and cannot be defined."),
    ]
    [called] = ran(body("string(a, b, c, d)"), engine).error.data["details"]
    assert called["code"] == "not_allowed"
    found = ran(body("Y = _, X = {|string(Y)||{Y}|}, log(X)"), engine)
    assert found.error.content.endswith("`Y` of `{Y}` has no value when the goal is called.")


def test_terms_that_look_like_marks_of_texts_do_no_harm(engine: Engine) -> None:
    code = body("""log('$kb_text'(["a", 'X'=1])), log('$kb_output'(x, y)),
        catch(log('$kb_text'(["{A}", 'X'=_])), error(kb_refused(N, W), _), log("{N} {W}")),
        forall(member(M, [foo, [user:halt], ['$kb_text'(["b"])], [_]]), catch(ignore(log('$kb_text'(M))), _, true)),
        log(end)""")
    assert ran(code, engine).logs == ["a1", "y", "X unbound_name", "b", "end"]
