"""Sentences at a terminal: broken between words, and never inside what is there to be copied."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcli.terminal.cells import width_of
from kbcli.terminal.flowing import flowed

CONFIRM = """echo '{"edges": [{"type": "guards"}]}' | kb apply -"""


@given(
    st.lists(st.text("abc\u6771\u00a0\u3000", min_size=1, max_size=12), min_size=1).map(" ".join), st.integers(1, 40)
)
def test_every_word_stays_whole_and_a_line_fits_unless_its_word_does_not(text, width):
    lines = flowed(text, width)
    assert " ".join(line.strip(" ") for line in lines) == text
    assert all(width_of(line) <= width or " " not in line.strip(" ") for line in lines)


def test_later_lines_are_indented_under_the_first():
    assert flowed("  one two three", 9) == ["  one two", "    three"]


def test_a_command_is_never_broken():
    text = f"See `kb log REQ-8 --limit 3`. If it is true, confirm it: {CONFIRM}"
    assert flowed(text, 20) == [
        "See",
        "  `kb log REQ-8 --limit 3`.",
        "  If it is true,",
        "  confirm it:",
        f"  {CONFIRM}",
    ]


def test_a_colour_that_continues_is_set_again_in_the_next_line():
    assert flowed("\x1b[31mone two\x1b[0m three", 6) == ["\x1b[31mone\x1b[0m", "  \x1b[31mtwo\x1b[0m", "  three"]


def test_words_of_one_line_keep_their_distance():
    assert flowed("Actor:  me through sync", 20) == ["Actor:  me through", "  sync"]


def test_a_colour_takes_no_room():
    assert flowed("\x1b[33mwarning\x1b[0m docs", 12) == ["\x1b[33mwarning\x1b[0m docs"]
