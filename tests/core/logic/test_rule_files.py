"""Files of rules in Prolog: what a file may hold and sees of others, and how its faults are reported."""

from __future__ import annotations

import pytest

from kbcore.logic.nesting import TOO_DEEP
from tests.support.logic.rules import FILE, RULE, found, place, reason, reasons, report


@pytest.mark.sliced
def test_a_clause_may_call_a_later_one_that_has_the_name_of_a_predicate_of_a_library(graph, engine):
    text = "violation(mine, 'A', M) :- get_assoc(M, b, c).\nget_assoc(v, b, c).\n"
    assert found(graph, engine, text) == [("A", "v")]


@pytest.mark.sliced
def test_a_file_sees_nothing_of_another_one_in_one_engine(graph, engine):
    first = """rule(first, "f").
:- use_module(library(assoc)).
helper(1).
depends_on(own, own).
violation(first, 'A', M) :- helper(_), depends_on(own, own), empty_assoc(_), M = m.
"""
    second = """rule(second, "s").
violation(second, 'A', M) :- helper(_), M = m.
"""
    third = """rule(third, "t").
list_to_assoc(own, own).
violation(third, Id, M) :- depends_on(Id, _), list_to_assoc(own, M).
"""
    files = {".kb/rules/1.pl": first, ".kb/rules/2.pl": second, ".kb/rules/3.pl": third}
    for order in (files, dict(zip(files, reversed(files.values()), strict=True))):
        result = report(graph, order, place(graph, engine))
        runs = {one.id: (one.status, one.reason.partition(": ")[2]) for one in result.rules}
        assert runs == {
            "first": ("ran", ""),
            "second": ("not_run", "Unknown predicate helper/1."),
            "third": ("ran", ""),
        }
        assert {(one.rule, one.id, one.message) for one in result.violations} == {
            ("first", "A", "m"),
            ("third", "A", "own"),
        }


FAULTS = [
    ("violation(mine, 'A', \"m\").\nfoo(.\np.\n", ":3: Syntax error: Unexpected end of clause"),
    ("violation(mine, 'A', \"m\").\n\n  foo(\nbar.\n", ":5: Syntax error: Operator expected"),
    ("violation(mine, 'A', \"m\")", ":2: "),
    ("violation(mine, 'A', \"m\").\np :- assertz(q).\n", ":3: `assertz/1` is refused in a goal"),
    ("violation(mine, 'A', \"m\") :- G = 1, findall(X, (retract(p(X))), _).\n", ":2: `retract/1` is refused in a goal"),
    ("violation(mine, 'A', \"m\") :- other:p.\n", ":2: `other:p/0` is refused: a goal or a head cannot name a module"),
    ("other:violation(mine, 'A', \"m\").\n", ":2: "),
    ("append(a, b, c).\nviolation(mine, 'A', \"m\").\n", ":2: `append/3` is refused as the head of a clause"),
    ("entity(a, b, c, d).\nviolation(mine, 'A', \"m\").\n", ":2: `entity/4` is refused as the head of a clause"),
    ("atom_length(a, b).\nviolation(mine, 'A', \"m\").\n", ":2: `atom_length/2` is refused as the head of a clause"),
    ("portray(a).\nviolation(mine, 'A', \"m\").\n", ":2: `portray/1` is refused: it is a hook"),
    ("term_expansion(a, b).\nviolation(mine, 'A', \"m\").\n", ":2: `term_expansion/2` is refused: it is a hook"),
    (":- initialization(halt).\nviolation(mine, 'A', \"m\").\n", ":2: The directive `(initialization)/1` is refused"),
    (":- use_module(library(process)).\nviolation(mine, 'A', \"m\").\n", ":2: `library(process)` is refused"),
    (
        ":- dynamic z/1000000000.\nviolation(mine, 'A', \"m\").\n",
        ":2: `z/1000000000` is refused: a predicate has at most 1,024 arguments",
    ),
    (":- op(700, xfx, ===>).\nviolation(mine, 'A', \"m\").\n", ":2: The directive `op/3` is refused"),
    ("violation(mine, 'A', \"m\") :- shell(ls).\n", ":2: `shell/1` is refused"),
    ("violation(mine, 'A', \"m\") :- open('/etc/passwd', read, _).\n", ":2: `open/3` is refused"),
    ("violation(mime, 'A', \"m\").\n", ":2: The file states no rule 'mime'. Did you mean 'mine'?"),
    ("violation(f(x), 'A', \"m\").\n", ":2: The file states no rule 'f(x)'."),
    ("p.\n", ":1: No clause of `violation/3` or `violation/4` is for the rule 'mine'."),
    ("violation(mine, 'A', \"m\").\n /* */ rule(second, \"s\").\n", ":3: This fact states no rule."),
    ("violation(mine, 'A', \"m\").\n12.\n", ":3: "),
    ("violation(mine, 'A', \"m\").\nX.\n", ":3: "),
]  # fmt: skip


