"""Values of JSON as terms, texts and types."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbcore.dml.values import NotAValue, is_of_type, read_number, schema_of_type, term_of, text_of
from tests.support.dml.runs import ran
from tests.support.effort.scale import tries

_JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
    max_leaves=12,
)


def without_surrogates(value: Any) -> Any:
    """Return a value as an engine has it: a lone surrogate is U+FFFD."""
    if isinstance(value, str):
        return "".join("\ufffd" if 0xD800 <= ord(char) < 0xE000 else char for char in value)
    if isinstance(value, dict):
        return {without_surrogates(key): without_surrogates(one) for key, one in value.items()}
    return [*map(without_surrogates, value)] if isinstance(value, list) else value


@settings(max_examples=tries(8, 100), suppress_health_check=[HealthCheck.too_slow])
@given(values=st.lists(_JSON, max_size=12))
def test_values_keep_their_types_both_ways(engine: dict[str, str], values: list[Any]) -> None:
    kept: list[Any] = []

    def keep(value: Any) -> Any:
        kept.append(value)
        return value

    code = "agent_main(Vs) :- forall(member(V, Vs), ( exec(keep(value: V), W), W = V )), exec(keep(Vs), _)."
    found = ran(code, engine, tools=[keep], args=[values])
    assert found.outcome == "success", found.events
    expected = [*without_surrogates(values), without_surrogates(values)]
    assert kept == expected
    assert [type(one) for one in kept] == [type(one) for one in expected]


@given(st.one_of(st.integers(-(10**20), 10**20).map(str), st.text("0123456789.-+eE ", max_size=8)))
def test_a_text_that_is_read_as_a_number_is_that_number(text: str) -> None:
    found = read_number(text)
    if isinstance(found, str):
        assert found == text
    else:
        assert float(found) == float(text)
        assert text.strip() == text


@pytest.mark.parametrize(
    "text", ["007", "-0", "+1", "1.", ".5", " 1", "1_000", "0x10", "1e400", "", "NaN", "٣", "9" * 4001]
)
def test_other_texts_stay_texts(text: str) -> None:
    assert read_number(text) == text


@pytest.mark.parametrize(("value", "why"), [
    (math.nan, "it is a number that JSON does not have"), ([math.inf], "it is a number that JSON does not have"),
    (object(), "it is of the type object"), ({"a": {1}}, "it is of the type set"), (b"", "it is of the type bytes"),
])  # fmt: skip
def test_what_is_no_value_says_why(value: Any, why: str) -> None:
    with pytest.raises(NotAValue, match=why):
        term_of(value)


def test_a_number_of_more_than_4_000_digits_is_no_value() -> None:
    assert term_of(10**4000 - 1) == "9" * 4000
    for number in (10**4000, -(10**5000)):
        with pytest.raises(NotAValue, match="it is a number with more than 4,000 digits"):
            term_of(number)


def test_the_nesting_of_values_is_limited() -> None:
    value: Any = "x"
    for _ in range(199):
        value = [value]
    assert term_of(value).count("[") == 199
    with pytest.raises(NotAValue, match="nested more than 200 times"):
        term_of([value])


def test_types_of_outputs_are_schemas() -> None:
    assert schema_of_type("list(list(any))") == {"type": "array", "items": {"type": "array", "items": {}}}
    assert schema_of_type("object") == {"type": "object"}
    assert is_of_type([[None, {}]], "list(list(any))")
    assert not is_of_type([1], "list(list(any))")
    assert text_of({"Ä": None}) == '{"Ä":null}'
    assert text_of("x") == "x"
