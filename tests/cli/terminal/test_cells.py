"""Columns of a terminal: what takes how many, and where a text may be cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcli.terminal.cells import _PLAIN, letters, padded, shortened, width_of, wrapped
from kbcore.text.escaping import escape_controls

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
FLAG = "\U0001f1e9\U0001f1ea"
TEXTS = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from(["\u200d", "\ufe0f", "\u0301", FAMILY[0], FLAG[0], " "])),
    max_size=30,
).map(escape_controls)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("Résumé", 6),
        ("e\u0301", 1),
        ("東京", 4),
        ("한", 2),
        ("\u1112\u1161\u11ab", 2),
        ("שלום", 4),
        ("\u0915\u094d\u0937", 2),
        (FAMILY, 2),
        (FLAG, 2),
        (FLAG * 2, 4),
        ("\u2764\ufe0f", 2),
        ("1\ufe0f\u20e3", 2),
        ("\U0001f44b\U0001f3fd", 2),
        ("\u06a9\u200c\u06a9", 2),
    ],
)
def test_a_letter_takes_as_many_columns_as_a_terminal_gives_it(text, width):
    assert width_of(text) == width


def test_what_is_measured_without_tables_is_as_the_tables_have_it():
    plain = [chr(code) for code in range(32, 0x2200) if chr(code).isprintable() and _PLAIN.fullmatch(chr(code))]
    assert len(plain) > 900
    assert all(list(letters(one)) == [(one, 1)] for one in plain)


@given(TEXTS)
def test_letters_are_the_whole_text(text):
    assert "".join(letter for letter, _ in letters(text)) == text


@given(TEXTS, st.integers(1, 20), st.booleans())
def test_a_shortened_text_fits_and_says_so(text, width, keeps_end):
    short = shortened(text, width, keeps_end=keeps_end)
    assert width_of(short) <= width
    assert short == text or short[0 if keeps_end else -1] == "…"
    assert (short == text) == (width_of(text) <= width)


def test_a_visible_letter_is_not_split():
    assert shortened(f"{FAMILY}{FLAG}abc", 5) == f"{FAMILY}{FLAG}…"
    assert shortened(f"{FAMILY}{FLAG}abc", 4) == f"{FAMILY}…"
    assert shortened(f"abc{FAMILY}{FLAG}", 4, keeps_end=True) == f"…{FLAG}"
    assert shortened("docs/requirements/REQ-1.md", 12, keeps_end=True) == "…s/REQ-1.md"[:1] + "ts/REQ-1.md"


@given(TEXTS, st.integers(2, 20))
def test_wrapped_lines_fit_and_hold_the_whole_text(text, width):
    lines = wrapped(text, width)
    assert all(width_of(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_lines_break_between_words_and_inside_only_what_is_too_long():
    assert wrapped("one two three", 7) == ["one two", "three"]
    assert wrapped("a abcdefghij b", 5) == ["a", "abcde", "fghij", "b"]
    assert wrapped("one two three", None) == ["one two three"]


def test_a_cell_is_filled_up_by_columns():
    assert padded("東", 4) == "東  "
