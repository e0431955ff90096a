"""Clauses are kept as they were typed, share a key where they are variants, and mean the same in both modes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kbcore.logic.engine.libraries import LISTED
from tests.support.logic.engines import ENGINES, engine_variables, why_missing
from tests.support.logic.workspaces import LogicProject, logic_project
from tests.support.repository.repos import git_env

ATOMS = st.sampled_from(
    ["a", "b", "likes", "'Quoted atom'", "'it''s'", "'a\\nb'", "'a.b'", "[]", "'ä'", "日本", "'😀'", "+", "{}"]
)
VARIABLES = st.sampled_from(["X", "Y", "_", "_Z", "Änderung", "Long_Name1"])
NUMBERS = st.sampled_from(["0", "42", "-7", "3.14", "1.0e10", "0'c", "0'\\n", "0xff", "1_000", "1r3"])
TEXTS = st.sampled_from(['"text"', '"with \\"quotes\\""', '"line\\nbreak"', '"ü.😀"', "`codes`", '"% no comment"'])
OPERATORS = st.sampled_from([" + ", " - ", " * ", " = ", " #= ", " mod "])
TERMS: st.SearchStrategy[str] = st.recursive(
    st.one_of(ATOMS, VARIABLES, NUMBERS, TEXTS),
    lambda inner: st.one_of(
        st.builds("f({}, {})".format, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("[{}|{}]".format, inner, inner),
        st.builds("(({}){}({}))".format, inner, OPERATORS, inner),
        st.builds("{{{}}}".format, inner),
        st.builds("- ({})".format, inner),
    ),
    max_leaves=5,
)
LAYOUT = st.sampled_from([" ", "\n", "\n    ", " /* a. comment */ ", " % to the end. 'of\n  "])
GOALS = st.builds("{}({})".format, st.sampled_from(["p", "q", "own_1"]), TERMS)
HEADS = st.builds("{}({}, {})".format, st.sampled_from(["p", "q", "own_1", "'Odd name'"]), TERMS, TERMS)
CLAUSES = st.one_of(
    st.builds("{}.".format, HEADS),
    st.builds("{}{}:-{}{},{}{}.".format, HEADS, LAYOUT, LAYOUT, GOALS, LAYOUT, GOALS),
    st.builds("{}{}:- ( {} -> {} ; \\+ {} ).".format, HEADS, LAYOUT, GOALS, GOALS, GOALS),
    st.builds("greet({}){}--> [hello, {}], {{ {} }}, more({}).".format, TERMS, LAYOUT, TERMS, GOALS, TERMS),
)
BETWEEN = st.sampled_from(["\n", "\n\n", " ", "\n% between. these\n", "\n/* and\n these. */\n"])


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A workspace with each engine, as far as this machine has them."""
    with ExitStack() as stack:
        names = [name for name in ENGINES if not why_missing(name)]
        folders = [tmp_path_factory.mktemp(name) / "p" for name in names]
        yield [
            stack.enter_context(logic_project(folder, git_env(engine_variables(name))))
            for folder, name in zip(folders, names, strict=True)
        ]


def _read(logic: LogicProject, *texts: str) -> list[list[tuple[str, str, str]]]:
    """Return text, key and error of each clause of the texts, as an engine reads them."""
    parsed = logic.prolog._parsed(logic.source(), texts, "checked")
    return [[(one.text, one.key, one.error) for one in items] for items in parsed]


def test_all_engines_have_the_same_predicates(both: list[LogicProject]) -> None:
    found = []
    for logic in both:
        found.append(logic.prolog.known_names(logic.source()))
        assert logic.add(*(f":- use_module(library({name}))." for name in LISTED)).succeeded == len(LISTED)
        found.append(logic.prolog.known_names(logic.source()))
        logic.reset()
    assert found == found[:2] * len(both)
    assert len(found[1]) > len(found[0]) > 300


@pytest.mark.sliced
@settings(max_examples=60)
@given(clauses=st.lists(CLAUSES, min_size=1, max_size=4), between=BETWEEN)
def test_what_is_stored_is_what_was_typed_and_both_engines_read_the_same(
    both: list[LogicProject], clauses: list[str], between: str
) -> None:
    found = [_read(logic, between.join(clauses), *clauses) for logic in both]
    for together, *alone in found:
        assert [text for text, _, _ in together] == clauses
        assert [one for items in alone for one in items] == together
        assert not [error for _, _, error in together if error]
    assert [[key for _, key, _ in texts[0]] for texts in found] == [[key for _, key, _ in found[0][0]]] * len(found)


@pytest.mark.sliced
@settings(max_examples=60)
@given(one=TERMS, two=TERMS)
def test_two_clauses_have_one_key_exactly_where_they_are_variants(both: list[LogicProject], one: str, two: str) -> None:
    for logic in both:
        [[(_, key, _)], [(_, other, _)], [(_, renamed, _)]] = _read(
            logic, f"p({one}).", f"p({two}).", f"p({one}) % again\n."
        )
        copies = f"findall(p({one}), true, [A]), findall(p({two}), true, [B])"
        [answer] = logic.answers(f"{copies}, ( A =@= B -> Is = yes ; Is = no )")
        assert (key == other) == (answer["bindings"]["Is"] == "yes")
        assert key == renamed


@pytest.mark.sliced
def test_both_modes_give_the_same_answers_in_the_same_order(engine: dict[str, str], tmp_path: Any) -> None:
    with logic_project(tmp_path / "p", git_env(engine)) as logic:
        logic.add(
            "e(a, b). e(b, c). e(c, a). e(a, d).", "r(X, Y) :- e(X, Y).", "r(X, Y) :- X \\== Y, e(X, Z), e(Z, Y)."
        )
        for query in (
            *("r(X, Y)", "r(a, Y)", "member(X, [c, a, b, a])", "between(1, 3, X), write(X), nl", "fail", "true"),
            *("X in 1..3, X #\\= 2", "dif(X, a)", "freeze(X, true)", "X = f(Y, Z, Y)", "append(X, Y, [1, 2])"),
            *("select(X, [1, 2, 3], R), write(R)", "X = \"text\" ; X = 'A b' ; X = `c`", "(X = 1 ; X = 2), Y = X"),
        ):
            assert logic.answers(query, "engine") == logic.answers(query, "standard")


@pytest.mark.sliced
@settings(max_examples=20)
@given(clauses=st.lists(CLAUSES, min_size=1, max_size=4), chosen=st.data())
def test_an_assert_that_is_retracted_restores_the_snapshot(
    both: list[LogicProject], clauses: list[str], chosen: st.DataObject
) -> None:
    for logic in both:
        logic.reset()
        logic.add("first(1).", *clauses[:1])
        before = logic.snapshot()
        added = logic.add(*(f"mark(m, {number}) :- {one}" if ":-" not in one and "-->" not in one else one
                            for number, one in enumerate(clauses) if one != clauses[0]))  # fmt: skip
        texts = [one.clause for one in added.outcomes if one.status == "success"]
        order = chosen.draw(st.permutations(texts))
        assert logic.remove(*order).succeeded == len(texts)
        assert logic.snapshot() == before
