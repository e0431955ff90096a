"""Two sequences of tokens side by side: both texts are there, and what is shared is the same on both sides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcore.text.token_diff import Stretch, stretches

TOKENS = st.lists(st.sampled_from(["a", "bb", " ", "c"]), max_size=12)


@given(TOKENS, TOKENS)
def test_the_stretches_of_a_side_are_its_text_and_both_share_the_same(old, new):
    sides = stretches(old, new)
    assert sides is not None
    assert ["".join(text for text, _ in side) for side in sides] == ["".join(old), "".join(new)]
    first, second = ([text for text, is_shared in side if is_shared] for side in sides)
    assert first == second


def test_sides_that_are_less_alike_than_asked_have_no_stretches():
    assert stretches(["a"], ["b"], least_alike=0.1) is None
    assert stretches(["a"], ["b"]) == ([Stretch("a", is_shared=False)], [Stretch("b", is_shared=False)])
