"""``kb prolog`` at a prompt."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.support.processes.terminal import Terminal
from tests.support.repository.repos import git


def at_prompt(cwd, state, engine, *words):
    return Terminal(cwd, state, "?- ", "prolog", *words, env=engine)


def interrupt(at, until=""):
    """Interrupt what runs, and see that the prompt answers; return what was shown."""
    return at.interrupt(until) + at.type("X is 40 + 2.\n", until="X = 42.\r\n?- ")


@pytest.mark.sliced
def test_the_prompt_shows_one_solution_after_the_other(synced, tmp_path, engine):
    at = at_prompt(synced, tmp_path / "state", engine)
    at.type("member(X, [1, 2, 3]).\n", until="X = 1 ")
    at.type(";", until=";\nX = 2 ".replace("\n", "\r\n"))
    assert at.type(";") == ";\nX = 3.\n"
    at.type("member(X, [1, 2, 3]).\n", until="X = 1 ")
    assert at.type("\n") == ".\n"
    at.type("( X = 1 ; fail ).\n", until="X = 1 ")
    at.type("h", until="any other key")
    assert "false.\n" in at.type(";")
    assert at.leave("halt.\n") == 0


@pytest.mark.sliced
def test_a_goal_runs_over_several_lines_until_its_full_stop(synced, tmp_path, engine):
    at = at_prompt(synced, tmp_path / "state", engine)
    at.type("member(X,\n", until="|    ")
    at.type("[only])\n", until="|    ")
    assert "X = only.\n" in at.type(".\n")
    at.type(":assert p(1) :-\n", until="|    ")
    assert "1 clause added. Branch main is at seq 2.\n" in at.type("true.\n")
    assert "X = 1.\n" in at.type("p(X).\n")
    at.type("/* a comment.\n", until="|    ")
    assert "true.\n" in at.type("*/ true.\n")
    assert "error: Syntax error: Operator expected.\n" in at.type("foo bar.\n")
    assert "error: Unknown predicate foo/1.\n" in at.type("foo(1).\n")
    assert ":snapshot" in at.type(":help\n")
    assert at.leave() == 0
    kept = tmp_path / "state" / "kb" / "prolog-history"
    assert ":assert p(1) :-" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


@pytest.mark.sliced
def test_ctrl_c_ends_the_goal_and_not_the_prompt(synced, tmp_path, engine):
    at = at_prompt(synced, tmp_path / "state", engine)
    at.type(":assert p(1).\n")
    at.type("p(X), foo", until="foo")
    interrupt(at)
    at.type("repeat, fail.\n", until="fail.\r\n")
    time.sleep(0.3)
    interrupt(at, until="Interrupted.\r\n")
    assert "X = 1.\n" in at.type("p(X).\n")
    at.type("repeat.\n", until="true ")
    interrupt(at, until="Interrupted.\r\n")
    assert "X = 1.\n" in at.type("p(X).\n")
    assert at.leave() == 0


@pytest.mark.sliced
def test_the_prompt_completes_predicates_and_statements(synced, tmp_path, engine):
    at = at_prompt(synced, tmp_path / "state", engine)
    at.type(":assert my_own_predicate(1).\n")
    at.type("my_o\t", until="my_own_predicate")
    assert "X = 1.\n" in at.type("(X).\n")
    at.type(":snap\t", until=":snapshot")
    assert "my_own_predicate(1).\n" in at.type("\n")
    assert at.leave() == 0


@pytest.mark.sliced
def test_the_prompt_follows_the_branch_that_is_checked_out(synced, tmp_path, engine, kb):
    kb("prolog", "-g", ":assert p(1).")
    at = at_prompt(synced, tmp_path / "state", engine)
    at.type("p(X) ; X = 2.\n", until="X = 1 ")
    git(synced, "switch", "--quiet", "--create", "other")
    shown = at.type(";")
    assert "error: The query was lost: the branch is another one now.\nhint: Ask it again.\n" in shown
    assert "other has no store yet" in shown
    assert "other has no store yet" not in at.type("p(X).\n")
    assert "Branch other is at seq 3." in at.type(":assert p(3).\n")
    assert at.leave() == 0
    assert kb("prolog", "-g", "p(X)", "--branch", "main").out == "X = 1.\n"
    assert kb("prolog", "-g", "p(X)").out == "X = 1 ;\nX = 3.\n"


@pytest.mark.sliced
def test_no_engine_outlives_the_prompt_that_is_killed(synced, tmp_path, engine):
    at = at_prompt(synced, tmp_path / "state", engine)
    at.type("repeat, fail.\n", until="fail.\r\n")
    children = _children(at.child, 2)
    os.kill(at.child, signal.SIGKILL)
    assert at.leave("") == -signal.SIGKILL
    end = time.monotonic() + 20
    while alive := [one for one in children if Path(f"/proc/{one}/stat").exists()]:
        assert time.monotonic() < end, alive
        time.sleep(0.05)


def _children(pid, least):
    """Return the children of a process once it has so many."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        if len(found) >= least:
            return found
        time.sleep(0.05)
    raise AssertionError(f"{pid} has no {least} children")


@pytest.mark.sliced
def test_the_prompt_follows_what_others_write(synced, tmp_path, engine, kb):
    at = at_prompt(synced, tmp_path / "state", engine, "-f", "/dev/null")
    assert "error: Unknown predicate q/1." in at.type("q(X).\n")
    assert kb("prolog", "-g", ":assert q(5).").status == 0
    assert "X = 5.\n" in at.type("q(X).\n")
    assert at.leave() == 0
