"""Words that are one typo apart, compared with a slow reading, in any script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.text.typos import is_a_typo, is_long_enough
from tests.support.oracles import ranking

FEW = st.text(alphabet="abпи각간가𐐨", max_size=6)


@given(FEW, FEW)
def test_a_typo_is_what_a_slow_reading_says(one, other):
    assert is_a_typo(one, other) == ranking.is_a_typo_away(one, other)


@given(st.text(min_size=1), st.data())
def test_whatever_letter_is_left_out_it_is_a_typo(word, data):
    at = data.draw(st.integers(0, len(word) - 1))
    assert is_a_typo(word, word[:at] + word[at + 1 :])


@pytest.mark.parametrize("word", ["word", "слон", "로그", "groß"])
def test_four_letters_are_enough_for_a_typo(word):
    assert is_long_enough(word)
    assert not is_long_enough(word[:-1])
