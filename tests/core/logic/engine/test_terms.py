"""Values reach an engine as they are: texts, numbers and nested JSON values."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kbcore.logic.engine import EngineProcess, available
from kbcore.logic.engine.terms import atom, string, value

TEXTS = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\\'\"\n\r\t\0~%`|.: \u2028\ufeff"))
)
NUMBERS = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def process(engine: dict[str, str]) -> Any:
    """A started engine."""
    found = EngineProcess(available(engine).required())
    yield found
    found.kill()


def _codes(process: EngineProcess, term: str, kind: str) -> list[int]:
    """Return the characters of a text as the engine reads it."""
    goal = f"(T = {term}, {kind}(T), {kind}_codes(T, Cs))"
    return [int(one) for one in _answer(process, goal, "Cs").strip("[]").split(",") if one]


def _answer(process: EngineProcess, goal: str, name: str) -> str:
    reply = process.ask(f"query({string(goal)}, engine).\n", time_limit_s=30)
    assert reply["status"] == "ok", (goal, reply)
    answer = process.ask("next.\n", time_limit_s=30)
    assert answer["status"] == "success", (goal, answer)
    found: str = answer["bindings"][name]
    return found


@settings(max_examples=150)
@given(text=TEXTS)
@example(text="\0\x01\x7f\x85\u2028\u2029\ufeff\U0001f600")
@example(text="a\\\nb'c\"d`e~p%f/*g*/.\n")
def test_a_text_is_the_same_string_and_atom_in_an_engine(process: EngineProcess, text: str) -> None:
    codes = [ord(one) for one in text]
    assert _codes(process, string(text), "string") == codes
    assert _codes(process, atom(text), "atom") == codes


@given(text=TEXTS)
def test_a_text_that_an_engine_answers_is_the_same(process: EngineProcess, text: str) -> None:
    found = _answer(process, f"X = f({string(text)}, {atom(text)})", "X")
    assert _answer(process, f"{found} == f({string(text)}, {atom(text)}), X = same", "X") == "same"


@given(number=NUMBERS)
@example(number=-0.0)
@example(number=5e-324)
@example(number=1e22)
@example(number=2**63)
@example(number=-(2**200))
def test_a_number_is_the_same_in_an_engine(process: EngineProcess, number: float) -> None:
    found = _answer(process, f"X = {value(number)}", "X")
    assert type(number)(found) == number
    assert math.copysign(1, type(number)(found)) == math.copysign(1, number)


@given(given_value=VALUES)
@example(given_value={"": -0.0})
def test_a_nested_value_is_the_same_in_an_engine(process: EngineProcess, given_value: Any) -> None:
    found = _answer(process, f"X = {value(given_value)}", "X")
    assert _answer(process, f"{found} == {value(given_value)}, X = same", "X") == "same"
    if isinstance(given_value, (dict, list)):
        assert _answer(process, f"length({value(given_value)}, N)", "N") == str(len(given_value))
