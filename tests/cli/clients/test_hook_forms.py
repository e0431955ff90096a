"""The files of hooks have the forms that the clients document. The tables are written from the pages that they name."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from typing import Any

import pytest

from kbcli.clients.kinds import KINDS
from kbcli.clients.opencode import opencode_plugin
from kbcli.clients.parts import HookLists, shell_line

GROUPS = {"matcher": str, "hooks": list}
COMMAND = {"type": str, "command": str, "timeout": int}
FORMS: dict[str, dict[str, Any]] = {
    "claude-code": {
        "page": "https://json.schemastore.org/claude-code-settings.json",
        "events": {"SessionStart", "PreCompact", "PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SessionEnd"},
        "item": GROUPS,
        "seconds": 1,
        "version": None,
    },
    "codex": {
        "page": "https://developers.openai.com/codex/hooks",
        "events": {
            "SessionStart",
            "PreToolUse",
            "PostToolUse",
            "PreCompact",
            "PostCompact",
            "UserPromptSubmit",
            "Stop",
        },
        "item": GROUPS,
        "seconds": 1,
        "version": None,
    },
    "gemini": {
        "page": "https://geminicli.com/docs/hooks/reference",
        "events": {"SessionStart", "SessionEnd", "BeforeTool", "AfterTool", "BeforeAgent", "AfterAgent", "PreCompress"},
        "item": GROUPS,
        "seconds": 1000,
        "version": None,
    },
    "cursor": {
        "page": "https://cursor.com/docs/agent/hooks",
        "events": {"sessionStart", "sessionEnd", "preToolUse", "postToolUse", "preCompact", "afterFileEdit", "stop"},
        "item": {**COMMAND, "matcher": str},
        "seconds": 1,
        "version": 1,
    },
    "vscode": {
        "page": "https://code.visualstudio.com/docs/agent-customization/hooks",
        "events": {"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PreCompact", "Stop"},
        "item": COMMAND,
        "seconds": 1,
        "version": 1,
    },
}


def part_of(client: str) -> HookLists:
    hooks = KINDS[client].hooks
    assert hooks
    return HookLists(client, hooks, ("kb", "agents", "hook", client))


def test_every_client_with_lists_of_hooks_has_its_form_here():
    assert {*FORMS} == {name for name, kind in KINDS.items() if kind.hooks and kind.hooks.form != "plugin"}


@pytest.mark.parametrize("client", FORMS)
def test_a_file_of_hooks_has_the_form_that_the_client_documents(client):
    form = FORMS[client]
    whole = json.loads(part_of(client).put(""))
    assert {*whole} == {"hooks", *(["version"] if form["version"] else [])}
    assert whole.get("version") == form["version"]
    assert {*whole["hooks"]} <= form["events"]
    for items in whole["hooks"].values():
        for item in items:
            assert {*item} <= {*form["item"]}
            assert all(isinstance(value, form["item"][key]) for key, value in item.items())
            for hook in item.get("hooks", [item]):
                assert {*COMMAND} <= {*hook} <= {*COMMAND, "matcher"}
                assert hook["type"] == "command"
                assert hook["timeout"] == 10 * form["seconds"]
            re.compile(item.get("matcher", ""))


@pytest.mark.skipif(not shutil.which("sh"), reason="there is no shell that could run the line of a hook")
@pytest.mark.parametrize("program", ["kb", "/bin/a b/kb's", "no-such-kb", "/nowhere/kb"])
def test_the_line_of_a_hook_runs_its_program_or_does_nothing(tmp_path, program):
    line = shell_line([program, "agents", "hook", "codex", "pre-edit"])
    path = tmp_path / program.lstrip("/")
    if not program.startswith(("no", "/nowhere")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('#!/bin/sh\necho "$@"\nexit 7\n')
        path.chmod(0o755)
    line = line.replace("/bin/a b", f"{tmp_path}/bin/a b")
    done = subprocess.run(
        ["sh", "-c", line], env={"PATH": f"{tmp_path}:/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    found = (7, "agents hook codex pre-edit\n") if path.exists() else (0, "")
    assert (done.returncode, done.stdout, done.stderr) == (*found, "")


@pytest.mark.skipif(
    not shutil.which("node"), reason="the plugin is a program for a JavaScript engine, and there is no node"
)
def test_the_plugin_of_opencode_gives_what_the_hook_says_and_nothing_when_it_fails(tmp_path):
    program = tmp_path / "kb it"
    program.write_text('#!/bin/sh\ncat > "$0.$4"\n[ "$4" = pre-compact ] && exit 3\necho "told $4"\n')
    program.chmod(0o755)
    (tmp_path / "kb.mjs").write_text(opencode_plugin([str(program), "agents", "hook", "opencode"]))
    script = """
        import { KB } from "./kb.mjs"
        const hooks = await KB({ directory: process.cwd() })
        const system = { system: [] }, context = { context: [] }, read = { output: "text" }, other = { output: "x" }
        await hooks["experimental.chat.system.transform"]({ sessionID: "s" }, system)
        await hooks["experimental.session.compacting"]({ sessionID: "s" }, context)
        await hooks["tool.execute.after"]({ tool: "read", args: { filePath: "a" } }, read)
        await hooks["tool.execute.after"]({ tool: "bash", args: {} }, other)
        console.log(JSON.stringify([system.system, context.context, read.output, other.output]))
    """
    (tmp_path / "run.mjs").write_text(script)
    done = subprocess.run(["node", "run.mjs"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [["told session-start\n"], [], "text\n\ntold on-read\n", "x"]
    assert json.loads((tmp_path / "kb it.on-read").read_text()) == {
        "tool_name": "read",
        "tool_input": {"filePath": "a"},
    }
