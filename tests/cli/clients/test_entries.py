"""Entries of a client's file that are KB's, and those of them that may be started."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbcli.clients.entries import ClientEntry, start_of

HERE = Path("/srv/project")


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        ("kb", {"command": "x"}),
        ("notes", {"command": "kb", "args": ["mcp"]}),
        ("notes", {"command": "/opt/bin/kb-mcp"}),
        ("notes", {"command": "uvx", "args": ["--from", "somewhere", "kb-mcp"]}),
    ],
)
def test_an_entry_is_kb_s_by_its_name_its_command_or_an_argument(name, entry):
    assert start_of(name, entry, HERE) is not None


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "other", "args": ["kbd"]},
        {"url": "https://example.org"},
        {"command": 3},
        {"command": "kb", "args": "mcp"},
        {"command": "kb", "args": [3]},
        None,
        [],
    ],
)
def test_other_entries_and_what_no_client_could_start_are_passed_over(entry):
    assert start_of("notes", entry, HERE) is None


def test_the_workspace_s_folder_is_put_in_and_of_the_environment_only_what_kb_knows():
    entry = {
        "command": "kb-mcp",
        "args": ["-C", "${workspaceFolder}/part"],
        "env": {"KB_BRANCH": "main", "LD_PRELOAD": "x", "PYTHONPATH": "."},
    }
    found = start_of("kb", entry, HERE)
    assert found == ClientEntry("kb-mcp", ("-C", f"{HERE}/part"), {"KB_BRANCH": "main"})
    assert found.folder == f"{HERE}/part"


@pytest.mark.parametrize(
    ("program", "words", "is_serving"),
    [
        ("kb", ["mcp"], True),
        ("kb", ["mcp", "--read-only", "--toolsets=all", "-C", "."], True),
        ("kb-mcp", [], True),
        ("kb-mcp", ["--toolsets", "logic", "-l", "assoc", "--kb-roots=/srv/rules"], True),
        ("kb-mcp", ["--branch", "main"], True),
        ("kb", [], False),
        ("kb", ["delete", "REQ-1", "--yes"], False),
        ("kb", ["mcp", "install", "claude", "--write"], False),
        ("kb", ["-C", "mcp", "sync"], False),
        ("kb-mcp", ["-C"], False),
        ("kb-mcp", ["-C", "${userHome}"], False),
        ("kb-mcp", ["--weird"], False),
    ],
)
def test_only_arguments_that_make_it_serve_are_started(program, words, is_serving):
    assert ClientEntry(program, tuple(words)).is_serving(program) is is_serving
