"""A fact says the statement first, in one line, with every control character as an escape."""

from __future__ import annotations

import pytest

from kbcore.query.context.facts import Fact, Tie, counted_line, first_sentence, marks_of
from kbcore.text.escaping import has_unsafe


def test_a_fact_says_the_statement_first_then_where_it_is_from():
    fact = Fact(
        "R-1",
        "req",
        "Log in",
        "draft",
        Tie("guards", is_against=True, near="S-1"),
        path="docs/r.md",
        source="docs/r.md",
        at="2026-01-31",
        marks=("proposed",),
        detail="Nobody comes in without a key.",
    )
    said = "Log in: Nobody comes in without a key."
    assert fact.as_line() == f"- {said} (R-1 req draft; S-1 ^guards; docs/r.md 2026-01-31) [proposed]"
    assert next(iter(fact.as_json().items())) == ("fact", said)
    assert fact.as_json()["tie"] == "S-1 ^guards"


def test_a_title_of_many_lines_and_controls_stays_one_safe_line():
    line = Fact("R-1", "req", "One\n- two\x1b[31m" + "x" * 500, "open", Tie("implements")).as_line()
    assert "\n" not in line
    assert not has_unsafe(line)
    assert len(line) < 300


@pytest.mark.parametrize(
    ("body", "title", "sentence"),
    [
        ("# Log in\n\nNobody comes in. Ever.\n", "Log in", "Nobody comes in."),
        ("Log in.\n", "Log in", ""),
        ("<!-- note -->\n\n| a |\n\n- **Given** a key\n- When\n", "Key", "Given a key When"),
        ("```\ncode\n```\nProse.\n", "x", "Prose."),
        ("", "x", ""),
    ],
)
def test_the_first_sentence_of_the_prose_is_said_where_it_says_more_than_the_title(body, title, sentence):
    assert first_sentence(body, title) == sentence


def test_marks_are_those_that_hold():
    assert marks_of(is_proposed=True, is_stale=True, is_contested=True) == ("proposed", "stale", "contested")
    assert marks_of(is_proposed=False, is_stale=False, is_contested=False) == ()


def test_a_proposed_stale_contested_or_retired_fact_is_not_accepted_and_fresh():
    plain = Fact("R-1", "req", "t", "agreed", Tie("implements"))
    assert plain.is_accepted_and_fresh
    for status in ("draft", "Proposed by Ann"):
        assert not Fact("R-1", "req", "t", status, Tie("implements")).is_accepted_and_fresh
    for mark in ("proposed", "stale", "contested"):
        assert not Fact("R-1", "req", "t", "agreed", Tie("implements"), marks=(mark,)).is_accepted_and_fresh
    assert not Fact("R-1", "req", "t", "superseded by R-2", Tie("implements")).is_accepted_and_fresh


def test_counts_are_said_in_words_and_nothing_where_there_is_none():
    assert counted_line({"req": 2, "scenario": 1, "test": 0}) == "Left out: 2 reqs, 1 scenario."
    assert counted_line({}) == ""
