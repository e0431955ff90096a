"""Bytes become text, or a problem that names the place."""

import pytest

from kbcore.extract.facts import unreadable
from kbcore.text.decoding import decode, place


def test_utf8_text_is_taken_as_it_is():
    decoded = decode("Ünïcode, 日本, 🙂\n".encode())

    assert decoded.text == "Ünïcode, 日本, 🙂\n"
    assert decoded.problems == ()


@pytest.mark.parametrize("line_break", ["\r\n", "\r"])
def test_foreign_line_breaks_become_line_feeds(line_break):
    assert decode(f"a{line_break}b{line_break}".encode()).text == "a\nb\n"


def test_a_byte_order_mark_is_passed_over_with_a_note():
    decoded = decode(b"\xef\xbb\xbf---\nid: A\n")

    assert decoded.text == "---\nid: A\n"
    assert [(problem.code, problem.severity, problem.line) for problem in decoded.problems] == [
        ("byte_order_mark", "note", 1)
    ]


def test_a_byte_that_is_not_utf8_is_named_with_offset_line_and_column():
    decoded = decode("eins\r\nzwei f\xfcnf\n".encode("latin-1"))

    assert decoded.text is None
    (problem,) = decoded.problems
    assert (problem.code, problem.line, problem.column) == ("wrong_encoding", 2, 7)
    assert "0xFC" in problem.message
    assert "offset 12" in problem.message
    assert "UTF-8" in problem.hint


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf16_is_named_rather_than_guessed(encoding):
    decoded = decode("\ufeff---\nid: A\n---\n".encode(encoding))

    assert decoded.text is None
    assert "UTF-16" in decoded.problems[0].message


def test_a_nul_character_is_refused_with_its_place():
    decoded = decode(b"one\ntw\0o\n")

    assert decoded.text is None
    assert [(p.code, p.line, p.column) for p in decoded.problems] == [("nul_character", 2, 3)]


def test_what_cannot_be_decoded_states_nothing_and_is_not_complete():
    facts = unreadable(decode(b"\xff").problems)

    assert facts.entities == ()
    assert not facts.is_complete
    assert facts.problems


@pytest.mark.parametrize(("at", "expected"), [(0, (5, 1)), (2, (5, 3)), (3, (6, 1)), (5, (7, 1))])
def test_a_place_counts_lines_and_columns_from_one(at, expected):
    assert place("ab\nc\nd", at, 5) == expected
