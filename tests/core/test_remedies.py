"""A remedy: commands in a text are data, and each front end says them in its own words."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbcore.errors import KBError, Problem
from kbcore.remedies import Command, Wording, by_front_end, for_shell, kb, parts_of, render, typed

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
        (typed("gc", "--empty-trash"), "`kb gc --empty-trash`"),
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
