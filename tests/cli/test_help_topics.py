"""No message spells out a command that loses data or overrides a refusal: a topic of help stands in its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from kbcli.invocation.command_tree import COMMANDS, root
from kbcli.invocation.help_topics import TOPICS
from kbcore.errors import KBError
from kbcore.errors.remedies import HELP_TOPICS, for_shell, kb, shell
from kbmcp.tools import hints

ROOT = Path(__file__).resolve().parents[2]
SUSPECTED = re.compile(
    r"--(force|yes|replace|even-damaged|new-epoch|salvage|rebuild-.*|prune.*|empty.*|discard.*|purge.*)"
)
"""Options whose names say that they may lose something or override a refusal."""
HARMLESS = {
    ("branch ensure", "--replace"): "the store that is there goes to the trash",
    ("restore", "--replace"): "the store that is there goes to the trash",
    ("doctor", "--replace"): "the store that is there goes to the trash",
    ("doctor", "--rebuild-snapshots"): "a snapshot is made again from the journal, after a copy",
    ("agents install", "--replace"): "lines that somebody changed in a client's file are shown before, and are in git",
    ("uninstall", "--yes"): "it only answers; what is lost, --delete-all says",
    ("doctor", "--yes"): "it only answers for --new-epoch and --salvage, which have a topic",
    ("delete", "--yes"): "a revert brings back what was removed",
    ("init", "--yes"): "it adds settings",
    ("sources detect", "--yes"): "it adds settings",
    ("sync", "--rebuild"): "files are read again",
    ("sleep", "--force"): "the records of a cycle that came early can be reverted",
}
"""The reasons why messages may name the others."""
LITERAL = re.compile(r"`kb ((?:[a-z]+ ?){1,2})[^`]*?(--[a-z-]+)[^`]*`")


def options() -> Iterator[tuple[str, str]]:
    """Yield every option of every command whose name is suspected, by the definitions of the commands."""
    for name in COMMANDS:
        command = root().get_command(None, name)
        below = getattr(command, "commands", {})
        for path, one in [(name, command), *((f"{name} {each}", it) for each, it in below.items())]:
            for parameter in one.params:
                yield from ((path, opt) for opt in parameter.opts if SUSPECTED.fullmatch(opt))


def test_every_option_that_may_lose_something_has_a_topic_or_a_reason() -> None:
    found = {*options()}
    known = {key for key in found if (key[0].partition(" ")[0], key[1]) in HELP_TOPICS or key in HARMLESS}
    assert found == known
    assert {*HELP_TOPICS.values()} == {*TOPICS}


@pytest.mark.parametrize(("command", "option"), [*HELP_TOPICS])
def test_a_remedy_names_the_topic_in_place_of_the_command(command: str, option: str) -> None:
    topic = HELP_TOPICS[command, option]
    said = f"what `kb help {topic}` describes"
    assert shell(command, option, "--branch", "main") == f"{said} for the branch main"
    assert for_shell(kb(command, "X", option, lead="Run")) == f"Run {said}"
    told = hints.in_tool_words(f"{kb(command, option, lead='Run')} first.", is_dotted=False)
    assert option not in told
    assert f"`kb help {topic}`" in told or command == "revert"  # its tool has no such argument


def classes(kind: type[KBError]) -> Iterator[type[KBError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from classes(below)


def spelled_out(text: str) -> list[str]:
    """Return the complete destructive commands in a text."""
    found = LITERAL.finditer(text)
    return [one[0] for one in found if (one[1].split()[0], one[2]) in HELP_TOPICS]


def test_no_remedy_of_an_error_class_spells_one_out() -> None:
    texts = [for_shell(one.default_hint) for one in classes(KBError)]
    texts += [hints.in_tool_words(one.default_hint, is_dotted=False) for one in classes(KBError)]
    assert [found for text in texts for found in spelled_out(text)] == []


@pytest.mark.sliced
def test_no_text_in_the_code_spells_one_out() -> None:
    """Commands in remedies are data, and their words are those of ``shown``; this looks at what is written as text."""
    found = []
    for path in (one for name in ("kbcore", "kbcli", "kbmcp") for one in (ROOT / name).rglob("*.py")):
        if path.name == "help_topics.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            text = "".join(
                one.value if isinstance(one, ast.Constant) and isinstance(one.value, str) else "X" for one in parts
            )
            if not (isinstance(node, ast.Constant) and id(node) in docs):
                found += [f"{path.name}: {one}" for one in spelled_out(text)]
    assert found == []


class Built(NamedTuple):
    """A place that builds a remedy: its file and line, and the words of the command, ``X`` for what a call gives it."""

    place: str
    name: str
    words: tuple[str, ...]


@cache
def built() -> list[Built]:
    """Return every place in the code that makes a command of words, by ``kb``, ``shell`` or ``Command``."""
    found = []
    for package in ("kbcore", "kbcli", "kbmcp", "kbweb"):
        for path in sorted((ROOT / package).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if path.name == "remedies.py" or "remedies" not in text:
                continue
            nodes = [*ast.walk(ast.parse(text))]
            makers = {
                alias.asname or alias.name
                for node in nodes
                if isinstance(node, ast.ImportFrom) and node.module == "kbcore.errors.remedies"
                for alias in node.names
                if alias.name in {"kb", "shell", "Command"}
            }
            for node in nodes:
                if isinstance(node, ast.Call) and _maker(node.func) in {*makers, "remedies.kb", "remedies.shell"}:
                    name, *given = node.args
                    assert isinstance(name, ast.Constant), f"{path}:{node.lineno}: the command is no literal"
                    words = tuple(word for one in given for word in _words(one))
                    found.append(Built(f"{path.relative_to(ROOT)}:{node.lineno}", name.value, words))
    return found


def _maker(called: ast.expr) -> str:
    return ast.unparse(called) if isinstance(called, ast.Name | ast.Attribute) else ""


def _words(given: ast.expr) -> list[str]:
    """Return the texts in an argument, each of those that it chooses among; of one with values in it as one text."""
    if isinstance(given, ast.JoinedStr):
        return ["".join(one.value if isinstance(one, ast.Constant) else "X" for one in given.values)]
    if isinstance(given, ast.Constant):
        return [str(given.value)]
    if isinstance(given, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        return ["X"]
    return [word for one in ast.iter_child_nodes(given) if isinstance(one, ast.expr) for word in _words(one)]


def options_of(name: str, words: tuple[str, ...]) -> set[str]:
    """Return the options of the command that these words call, of its group and of all commands."""
    command = root().get_command(None, name)
    assert command is not None, f"there is no command {name!r}"
    below = getattr(command, "commands", {})
    found = [command, *(below[one] for one in words[:1] if one in below), root()]
    return {opt for one in found for parameter in one.params for opt in (*parameter.opts, *parameter.secondary_opts)}


def test_every_place_that_builds_a_remedy_names_a_command_and_options_that_there_are() -> None:
    assert len(built()) > 200
    wrong = [
        (one.place, word)
        for one in built()
        for word in one.words
        if word.startswith("-") and len(word) > 1 and word not in options_of(one.name, one.words)
    ]
    assert wrong == []  # `--force=yes`, or two options in one text, would pass by the topics


def test_no_place_that_builds_a_remedy_has_an_option_in_the_middle_of_a_text() -> None:
    assert [(one.place, word) for one in built() for word in one.words if re.search(r"\s-", word)] == []


def test_no_place_that_builds_a_remedy_shows_a_command_that_loses_data() -> None:
    losing = [one for one in built() if any((one.name, word) in HELP_TOPICS for word in one.words)]
    assert {one.name for one in losing} >= {"branch", "compact", "doctor", "gc"}
    for one in losing:
        of_tools = hints.in_tool_words(kb(one.name, *one.words), is_dotted=False)
        for text in (shell(one.name, *one.words), for_shell(kb(one.name, *one.words)), of_tools):
            assert not any(option in text for _, option in HELP_TOPICS), one.place


def test_help_prints_a_topic_and_the_list_of_topics(kb) -> None:
    assert kb("help", "new-epoch").out == TOPICS["new-epoch"]
    assert kb("help", "topics").out.splitlines() == [f"  kb help {name}" for name in ("agents", *TOPICS)]
    assert kb("help", "redact").out.startswith("Usage: kb redact")
    assert kb("help", "nonsense").status == 2
