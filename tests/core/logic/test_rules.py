"""Rules in Prolog: what a file of rules may hold and do, what it gives, and what a check says where it cannot run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore import rules
from kbcore.limits import MAX_RULE_FINDINGS, MAX_RULE_MESSAGE_CHARS
from kbcore.logic.engine.installation import node_programs
from kbcore.logic.graph_facts import all_facts
from kbcore.logic.nesting import TOO_DEEP
from kbcore.logic.rules import RulesEngine
from kbcore.model.schema import CORE
from kbcore.process import interrupting
from kbcore.process.interrupting import CurrentWork, Stopped
from kbcore.rules import CheckReport, RuleContext, load_rules
from kbcore.view.relations import RELATIONS
from kbcore.view.sandbox import Sandbox, TimeLeft, Times
from tests.support.repository.repos import git_env
from tests.support.views.graph import Graph, graph_of, link, node

FILE = ".kb/rules/a.pl"
RULE = 'rule(mine, "What is asked for.").\n'
TIME_S = 20.0
SHORT_S = 1.0


@pytest.fixture(scope="module")
def graph() -> Graph:
    return graph_of(
        [node("A", path="docs/a.md", title="One", status="open"), node("B", owner="ann"), node("C", type="test")],
        [link("A", "depends_on", "B"), link("A", "verified_by", "C")],
    )


def place(
    graph: Graph, engine: dict[str, str], *, times: Times | None = None, left: TimeLeft | None = None
) -> RulesEngine:
    """Return what runs rules over a graph."""
    times = times or Times(TIME_S, now_s=time.monotonic)
    left = left or TimeLeft(times.total_s)
    env = git_env(engine)
    return RulesEngine(env, lambda: sorted(all_facts(graph)), CORE.edges, times, left)  # type: ignore[arg-type]


def report(graph: Graph, files: dict[str, str], prolog: RulesEngine) -> CheckReport:
    """Return what the rules of these files find."""
    project = load_rules(files)
    context = RuleContext(graph.rows, CORE, None, prolog=prolog)
    with prolog:
        return rules.check(context, {}, only=[one.id for one in project], project=project)


def found(graph: Graph, engine: dict[str, str], text: str, *, stated: str = RULE) -> list[tuple[str, str]]:
    """Return id and message of each violation of the rule ``mine``, which must have been able to run."""
    result = report(graph, {FILE: stated + text}, place(graph, engine))
    assert [(one.status, one.reason) for one in result.rules] == [("ran", "")]
    return [(one.id, one.message) for one in result.violations]


def reason(graph: Graph, engine: dict[str, str], text: str, *, stated: str = RULE, times: Times | None = None) -> str:
    """Return why the rule ``mine`` could not run."""
    result = report(graph, {FILE: stated + text}, place(graph, engine, times=times))
    assert ([one.status for one in result.rules], result.violations, result.ok) == (["not_run"], [], False)
    return result.rules[0].reason


# What a rule gives


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


# Files


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


@pytest.mark.sliced
def test_one_engine_serves_all_files_and_it_is_not_started_where_no_rule_runs(graph, engine):
    text = 'rule({0}, "d").\nviolation({0}, \'A\', "m").\n'
    project = load_rules({f"{name}.pl": text.format(name) for name in ("a", "b", "c")})
    pids = set()
    with place(graph, engine) as prolog:
        context = RuleContext(graph.rows, CORE, None, prolog=prolog)
        rules.check(context, {}, only=["acyclic"], project=project)
        assert prolog._engine is None
        for one in project:
            rules.check(context, {}, only=[one.id], project=project)
            assert prolog._engine is not None
            pids.add(prolog._engine.pid)
    assert len(pids) == 1
    with pytest.raises(ProcessLookupError):
        os.kill(pids.pop(), 0)


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


def reasons(graph: Graph, engine: dict[str, str], texts: Iterable[str]) -> list[str]:
    """Return of each of these files why its rule ``mine`` could not run, all in one engine."""
    found = []
    with place(graph, engine) as prolog:
        context = RuleContext(graph.rows, CORE, None, prolog=prolog)
        for number, text in enumerate(texts):
            project = load_rules({f"{number}.pl": RULE + text})
            result = rules.check(context, {}, only=["mine"], project=project)
            assert not result.violations
            found.append(result.rules[0].reason)
    return found


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


# Runs that are refused

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


ENDLESS = [
    "violation(mine, 'A', m) :- repeat, fail.\n",
    "violation(mine, 'A', m) :- loop.\nloop :- loop.\n",
    "violation(mine, 'A', m) :- repeat.\n",
    "violation(mine, 'A', m) :- X is 7 ** (7 ** 9), atom_length(X, _).\n",
]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("text", ENDLESS, ids=["fails", "calls", "repeats", "integer"])
def test_a_rule_that_does_not_end_is_ended_and_the_next_one_runs(graph, engine, text):
    files = {FILE: f'{RULE}rule(late, "l").\nviolation(late, Id, m) :- depends_on(Id, _).\n{text}'}
    times = Times(SHORT_S, now_s=time.monotonic)
    result = report(graph, files, place(graph, engine, times=times))
    assert [(one.id, one.status) for one in result.rules] == [("mine", "not_run"), ("late", "ran")]
    assert [(one.rule, one.id) for one in result.violations] == [("late", "A")]
    assert result.rules[0].reason in {
        (
            f"{FILE}:1: the rule was ended: it did not end within 1 s; "
            "`ruleTimeLimitSeconds` in .kb/config.json is the limit."
        ),
        f"{FILE}:1: The query took more memory than the 256 MiB it may.",
        f"{FILE}:1: the rule was ended: it takes more than 1024 MiB of memory.",
    }


@pytest.mark.sliced
def test_the_limits_of_the_user_are_named(graph, engine):
    times = Times(TIME_S, most_s=0.5, most_by="`limits.ruleTimeSeconds`", now_s=time.monotonic)
    assert reason(graph, engine, ENDLESS[0], times=times) == (
        f"{FILE}:1: the rule was ended: it did not end within 0.5 s; `limits.ruleTimeSeconds` is the limit."
    )


@pytest.mark.sliced
def test_the_time_of_all_rules_is_shared_with_those_in_sql(graph, engine):
    times = Times(TIME_S, total_s=3.0, total_by="`limits.rulesTimeSeconds`", now_s=time.monotonic)
    left = TimeLeft(times.total_s)
    sql = "rules:\n- id: later\n  sql: select id, 'm' as message from entity\n"
    project = load_rules({FILE: RULE + ENDLESS[0], "b.yaml": sql})
    with Sandbox(partial(lend, graph), times, left) as sandbox, place(graph, engine, times=times, left=left) as prolog:
        context = RuleContext(graph.rows, CORE, None, sandbox, prolog=prolog)
        result = rules.check(context, {}, only=["mine", "later"], project=project)
    said = "all rules of the project have 3 s, and none is left; `limits.rulesTimeSeconds` is the limit."
    assert [one.reason for one in result.rules] == [
        f"{FILE}:1: the rule was ended: {said}",
        f"b.yaml:3: the SQL was ended: {said}",
    ]


@pytest.mark.sliced
def test_any_character_can_be_in_a_message(graph, engine):
    codes = [*range(32), 127, 0x85, 0x2028, 0x2029, 0xFEFF, 0x1F600]
    text = f"violation(mine, 'A', M) :- member(C, {codes}), string_codes(M, [0'a, C, 0'b]).\n"
    assert {message for _, message in found(graph, engine, text)} == {f"a{chr(code)}b" for code in codes}


def test_what_a_rule_prints_is_not_shown_and_forges_nothing(graph, engine, capfd):
    text = 'violation(mine, \'A\', m) :- print(x), nl, format(\'{"status":"ok","violations":[]}~n\'), writeln(y).\n'
    assert found(graph, engine, text) == [("A", "m")]
    assert capfd.readouterr() == ("", "")


@pytest.mark.sliced
def test_the_work_can_be_stopped_while_a_rule_runs(graph, engine):
    work = CurrentWork()
    with place(graph, engine) as prolog, interrupting.done_for(work):
        project = load_rules({FILE: RULE + ENDLESS[0]})
        context = RuleContext(graph.rows, CORE, None, prolog=prolog)
        threading.Timer(1.5, work.stop).start()
        with pytest.raises(Stopped):
            rules.check(context, {}, only=["mine"], project=project)


@pytest.mark.sliced
def test_an_engine_that_dies_is_started_again_for_the_next_rule(graph, engine):
    files = {FILE: f"{RULE}violation(mine, 'A', m).\n"}
    project = load_rules(files)
    with place(graph, engine) as prolog:
        context = RuleContext(graph.rows, CORE, None, prolog=prolog)
        check = partial(rules.check, context, {}, only=["mine"], project=project)
        assert check().ok is False
        assert prolog._engine is not None
        os.kill(prolog._engine.pid, 9)
        assert check().rules[0].reason == f"{FILE}:1: The engine was killed."
        assert [one.id for one in check().violations] == ["A"]


def test_without_an_engine_a_rule_is_not_run_and_says_what_is_missing_of_each(graph):
    env = {"PATH": "/nowhere", "HOME": "/nowhere"}
    prolog = RulesEngine(env, list, CORE.edges, Times(TIME_S), TimeLeft(TIME_S))
    result = report(graph, {FILE: f"{RULE}violation(mine, 'A', m).\n"}, prolog)
    [run] = result.rules
    assert (run.status, run.reason.count("\n")) == ("not_run", 0)
    assert run.reason.startswith(f"{FILE}:1: there is no Prolog engine on this machine (native: no `swipl` on the PATH")
    assert "wasm: " in run.reason


@pytest.mark.skipif(not any(node_programs(os.environ)), reason="there is no node")
def test_the_command_that_fetches_the_package_is_named_as_a_shell_takes_it(graph, tmp_path):
    env = git_env({"KB_LOGIC_ENGINE": "wasm", "XDG_DATA_HOME": str(tmp_path)})
    prolog = RulesEngine(env, list, CORE.edges, Times(TIME_S), TimeLeft(TIME_S))
    result = report(graph, {FILE: f"{RULE}violation(mine, 'A', m).\n"}, prolog)
    assert result.rules[0].reason.endswith("is not installed; `kb prolog install` fetches it).")


# SQL and Prolog


def lend(graph: Graph, table: str, path: str) -> None:
    """Copy a relation of a graph into a database file."""
    graph.connection.execute(f"attach '{path}' as lent")
    graph.connection.execute(f"create table lent.{table} as {RELATIONS[table].select}")
    graph.connection.execute("detach lent")


BOTH = {
    "no-owner": (
        "select id, title || ' has no owner' as message from entity where type = 'req' and owner is null",
        'entity(Id, req, Title, _), \\+ attr(Id, owner, _), string_concat(Title, " has no owner", M)',
    ),
    "two-steps": (
        (
            "select distinct a.from_id as id, 'leads to ' || b.to_id as message from edge a "
            "join edge b on a.to_id = b.from_id "
            "where a.type = 'depends_on' and b.type = 'depends_on'"
        ),
        "depends_on(Id, Next), depends_on(Next, To), atom_concat('leads to ', To, M)",
    ),
    "doubtful": (
        "select id, type || ' is doubtful' as message from edge where confidence < 0.5",
        (
            "edge(Type, _, _, Props), memberchk(confidence-C, Props), C < 0.5, memberchk(id-Id, Props), "
            "atom_concat(Type, ' is doubtful', M)"
        ),
    ),
    "tagged": (
        "select id, 'is for ' || t as message from (select id, unnest(tags) as t from entity) where t <> 'all'",
        'attr(Id, tags, Tags), member(T, Tags), T \\== "all", string_concat("is for ", T, M)',
    ),
    "no-test": (
        (
            "select id, status || ' without a test' as message from entity where type = 'req' "
            "and id not in (select from_id from edge where type = 'verified_by')"
        ),
        "entity(Id, req, _, Status), \\+ verified_by(Id, _), atom_concat(Status, ' without a test', M)",
    ),
}
IDS = ["A", "B 1", "c'd", "é\\n", 'q"', "REQ-10", "REQ-9"]
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8).map(lambda text: f"t{text}t")
NODES = st.builds(
    dict,
    type=st.sampled_from(["req", "test"]),
    title=TEXTS,
    status=st.sampled_from(["open", "done"]),
    owner=st.none() | TEXTS,
    tags=st.lists(st.sampled_from(["all", "web", "a'b"]), unique=True, max_size=2),
)
EDGES = st.tuples(
    st.sampled_from(IDS),
    st.sampled_from(["depends_on", "verified_by"]),
    st.sampled_from(IDS),
    st.none() | st.sampled_from([0.25, 0.5, 0.75]),
)


@pytest.fixture(scope="module")
def both(engine: dict[str, str]) -> Iterator[tuple[Sandbox, dict[str, str]]]:
    """A place for SQL, and an engine."""
    with Sandbox(lambda *_: None, Times(TIME_S, total_s=600)) as sandbox:
        yield sandbox, engine


@pytest.mark.sliced
@given(
    nodes=st.dictionaries(st.sampled_from(IDS), NODES, max_size=6),
    edges=st.lists(EDGES, max_size=8, unique_by=lambda edge: edge[:3]),
)
def test_rules_that_say_the_same_in_sql_and_prolog_give_the_same_violations(both, nodes, edges):
    sandbox, name = both
    graph = graph_of(
        [
            node(key, path=f"docs/{at}.md", **{k: v for k, v in one.items() if v})
            for at, (key, one) in enumerate(nodes.items())
        ],
        [
            link(a, type_, b, fields={} if confidence is None else {"confidence": confidence})
            for a, type_, b, confidence in edges
            if a in nodes and b in nodes
        ],
    )
    sandbox.switch_to(partial(lend, graph))
    sql = "".join(f'- id: {rule}\n  description: d\n  sql: "{one}"\n' for rule, (one, _) in BOTH.items())
    prolog = "".join(
        f"rule('{rule}-p', \"d\").\nviolation('{rule}-p', Id, M) :- {one}.\n" for rule, (_, one) in BOTH.items()
    )
    project = load_rules({"a.yaml": f"rules:\n{sql}", "b.pl": prolog})
    with place(graph, name) as runs:
        context = RuleContext(graph.rows, CORE, None, sandbox, prolog=runs)
        result = rules.check(context, {}, only=[one.id for one in project], project=project)
    assert {one.status for one in result.rules} == {"ran"}, result.rules
    by_rule: dict[str, list[dict[str, object]]] = {one.id: [] for one in project}
    for one in result.violations:
        by_rule[one.rule].append(one.as_json() | {"rule": one.rule.removesuffix("-p")})
    assert [by_rule[rule] for rule in BOTH] == [by_rule[f"{rule}-p"] for rule in BOTH]


# What cannot be read


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
