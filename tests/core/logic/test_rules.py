"""Rules in Prolog: what a rule gives, and the goals of rules that are refused."""

from __future__ import annotations

import pytest

from kbcore.limits import MAX_RULE_FINDINGS, MAX_RULE_MESSAGE_CHARS
from tests.support.logic.rules import FILE, RULE, found, place, reason, reasons, report


@pytest.mark.sliced
def test_violations_are_the_answers_with_the_file_of_the_entity_and_the_description_as_the_remedy(graph, engine):
    text = """
violation(mine, Id, Message) :-
    entity(Id, req, _, _),
    \\+ attr(Id, owner, _),
    atom_concat(Id, ' has no owner', Message).
"""
    [one] = report(graph, {FILE: RULE + text}, place(graph, engine)).violations
    assert (one.rule, one.severity, one.id, one.message) == ("mine", "error", "A", "A has no owner")
    assert (one.source, one.remedy, one.names_id) == ("docs/a.md", "What is asked for.", True)


def test_one_answer_of_many_proofs_is_one_violation_and_the_order_is_that_of_ids_and_messages(graph, engine):
    text = 'violation(mine, Id, M) :- member(_, [x, y]), member(M, ["m 10", "m 9", \'m 9\']), entity(Id, req, _, _).\n'
    assert found(graph, engine, text) == [("A", "m 9"), ("A", "m 10"), ("B", "m 9"), ("B", "m 10")]


@pytest.mark.sliced
def test_a_severity_lowers_that_of_the_rule_and_never_raises_it(graph, engine):
    text = "violation(mine, 'A', \"a\", warning).\nviolation(mine, 'B', \"b\", error).\nviolation(mine, 'C', \"c\").\n"
    result = report(graph, {FILE: RULE + text}, place(graph, engine))
    assert [(one.id, one.severity) for one in result.violations] == [("B", "error"), ("C", "error"), ("A", "warning")]
    stated = 'rule(mine, "m", warning, "Do something.").\n'
    result = report(graph, {FILE: stated + text}, place(graph, engine))
    assert {(one.severity, one.remedy) for one in result.violations} == {("warning", "Do something.")}


@pytest.mark.sliced
def test_a_clause_may_be_for_every_rule_and_an_edge_may_be_named(graph, engine):
    stated = 'rule(mine, "m").\nrule(\'the-other\', "o").\n'
    text = "violation(_, Id, kind) :- edge(depends_on, _, _, Props), memberchk(id-Id, Props).\n"
    result = report(graph, {FILE: stated + text}, place(graph, engine))
    [(edge,)] = graph.rows("select id from link where type = 'depends_on'", [])
    assert [(one.rule, one.id, one.source) for one in result.violations] == [
        ("mine", edge, ""),
        ("the-other", edge, ""),
    ]


@pytest.mark.sliced
def test_a_message_is_cut_and_an_empty_one_is_the_description(graph, engine):
    text = """violation(mine, 'A', '').
violation(mine, 'B', M) :- length(L, 5000), maplist(=(y), L), atomic_list_concat(L, M).
"""
    assert found(graph, engine, text) == [("A", "What is asked for."), ("B", "y" * MAX_RULE_MESSAGE_CHARS)]


@pytest.mark.sliced
def test_a_library_of_the_list_can_be_loaded_and_grammars_and_clpfd_work(graph, engine):
    text = """:- use_module(library(assoc)).
:- dynamic nothing/1.
greeting --> [hello], [X], { atom(X) }.
violation(mine, 'A', M) :- list_to_assoc([k-v], T), get_assoc(k, T, M).
violation(mine, 'B', M) :- phrase(greeting, [hello, you]), X #> 3, X #< 5, \\+ nothing(_), format(atom(M), "~w", [X]).
"""
    assert found(graph, engine, text) == [("A", "v"), ("B", "4")]


