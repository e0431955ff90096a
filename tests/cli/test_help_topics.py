"""No message spells out a command that loses data or overrides a refusal: a topic of help stands in its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

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
"""Why messages may name each of the others."""
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


def test_help_prints_a_topic_and_the_list_of_topics(kb) -> None:
    assert kb("help", "new-epoch").out == TOPICS["new-epoch"]
    assert kb("help", "topics").out.splitlines() == [f"  kb help {name}" for name in ("agents", *TOPICS)]
    assert kb("help", "redact").out.startswith("Usage: kb redact")
    assert kb("help", "nonsense").status == 2
