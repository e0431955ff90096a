"""The page about the command line, the help and the promised flags are the same."""

from __future__ import annotations

import re
import signal

import pytest

from kbcli.invocation import exits
from tests.support.docs.help_pages import commands, help_blocks, help_of
from tests.support.processes.cli import ROOT

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
GLOBALS = {"-C", "--branch", "--json", "--quiet", "-q", "--no-color"}
PROMISED = {
    "init": {"--no-hooks", "--hooks-path", "--default-branch"},
    "sync": {"--dry-run", "--rebuild", "--strict"},
    "watch": {"--check"},
    "status": set(),
    "query": {
        *("--id", "--tag", "--status", "--where", "--has", "--lacks", "--text", "--from", "--follow", "--depth"),
        *("--reverse", "--edges", "--at", "--sort", "--limit", "--cursor", "--format"),
    },
    "show": set(),
    "apply": {"--dry-run"},
    "delete": {"--edge", "--cascade", "--dry-run", "--yes"},
    "check": {"--rule", "--format", "--fail-on"},
    "log": {"--limit", "--actor", "--source", "--since"},
    "diff": set(),
    "revert": {"--force"},
    "rollback": {"--files", "--dry-run"},
    "branch list": set(),
    "branch ensure": set(),
    "branch diff": set(),
    "gc": {"--dry-run"},
    "compact": {"--prune-before"},
    "verify": set(),
    "doctor": {"--rebuild-head", "--salvage"},
    "backup": {"--only", "--force", "--dry-run"},
    "restore": {"--only", "--replace", "--dry-run"},
    "hooks install": set(),
    "hooks uninstall": set(),
    "hooks status": set(),
    "schema": set(),
    "mcp": set(),
    "mcp install": {"--write", "--scope", "--toolsets"},
    "demo": set(),
    "prove": {"--job", "--system", "--format"},
    "kip": {"--file", "-f", "--param", "--dry-run"},
    "export": {"--format", "--at"},
    "prolog": {"-g", "-f", "--limit", "--mode", "--at", "-l", "--kb-libraries", "--kb-roots"},
    "dml run": {
        *(
            "--param",
            "--arg",
            "--tools",
            "--allow",
            "--deny",
            "--model",
            "--base-url",
            "--gas",
            "--timeout",
            "--rounds",
        ),
        *("--task-rounds", "--tokens", "--cost", "--workspace", "--stream", "--trace", "--record"),
    },
    "dml tools": {"--tools"},
    "dml compile": {"--tools", "--model", "--base-url", "--tokens", "--cost", "--force"},
    "prolog install": set(),
    "prolog engines": set(),
}


def options_of(command) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts if option.startswith("-")}


@pytest.mark.parametrize("name", PROMISED)
def test_every_command_takes_what_is_promised_and_the_global_options(name):
    assert options_of(commands()[name]) >= PROMISED[name] | GLOBALS


def test_every_command_below_another_takes_the_global_options():
    assert all(options_of(command) >= GLOBALS for command in commands().values())


@pytest.mark.parametrize("name", [name for _, name in help_blocks() if name])
def test_every_command_is_on_the_page_with_its_help_and_an_example(name):
    _, found, section = PAGE.partition(f"\n## kb {name}\n")
    assert found
    section = section.partition("\n## ")[0]
    for option in re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", help_of(name), re.MULTILINE):
        assert option in section
    assert f"$ kb {name}" in section or name in {"mcp", "demo"}


def test_every_option_that_the_page_names_exists():
    known = {option for command in commands().values() for option in options_of(command)}
    known |= {"--help", "--version", "--install-completion", "--show-completion"}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", PAGE)) <= known


@pytest.mark.parametrize(
    "status",
    [
        exits.VIOLATIONS,
        exits.USAGE,
        exits.UNREADABLE,
        exits.BUG,
        exits.OUTPUT_FAILED,
        exits.INTERRUPTED,
        128 + signal.SIGTERM,
        exits.READER_GONE,
    ],
)
def test_every_status_of_its_own_is_on_the_page(status):
    assert re.search(rf"\b{status}\b", PAGE.partition("**Exit status.**")[2].partition("\n\n")[0])
