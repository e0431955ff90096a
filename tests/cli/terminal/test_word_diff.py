"""Two texts with the words marked that differ."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from kbcli.terminal.word_diff import marked


def marks(before: str, after: str) -> tuple[str, str]:
    return marked(before, after, "[-{}-]".format, "{{+{}+}}".format)


def test_only_the_words_that_differ_are_marked():
    assert marks("Log in with a name and password", "Log in with a key") == (
        "Log in with a [-name and password-]",
        "Log in with a {+key+}",
    )
    assert marks("利用者は検索できる", "利用者は登録できる") == ("利用者は[-検索-]できる", "利用者は{+登録+}できる")


def test_texts_that_have_nothing_in_common_are_not_marked():
    assert marks("one two three", "alpha, beta!") == ("one two three", "alpha, beta!")


def test_equal_text_is_shortened_to_the_part_next_to_a_difference():
    same = "word " * 200
    before, after = marks(f"{same}old {same}", f"{same}new {same}")
    assert before == f"… {'word ' * 7}[-old-] {'word ' * 7}…"
    assert "{+new+}" in after


def test_texts_too_long_to_compare_are_cut():
    before, after = marks("a " * 5_000, "b " * 5_000)
    assert len(before) == len(after) == 201


@given(
    st.lists(st.sampled_from(["a", "bb", ",", "東"]), max_size=15), st.lists(st.sampled_from(["a", "cc"]), max_size=15)
)
def test_without_the_marks_both_texts_are_what_they_were(before, after):
    one, other = " ".join(before), " ".join(after)
    shown = marks(one, other)
    assert (re.sub(r"\[-|-\]", "", shown[0]), re.sub(r"\{\+|\+\}", "", shown[1])) == (one, other)
