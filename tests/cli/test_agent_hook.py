"""`kb agents hook`: what clients get at the start of a session, before an edit, and with a file. It hinders nobody."""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given as given_by
from hypothesis import strategies as st

from kbcli.clients.kinds import KINDS
from kbcli.invocation import agent_hook, prime_note
from kbcore.limits import HOOK_TOKENS
from kbcore.text.tokens import tokens_of
from tests.cli.test_hook import HEAVY, imported_by
from tests.support.processes.cli import environment, write

LITTLE = (*HEAVY, "msgspec", "typer", "subprocess", "kbcore", "pathlib", "mcp", "typing")
FILE = "docs/requirements/login.md"
FACT = "Recorded facts that bind this:\n- Log in"
AT_THE_START = "Branch main at seq 1"


@pytest.fixture
def said(kb, synced):
    """Return what a hook writes that a client runs with this input."""

    def run(client: str, event: str, given: object = None, cwd: Path | None = None) -> str:
        stdin = given if isinstance(given, str) else json.dumps(given or {})
        ran = kb("agents", "hook", client, event, stdin=stdin, cwd=cwd)
        assert ran.status == 0
        return ran.out

    return run


def of_tool(name: str, **given: object) -> dict[str, object]:
    return {"tool_name": name, "tool_input": given}


@pytest.mark.parametrize(
    ("client", "name"),
    [
        ("claude-code", "SessionStart"),
        ("codex", "SessionStart"),
        ("vscode", "SessionStart"),
        ("gemini", "SessionStart"),
    ],
)
def test_the_start_of_a_session_is_told_as_context(said, client, name):
    found = json.loads(said(client, "session-start", {"hook_event_name": name, "source": "startup"}))
    assert found["hookSpecificOutput"]["hookEventName"] == name
    assert found["hookSpecificOutput"]["additionalContext"].startswith(AT_THE_START)
    assert "permissionDecision" not in str(found)


def test_cursor_and_opencode_have_forms_of_their_own(said):
    assert json.loads(said("cursor", "session-start"))["additional_context"].startswith(AT_THE_START)
    assert said("opencode", "session-start").startswith(AT_THE_START)
    assert said("opencode", "pre-compact").startswith(AT_THE_START)
    assert said("claude-code", "pre-compact").startswith(AT_THE_START)


EDITS = [
    ("claude-code", "pre-edit", of_tool("Edit", file_path=FILE, old_string="a", new_string="b")),
    ("claude-code", "pre-edit", of_tool("MultiEdit", file_path=FILE, edits=[{"old_string": "a", "new_string": "b"}])),
    (
        "codex",
        "pre-edit",
        of_tool("apply_patch", command=f"*** Begin Patch\n*** Update File: {FILE}\n@@\n*** End Patch"),
    ),
    ("codex", "pre-edit", of_tool("apply_patch", command=f"*** Begin Patch\n*** Delete File: {FILE}\n*** End Patch")),
    ("vscode", "pre-edit", of_tool("replace_string_in_file", filePath=FILE, oldString="a", newString="b")),
    ("vscode", "pre-edit", of_tool("multi_replace_string_in_file", replacements=[{"filePath": FILE}])),
    ("vscode", "pre-edit", of_tool("editFiles", files=["src/new.py", FILE])),
    ("gemini", "on-read", of_tool("read_file", file_path=FILE)),
    ("cursor", "on-read", of_tool("Read", file_path=FILE)),
    ("opencode", "on-read", of_tool("read", filePath=FILE)),
]


@pytest.mark.parametrize(("client", "event", "given"), EDITS)
@pytest.mark.parametrize("is_absolute", [False, True])
def test_facts_that_bind_a_file_come_with_it(said, synced, client, event, given, is_absolute):
    text = json.dumps(given).replace(FILE, str(synced / FILE)) if is_absolute else given
    out = said(client, event, text)
    if client == "opencode":
        found = out
    elif client == "cursor":
        found = json.loads(out)["additional_context"]
    else:
        specific = json.loads(out)["hookSpecificOutput"]
        assert specific["hookEventName"] == {"gemini": "AfterTool"}.get(client, "PreToolUse")
        found = specific["additionalContext"]
    assert found.startswith(FACT)
    assert tokens_of(found) <= HOOK_TOKENS


@pytest.mark.parametrize(
    "given",
    [
        of_tool("Bash", command="ls"),
        of_tool("Read", file_path=FILE),
        of_tool("Edit"),
        of_tool("Edit", file_path=7),
        of_tool("Edit", file_path="src/unknown.py"),
        of_tool("Edit", file_path=".git/config"),
        of_tool("Edit", file_path="/etc/passwd"),
        of_tool("Edit", file_path="a\nb"),
        {"tool_name": "Edit", "tool_input": [FILE]},
        {},
        "[]",
        "{",
        '{"tool_name": "Edit", "tool_input": {"file_path": "\\ud800"}}',
        of_tool("Edit", file_path="a\0b"),
        {"cwd": "/nowhere", "tool_name": ["Edit"]},
        "[" * 100_000,
    ],
)
def test_nothing_is_said_where_nothing_is_known(said, given):
    assert said("claude-code", "pre-edit", given) == ""