@pytest.mark.sliced
def test_a_fault_of_a_file_is_reported_with_its_line_and_none_of_its_rules_runs(graph, engine):
    found = reasons(graph, engine, [text for text, _ in FAULTS])
    expected = [f"{number}.pl{said}" for number, (_, said) in enumerate(FAULTS)]
    assert [one[: len(said)] for one, said in zip(found, expected, strict=True)] == expected


@pytest.mark.sliced
def test_a_first_line_that_names_a_program_is_skipped(graph, engine):
    line = "#!/usr/bin/env -S swipl -g 'it is /* no comment\n"
    assert found(graph, engine, "violation(mine, 'A', \"m\").\n", stated=line + RULE) == [("A", "m")]


def test_of_several_faults_the_first_is_named_and_the_others_are_counted(graph, engine):
    text = "violation(mine, 'A', \"m\").\np :- assertz(q).\nfoo(.\nviolation(mime, a, b).\n"
    said = reason(graph, engine, text)
    assert said.startswith(f"{FILE}:3: `assertz/1`")
    assert said.endswith("(2 more)")


@pytest.mark.sliced
def test_a_rule_in_a_comment_is_none(graph, engine):
    texts = ["/*\nrule(other, x).\n*/ ", "p(0'/). /* ' */ q('/*'). /*/\nrule(other, \"o\").\n' **/\n", "% /* it's\n"]
    for text in texts:
        result = report(
            graph, {FILE: f'{text}\nrule(mine, "m").\n/* */ violation(mine, \'A\', "m").\n'}, place(graph, engine)
        )
        assert [(one.id, one.status) for one in result.rules] == [("mine", "ran")]


def test_a_rule_in_a_text_of_several_lines_is_reported_by_its_line(graph, engine):
    text = "p('\nrule(mine, \"m\").\n').\nviolation(mine, a, b).\n"
    result = report(graph, {FILE: text}, place(graph, engine))
    assert result.rules[0].reason == f"{FILE}:2: The engine reads no fact `rule` here."


@pytest.mark.sliced
def test_the_faults_of_one_file_do_not_stop_the_rules_of_another_one(graph, engine):
    files = {FILE: f"{RULE}foo(.\n", ".kb/rules/b.pl": 'rule(fine, "f").\nviolation(fine, \'A\', "m").\n'}
    result = report(graph, files, place(graph, engine))
    assert [(one.id, one.status) for one in result.rules] == [("mine", "not_run"), ("fine", "ran")]
    assert [(one.rule, one.id) for one in result.violations] == [("fine", "A")]


@pytest.mark.sliced
def test_a_file_with_a_clause_that_is_nested_deeply_is_used_and_one_beyond_the_limit_is_named(graph, engine):
    deep = "violation(mine, 'A', m) :- {}true{}.\n"
    assert found(graph, engine, deep.format("(" * 1200, ")" * 1200)) == [("A", "m")]
    beyond = reason(graph, engine, "\n" + deep.format("(" * 9000, ")" * 9000))
    assert beyond == f"{FILE}:3: {TOO_DEEP}"


@pytest.mark.sliced
def test_two_clauses_without_a_space_between_them_are_named_as_such(graph, engine):
    said = reason(graph, engine, "violation(mine, 'A', m).violation(mine, 'B', m).\n")
    assert said.startswith(f"{FILE}:2: Syntax error: a full stop needs a space")


@pytest.mark.sliced
def test_a_file_ends_at_end_of_file_as_prolog_reads_it(graph, engine):
    text = "violation(mine, 'A', m).\nend_of_file.\nviolation(mine, 'B', m).\n"
    assert found(graph, engine, text) == [("A", "m")]
