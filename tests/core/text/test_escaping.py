"""Stored text on its way out: nothing in it acts on a terminal or hides, and nothing is escaped twice."""

from __future__ import annotations

import html
import json
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kbcore.store.write_request import session_name
from kbcore.text.escaping import (
    csv_cell,
    escape_and_cut,
    escape_controls,
    escape_lines,
    escaped_json,
    in_quotes,
    json_text,
    markdown_text,
    text_of_csv_cell,
)

ANY_TEXT = st.text(st.characters(exclude_categories=[]))
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | ANY_TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
)
UNSAFE = ["\x1b", "\x07", "\x9b", "\x7f", "\r", "\u202e", "\u2066", "\u200f", "\u2028", "\ufeff", "\U000e0041",
    "\xad", "\u180e", "\ud800", "\U000e0f00"]  # fmt: skip


@pytest.mark.parametrize("character", UNSAFE)
def test_what_acts_on_a_terminal_is_shown_as_an_escape(character):
    assert character not in escape_controls(f"a{character}b")
    assert escape_controls(f"a{character}b").startswith("a\\")
    assert character not in json_text({"a": character})
    assert json.loads(json_text({"a": character})) == {"a": character}


def test_an_escape_character_is_shown_by_its_code():
    assert escape_controls("\x1b[31mred\x1b[0m") == r"\x1b[31mred\x1b[0m"
    assert escape_controls("one\ntwo\t3") == r"one\ntwo\t3"
    assert escape_lines("one\ntwo\t3\r") == "one\ntwo\t3\\r"


def test_letters_of_all_scripts_and_emoji_stay():
    text = "Zoë 東京 می‌خواهم 👩‍💻 naïve"
    assert escape_controls(text) == text
    assert text in json_text([text])


@given(ANY_TEXT)
def test_visible_text_is_one_line_that_every_terminal_takes(text):
    shown = escape_controls(text)
    assert shown.splitlines() in ([shown], [])
    assert not any(character in shown for character in UNSAFE)
    shown.encode()


@given(st.text(max_size=300), st.integers(5, 100))
def test_foreign_text_becomes_one_short_visible_line(text, most):
    shown = escape_and_cut(text, most)
    assert len(shown) <= most
    assert all(unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"} for character in shown)


@given(ANY_JSON)
def test_json_says_what_the_value_says_in_utf_8_and_safe_characters(value):
    for indent in (None, 2):
        text = json_text(value, indent)
        text.encode()
        assert json.loads(text) == value
        assert not any(character in text for character in UNSAFE)


def test_json_never_holds_what_is_no_number():
    with pytest.raises(ValueError, match="Out of range"):
        json_text(float("nan"))


@given(ANY_TEXT)
def test_what_is_visible_already_stays_as_it_is(text):
    assert escape_controls(escape_controls(text)) == escape_controls(text)
    assert escape_controls(in_quotes(text)) == in_quotes(text)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a b", "'a b'"),
        ("a\nb", r"'a\nb'"),
        ("a\x1b[31m", r"'a\x1b[31m'"),
    ],
)
def test_a_name_in_quotes_is_escaped_once(name, shown):
    assert in_quotes(name) == shown
    assert escape_controls(in_quotes(name)) == shown


def test_a_backslash_in_a_name_stays_single_in_quotes():
    assert in_quotes("a\\b") == "'a\\b'"
    assert in_quotes("it's") == '"it\'s"'


def test_escapes_in_json_keep_the_meaning():
    assert escaped_json('["\u202e\U000e0041"]') == r'["\u202e\udb40\udc41"]'
    assert json.loads(escaped_json('["\u202e"]')) == ["\u202e"]


def test_the_name_of_a_session_ends_with_no_part_of_an_escape() -> None:
    assert session_name("x" * 98 + "\x1b[2J") == "x" * 98
    assert session_name(" " + "x" * 200) == "x" * 100
    assert session_name("a\nb") == r"a\nb"


@given(st.text(st.sampled_from("'=+-@ \t\r\n1,.a\uff1d") | st.characters(exclude_categories=[])))
def test_a_cell_of_csv_is_no_formula_and_is_read_as_it_was(text):
    cell = csv_cell(text)
    assert text_of_csv_cell(cell) == text
    is_number = re.fullmatch(r"[+-]?[0-9]+([.,][0-9]+)*", text)
    assert is_number or not cell.lstrip(" ").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@pytest.mark.parametrize(
    "text",
    [
        *("<script>alert(1)</script>", "&lt;b&gt; &#60;", "a|b|c", "[x](javascript:alert(1))", "![x](http://e/x)"),
        *("`code` *a* _b_ ~~c~~", "\\\\ \\| \\<", "<!-- x -->", "<http://e/x>"),
    ],
)
def test_markdown_shows_a_text_in_a_cell_as_it_is(text):
    reader = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    shown = reader.render(f"| a | b |\n| --- | --- |\n| {markdown_text(text)} | end |\n")
    assert re.findall("<td>(.*?)</td>", shown) == [html.escape(text).replace("&#x27;", "'"), "end"]
