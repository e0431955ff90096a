"""The clients of a repository that can start the server, and those that cannot."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from kbcli.clients.finding import client_findings
from kbcore.clock import SystemClock
from tests.support.processes.cli import environment, program

OWN = Path(sys.executable).with_name("kb-mcp")


def found(root, **env):
    return list(client_findings(root, environment(env), SystemClock()))


def entry(root, file=".mcp.json", table="mcpServers", name="kb", **members):
    path = root / file
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({table: {name: members}}))


@pytest.fixture
def own():
    """The server of this installation."""
    if not OWN.is_file():
        pytest.skip("kb is not installed beside this Python")
    return str(OWN)


def test_without_files_of_clients_there_is_nothing_to_say(root):
    assert found(root) == []


@pytest.mark.sliced
def test_a_client_that_can_start_the_server_is_well(synced, own):
    entry(synced, ".vscode/mcp.json", "servers", command=own, args=["-C", "${workspaceFolder}"])
    (one,) = found(synced)
    assert (one.severity, one.check) == ("ok", "clients")
    assert one.message == f"VS Code, kb in .vscode/mcp.json: `{own}` starts and answers."


def test_a_missing_command_is_reported_with_its_remedy(root, tmp_path):
    entry(root, command="kb-mcp")
    (one,) = found(root, PATH=str(tmp_path))
    assert (one.severity, one.code) == ("warning", "client_command")
    assert one.message == "Claude Code, kb in .mcp.json: `kb-mcp` is in no folder of PATH."
    assert "`kb mcp install claude-code --write`" in one.remedy
    entry(root, command="./tools/kb")
    assert found(root)[0].message.endswith("`./tools/kb` is not there.")


@pytest.mark.parametrize("args", [["mcp"], []])
def test_what_is_not_this_very_program_is_looked_for_and_never_started(root, tmp_path, args):
    trap = root / "kb-mcp"
    trap.write_text(f"#!/bin/sh\ntouch '{tmp_path}/was-run'\n")
    trap.chmod(0o755)
    entry(root, command="./kb-mcp", args=args)
    (one,) = found(root, PATH=f"{root}{os.pathsep}{os.environ['PATH']}")
    assert (one.severity, one.message.endswith("is there; it was not started.")) == ("ok", True)
    assert not (tmp_path / "was-run").exists()


def test_this_very_program_is_started_to_serve_and_for_nothing_else(synced, own):
    kb = str(Path(own).with_name("kb"))
    entry(synced, command=kb, args=["sync", "--rebuild"])
    assert found(synced)[0].message.endswith(": `kb sync` is no server; `kb mcp` is.")
    assert program() is not None


@pytest.mark.parametrize(
    ("name", "args", "reported"),
    [
        ("kb-mcp", ["--brnch", "x"], "the server takes no `--brnch`"),
        ("kb-mcp", ["--branch"], "`--branch` needs a value"),
        ("kb", ["mpc"], "`kb mpc` is no server; `kb mcp` is"),
        ("kb", [], "`kb` is no server; `kb mcp` is"),
        ("kb", ["mcp", "serve"], "the server takes no `serve`"),
    ],
)
def test_arguments_with_which_it_cannot_serve_are_reported(root, own, name, args, reported):
    entry(root, command=str(Path(own).with_name(name)), args=args)
    (one,) = found(root)
    assert (one.severity, one.code) == ("warning", "client_arguments")
    assert one.message == f"Claude Code, kb in .mcp.json: {reported}."


@pytest.mark.parametrize(
    ("members", "reported"),
    [
        ({"args": []}, "it has no `command`"),
        ({"command": "kb-mcp", "args": "-C ."}, "its `args` are no list of texts"),
    ],
)
def test_an_entry_that_starts_nothing_is_reported(root, members, reported):
    entry(root, **members)
    (one,) = found(root)
    assert (one.code, one.message) == ("client_entry", f"Claude Code, kb in .mcp.json: {reported}.")
    entry(root, name="notes", args=[])
    assert found(root) == []
    entry(root, url="http://127.0.0.1:1/mcp")
    assert found(root) == []


def test_an_entry_where_another_client_would_read_it_is_reported(root):
    entry(root, table="servers", command="kb-mcp")
    (one,) = found(root)
    assert one.message == "Claude Code, kb in .mcp.json: it is under `servers`, but Claude Code reads `mcpServers`."


def test_a_folder_that_is_not_there_is_reported(root, own):
    entry(root, ".cursor/mcp.json", command=own, args=["-C", "gone"])
    (one,) = found(root)
    assert (one.code, "gone" in one.message, "cursor" in one.remedy) == ("client_folder", True, True)


@pytest.mark.parametrize("text", ["{", "\xff", "[]", '{"mcpServers": []}', '{"mcpServers": {"kb": 3}}', ""])
def test_a_file_that_cannot_be_read_is_reported_and_one_without_servers_is_not(root, text):
    (root / ".mcp.json").write_bytes(text.encode("latin-1"))
    reported = found(root)
    assert [one.code for one in reported] == (["client_file"] if text in {"{", "\xff"} else [])
    assert all(".mcp.json" in one.message and one.remedy for one in reported)


def test_a_link_to_a_file_is_not_followed(root, tmp_path):
    (tmp_path / "elsewhere").write_text("{}")
    (root / ".mcp.json").symlink_to(tmp_path / "elsewhere")
    assert [one.code for one in found(root)] == ["client_file"]


def test_an_entry_in_toml_is_read_too(root, tmp_path):
    (root / ".codex").mkdir()
    (root / ".codex/config.toml").write_text('[mcp_servers.kb]\ncommand = "kb-mcp"\n')
    assert found(root, PATH=str(tmp_path))[0].message.startswith("Codex, kb in .codex/config.toml")
