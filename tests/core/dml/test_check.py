"""Findings of the check of a program, and their places."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.dml import check_with_engines
from kbcore.dml.findings import KINDS
from kbcore.dml.kb_tools import KB_TOOLS
from kbcore.dml.program import load_request
from kbcore.dml.shipped import PROGRAMS, shipped_code
from kbcore.limits import MAX_PROGRAM_CHARS, MAX_PROGRAM_FINDINGS
from kbcore.logic.engine import EngineProcess, available
from tests.support.dml.checks import checked, finding_lines, found_texts
from tests.support.effort.scale import tries
from tests.support.logic.engines import engine_variables
from tests.support.repository.repos import git_env

EXAMPLE = Path(__file__).parent / "check_example.dml"
HEAD = "agent_main :- true.\n"


def main(goals: str) -> str:
    """Return a program that runs these goals."""
    return f"agent_main :- {goals}.\n"


def test_each_finding_of_the_example_is_at_its_place(engine):
    text = EXAMPLE.read_text(encoding="utf-8")
    found = checked(text, engine, KB_TOOLS)
    said = [
        f"{one.place.line}:{one.place.column}-{one.place.end_line}:{one.place.end_column} "
        f"{one.severity} "
        f"{one.problem.code} {one.problem.message} {one.problem.hint}".rstrip()
        for one in found.findings
    ]
    assert "\n".join([*said, ""]) == EXAMPLE.with_suffix(".txt").read_text(encoding="utf-8")


def test_a_lacking_full_stop_is_named_at_the_end_of_its_line(engine):
    [found] = checked(HEAD + "b :- c + 1\nd :- true.\n", engine).findings
    line = HEAD.count("\n") + 1
    assert (found.place.line, found.place.column, found.problem.code) == (line, len("b :- c + 1") + 1, "syntax_error")
    assert found.problem.hint == "Put a comma or an operator there, or the full stop that ends the clause."


@pytest.mark.parametrize("name", [one.name for one in PROGRAMS])
def test_programs_that_ship_have_no_findings(engine, name):
    assert finding_lines(checked(shipped_code(name), engine, KB_TOOLS, is_whole=True)) == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        # Syntax
        ("agent_main :- foo(.\n", [("syntax_error", "(.")]),
        (HEAD + "b :- 'x.\n", [("syntax_error", "b :- 'x.")]),
        (HEAD + "b", [("syntax_error", "b")]),
        # The earlier language, and what is refused
        (main('@("Find it")'), [("old_instruction", '@("Find it")')]),
        (main('findall(X, chat("x"), [X])'), [("old_chat", 'chat("x")')]),
        (main('tool(search("x"), R), log("{R}")'), [("old_tool", 'tool(search("x"), R)')]),
        (main("finish(true)"), [("model_only", "finish(true)")]),
        (main('forall(true, \\+ shell("ls"))'), [("not_allowed", 'shell("ls")')]),
        (main("maplist(halt, [1])"), [("not_allowed", "halt")]),
        (main("once(entity(a, _, _, _))"), [("no_graph", "entity(a, _, _, _)")]),
        (main("system:true"), [("module", "system:true")]),
        (main("foo:bar"), [("module", "foo:bar")]),
        ("log(_) :- shell(x).\n" + HEAD, [("program_head", "log(_)"), ("not_allowed", "shell(x)")]),
        (HEAD + "X :- true.\n", [("instantiation_error", "X"), ("singleton", "X")]),
        (HEAD + "log(_) :- true.\n", [("program_head", "log(_)")]),
        (HEAD + ":- initialization(agent_main).\n", [("program_directive", ":- initialization(agent_main).")]),
        (main("3"), [("no_goal", "3")]),
        (main("X = 1, (X ; 'y'())"), [("no_goal", "'y'()")]),
        (main("(p(), true ; true)"), [("no_goal", "p()")]),
        (HEAD + "p() :- true.\n", [("type_error", "p()")]),
        (HEAD + ":- p().\n", [("type_error", ":- p().")]),
        (HEAD + "tool(p()) :- true.\n", [("tool_head", "tool(p())")]),
        # Unknown names
        (main("fo(1)") + "foo(1).\n", [("unknown_predicate", "fo(1)"), ("unreachable", "foo(1)")]),
        (main("maplist(fo(1), [2])"), [("unknown_predicate", "fo(1)")]),
        (main("maplist([X]>>fo(X), [2])"), [("unknown_predicate", "fo(X)")]),
        (main("phrase(a, [])") + "a --> [b], {fo}, c.\n", [("unknown_predicate", "fo"), ("unknown_predicate", "c")]),
        (main('log("{Nope} {{Nope}}")'), [("unknown_name", "{Nope}")]),
        (main('exec(kb_query(type: "{{A}} {A}"), _)'), [("unknown_name", "{A}")]),
        (main('log("{A}")') + "b(A, A).\n", [("unknown_name", "{A}"), ("unreachable", "b(A, A)")]),
        # Values
        (main('log("{A}"), A = 1'), [("unbound_name", "{A}")]),
        (main('task("Store it in A: {A}", A)'), [("unbound_name", "{A}")]),
        (main('(   A = 1 ; true ), log("{A}")'), []),
        (main('forall(member(A, [1]), log("{A}"))'), []),
        (main('maplist([A]>>log("{A}"), [1])'), []),
        ('agent_main(A) :- log("{A}").\n', []),
        (main('get_dict(a, _{a: B}, B), log("{B}")'), []),
        # Tools
        (main('exec(nope("x"), _)'), [("tool_not_listed", 'nope("x")')]),
        (main("exec(mine(1), _)") + "tool(mine(X, Y)) :- Y = X.\n", []),
        (main("exec(mine(1, 2), _)") + "tool(mine(X, Y)) :- Y = X.\n", [("tool_arguments", "mine(1, 2)")]),
        (HEAD + "tool('a b'(X)) :- X = 1.\n", [("tool_name", "tool('a b'(X)) :- X = 1.")]),
        (HEAD + "tool(finish(X)) :- X = 1.\n", [("tool_reserved", "tool(finish(X)) :- X = 1.")]),
        (HEAD + "tool(kb_query(X)) :- X = 1.\n", [("tool_hidden", "tool(kb_query(X)) :- X = 1.")]),
        (HEAD + 'tool(a(1), "x").\ntool(a(2), "y").\n', [("tool_described_twice", 'tool(a(2), "y").')]),
        (HEAD + "tool(a(1)).\ntool(a(2, 3)).\n", [("tool_arity", "tool(a(2, 3))")]),
        # What is never called
        (HEAD + "b.\nb.\n", [("unreachable", "b"), ("same_clause", "b")]),
        (HEAD + "b :- c.\nc :- b.\n", [("unreachable", "b"), ("unreachable", "c")]),
        (main("G = b, call(G)") + "b.\n", []),
        (main("X =.. [b, 1], call(X)") + "b(1).\n", []),
        (main("foldl([X, A, B]>>c(X, A, B), [1], 0, _)") + "c(X, A, B) :- B is X + A.\n", []),
        (main("call(b, 1, 2)") + "b(1, 2).\n", []),
        (main("p(N), call(N)") + "p(b).\nb.\n", []),
        (main('assertz(b(1)), b(X), log("{X}")'), []),
        (":- dynamic b/1.\n" + HEAD + "b(1) :- c.\nc.\n", []),
        (main("b") + 'b :- log("x"), !.\nb :- log("y").\n', [("after_cut", "b")]),
        (main("b(1)") + "b(1) :- !.\nb(_).\n", []),
        # Params
        (':- param("a:file", "A").\n' + HEAD, [("param_not_asked", ':- param("a:file", "A").')]),
        (':- param("a:file", "A").\n' + main('param("a:file", A), log("{A}")'), []),
        (main('param("b", _, A), log("{A}")'), [("param_not_declared", 'param("b", _, A)')]),
        (':- param("a").\n' + main('K = "a", param(K, A), log("{A}")'), []),
        (2 * ':- param("a").\n' + main('param("a", A), log(A)'), [("param_twice", ':- param("a").')]),
        # agent_main
        ("b.\n", [("no_main", "")]),
        ("agent_main :- fo(.\n", [("syntax_error", "(.")]),
        (HEAD + "agent_main(_).\n", [("several_mains", "agent_main(_)")]),
        # Variables
        (main("X = 1"), [("singleton", "X")]),
        (main("_X = 1"), []),
        ("agent_main(X).\n", [("unused_argument", "X")]),
        (main('task("Store in X", list(integer(X)))'), [("unused_output", "X")]),
        (main('task("Store in X", X), log("{X}")'), []),
        (main('task("Store in X", int(X)), log("{X}")'), [("output_type", "int(X)")]),
        (main('task("Store a list", list(string))'), [("output_type", "list(string)")]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_found_at_its_very_part(engine, text, parts):
    assert found_texts(checked(text, engine, KB_TOOLS), text) == parts


def test_an_unknown_tool_is_an_error_where_all_tools_are_known(engine):
    found = checked(main('exec(serch("x"), _)'), engine, ["search", *KB_TOOLS], is_whole=True)
    assert finding_lines(found) == ["1:20 unknown_tool serch"]
    assert found.errors == 1
    assert "'search'" in found.findings[0].problem.hint


def test_the_nearest_predicate_is_named(engine):
    [one] = checked(main('lenght([], N), log("{N}")'), engine).findings
    assert one.problem.hint == "Did you mean 'length/2'?"
    [one] = checked(main("get_topics") + "tool(get_topic(X)) :- get_topic(X).\nget_topic(1).\n", engine).findings
    assert "'get_topic/1'" in one.problem.hint


def test_what_a_program_that_adds_any_clauses_does_not_define_is_a_warning(engine):
    found = checked(main("C = b, assertz(C), b"), engine)
    assert (finding_lines(found), found.errors) == (["1:34 unknown_predicate b/0"], 0)


def test_a_clause_that_cannot_be_read_hides_what_it_may_define_or_call(engine):
    found = checked(main("b, c") + "b :- foo(.\nd.\n", engine)
    assert [one.rpartition(" ")[0] for one in finding_lines(found)] == ["1:18 unknown_predicate", "2:9 syntax_error"]
    assert (found.errors, found.warnings) == (2, 0)


def test_what_a_program_has_is_listed(engine):
    text = (
        ':- param("format:select(json,csv)", "The format").\n'
        'tool(area(W, H, A), "An area") :- A is W * H.\n'
        "agent_main(Topic) :-\n"
        '    param("format", F), param("more", M),\n'
        '    task("Find {Topic} as {F} {M}", list(string(Found)), N),\n'
        '    exec(area(1, 2), A), exec(kb_query(limit: N), P), exec(other, Q), log("{Found} {A} {P} {Q}"),\n'
        '    T = "x", task(T).\n'
    )
    found = checked(text, engine, KB_TOOLS).as_json()
    assert [(one["name"], one["kind"], one["line"]) for one in found["params"]] == [
        ("format", "select(json,csv)", 1),
        ("more", "text", 4),
        ("Topic", "argument", 3),
    ]
    [tool] = found["tools"]
    assert (tool["name"], tool["inputs"], tool["description"], tool["line"]) == ("area", 2, "An area", 2)
    assert [(one["text"], one["line"], one["column"]) for one in found["tasks"]] == [
        ("Find {Topic} as {F} {M}", 5, 5),
        (None, 7, 14),
    ]
    assert found["tasks"][0]["outputs"] == [{"name": "Found", "type": "list(string)"}, {"name": "N", "type": "any"}]
    assert [(one["name"], one["of"]) for one in found["calls"]] == [
        ("area", "program"),
        ("kb_query", "caller"),
        ("other", "unknown"),
    ]


def test_places_count_characters_of_any_alphabet(engine):
    text = "agent_main :-\n    été, 'wörld 😀'(1), 日本, log(\"😀{Ö}\"),\n\tx.\nété.\n"
    found = checked(text, engine)
    assert [one for one in found_texts(found, text) if one[0] != "syntax_error"] == [
        ("unknown_predicate", "'wörld 😀'(1)"),
        ("unknown_predicate", "日本"),
        ("unknown_name", "{Ö}"),
        ("unknown_predicate", "x"),
    ]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("", {"no_main"}),
        (main("X = " + "[" * 3000 + "]" * 3000), {"too_deep"}),
        (main("a\0b"), {"syntax_error"}),
        (main('log("\0")'), None),
        (main(",".join(["b"] * 20_000)), {"unknown_predicate"}),
        (main("X is " + "+".join(["1"] * 2_000) + ', log("{X}")'), set()),
        (main("b(" + ",".join(["1"] * 2_000) + ")"), {"arity"}),
        (main('log("' + "".join(f"{{X{at}}}" for at in range(5_000)) + '")'), {"unknown_name"}),
        (":- op(700, xfx, ===>).\n" + HEAD, {"program_directive"}),
        ("x" * (MAX_PROGRAM_CHARS + 1), {"too_long"}),
    ],
)  # fmt: skip
def test_a_hostile_text_ends_with_findings(engine, text, codes):
    found = checked(text, engine)
    assert len(found.findings) <= MAX_PROGRAM_FINDINGS
    assert found.errors + found.warnings >= len(found.findings)
    if codes is not None:
        assert {one.problem.code for one in found.findings if one.severity == "error"} == codes


def test_errors_are_kept_where_there_are_more_findings_than_are_kept(engine):
    text = "".join(f"b{at}(X).\n" for at in range(MAX_PROGRAM_FINDINGS)) + main("nope")
    found = checked(text, engine)
    assert (found.errors, found.warnings) == (1, 2 * MAX_PROGRAM_FINDINGS)
    assert len(found.findings) == MAX_PROGRAM_FINDINGS
    assert found.findings[-1].problem.code == "unknown_predicate"


LARGE = {
    "facts": ("".join(f"p({number}).\n" for number in range(80_000)) + main("p(1)"), 0),
    "goals": ("a.\n" + main(",".join(["a"] * 400_000)), 0),
    "unknown goals": (main(",".join(["b"] * 400_000)), 400_000),
    "tools": ("".join(f"tool(t{number}(X,X)).\n" for number in range(30_000)) + main("true"), 0),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_program_of_nearly_the_most_characters_is_checked(name, monkeypatch):
    monkeypatch.setattr(check_with_engines, "CHECK_S", 600.0)  # what it holds is tried here, on a busy machine too
    text, errors = LARGE[name]
    found = checked(text, engine_variables("auto"))
    assert (found.errors, found.warnings, len(found.findings)) == (errors, 0, min(errors, MAX_PROGRAM_FINDINGS))


@pytest.mark.parametrize("code", KINDS)
def test_the_sentences_of_every_kind_end_with_a_full_stop_when_they_are_filled_in(code):
    for said in (KINDS[code].message, KINDS[code].remedy):
        filled = said.format(name="a", other="b")
        assert filled == "" or filled.endswith(".")


LEAVES = st.sampled_from(
    ["p(X)", "!", "G", 'log("{X}")', 'log("{No}")', "chat(a)", "shell(x)", "3", "tool(a, b)", "@(x)", "no(1)", "p()",
     "finish(true)", "entity(a, b, c, d)", "foo:bar", "lists:append(X, Y)", "consult(a)", "[a]", "{a}", "X = Y.z",
     "_{a: 1}", "maplist(shell, [1])", "maplist(user:foo, [1])", "call(chat, 1)", "phrase(shell, L)", "assertz(p(1))"]
)  # fmt: skip
AROUND = st.sampled_from(
    ["( {}, {} )", "( {} -> {} ; true )", "\\+ {}", "findall(X, {}, {})", "maplist([A]>>( {} ), [1])", "call({}, 1)",
     "catch({}, E, {})", "bagof(X, Y^{}, L)", "exec(t({}), R)", "mine({}, {})", "limit(1, {})", "phrase({{{}}}, L)",
     "freeze(X, {})", "with_output_to(string(S), {})", "task({}, X)", "param({}, V)"]
)  # fmt: skip
WITHIN = lambda inner: st.builds(lambda form, a, b: form.format(a, b), AROUND, inner, inner)  # noqa: E731
GOALS = st.recursive(LEAVES, WITHIN, max_leaves=5)
HEADS = st.sampled_from(
    ["p(X) :- ", "agent_main(X) :- ", "tool(t(X, Y)) :- ", "log(X) :- ", "append(X, Y, Z) :- ", "foo:p(X) :- ", "X :- ",
     ":- ", "n --> ", "n --> [a], call(p), "]
)  # fmt: skip
CLAUSES = st.builds(lambda head, goal: f"{head}{f'{{{goal}}}' if '-->' in head else goal}.", HEADS, GOALS)
PARTS = st.sampled_from(
    ["a", "X", "'", "3", '"', ":-", "-->", ",", "(", ")", "[", "]", ".", "{", "}", "%", "/*", "0'a", "|"]
)
TORN = st.lists(PARTS, max_size=20).map(" ".join)


@settings(max_examples=tries(8, 60))
@given(st.lists(CLAUSES, max_size=20), st.just("") | TORN)
def test_every_clause_that_cannot_be_loaded_has_an_error_in_its_line(clauses, torn):
    engine = engine_variables("auto")
    text = "\n".join([HEAD, *clauses, torn])
    process = EngineProcess(available(git_env(engine)).required())
    try:
        failed = process.ask(load_request(text), time_limit_s=60)["failed"]
    finally:
        process.kill()
    found = checked(text, engine)
    assert "not_checked" not in {one.problem.code for one in found.findings}
    lines = {one.place.line for one in found.findings if one.severity == "error"}
    assert {one["line"] for one in failed if one["line"] <= len(clauses) + 2} <= lines
    assert not failed or lines
