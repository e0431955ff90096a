"""Rows as tables: aligned, in a width or without one, in colours, as Markdown and as CSV."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kbcli.terminal import tables
from kbcli.terminal.cells import width_of
from kbcli.terminal.colours import coloured

HEAD = ("ID", "TYPE", "STATUS", "TITLE", "TAGS")
ROWS = [
    ("REQ-1", "req", "open", "東京 " * 10, "auth"),
    ("A\x1b", "req", "done", "short", ""),
]


def test_without_a_width_nothing_is_cut_and_all_is_aligned():
    lines = tables.aligned(HEAD[:4], [row[:4] for row in ROWS])
    assert lines[0] == "ID     TYPE  STATUS  TITLE"
    assert lines[1] == "REQ-1  req   open    " + ("東京 " * 10).rstrip()
    assert lines[2] == "A\\x1b  req   done    short"


def test_in_a_width_the_longest_text_is_cut():
    lines = tables.aligned(HEAD[:4], [row[:4] for row in ROWS], 40)
    assert max(map(width_of, lines)) <= 40
    assert lines[1].startswith("REQ-1  req   open    東京 ")
    assert lines[1].endswith("…")
    assert lines[2] == "A\\x1b  req   done    short"


@given(
    st.lists(st.tuples(*[st.text(st.characters(codec="utf-8"), max_size=40)] * 2, st.just("met")), max_size=4),
    st.integers(30, 120),
)
def test_no_line_is_wider_than_the_terminal(rows, width):
    lines = tables.aligned(("TITLE", "MESSAGE", "STATUS"), rows, width)
    assert all(width_of(line) <= width for line in lines)
    assert len(lines) == 1 + len(rows)


def test_an_id_stays_whole_and_the_rest_of_its_row_comes_below_it():
    long = "REQ-" + "X" * 60
    lines = tables.aligned(HEAD[:4], [(long, "req", "open", "Long"), ("REQ-1", "req", "met", "Short")], 60)
    assert lines == [
        "ID                    TYPE  STATUS  TITLE",
        long,
        "                      req   open    Long",
        "REQ-1                 req   met     Short",
    ]


def test_a_path_is_cut_at_its_beginning():
    lines = tables.aligned(("ID", "SOURCE"), [("REQ-1", "docs/requirements/of/the/product/REQ-1.md")], 34)
    assert lines[1] == "REQ-1  …ts/of/the/product/REQ-1.md"


def test_where_there_is_little_room_what_matters_less_is_left_out():
    rows = [("REQ-1", "req", "open", "A title of some words that takes some room", "auth")]
    assert "TAGS" in tables.aligned(HEAD, rows, 80)[0]
    narrow = tables.aligned(HEAD, rows, 50)
    assert narrow[0] == "ID     TYPE  STATUS  TITLE"
    assert narrow[1].startswith("REQ-1  req   open    A title of some words")
    assert "TAGS" not in tables.aligned(HEAD, [(*rows[0][:4], "")], 120)[0]
    assert "TAGS" in tables.aligned(HEAD, [(*rows[0][:4], "")])[0]


COVERAGE = (
    ("ID", "SPECIFIED", "VERIFIED", "IMPLEMENTED", "PRIORITY", "TITLE"),
    ("COMPONENT", "REQUIREMENTS", "VERIFIED"),
)


@given(st.integers(30, 80), st.integers(1, 40), st.sampled_from(COVERAGE))
def test_a_table_of_many_columns_fits_a_narrow_terminal(width, chars, head):
    rows = [("REQ-00001", *("x" * chars for _ in head[1:]))]
    lines = tables.aligned(head, rows, width)
    assert max(map(width_of, lines)) <= width
    assert len(lines) == 1 + len(rows)


def test_columns_get_narrow_before_the_last_one_is_left_out():
    row = ("REQ-1", *["x" * 20] * 5)
    head = (*COVERAGE[0][:-1], "NOTE")
    assert tables.aligned(head, [row], 37)[0] == "ID     SPECI…  VERIF…  IMPLE…  NOTE"
    assert tables.aligned(head, [row], 36)[0] == "ID     SPECIFI…  VERIFIED  IMPLEME…"
    assert tables.aligned(("ID", "AT", "TITLE"), [("A", "x" * 28, "y" * 9)], 30) == ["ID  AT", "A   " + "x" * 28]


def test_a_title_is_cut_and_left_out_before_other_text():
    row = ("REQ-001", "SCN-001", "TEST-001", "of.a.page", "must", "A recipient sees where the parcel is")
    assert tables.aligned(COVERAGE[0], [row], 54)[1] == "REQ-001  SCN-001    TEST-001  of.a.page    A recipien…"
    assert tables.aligned(COVERAGE[0], [row], 50)[1] == "REQ-001  SCN-001    TEST-001  of.a.page    A reci…"
    assert tables.aligned(COVERAGE[0], [row], 48)[1] == "REQ-001  SCN-001    TEST-001  of.a.page"


def test_the_message_of_a_record_stays_when_who_and_how_much_has_no_room():
    head = ("SEQ", "AT", "ACTOR", "CHANGES", "MESSAGE")
    row = ("3", "2026-11-22T06:52:10Z", "Leila Haddad", "1 created, 1 updated, 1 edge", "REQ-4 has a test now")
    assert tables.aligned(head, [row], 80)[1] == (
        "  3  2026-11-22T06:52:10Z  Leila Haddad  1 created, 1 upd…  REQ-4 has a test now"
    )
    assert tables.aligned(head, [row], 40)[1] == "  3  2026-11-22T06:52:10Z  REQ-4 has a…"


def test_a_short_title_stays_next_to_wide_text():
    assert tables.aligned(("ID", "A", "B", "TITLE"), [("X", "a" * 30, "b" * 30, "title")], 60)[0].endswith("TITLE")


def test_what_rows_are_called_stays_whatever_there_is_room_for():
    row = ("must", "3", "x" * 20)
    assert tables.aligned(("PRIORITY", "REQUIREMENTS", "VERIFIED"), [row], 30)[0] == "PRIORITY  VERIFIED"


def test_numbers_are_aligned_to_the_right():
    assert tables.aligned(("SEQ", "MESSAGE"), [("1", "one"), ("1000", "many")]) == [
        " SEQ  MESSAGE",
        "   1  one",
        "1000  many",
    ]


def test_colours_change_no_width_and_follow_the_status():
    rows = [("A", "met", "x"), ("B", "draft", "y"), ("C", "rejected", "z"), ("D", "whatever", "z")]
    plain = tables.aligned(("ID", "STATUS", "TITLE"), rows, 60)
    shown = tables.aligned(("ID", "STATUS", "TITLE"), rows, 60, coloured)
    assert shown[1] == "A   \x1b[32mmet\x1b[0m       x"
    assert "\x1b[33mdraft\x1b[0m" in shown[2]
    assert "\x1b[2mrejected\x1b[0m" in shown[3]
    assert shown[4] == plain[4]


def test_values_are_wrapped_next_to_their_names():
    assert tables.pairs([("tags", "auth, web"), ("title", "one two three four five six seven")], 34) == [
        "  tags   auth, web",
        "  title  one two three four five",
        "         six seven",
    ]


def test_a_markdown_table_takes_nothing_from_its_cells():
    assert "".join(tables.markdown(("A", "B"), [("a|b", "<b>\n`x`")])) == (
        "| A | B |\n| --- | --- |\n| a\\|b | \\<b\\> \\`x\\` |\n"
    )


def test_csv_keeps_line_breaks_and_quotes_and_no_control_characters():
    text = "".join(tables.comma_separated(("a", "b"), [('say "x"\nand', "\x1b,")]))
    assert text == 'a,b\n"say ""x""\nand","\\x1b,"\n'
