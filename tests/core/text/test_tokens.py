"""The estimate of tokens: four characters are one, and a begun one counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcore.text.tokens import chars_of, tokens_of


@given(st.integers(0, 1000))
def test_a_text_of_so_many_characters_fits_into_exactly_the_tokens_that_have_them(tokens):
    assert tokens_of("x" * chars_of(tokens)) == tokens
    assert tokens_of("x" * (chars_of(tokens) + 1)) == tokens + 1
