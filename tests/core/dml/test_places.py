"""Lines and columns of parts of a text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcore.dml.places import Lines, TextRange

TEXTS = st.text(st.sampled_from("ab é😀\n\t"), max_size=40)


@given(TEXTS, st.integers(0, 50), st.integers(0, 50))
def test_a_place_is_the_part_of_the_text_without_layout_at_its_end(text, one, other):
    start, end = sorted((one, other))
    place = Lines(text).place(start, end)
    rows = text.split("\n")[place.line - 1 : place.end_line]
    rows[-1] = rows[-1][: place.end_column - 1]
    rows[0] = rows[0][place.column - 1 :]
    assert "\n".join(rows) == text[start:end].rstrip()


def test_lines_and_columns_count_from_one():
    assert Lines("ab\ncd").place(3, 5) == TextRange(2, 1, 2, 3)
    assert Lines("").place(0, 0) == TextRange(1, 1, 1, 1)


def test_the_first_name_in_braces_is_found_but_not_one_in_two_braces():
    text = 'x "{{A}} {B}\n {A} {A}"'
    assert Lines(text).name_place(2, len(text), "A") == TextRange(2, 2, 2, 5)
    assert Lines(text).name_place(2, len(text), "B") == TextRange(1, 10, 1, 13)
    assert Lines(text).name_place(2, len(text), "C") == TextRange(1, 3, 2, 10)
