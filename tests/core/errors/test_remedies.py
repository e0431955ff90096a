"""A remedy: commands in a text are data, and each front end says them in its own words."""

from __future__ import annotations

import ast
import re
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.errors import DerivedFact, KBError, Problem
from kbcore.errors.remedies import Command, Wording, by_front_end, for_shell, kb, located, parts_of, render, shell

ROOT = Path(__file__).resolve().parents[2]
TEXTS = st.text(st.characters(exclude_characters="\x02\x03", exclude_categories=["Cs"]), max_size=20)
COMMANDS = st.builds(Command, st.sampled_from(["log", "sync"]), st.lists(TEXTS, max_size=3).map(tuple))


@given(pieces=st.lists(TEXTS | COMMANDS | st.builds(Wording, TEXTS, TEXTS), max_size=6))
def test_what_was_marked_in_a_text_is_found_again_whatever_is_around_it(pieces: list[str | Command | Wording]) -> None:
    def mark(one: str | Command | Wording) -> str:
        if isinstance(one, Command):
            return kb(one.name, *one.args)
        return by_front_end(one.shell, one.tools) if isinstance(one, Wording) else one

    text = "".join(map(mark, pieces))
    found = [one for one in parts_of(text) if not isinstance(one, str)]
    assert found == [one for one in pieces if not isinstance(one, str)]
    assert render(text, lambda _: "") == "".join(one for one in pieces if isinstance(one, str))


@given(text=st.text(st.sampled_from('\x02\x03CW["log",]x'), max_size=20))
def test_a_text_that_only_looks_like_a_mark_stays_as_it_is(text: str) -> None:
    if not any(not isinstance(one, str) for one in parts_of(text)):
        assert for_shell(text) == text


@pytest.mark.parametrize(
    ("text", "typed_so"),
    [
        (kb("sync"), "`kb sync`"),
        (kb("log", "a b", 3, lead="See"), "See `kb log 'a b' 3`"),
        (kb("set", "A", "…", lead="run"), "run `kb set A …`"),
        (shell("gc", "--dry-run"), "`kb gc --dry-run`"),
        (f"Do {by_front_end('this', 'that')}.", "Do this."),
    ],
)
def test_the_command_line_shows_a_command_as_it_is_typed(text: str, typed_so: str) -> None:
    assert for_shell(text) == typed_so


def test_an_error_and_a_problem_show_their_remedy_and_keep_its_commands() -> None:
    remedy = f"{kb('sync', lead='Run')} first."
    problem, error = Problem("$", "code", "It is so.", remedy), KBError("It failed.", hint=remedy)
    assert problem.hint == error.hint == problem.as_json()["hint"] == error.as_json()["hint"] == "Run `kb sync` first."
    assert [one for one in parts_of(problem.remedy) if isinstance(one, Command)] == [Command("sync", (), "Run")]
    assert error.remedy == remedy


def test_a_message_of_an_error_is_in_the_words_of_the_command_line() -> None:
    error = KBError(f"Or {kb('sync')}.", hint=kb("sync"))
    assert (error.message, str(error), error.as_json()["message"]) == ("Or `kb sync`.",) * 3


@pytest.mark.sliced
def test_no_sentence_of_the_core_has_a_command_in_its_words() -> None:
    """It is put in by ``kb``, ``typed`` or ``worded``, so that a front end finds it without reading the sentence."""
    found = []
    for path in (ROOT / "kbcore").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
                found += [f"{path.name}:{node.lineno}: {node.value}"] if re.search(r"`kb [a-z]", node.value) else []
    assert found == []


def test_commands_for_a_branch_that_is_not_checked_out_name_it() -> None:
    remedy = f"Edit it and {kb('sync', lead='run')}, or {kb('link', 'A', 'x', 'B')}; {kb('doctor')}; {kb('init')}."
    other = located(remedy, has_worktree=True, branch="a&b")
    place = "`kb sync` with a&b checked out (`git switch 'a&b'`)"
    assert for_shell(other) == f"Edit it and run {place}, or `kb link A x B --branch 'a&b'`; `kb doctor`; `kb init`."
    named = kb("log", "--branch", "main")
    assert located(named, has_worktree=True, branch="other") == named
    bare = located(remedy, has_worktree=False, branch="other")
    assert "`kb sync` in a worktree of the repository, or `kb link A x B --branch other`" in for_shell(bare)


def test_in_a_bare_repository_a_sync_is_run_in_a_worktree() -> None:
    remedy = f"Edit the file and {kb('sync', lead='run')}; {kb('log', 'A')} {by_front_end('here', 'there')}."
    assert located(remedy, has_worktree=True) == remedy
    bare = located(remedy, has_worktree=False)
    assert for_shell(bare) == "Edit the file and run `kb sync` in a worktree of the repository; `kb log A` here."
    assert located(bare, has_worktree=False) == bare
    error = DerivedFact("It is stated by a file.", details=[Problem("$", "derived_fact", "It is.", kb("sync"))])
    error.locate_remedies(partial(located, has_worktree=False))
    assert error.hint == "Edit the named file and run `kb sync` in a worktree of the repository."
    assert error.details[0].hint == "`kb sync` in a worktree of the repository"
    assert not error.has_own_remedy