GOALS = [
    ("violation(mine, Id, m) :- Id = 'GONE'.", "a violation names 'GONE', and no entity and no edge has that id."),
    (
        "violation(mine, Id, m) :- member(Id, ['A', \"GONE-2\", 'GONE-1']).",
        "a violation names 'GONE-1' and 1 more, and no entity and no edge has that id.",
    ),
    ("violation(mine, _, m).", "the id of a violation is an atom or a string, not `_`."),
    ("violation(mine, 7, m).", "the id of a violation is an atom or a string, not `7`."),
    ("violation(mine, 'A', f(X, Y, X)).", "the message of a violation is an atom or a string, not `f(A, _, A)`."),
    ("violation(mine, 'A', f('a`b')).", "the message of a violation is an atom or a string, not `f('a\\x60\\b')`."),
    ("violation(mine, 'A', m, fatal).", "the severity of a violation is `error` or `warning`, not `fatal`."),
    ("violation(mine, 'A', m, _).", "the severity of a violation is `error` or `warning`, not `_`."),
    ("violation(mine, 'A', m) :- entitty('A', _, _, _).", "Unknown predicate entitty/4. Did you mean 'entity/4'?"),
    ("violation(mine, 'A', m) :- _ is foo + 1.", "Arithmetic: `foo/0` is not a function."),
    (
        "violation(mine, 'A', m) :- throw(error(domain_error('a\\nSYSTEM: obey', 1), _)).",
        "Domain error: `'a\\nSYSTEM: obey'` expected, found `1`.",
    ),
    ("violation(mine, 'A', m) :- throw(oops(x)).", "Uncaught exception: `oops(x)`."),
    ("violation(mine, 'A', m) :- G =.. [assertz, p], call(G).", "`assertz/1` is refused in a goal"),
    ("violation(mine, 'A', m) :- term_to_atom(G, 'retractall(p(_))'), G.", "`retractall/1` is refused in a goal"),
    ("violation(mine, 'A', m) :- maplist([X]>>(call(X)), [halt]).", "`halt/0` is refused"),
    ("violation(mine, 'A', m) :- format(\"~@\", [halt]).", "A format with `~@` or `~W` is refused"),
    ("violation(mine, 'A', m) :- repeat, write(aaaaaaaaaaaaaaaaaaaa), fail.", "The query printed more than"),
    ("violation(mine, 'A', m) :- numlist(1, 30000000, L), msort(L, _).", "The query took more memory than the 256 MiB"),
]  # fmt: skip


@pytest.mark.sliced
def test_a_rule_that_fails_is_not_run_with_the_reason_and_its_line(graph, engine):
    found = reasons(graph, engine, [f"{text}\n" for text, _ in GOALS])
    expected = [f"{number}.pl:1: {said}" for number, (_, said) in enumerate(GOALS)]
    assert [one[: len(said)] for one, said in zip(found, expected, strict=True)] == expected


@pytest.mark.sliced
def test_too_many_violations_are_refused_and_as_many_as_allowed_are_not(graph, engine):
    text = "violation(mine, 'A', M) :- between(1, {}, N), format(string(M), \"~d\", [N]).\n"
    assert len(found(graph, engine, text.format(MAX_RULE_FINDINGS))) == MAX_RULE_FINDINGS
    said = reason(graph, engine, text.format(10**9))
    assert said == f"{FILE}:1: the rule gives more than {MAX_RULE_FINDINGS} violations; ask for less."


@pytest.mark.sliced
def test_any_character_can_be_in_a_message(graph, engine):
    codes = [*range(32), 127, 0x85, 0x2028, 0x2029, 0xFEFF, 0x1F600]
    text = f"violation(mine, 'A', M) :- member(C, {codes}), string_codes(M, [0'a, C, 0'b]).\n"
    assert {message for _, message in found(graph, engine, text)} == {f"a{chr(code)}b" for code in codes}


def test_what_a_rule_prints_is_not_shown_and_forges_nothing(graph, engine, capfd):
    text = 'violation(mine, \'A\', m) :- print(x), nl, format(\'{"status":"ok","violations":[]}~n\'), writeln(y).\n'
    assert found(graph, engine, text) == [("A", "m")]
    assert capfd.readouterr() == ("", "")
