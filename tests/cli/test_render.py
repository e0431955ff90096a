"""Output of the program: safe text, whole JSON, every byte."""

from __future__ import annotations

import fcntl
import io
import os
import threading
import time
from pathlib import Path

import pytest

from kbcli.terminal import pager
from kbcli.terminal.output import Output, OutputClosed, OutputFailed, write_all


def read_slowly(descriptor: int, into: list[bytes]) -> None:
    while part := os.read(descriptor, 1000):
        into.append(part)
        if len(into) < 20:
            time.sleep(0.002)


@pytest.mark.parametrize("is_blocking", [True, False])
def test_a_long_text_is_written_completely_to_a_pipe_of_any_capacity(is_blocking):
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


def test_a_closed_reader_is_distinguished_from_a_full_disk():
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


RED = "\x1b[31mtext\x1b[0m"


@pytest.mark.parametrize(
    ("env", "at_terminal", "in_pipe"),
    [
        ({}, RED, "text"),
        ({"NO_COLOR": "1"}, "text", "text"),
        ({"NO_COLOR": ""}, RED, "text"),
        ({"TERM": "dumb"}, "text", "text"),
        ({"CLICOLOR": "0"}, "text", "text"),
        ({"CLICOLOR": "1"}, RED, "text"),
        ({"FORCE_COLOR": "1"}, RED, RED),
        ({"FORCE_COLOR": "0"}, RED, "text"),
        ({"CLICOLOR_FORCE": "1", "TERM": "dumb"}, RED, RED),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, "text", "text"),
    ],
)
def test_colours_are_for_terminals_unless_the_environment_says_otherwise(monkeypatch, env, at_terminal, in_pipe):
    main, side = os.openpty()
    with os.fdopen(side, "w") as terminal:
        monkeypatch.setattr("sys.stdout", terminal)
        assert Output(env).styled("text", "red") == at_terminal
        monkeypatch.setattr("sys.stdout", io.StringIO())
        assert Output(env).styled("text", "red") == in_pipe
    os.close(main)


def test_the_pager_is_the_one_that_git_would_take(tmp_path):
    seen = tmp_path / "seen"
    assert pager.show("long\n", {"GIT_PAGER": f"cat > '{seen}'", "PAGER": "false"})
    assert seen.read_text() == "long\n"
    assert not pager.show("long\n", {"GIT_PAGER": "cat"})
    assert not pager.show("long\n", {"PAGER": ""})
    assert not pager.show("long\n", {"PAGER": "there-is-no-such-program"})
    assert pager.show("long\n" * 100_000, {"PAGER": "true"})
