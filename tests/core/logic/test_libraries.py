"""Libraries that are loaded when clauses and queries are there already, and the exact reading of clauses."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from kbcore.errors import PrologFailed
from kbcore.logic.clauses import ClauseChange
from kbcore.text.escaping import in_quotes
from tests.support.logic.workspaces import LogicProject
from tests.support.repository.clauses import new

SEQUENCE = ":- use_module(library(dcg/high_order))."


def runs(path: Path, arguments: str = "_, _, _") -> str:
    """Return a lambda that would make a file by a program."""
    return f"[{arguments}]>>shell('touch {path}')"


@pytest.mark.sliced
def test_a_clause_that_names_an_export_before_its_library_is_loaded_checks_its_goals(
    logic: LogicProject, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    # As records of another front end may have them, where no engine has looked at the clause.
    logic.source().clauses.change(
        lambda _: ClauseChange(
            [
                new("evil(G) :- sequence(G, _, [a], _).", name="evil/1"),
                new(SEQUENCE, kind="directive", name="use_module"),
            ]
        )
    )
    assert logic.failure(f"evil({runs(made)})").data["name"] == "shell/1"
    logic.add(f"also(G) :- sequence(G, _, [a], _). {SEQUENCE}")
    assert logic.failure(f"also({runs(made)})").data["name"] == "shell/1"
    assert not made.exists()


def test_a_directive_that_changes_the_names_of_a_library_is_refused_by_name(logic: LogicProject) -> None:
    for named, imports in {
        "list_to_assoc/2 as make": "[get_assoc/3, list_to_assoc/2 as make]",
        "except([get_assoc/3])": "except([get_assoc/3])",
        "make": "[make]",
    }.items():
        [outcome] = logic.add(f":- use_module(library(assoc), {imports}).").outcomes
        assert (outcome.status, outcome.message.partition(" is refused")[0]) == ("error", f"`{named}`")
    assert logic.snapshot() == ""
    assert "library(assoc), which is not loaded" in logic.failure("list_to_assoc([], A)").message
    assert logic.add(":- use_module(library(assoc), [get_assoc/3]). :- use_module(library(lists), all).").succeeded == 2
    assert logic.values("list_to_assoc([a-1], A), get_assoc(a, A, X)", "X") == ["1"]


@pytest.mark.sliced(1)
@pytest.mark.parametrize("mode", ["engine", "standard"])
def test_a_query_that_is_open_while_a_library_is_loaded_checks_its_goals(
    logic: LogicProject, tmp_path: Path, mode: str
) -> None:
    made = tmp_path / "made"
    goal = f"member(X, [1, 2]), (X == 1 -> true ; sequence({runs(made)}, [b], [a], _))"
    logic.start(goal, mode)  # type: ignore[arg-type]
    assert logic.next()["bindings"] == {"X": "1"}
    logic.add(SEQUENCE)
    with pytest.raises(PrologFailed) as caught:
        logic.next()
    assert caught.value.data["kind"] in {"unknown_predicate", "refused", "query_lost"}
    assert not made.exists()


def test_clauses_that_no_engine_has_checked_are_held_back_with_the_reason(logic: LogicProject) -> None:
    texts = {
        "p(X) :- shell(X).": "refused",
        "p(X :- .": "Syntax error",
        "p(2). p(3).": "one clause is expected",
        "append(X, Y, Z).": "as the head of a clause",
        ":- initialization(p).": "only `dynamic` and `use_module`",
        SEQUENCE: "says that it is a clause",
    }
    kinds = {":- initialization(p).": "directive"}
    wrong = [new(text, kind=kinds.get(text, "clause")) for text in texts]
    fake = new("q(1).", kind="directive")
    changed = logic.source().clauses.change(lambda _: ClauseChange([*wrong, fake, new("p(1).")]))
    for _ in ("the engine that loads them", "another one"):
        assert logic.values("p(X)", "X") == ["1"]
        assert logic.failure("q(X)").data["kind"] == "unknown_predicate"
        assert logic.failure("sequence(a, b, c, d)").data["kind"] == "unknown_predicate"
        found = logic.prolog.held_back["held_back"]
        assert (found["count"], [one["id"] for one in found["clauses"]]) == (7, [*changed.ids[:7]])
        for one, why in zip(found["clauses"], [*texts.values(), "says that it is a directive"], strict=True):
            assert why in one["message"]
        assert sum(found["clauses"][0]["id"] in one for one in logic.prolog.notices) == 1
        logic.prolog.notices.clear()
        logic.prolog.close()
    logic.source().clauses.change(lambda _: ClauseChange(removed=changed.ids[:7]))
    assert logic.values("p(X)", "X") == ["1"]
    assert logic.prolog.held_back == {}


WRONG = ["x(1", "). x(2).", "x(3). /*", "*/ x(4).", "x(5)", ".", "x :- q = *.", "", "x(6). x(7).", "x(8). % more", "'"]
"""Texts that are no single clause with its full stop each, but for the ninth, and of which two may look like one."""


@pytest.mark.sliced
def test_each_record_is_read_by_itself_whatever_stands_before_and_after_it(logic: LogicProject) -> None:
    good = ['p(1, "é 😀").', "p(2, a\r) :-\n    true.", "/* c */ p(3, 'it''s').", "p(4, X) :- X = 0'. ."]
    texts = [one for text in WRONG for one in (text, *good)] + [*WRONG]
    records = [new(text, name="p/2" if text in good else "x/1") for text in texts]
    changed = logic.source().clauses.change(lambda _: ClauseChange(records))
    for _ in ("the engine that loads them", "another one"):
        assert logic.values("p(N, _)", "N") == ["1", "2", "3", "4"] * len(WRONG)
        assert logic.values("x(N)", "N") == ["8", "8"]
        assert logic.values("p(1, X), !", "X") == ['"é 😀"']
        held_back = {one["id"] for one in logic.prolog.held_back["held_back"]["clauses"]}
        wrong = {key for key, text in zip(changed.ids, texts, strict=True) if text in WRONG and text != WRONG[9]}
        assert held_back == wrong
        logic.prolog.notices.clear()
        logic.prolog.close()


@pytest.mark.sliced
def test_a_head_is_checked_for_each_predicate_and_record(logic: LogicProject) -> None:
    texts = {"p(1).": "p/1", "p(2).": "p/1", "append(1, 2, 3).": "p/1", "p(3).": "q/1", "q(4).": "q/1", "p(5).": "p/1"}
    records = [new(text, name=name) for text, name in texts.items()]
    logic.source().clauses.change(lambda _: ClauseChange(records))
    assert logic.values("p(X)", "X") == ["1", "2", "5"]
    assert logic.values("q(X)", "X") == ["4"]
    assert logic.prolog.held_back["held_back"]["count"] == 2
    logic.prolog.notices.clear()


def test_a_record_that_names_another_predicate_than_its_text_is_held_back(logic: LogicProject) -> None:
    records = [new("p(2).", name="zzz/9"), new("", name="e/0"), new("p(1).")]
    changed = logic.source().clauses.change(lambda _: ClauseChange(records))
    assert logic.values("p(X)", "X") == ["1"]
    assert logic.failure("end_of_file").data["kind"] == "unknown_predicate"
    named = logic.prolog.held_back["held_back"]["clauses"]
    assert [one["id"] for one in named] == [*changed.ids[:2]]
    assert named[0]["message"] == "Its record says that it is of 'zzz/9', and its text does not."
    logic.prolog.notices.clear()


@pytest.mark.parametrize("said", ["zz/1", "'my pred'/1", "`x`\n/1", ""])
def test_a_record_with_another_name_is_named_by_what_the_record_says(logic: LogicProject, said: str) -> None:
    record = new("h(4).", name=said)
    logic.source().clauses.change(lambda _: ClauseChange([record]))
    assert logic.failure("h(4)").data["kind"] == "unknown_predicate"
    [one] = logic.prolog.held_back["held_back"]["clauses"]
    assert one["message"] == f"Its record says that it is of {in_quotes(said)}, and its text does not."
    logic.prolog.notices.clear()


def test_a_directive_whose_record_says_that_it_is_another_one_is_held_back(logic: LogicProject) -> None:
    record = new(":- use_module(library(assoc)).", kind="directive", name="dynamic")
    changed = logic.source().clauses.change(lambda _: ClauseChange([record]))
    assert "library(assoc), which is not loaded" in logic.failure("list_to_assoc([], A)").message
    assert [one["id"] for one in logic.prolog.held_back["held_back"]["clauses"]] == [*changed.ids]
    logic.prolog.notices.clear()


def test_a_directive_whose_record_names_other_predicates_is_held_back(logic: LogicProject) -> None:
    records = [
        new(":- dynamic d/1.", kind="directive", name=name) for name in ("dynamic\ne/1", "dynamic\nd/1", "dynamic")
    ]
    changed = logic.source().clauses.change(lambda _: ClauseChange(records))
    assert logic.answers("d(_)") == []
    assert [one["id"] for one in logic.prolog.held_back["held_back"]["clauses"]] == [changed.ids[0]]
    logic.prolog.notices.clear()


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("h(3).", "h( 3 )."),
        ("h(X, Y) :- (g(X), g(Y)), g(X).", "h(A, B) :- (g(A), g(B)), g(A)."),
        ("g --> [a], g.", "g --> [a], g."),
        (":- dynamic d/1.", ":- dynamic d/1."),
    ],
)
def test_a_clause_whose_record_has_a_wrong_key_is_retracted_by_its_text(
    logic: LogicProject, text: str, given: str
) -> None:
    names = {"h(3).": "h/1", "g --> [a], g.": "g/2", ":- dynamic d/1.": "dynamic"}
    kind = "directive" if text.startswith(":-") else "clause"
    other = logic.add("h(4).", "h(_).", "h(Z, Z) :- g(Z).", "g(1).", "g([a|S0], S) :- g(S0, S).")
    record = new(text, key="00", kind=kind, name=names.get(text, "h/2"))
    logic.source().clauses.change(lambda _: ClauseChange([record, record]))
    assert logic.prolog.retract_clauses(logic.source(), [given], f"cs-{len(given)}").succeeded == 1
    again = logic.prolog.retract_clauses(logic.source(), [given], f"cs-{len(given)}")
    assert (again.succeeded, again.changed.is_duplicate) == (1, True)
    assert logic.remove(given, given).succeeded == 1
    assert logic.remove(given).succeeded == 0
    assert logic.snapshot() == "\n".join(one.clause for one in other.outcomes)
    assert logic.prolog.held_back == {}


def test_a_retract_takes_the_text_also_where_another_record_has_its_key(logic: LogicProject) -> None:
    logic.add("p(1).")
    [right] = logic.source().clauses.read().clauses
    logic.source().clauses.change(
        lambda _: ClauseChange([new("p(2).", key=right.key), new("p(1).", key="00")], [right.id])
    )
    assert logic.remove("p(1).").succeeded == 1
    assert logic.values("p(X)", "X") == ["2"]
    assert logic.remove("p(2).").succeeded == 1


def test_a_clause_with_a_dict_has_one_key_in_all_processes(logic: LogicProject) -> None:
    def key(text: str) -> str:
        return logic.prolog.parse(logic.source(), text, "unchecked")[0].key

    for number, (first, second) in enumerate([("X", "Y"), ("1", "2")]):
        one, two = f"zzq{number}", f"aaq{number}"
        logic.prolog.close()
        before = key(f"p(_{{{one}: {first}, {two}: {second}}}, {first}, {second}).")
        logic.prolog.close()
        key(f"q({two}, {one}).")  # the engine sorts the keys of a dict by when it has first read them
        assert key(f"p(_{{{one}: {first}, {two}: {second}}}, {first}, {second}).") == before
        assert key(f"p(_{{{two}: {second}, {one}: {first}}}, {first}, {second}).") == before
        assert key(f"p(_{{{two}: {first}, {one}: {second}}}, {first}, {second}).") != before


def test_a_clause_with_a_dict_is_retracted(logic: LogicProject) -> None:
    logic.add("p(_{zzq: X, aaq: Y}, X, Y).")
    assert logic.remove("p(_{aaq: B, zzq: A}, B, A).").succeeded == 0
    assert logic.remove("p(_{aaq: B, zzq: A}, A, B).").succeeded == 1


def test_a_record_with_the_key_of_another_text_is_not_removed_in_its_place(logic: LogicProject) -> None:
    logic.add("p(1).")
    [right] = logic.source().clauses.read().clauses
    records = [new(text, key=right.key) for text in ("p(2).", "p( 3 ).")]
    logic.source().clauses.change(lambda _: ClauseChange(records))
    assert logic.remove("p(1).").succeeded == 1
    assert logic.remove("p(1).").succeeded == 0
    assert logic.values("p(X)", "X") == ["2", "3"]


def test_many_clauses_that_are_held_back_are_counted_and_few_are_noticed(logic: LogicProject) -> None:
    logic.prolog.notices.clear()
    logic.source().clauses.change(lambda _: ClauseChange([new(f"p({n}) :- shell({n}).") for n in range(300)]))
    assert logic.failure("p(X)").data["kind"] == "unknown_predicate"
    found = logic.prolog.held_back["held_back"]
    assert (found["count"], len(found["clauses"])) == (300, 200)
    assert len(logic.prolog.notices) == 11
    assert logic.prolog.notices[-1].startswith("290 further clauses are not loaded.")
    logic.prolog.notices.clear()


@pytest.mark.sliced
def test_an_export_that_is_not_allowed_is_not_imported(logic: LogicProject, tmp_path: Path) -> None:
    made = tmp_path / "made"
    logic.add("group_by(a, b, c, d). evil(G) :- group_by(x, x, G, _).")
    assert logic.remove("group_by(a, b, c, d)").succeeded == 1
    logic.add(":- use_module(library(solution_sequences)).")
    assert logic.failure(f"evil(shell('touch {made}'))").data["kind"] == "unknown_predicate"
    assert not made.exists()


@pytest.mark.sliced
def test_what_a_library_calls_is_rewritten_in_the_workspace(logic: LogicProject) -> None:
    logic.add(":- use_module(library(solution_sequences)). :- use_module(library(assoc)).", "p(3). p(1). p(1).")
    assert logic.values("distinct(X, p(X))", "X") == ["3", "1"]
    assert logic.values("limit(2, order_by([asc(X)], p(X)))", "X") == ["1", "1"]
    assert logic.values("list_to_assoc([a-1], A), map_assoc([V, W]>>(W is V + 1), A, B), get_assoc(a, B, X)", "X") == [
        "2"
    ]
    assert logic.failure("limit(1, shell(ls))").data["name"] == "shell/1"


@pytest.mark.sliced
def test_a_retract_takes_no_clause_whose_numbers_or_terms_are_only_similar(logic: LogicProject) -> None:
    logic.add("p(0.30000000000000004).", "r('$kb_variable'(0)).")
    assert logic.remove("p(0.3)", "r(X)").succeeded == 0
    assert logic.remove("p(0.30000000000000004)", "r('$kb_variable'(0))").succeeded == 2


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("p('50%')", "p('50%')."),
        ("p(1) % c", "p(1) % c\n."),
        ("p(+)", "p(+)."),
        ("p :- q, X = *", "p :- q, X = * ."),
        ("p(1).", "p(1)."),
    ],
)
def test_a_clause_without_its_full_stop_gets_the_shortest_one_that_reads(
    logic: LogicProject, typed: str, kept: str
) -> None:
    logic.add(typed)
    assert logic.snapshot() == kept


def test_an_edge_type_with_the_name_of_a_predicate_of_the_engine_is_a_predicate(logic: LogicProject) -> None:
    names = ("original", "declared_graph", "checked_goal", "loaded", "f_edge")
    edges = "".join(f"  {name}: {{from: [req], to: [req]}}\n" for name in names)
    logic.project.write({".kb/schema/names.yaml": f"edges:\n{edges}"})
    for name in names:
        assert logic.answers(f"{name}(X, Y)") == []


@pytest.mark.sliced
def test_no_operator_calls_what_it_joins(logic: LogicProject, tmp_path: Path) -> None:
    made = tmp_path / "made"
    names = {
        name for kind in ("xfx", "xfy", "yfx", "fx", "fy") for name in logic.values(f"current_op(_, {kind}, X)", "X")
    }
    assert len(names) > 60
    program = f"shell('touch {made}')"
    for name in sorted(names):
        quoted = name if name.startswith("'") else f"'{name}'"
        for goal in (f"{quoted}(fail, {program})", f"{quoted}(true, {program})", f"{quoted}({program})"):
            try:
                logic.first(f"G = {goal}, call(G)")
            except PrologFailed as error:
                assert error.data["kind"] != "crash"  # noqa: PT017 - most goals are refused, and some only fail
            assert not made.exists(), goal


@pytest.mark.sliced(1)
@pytest.mark.parametrize(
    "what", ["setof(V, G, L)", "bagof(V, G, L)", "aggregate(bag(V), G, L)", "aggregate(count, G, L)"]
)
def test_variables_of_a_goal_that_is_known_at_run_time_are_quantified(logic: LogicProject, what: str) -> None:
    generator = "K^member(K-V, [a-1, b-2, a-3])"
    known = logic.values(what.replace("G", generator, 1), "L")
    assert known
    assert logic.values(f"G = {generator}, {what}", "L") == known
    logic.add(f"asked(G, V, L) :- {what}.")
    assert logic.values(f"asked({generator}, V, L)", "L") == known
    assert logic.failure(what).data["kind"] == "instantiation_error"


def test_a_reset_by_another_process_loses_the_open_query(logic: LogicProject) -> None:
    logic.add("p(1). p(2).")
    assert logic.first("p(X)")["bindings"] == {"X": "1"}
    logic.reset()
    with pytest.raises(PrologFailed, match="the workspace was reset"):
        logic.next()


@pytest.mark.parametrize("limit", [3, 6, 9, 12, 14])
def test_a_goal_that_ends_while_the_graph_is_loaded_leaves_no_rest_of_it(logic: LogicProject, limit: int) -> None:
    logic.project.write(
        {f"docs/requirements/{n}.md": f"---\nid: REQ-{n}\ntype: req\ntitle: T\n---\n" for n in range(3)}
    )
    logic.project.sync()
    with contextlib.suppress(PrologFailed):
        logic.first(f"call_with_depth_limit(entity(A, B, C, D), {limit}, R)")
    assert logic.first("X = 1")["bindings"] == {"X": "1"}
    assert logic.values("findall(A, entity(A, _, _, _), L), length(L, N)", "N") == ["3"]


def test_a_cleanup_that_asks_for_the_graph_does_not_empty_it(logic: LogicProject) -> None:
    logic.project.write({"docs/requirements/1.md": "---\nid: REQ-1\ntype: req\ntitle: T\n---\n"})
    logic.project.sync()
    logic.first("setup_call_cleanup(true, member(X, [1, 2]), ignore(entity(_, _, _, _)))")
    logic.prolog.close_query()
    assert "'REQ-1'" in logic.values("entity(A, _, _, _)", "A")


@pytest.mark.parametrize("sink", ["protocol", "user_output", "user_error", "kb_null", "1"])
def test_output_is_directed_to_texts_only(logic: LogicProject, sink: str) -> None:
    assert logic.failure(f"with_output_to({sink}, write(x))").data["reason"] == "stream"
    assert logic.values("with_output_to(string(S), (write(a), print(b)))", "S") == ['"ab"']


@pytest.mark.sliced
def test_many_large_values_are_cut_to_the_size_of_an_answer(logic: LogicProject) -> None:
    names = ", ".join(f"V{number} = A" for number in range(90))
    answer = logic.first(f"length(L, 500000), maplist(=(0'\"), L), atom_codes(A, L), {names}")
    assert answer["truncated"]
    assert sum(map(len, answer["bindings"].values())) < 2_000_000
    error = logic.failure("length(L, 100000), throw(error(existence_error(procedure, L), _))")
    assert len(error.message) < 3_000
