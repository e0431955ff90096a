"""The tour on the example project: it runs as it says, fails when a step ends otherwise, and keeps to its directory."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kbcli import app
from kbcli.commands import demo
from kbcli.demo import tour
from tests.support.docs.console import ROOT, environment
from tests.support.processes.forked import stand_in
from tests.support.repository.hooks import EVENTS
from tests.support.repository.places import stores_at
from tests.support.repository.repos import git


class Ended(NamedTuple):
    status: int
    output: str
    home: Path
    user_home: Path


def take(*words: str) -> tuple[int, str]:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        status = app.main(["demo", *words])
    return status, shown.getvalue()


@pytest.fixture(scope="module")
def around(tmp_path_factory) -> Iterator[Path]:
    """A folder for a user's home, while the environment is that of somebody who has just installed KB."""
    folder = tmp_path_factory.mktemp("somebody's place")
    user_home = folder / "home"
    user_home.mkdir()
    (user_home / ".gitconfig").write_text("[user]\n\tname = Not Me\n[core]\n\thooksPath = /nowhere\n")
    with environment(folder):
        os.environ["HOME"] = str(user_home)
        del os.environ["GIT_CONFIG_GLOBAL"]
        os.environ["KB_BRANCH"] = "elsewhere"
        yield folder


@pytest.fixture(scope="module")
def taken(around) -> Ended:
    """The whole tour, taken once, with programs that have imported what they need."""
    home = around / "a tour"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "_PROGRAMS", {name: (str(stand_in(name)),) for name in demo._PROGRAMS})
        status, output = take("--into", str(home))
    return Ended(status, output, home, around / "home")


def test_the_tour_ends_well(taken):
    assert taken.status == 0, taken.output


def test_it_shows_each_command_as_typed_and_each_call_of_the_agent(taken):
    for part in tour.PARTS:
        assert f"== {part.title} ==" in taken.output
        for step in part.steps:
            if isinstance(step, tour.TourCommand):
                assert f"$ {step.line}\n" in taken.output
            elif isinstance(step, tour.Talk):
                assert all(f"--> {call.tool} " in taken.output for call in step.calls)


def test_it_counts_the_hooks_that_are_installed(taken):
    installed = [event for event in EVENTS if f"Hook {event}: active, created" in taken.output]
    assert f"installs {len(installed)} git hooks" in taken.output


def test_the_answers_are_what_the_programs_said(taken):
    for answer in ("REQ-004 has priority must, but no test", "Did you mean 'test'?", '"duplicate": true', tour.AGENT):
        assert answer in taken.output


def test_the_project_stays_as_a_clean_repository_with_a_memory_of_both_branches(taken):
    assert str(taken.home) in taken.output
    assert git(taken.home, "status", "--porcelain") == ""
    assert git(taken.home, "log", "-1", "--format=%an") == "Leila Haddad"
    assert len([path for path in stores_at(taken.home).iterdir() if path.is_dir()]) == 2
    status = app.main(["-C", str(taken.home), "--branch", "main", "--quiet", "verify"])
    assert status == 0


def test_nothing_of_the_users_is_read_or_written(taken):
    assert [path.name for path in taken.user_home.iterdir()] == [".gitconfig"]
    assert "Not Me" not in taken.output
    assert "/nowhere" not in taken.output


@pytest.mark.parametrize("name", demo._PROGRAMS)
def test_its_programs_are_those_of_this_installation(name):
    done = subprocess.run([*demo._PROGRAMS[name], "--help"], capture_output=True, text=True, check=True)
    assert "usage: " in done.stdout.lower()


def test_a_directory_that_holds_something_is_refused_and_left_alone(around, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    status, output = take("--into", str(tmp_path))
    assert status == 2
    assert "not an empty directory" in output
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize(
    "step",
    [
        tour.TourCommand("", "git status --short", ("no such text",)),
        tour.TourCommand("", "git no-such-command"),
        tour.TourCommand("", "git status --short", status=1),
    ],
)
def test_a_step_that_ends_otherwise_fails_the_tour(step, around, tmp_path, monkeypatch):
    monkeypatch.setattr(tour, "PARTS", (tour.TourPart("One", (step,)),))
    status, output = take("--into", str(tmp_path / "new"))
    assert status == demo.FAILED
    assert "did not expect this" in output
    assert "1 of 1 steps" in output


def test_the_tour_is_there_for_programs(around, tmp_path, monkeypatch):
    step = tour.TourCommand("Why", "git log --format=%s")
    monkeypatch.setattr(tour, "PARTS", (tour.TourPart("One", (step,)),))
    status, output = take("--json", "--into", str(tmp_path / "new"))
    assert status == 0
    assert json.loads(output) == {
        "directory": str(tmp_path / "new"),
        "ok": True,
        "steps": [{"typed": step.line, "answer": "Waymark as it is today\n", "is_expected": True}],
    }


def test_without_a_directory_every_tour_gets_a_new_one(around, tmp_path, monkeypatch):
    monkeypatch.setattr(demo.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(tour, "PARTS", ())
    assert [take()[0], take()[0]] == [0, 0]
    assert len(list(tmp_path.glob("kb-demo-*/waymark/.git"))) == 2


def test_json_for_people_breaks_only_what_is_too_long():
    assert tour.shown_json({"a": [1, "ä"]}) == '{"a": [1, "ä"]}'
    long = {"a": ["x" * 60, "y" * 60], "b": {}}
    assert tour.shown_json(long) == ('{\n  "a": [\n    "' + "x" * 60 + '",\n    "' + "y" * 60 + '"\n  ],\n  "b": {}\n}')
    assert json.loads(tour.shown_json(tour.PARTS[2].steps[0].calls[2].arguments))


def test_the_example_uses_every_form_of_a_link():
    text = "".join(path.read_text() for path in sorted((ROOT / "kbcli/resources/demo/docs").rglob("*.*")))
    for form in (
        "  - https://",
        "  - REQ-002",
        "links: [REQ-001,",
        "type: verified_by",
        "{type: ",
        "  - specified_by: [",
    ):
        assert form in text


def test_without_git_the_tour_says_so(around, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(demo.sys, "executable", str(tmp_path / "python"))
    status, output = take("--into", str(tmp_path / "new"))
    assert status == 67
    assert "Install git." in output
