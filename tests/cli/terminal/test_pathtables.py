"""A path is never cut: where a line has no room for it, it is shown below its row."""

from __future__ import annotations

from kbcli.terminal.cells import width_of
from kbcli.terminal.path_tables import with_paths

HEAD = ("ID", "TITLE", "PATH")
ROWS = [("B", "Title", "A → depends_on → B"), ("C", "Title", "A → depends_on → B ← implements ← C")]


def test_a_path_is_a_column_where_it_fits():
    lines = with_paths(HEAD, ROWS, 60)
    assert lines == with_paths(HEAD, ROWS)
    assert lines[1] == "B   Title  A → depends_on → B"


def test_a_path_that_does_not_fit_is_below_its_row_and_complete():
    assert with_paths(HEAD, ROWS, 26) == [
        "ID  TITLE",
        "B   Title",
        "    A → depends_on → B",
        "C   Title",
        "    A → depends_on → B ←",
        "        implements ← C",
    ]


def test_a_path_of_wide_letters_fits_in_columns():
    path = "要件一 → depends_on → 要件二 ← implements ← 記号"
    lines = with_paths(HEAD, [("B", "Title", path)], 30)
    assert max(map(width_of, lines)) <= 30
    assert " ".join(" ".join(lines[2:]).split()) == path