KEYS = st.sampled_from(["tool_name", "tool_input", *agent_hook._PATHS, *agent_hook._LISTS, *agent_hook._PATCHES])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from(["Edit", "read", FILE, "/"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given_by(st.dictionaries(KEYS, JSON, max_size=5), st.sampled_from(["pre-edit", "on-read"]))
def test_whatever_a_client_says_is_no_path_of_git_and_no_failure(given, event):
    with contextlib.suppress(ValueError):  # of a path that cannot be one, which `read` takes for nothing
        words = agent_hook._words(event, given)
        assert words == [] or (words[0], words[-1]) == ("prime", "--hook")
        assert all(not one.startswith(".git/") for one in words)


def test_the_hook_answers_for_the_folder_of_the_agent(said, synced, tmp_path):
    assert said("cursor", "session-start", {"workspace_roots": [str(synced)]}, cwd=tmp_path)
    given = {"cwd": str(synced / "docs"), **of_tool("Edit", file_path="requirements/login.md")}
    assert (
        FACT
        in json.loads(said("claude-code", "pre-edit", given, cwd=tmp_path))["hookSpecificOutput"]["additionalContext"]
    )


@pytest.mark.parametrize("event", ["session-start", "pre-edit"])
def test_without_a_kb_nothing_is_imported_or_said(root, tmp_path, event):
    given = json.dumps(of_tool("Edit", file_path="README.md"))
    for folder in (root, tmp_path):
        assert imported_by(["agents", "hook", "claude-code", event], folder, LITTLE, given) == ([], "")


@pytest.mark.parametrize(("event", "given"), [("session-start", {}), ("pre-edit", of_tool("Edit", file_path=FILE))])
def test_the_same_hook_again_imports_neither_a_database_nor_anything_else(kb, synced, event, given):
    time.sleep(2 * prime_note._SETTLED_NS / 1e9)
    words = ["agents", "hook", "claude-code", event]
    imported, first = imported_by(words, synced, LITTLE, json.dumps(given))
    assert "duckdb" in imported
    assert first
    assert imported_by(words, synced, LITTLE, json.dumps(given)) == ([], first)


def test_a_kept_hook_takes_little_more_than_python_itself(kb, synced):
    time.sleep(2 * prime_note._SETTLED_NS / 1e9)
    given = json.dumps(of_tool("Edit", file_path=FILE))
    script = "import sys; from kbcli.app import main; main(['agents', 'hook', 'claude-code', 'pre-edit'])"

    def cpu_s(code: str) -> float:
        def spent() -> float:
            used = resource.getrusage(resource.RUSAGE_CHILDREN)
            return used.ru_utime + used.ru_stime

        before = spent()
        subprocess.run([sys.executable, "-c", code], cwd=synced, env=environment(), input=given, text=True, check=True,
                       capture_output=True)  # fmt: skip
        return spent() - before

    cpu_s(script)
    floor, whole = (min(cpu_s(code) for _ in range(5)) for code in ("pass", script))
    # Python takes 10 to 20 ms of the 80 that a hook may take.
    assert whole < 4 * floor + 0.01


def test_every_event_that_is_installed_is_answered():
    for client, kind in KINDS.items():
        for one in kind.hooks.events if kind.hooks else ():
            assert agent_hook.is_hook([client, one.event])
            assert agent_hook._EVENTS[client][one.event] in {"", one.name}


def test_a_change_of_the_facts_is_in_the_next_answer(said, kb, synced):
    given = of_tool("Edit", file_path=FILE)
    time.sleep(2 * prime_note._SETTLED_NS / 1e9)
    assert "Log in" in said("claude-code", "pre-edit", given)
    write(synced, {FILE: (synced / FILE).read_text().replace("Log in", "Sign in")})
    assert kb("sync").status == 0
    assert "Sign in" in said("claude-code", "pre-edit", given)


@pytest.mark.parametrize(
    "words", [[], ["nobody", "session-start"], ["codex", "later-event"], ["codex", "pre-edit", "x"]]
)
def test_an_event_that_is_not_known_is_no_refusal(kb, synced, words):
    ran = kb("agents", "hook", *words)
    assert (ran.status, ran.out, ran.err) == (0, "", "")  # some clients take 2 for a refusal of the edit


def test_its_help_is_shown(kb):
    assert "The status is always 0" in kb("agents", "hook", "--help").out
