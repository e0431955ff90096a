"""Arguments of the command line are text before any command sees them, or a name of a file, which may be any bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kbcli.invocation import command_tree, exits, options

BAD = "caf\udce9"
"""An argument in Latin-1, as Python reads it."""
PLACES = {"PATH", "DIR", "FILE|-"}
SILENT = "agents hook"
"""The command that clients of agents run: it refuses nothing, and says nothing then."""


def commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    for word, one in below.items():
        yield from commands(f"{name} {word}", one)
    if not below:
        yield name, command


def calls() -> Iterator[tuple[list[str], bool]]:
    """Return a command line for every parameter that takes text, with whether it names a file."""
    root = command_tree.root()
    named = [one for name in command_tree.COMMANDS for one in commands(name, root.get_command(None, name))]
    for name, command in named:
        if name == SILENT:
            continue
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        for parameter in command.params:
            is_flag = parameter.type_descriptor.annotation is bool
            if is_flag or (options.is_global(parameter) and name != "status"):
                continue
            is_place = parameter.metavar in PLACES
            if parameter.param_type_name == "option":
                yield [*name.split(), parameter.opts[-1], *[BAD] * parameter.nargs], is_place
            else:
                before = ["1"] * arguments.index(parameter)
                yield [*name.split(), *before, BAD], is_place


CALLS = list(calls())


@pytest.mark.sliced(32)
@pytest.mark.parametrize("words", [words for words, is_place in CALLS if not is_place], ids=" ".join)
def test_an_argument_that_is_not_utf_8_is_refused_by_name_before_anything_is_done(kb, synced, words):
    ran = kb(*words, "--json")
    assert (ran.status, ran.error["code"]) == (exits.USAGE, exits.USAGE_CODE)
    assert r"caf\udce9" in ran.error["message"]


@pytest.mark.parametrize("words", [("claude-code", BAD), (BAD, "SessionStart")])
def test_what_clients_run_says_nothing_of_an_argument_that_is_not_utf_8(kb, synced, words):
    ran = kb(*SILENT.split(), *words)
    assert (ran.status, ran.out, ran.err) == (0, "", "")


@pytest.mark.parametrize("words", [words for words, is_place in CALLS if is_place], ids=" ".join)
def test_a_name_of_a_file_that_is_not_utf_8_is_no_bug(kb, synced, words):
    (synced / BAD).write_text("{")  # what would make a folder of the name is refused
    ran = kb(*words)
    assert ran.status not in {exits.BUG, exits.OUTPUT_FAILED}, ran


def test_a_file_whose_name_is_not_utf_8_can_be_given(kb, synced):
    (synced / BAD).write_text('{"entities": [{"id": "REQ-1", "owner": "ann"}]}')
    assert kb("apply", BAD, "--json").json["updated"] == ["REQ-1"]


def test_a_text_beyond_the_limit_is_refused_with_its_length(kb, synced):
    ran = kb("query", "--text", "x" * 70_000)
    assert ran.status == exits.USAGE
    assert "70000 bytes" in ran.err
    assert len(ran.err) < 500


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hooks", "ls"], "`kb hooks` lists them."),
        (["branch", "delete", "x"], "`kb gc` moves the stores of deleted branches to the trash."),
        (["config", "rm"], "`kb config unset` removes one."),
        (["hooks", "instal"], "Did you mean 'install'?"),
    ],
)
def test_a_word_that_is_no_command_of_a_group_is_answered_with_the_one_that_does_it(kb, words, said):
    ran = kb(*words)
    assert (ran.status, said in ran.err) == (2, True), ran.err
