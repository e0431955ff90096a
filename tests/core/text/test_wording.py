"""Numbers of things in words."""

from __future__ import annotations

import pytest

from kbcore.text.wording import is_or_are, it_or_them, pluralize


@pytest.mark.parametrize(
    ("number", "noun", "words"),
    [
        (1, "file", "1 file"),
        (0, "file", "0 files"),
        (2, "entity", "2 entities"),
        (2, "more history", "2 more histories"),
        (2, "branch", "2 branches"),
        (2, "class", "2 classes"),
        (2, "day", "2 days"),
        (1, "branch", "1 branch"),
    ],
)
def test_one_is_singular_and_all_else_plural(number, noun, words):
    assert pluralize(number, noun) == words


@pytest.mark.parametrize(("number", "words"), [(0, "are them"), (1, "is it"), (2, "are them")])
def test_the_verb_and_the_pronoun_are_those_of_the_number(number, words):
    assert f"{is_or_are(number)} {it_or_them(number)}" == words
