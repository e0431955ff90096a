"""What leaves the program: safe text, whole JSON, every byte."""

from __future__ import annotations

import fcntl
import io
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcli import pager, tables
from kbcli.render import (
    Output,
    OutputClosed,
    OutputFailed,
    shortened,
    width_of,
    write_all,
)
from kbcore.visible import visible


@given(st.text(max_size=30), st.integers(1, 20))
def test_a_shortened_text_fits(text, width):
    text = visible(text)
    short = shortened(text, width)
    assert width_of(short) <= width or width_of(text) <= width
    assert short == text or short.endswith("…")


def test_wide_letters_take_two_columns_and_accents_none():
    assert width_of("東京") == 4
    assert width_of("e\u0301") == 1


def read_slowly(descriptor: int, into: list[bytes]) -> None:
    while part := os.read(descriptor, 1000):
        into.append(part)
        if len(into) < 20:
            time.sleep(0.002)


@pytest.mark.parametrize("is_blocking", [True, False])
def test_all_of_a_long_text_goes_through_a_pipe_whatever_it_takes_at_once(is_blocking):
    reads, writes = os.pipe()
    if not is_blocking:
        fcntl.fcntl(writes, fcntl.F_SETFL, fcntl.fcntl(writes, fcntl.F_GETFL) | os.O_NONBLOCK)
    text = "é" * 200_000
    got: list[bytes] = []
    reader = threading.Thread(target=read_slowly, args=(reads, got))
    reader.start()
    with os.fdopen(writes, "w", encoding="utf-8") as stream:
        write_all(stream, text)
    reader.join()
    os.close(reads)
    assert b"".join(got).decode() == text


def test_a_reader_that_is_gone_is_told_apart_from_a_full_disk():
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w", encoding="utf-8") as stream, pytest.raises(OutputClosed):
        write_all(stream, "text")
    with Path("/dev/full").open("w", encoding="utf-8") as full, pytest.raises(OutputFailed, match="No space"):
        write_all(full, "text")
    with pytest.raises(OutputFailed, match="closed"):
        write_all(None, "text")


def test_a_stream_in_memory_is_written_too():
    stream = io.StringIO()
    write_all(stream, "text")
    assert stream.getvalue() == "text"


def test_text_and_notes_come_in_the_order_in_which_they_were_written(capfd):
    output = Output({})
    output.say("one")
    output.note("two")
    output.say("three")
    output.flush()
    assert capfd.readouterr() == ("one\nthree\n", "two\n")


def test_quiet_keeps_warnings_and_what_was_asked_for(capfd):
    output = Output({})
    output.is_quiet = True
    output.say("said")
    output.note("noted")
    output.warn("warned")
    output.data("data\n")
    output.flush()
    assert capfd.readouterr() == ("data\n", "warning: warned\n")


def test_colours_are_for_terminals_that_want_them(capfd):
    assert Output({}).styled("text", "red") == "text"
    terminal = os.openpty()
    with os.fdopen(terminal[1], "w") as stream:
        for env, expected in (({}, "\x1b[31mtext\x1b[0m"), ({"NO_COLOR": "1"}, "text"), ({"TERM": "dumb"}, "text")):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("sys.stdout", stream)
                assert Output(env).styled("text", "red") == expected
    os.close(terminal[0])


def test_a_table_is_aligned_by_columns_and_fits_a_terminal():
    rows = [("REQ-1", "東京 " * 10), ("A\x1b", "short")]
    lines = tables.aligned(("ID", "TITLE"), rows, 30)
    assert lines[0] == "ID     TITLE"
    assert lines[1].startswith("REQ-1  東京")
    assert lines[2] == "A\\x1b  short"
    assert all(width_of(line) <= 30 for line in lines)
    assert lines[1].endswith("…")
    assert width_of(tables.aligned(("ID", "TITLE"), rows)[1]) > 30


def test_a_markdown_table_takes_nothing_from_its_cells():
    assert tables.markdown(("A", "B"), [("a|b", "<b>\n`x`")]) == (
        "| A | B |\n| --- | --- |\n| a\\|b | \\<b\\> \\`x\\` |\n"
    )


def test_csv_keeps_line_breaks_and_quotes_and_no_control_characters():
    text = tables.comma_separated(("a", "b"), [('say "x"\nand', "\x1b,")])
    assert text == 'a,b\n"say ""x""\nand","\\x1b,"\n'


def test_the_pager_is_the_one_that_git_would_take(tmp_path):
    seen = tmp_path / "seen"
    assert pager.show("long\n", {"GIT_PAGER": f"cat > '{seen}'", "PAGER": "false"})
    assert seen.read_text() == "long\n"
    assert not pager.show("long\n", {"GIT_PAGER": "cat"})
    assert not pager.show("long\n", {"PAGER": ""})
    assert not pager.show("long\n", {"PAGER": "there-is-no-such-program"})
    assert pager.show("long\n" * 100_000, {"PAGER": "true"})
