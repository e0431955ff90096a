"""Cursors come back as they were given, and nothing else is taken for one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.errors import InvalidQuery
from kbcore.text import cursor as cursors
from kbcore.text.cursor import Cursor

DIGEST = cursors.request_mark({"type": "req"})


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.text(st.characters(exclude_categories=["Cs"])))
def test_a_cursor_comes_back_as_it_was_given(seq, total, last):
    cursor = Cursor(DIGEST, seq, total, last)
    text = cursors.encode(cursor)
    assert cursors.decode(text, DIGEST) == cursor
    assert text.isascii()
    assert set(text) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


@given(st.text(max_size=200))
def test_any_other_text_is_refused(text):
    with pytest.raises(InvalidQuery):
        cursors.decode(text, DIGEST)


@given(st.data())
def test_a_changed_character_is_noticed(data):
    given_text = cursors.encode(Cursor(DIGEST, 7, 3, "REQ-1"))
    # the last character may hold bits that stand for nothing
    at = data.draw(st.integers(0, len(given_text) - 2))
    other = data.draw(st.sampled_from("abcXYZ019-_").filter(lambda letter: letter != given_text[at]))
    with pytest.raises(InvalidQuery, match="damaged"):
        cursors.decode(given_text[:at] + other + given_text[at + 1 :], DIGEST)


@pytest.mark.parametrize("count", [1, 2, 5, 40])
def test_a_cut_cursor_is_refused(count):
    text = cursors.encode(Cursor(DIGEST, 7, 3, "REQ-1"))
    with pytest.raises(InvalidQuery):
        cursors.decode(text[:-count], DIGEST)


def test_a_cursor_of_another_request_is_refused_with_what_to_do():
    text = cursors.encode(Cursor(cursors.request_mark({"type": "adr"}), 7, 3, "REQ-1"))
    with pytest.raises(InvalidQuery, match="another request") as caught:
        cursors.decode(text, DIGEST)
    assert "Repeat the request" in caught.value.hint


def test_equal_requests_have_one_digest_whatever_the_order_of_their_members():
    assert cursors.request_mark({"a": 1, "b": 2}) == cursors.request_mark({"b": 2, "a": 1})
    assert cursors.request_mark(("x", "")) != cursors.request_mark(("", "x"))
