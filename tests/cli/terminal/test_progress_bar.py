"""The line that says how far long work has come."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from kbcli.terminal.cells import width_of
from kbcli.terminal.output import Output
from kbcli.terminal.progress_bar import Bar, ProgressStep, line
from kbcore import progress
from tests.support.repository.clocks import StoppedClock


class Screen:
    """A bar with a clock that is set by hand, and all that it wrote. It draws by itself, too, and the same."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.clock = StoppedClock()
        self.is_wanted = True
        self.bar = Bar(self.written.append, self.clock, lambda: 80, lambda: self.is_wanted)

    def at(self, now_s: float) -> str:
        """Return what the line is at a time."""
        self.clock.now_s = now_s
        self.bar.draw()
        return "".join(self.written).rpartition("\r\x1b[K")[2]


@pytest.fixture
def screen() -> Iterator[Screen]:
    made = Screen()
    yield made
    made.bar.close()


def test_a_step_shows_how_much_is_done_how_quick_and_how_long_it_takes():
    assert line(ProgressStep(4_500, 10_000, "files read", 1.5), 100) == (
        "[======>.......]  45%  4,500 of 10,000 files read, 3,000/s, 2 s left"
    )
    assert line(ProgressStep(3, 11, "rules run", 2), 80) == "[====>.........]  27%  3 of 11 rules run"
    assert line(ProgressStep(100, 10**6, "files read", 1), 100).endswith("100/s, 2.8 h left")
    assert width_of(line(ProgressStep(4_500, 10_000, "files read", 1.5), 40)) < 40


def test_nothing_is_shown_of_what_takes_less_than_a_second(screen):
    screen.bar.note(1, 10, "files read")
    assert screen.at(0.9) == ""
    assert "1 of 10 files read" in screen.at(1.1)
    screen.bar.note(10, 10, "files read")
    assert screen.at(1.2) == ""


def test_a_pause_ends_a_stretch_of_work(screen):
    screen.bar.note(1, 10, "files read")
    assert screen.at(5) != ""
    screen.bar.note(2, 10, "records read")
    assert screen.at(5.5) == ""


def test_work_that_counts_nothing_is_named(screen):
    with screen.bar.named("Checking"):
        assert screen.at(0.5) == ""
        assert screen.at(3) == "Checking … 3 s"
        screen.bar.note(1, 10, "rules run")
        assert "1 of 10 rules run" in screen.at(3.1)
    assert screen.at(9) == ""


def test_the_line_is_cleared_before_anything_else_is_written(screen):
    with screen.bar.named("Checking"):
        assert screen.at(2) != ""
        screen.bar.clear()
        assert screen.written[-1] == "\r\x1b[K"


def test_quiet_and_json_have_no_bar(screen):
    screen.is_wanted = False
    screen.bar.note(1, 10, "files read")
    assert screen.at(5) == ""
    assert screen.written == []


@pytest.mark.parametrize(("env", "is_heard"), [({}, True), ({"TERM": "dumb"}, False)])
def test_a_terminal_that_can_erase_hears_of_work_and_nothing_else_does(monkeypatch, env, is_heard):
    items = [1, 2, 3]
    with Output(env).progress():
        assert progress.track(items, 3, "items") is items
    main, side = os.openpty()
    with os.fdopen(side, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        with Output(env).progress():
            assert (progress.track(items, 3, "items") is not items) == is_heard
    os.close(main)
