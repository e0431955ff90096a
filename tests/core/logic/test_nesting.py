"""Clauses, goals and answers that are nested deeply have one outcome on each engine, and no other clause is lost."""

from __future__ import annotations

import pytest

from kbcore.limits import MAX_CLAUSE_CHARS, MAX_CLAUSE_NESTING
from kbcore.logic.clauses import ClauseChange, NewClause
from kbcore.logic.nesting import TOO_DEEP, deep_clauses, without_clauses
from tests.support.logic.workspaces import LogicProject

BRACKETS = [("p :- ", "(", "true", ")"), ("p(", "[", "", "])"), ("p(", "{", "a", "})"), ("p(", "f(", "a", "))")]
MAKE = "make(0, x) :- !.\nmake(N, f(T)) :- M is N - 1, make(M, T)."


def nested(depth: int, start: str = "p :- ", opening: str = "(", inner: str = "true", closing: str = ")") -> str:
    return f"{start}{opening * depth}{inner}{closing[0] * depth}{closing[1:]}."


@pytest.mark.sliced(2)
@pytest.mark.parametrize("parts", BRACKETS, ids=[one[1] for one in BRACKETS])
@pytest.mark.parametrize("depth", [950, 1000, 1200, 1650, 2400])
def test_a_clause_of_the_allowed_length_is_added_and_loaded_however_deeply_it_is_nested(
    logic: LogicProject, parts: tuple[str, ...], depth: int
) -> None:
    text = nested(depth, *parts)
    if len(text) > MAX_CLAUSE_CHARS:
        pytest.skip("longer than a clause may be")
    assert logic.add("good(1).", text, "good(2).").succeeded == 3
    assert logic.values("good(X)", "X") == ["1", "2"]
    goal = "p" if "true" in text else "p(X), term_to_atom(X, A), term_to_atom(Y, A), X == Y"
    assert len(logic.answers(goal)) == 1
    assert logic.prolog.held_back == {}


@pytest.mark.parametrize("depth", [1000, 2400])
def test_a_goal_of_the_allowed_length_is_run_however_deeply_it_is_nested(logic: LogicProject, depth: int) -> None:
    assert logic.answers(f"{'(' * depth}true{')' * depth}") == [{"bindings": {}}]


@pytest.mark.sliced
@pytest.mark.parametrize("parts", BRACKETS, ids=[one[1] for one in BRACKETS])
def test_a_clause_that_is_nested_too_deeply_is_named_with_its_line_and_the_others_are_added(
    logic: LogicProject, parts: tuple[str, ...]
) -> None:
    deep = nested(50_000, *parts)
    done = logic.prolog.import_file(logic.source(), "deep.pl", f"good(1).\n% which\n{deep}\ngood(2). good(3")
    assert (done.status, done.added) == ("partial", 2)
    assert [(line, message == TOO_DEEP) for line, message in done.errors] == [(3, True), (4, False)]
    assert f"the limit is {MAX_CLAUSE_NESTING:,}" in TOO_DEEP
    assert logic.values("good(X)", "X") == ["1", "2"]
    [first, second, third] = logic.add("a(1).\n", f" {deep}", "b(1).").outcomes
    assert (first.status, second.message, third.status) == ("success", TOO_DEEP, "success")
    assert [one.message for one in logic.remove(deep).outcomes] == [TOO_DEEP]


@pytest.mark.sliced
def test_a_recorded_clause_that_is_nested_too_deeply_is_held_back_and_the_others_are_loaded(
    logic: LogicProject,
) -> None:
    recorded = NewClause(nested(30_000), "k", "p/0")
    [key] = logic.source().clauses.change(lambda _: ClauseChange(added=[recorded])).ids
    logic.add("b(1).")
    assert logic.values("b(X)", "X") == ["1"]
    assert logic.prolog.held_back["held_back"] == {"count": 1, "clauses": [{"id": key, "message": TOO_DEEP}]}


@pytest.mark.sliced(1)
@pytest.mark.parametrize("depth", [5_000, 10_000])
def test_an_answer_that_is_nested_deeply_is_shown(logic: LogicProject, depth: int) -> None:
    logic.add(MAKE)
    assert logic.values(f"make({depth}, T)", "T") == [f"{'f(' * depth}x{')' * depth}"]


@pytest.mark.sliced
@pytest.mark.parametrize(
    "goal",
    [
        "make(100000, T)",
        "make(100000, T), print(T)",
        "length(L, 100000), maplist(=(0'(), L), atom_codes(A, L), term_to_atom(T, A)",
        "nest(100000)",
    ],
)
def test_a_goal_that_nests_more_than_the_stack_of_an_engine_holds_says_so_and_the_next_one_runs(
    logic: LogicProject, goal: str
) -> None:
    logic.add(MAKE, "nest(N) :- M is N - 1, with_output_to(string(_), nest(M)).")
    failure = logic.failure(goal)
    assert failure.data["kind"] == "memory"
    assert failure.message.startswith("A term, or a call inside of calls, is nested more deeply than the stack")
    assert failure.hint.startswith("Use a list in place of terms inside of each other")
    assert logic.values("make(1, T)", "T") == ["f(x)"]


def test_floats_keep_their_digits(logic: LogicProject) -> None:
    goal = 'format(string(X), "~16e ~4f ~0f", [1.5, 0.12345, 1.0e22])'
    assert logic.values(goal, "X") == ['"1.5000000000000000e+00 0.1235 10000000000000000000000"']


@pytest.mark.parametrize(
    "hidden",
    ["% {}\n", "/* {} */", "'{}'", '"{}"', "`{}`", "'it''s \\' {}'", '"a\\"{}"', "'a\n{}'"],
)
def test_brackets_in_comments_and_in_quotes_count_for_nothing(hidden: str) -> None:
    many = "([{" * MAX_CLAUSE_NESTING
    assert deep_clauses(f"p(1, {hidden.format(many)}, a).\nq(1).") == []


def test_brackets_are_counted_for_each_clause_after_character_codes_and_numbers() -> None:
    deep = f"p({'[' * MAX_CLAUSE_NESTING}\n{']' * MAX_CLAUSE_NESTING})."
    before = "a(0'(, 0''', 0'\\'). b(16'FF, 1.5, X=..Y).\n% it's one\n"
    allowed = f"p{'(' * MAX_CLAUSE_NESTING}{')' * MAX_CLAUSE_NESTING}."
    text = f"{before}{deep} {allowed} % end (\n{deep}\nc(1)."
    places = deep_clauses(text)
    assert [(text[one.start : one.end], one.line) for one in places] == [(deep, 3), (deep, 5)]
    rest = without_clauses(text, places)
    assert (len(rest), rest.count("\n"), deep_clauses(rest)) == (len(text), text.count("\n"), [])
    assert deep_clauses(f"a(1). {'(' * 10_000}")[0].start == len("a(1). ")


def test_the_time_limit_of_a_request_that_reads_clauses_is_for_each_part_of_its_answer(
    logic: LogicProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "".join(f"p({number}).\n" for number in range(300_000))
    monkeypatch.setattr("kbcore.logic.workspace.LOAD_LIMIT_S", 3.0)
    assert len(logic.prolog.parse(logic.source(), text, "unchecked")) == 300_000
