from __future__ import annotations

import pytest

from kbcore.kip.meta.search import is_near, likeness, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("UserStory", ["user", "story", "userstory"]),
        ("belongs_to_domain", ["belongs", "to", "domain"]),
        ("HTTPServer2", ["http", "server", "2", "httpserver2"]),
        ("", []),
    ],
)
def test_a_name_has_the_words_that_it_is_made_of(text, words):
    assert words_of(text) == words


@pytest.mark.parametrize("word", ["persn", "person", "persons", "peraon", "prson", "eprson", "perosn"])
def test_a_typo_is_near(word):
    assert is_near(word, "person")


@pytest.mark.parametrize(
    ("word", "other"), [("perrrson", "person"), ("cat", "car"), ("abcd", "dcba"), ("pesno", "person")]
)
def test_more_than_a_typo_is_not(word, other):
    assert not is_near(word, other)


def test_the_name_itself_fits_best_then_its_words_then_what_is_said():
    scores = [
        likeness("sleep task", "SleepTask", "Work."),
        likeness("sleeptask", "SleepTask", "Work."),
        likeness("slee", "SleepTask", "Work."),
        likeness("slepe", "SleepTask", "Work."),
        likeness("work", "SleepTask", "Work."),
        likeness("sleep zebra", "SleepTask", "Work."),
    ]
    assert scores[1] == 1.0
    assert scores[1] > scores[0] > scores[2] > scores[3] > scores[4] > scores[5] == 0.0
