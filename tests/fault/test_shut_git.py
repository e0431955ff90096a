"""F11: where a sandbox shuts git's folder, reading works at its usual speed and writing says what would help."""

from __future__ import annotations

import json
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.effort.scale import SCALE
from tests.support.processes.cli import DOCUMENTS, environment, run_kb, write
from tests.support.processes.fenced import as_somebody
from tests.support.repository.places import caches_at
from tests.support.repository.repos import git, make_repository

READING = (
    ["query"],
    ["status"],
    ["show", "REQ-1"],
    ["log"],
    ["check"],
    ["query", "--text", "log"],
    ["query", "--at", "1"],
)
PROGRAM = """
import json, os, stat, subprocess, sys
from pathlib import Path

root, home, commands = Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
env = {**os.environ, "HOME": home, "TMPDIR": str(Path(home).parent / "tmp")}
if sys.argv[4] == "mode":
    for folder in [root / ".git", *(path for path in (root / ".git").rglob("*") if path.is_dir())]:
        folder.chmod(0o555)
else:
    for words in (["mount", "--bind", ".git", ".git"], ["mount", "-o", "remount,bind,ro", ".git"]):
        subprocess.run(words, cwd=root, check=True)
from tests.support.processes.cli import run_kb
kb = [sys.executable, "-m", "kbcli.app"]
found = []
for words in commands:
    if words[0] == "mcp":
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        server = subprocess.Popen([*kb, "mcp"], cwd=root, env=env, **pipes)
        for message in words[1:]:
            server.stdin.write(message + "\\n")
            server.stdin.flush()
            answer = server.stdout.readline() if '"id"' in message else ""
        server.stdin.close()
        found.append([server.wait(30), answer, ""])
        continue
    found.append(run_kb(root, *words, "--json", env=env))
print(json.dumps(found))
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with a KB whose caches were never made."""
    made = make_repository(tmp_path / "p")
    assert run_kb(made, "init", "--no-hooks").status == 0
    write(made, DOCUMENTS)
    assert run_kb(made, "sync").status == 0
    shutil.rmtree(caches_at(made), ignore_errors=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    return made


def shut(root: Path, how: str, *commands: list[str]) -> list[list[object]]:
    """Run commands while git's folder cannot be written, by the mode of its folders or by a mount."""
    words = [root, root.parent / "home", json.dumps(commands), how]
    if how == "mode":
        found: list[list[object]] = json.loads(as_somebody(PROGRAM, *words))
        return found
    command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", PROGRAM, *map(str, words)]
    can_mount = ["unshare", "--user", "--map-root-user", "--mount", "mount", "--bind", root, root]
    if shutil.which("unshare") is None or subprocess.run(can_mount, capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody mount in a namespace of their own")
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment())
    mounted: list[list[object]] = json.loads(done.stdout)
    return mounted


def of_today(commands: Sequence[list[str]], how: str) -> Sequence[list[str]]:
    """Return the commands to try: every day each of them in one of the two ways, in ``make fault`` in both."""
    return commands if SCALE != "slice" else commands[how == "mount" :: 2]


@pytest.mark.sliced(1)
@pytest.mark.fault("F11")
@pytest.mark.parametrize("how", ["mode", "mount"])
def test_reading_works_and_keeps_its_view_in_the_users_cache(root, how, tally) -> None:
    reading = of_today(READING, how)
    open_ = [run_kb(root, *words, "--json").out for words in reading]
    shutil.rmtree(caches_at(root))
    for words, (status, out, err), expected in zip(reading, shut(root, how, *reading), open_, strict=True):
        tally.tried()
        if status or "Traceback" in str(err):
            tally.violated(words, err)
        if words[0] in {"query", "log", "show"} and out != expected:
            tally.violated(words, out)
    assert not caches_at(root).exists()
    [own] = (root.parent / "home/.cache/kb").iterdir()
    assert (own / "main" / "view.duckdb").is_file()
    assert stat.S_IMODE(own.stat().st_mode) == stat.S_IMODE(own.parent.stat().st_mode) == 0o700
    tally.done(at_least=3)


@pytest.mark.sliced(1)
@pytest.mark.fault("F11")
@pytest.mark.parametrize("how", ["mode", "mount"])
def test_writing_says_why_it_cannot_and_what_would_help(root, how, tally) -> None:
    before = sorted((root / ".git" / "kb").rglob("*"))
    (root / "docs/requirements/new.md").write_text("---\nid: N\ntitle: New\nstatus: open\n---\n")
    entity = {"id": "NEW", "type": "req", "title": "New", "status": "open"}
    (root / "changes.json").write_text(json.dumps({"entities": [entity]}))
    for status, out, _ in shut(root, how, ["sync"], ["apply", "changes.json"], ["compact"]):
        tally.tried()
        error = json.loads(str(out))["error"]
        if (status, error["code"], error["applied"]) != (23, "read_only_store", "no"):
            tally.violated(how, error)
        ways = ("kb mcp", f"{root}/.git/kb as a writable root", '{"store": "worktree"}')
        if not all(way in error["hint"] for way in ways):
            tally.violated(how, error["hint"])
    assert sorted((root / ".git" / "kb").rglob("*")) == before
    tally.done(at_least=3)


@pytest.fixture
def clone(root: Path) -> Path:
    """A fresh clone of a repository with a KB: nothing is stored in it yet."""
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "all")
    made = root.parent / "clone"
    git(root.parent, "clone", "--quiet", str(root), str(made))
    return made


@pytest.mark.sliced(1)
@pytest.mark.fault("F11")
@pytest.mark.parametrize("how", ["mode", "mount"])
def test_in_a_fresh_clone_every_reading_command_answers_as_where_a_store_can_be_made(clone, how, tally) -> None:
    reading = [
        *(list(words) for words in READING if words[0] != "status"),
        ["check", "--staged"],
        ["diff", "0"],
        ["export"],
        ["coverage"],
        ["graph"],
        ["branch", "list"],
        ["sleep", "--dry-run"],
        ["sync", "--dry-run"],
        ["kip", "DESCRIBE DOMAINS"],
    ]
    reading = of_today(reading, how)
    ran = shut(clone, how, *reading)
    assert not (clone / ".git/kb").exists()
    subprocess.run(["chmod", "-R", "u+w", clone / ".git"], check=True)
    for words, (status, out, err) in zip(reading, ran, strict=True):
        tally.tried()
        shutil.rmtree(clone / ".git/kb", ignore_errors=True)
        writable = run_kb(clone, *words, "--json")
        if status != writable.status or without_times(str(out)) != without_times(writable.out):
            tally.violated(words, (status, out, err, writable))
        assert not (clone / ".git/kb/branches").exists(), words
    tally.done(at_least=7)


def without_times(text: str) -> str:
    """Return an answer without what differs in each store."""
    return re.sub(r'"(at|changeset_id)": *"[^"]*"|"seconds": *[0-9.e-]+|[0-9T:.-]{20,}Z', "", text)


@pytest.mark.sliced(1)
@pytest.mark.fault("F11")
@pytest.mark.parametrize("how", ["mode", "mount"])
def test_in_a_fresh_clone_writing_names_the_ways_and_a_server_does_not_advise_itself(clone, how, tally) -> None:
    greeting = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    entity = {"id": "NEW", "type": "req", "title": "New", "status": "open"}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": greeting},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        tool_call("kb_upsert", entities=[entity]),
    ]
    reading = [*messages[:2], tool_call("kb_query")]
    write_, status, doctor, served, read = shut(
        clone,
        how,
        ["sync"],
        ["status"],
        ["doctor"],
        ["mcp", *map(json.dumps, messages)],
        ["mcp", *map(json.dumps, reading)],
    )
    tally.tried(5)
    ways = ("kb mcp", f"{clone}/.git/kb as a writable root", '{"store": "worktree"}')
    hint = json.loads(str(write_[1]))["error"]["hint"]
    assert all(way in hint for way in ways), hint
    assert json.loads(str(status[1]))["unwritable"] == f"{clone}/.git"
    [shut_out] = [one for one in json.loads(str(doctor[1]))["findings"] if one["code"] == "read_only_store"]
    assert all(way in shut_out["remedy"] for way in ways), shut_out
    error = json.loads(str(served[1]))["result"]["structuredContent"]["error"]
    assert error["code"] == "read_only_store"
    assert "tools of" not in error["hint"], error
    assert f"This server cannot write to '{clone}/.git/kb'" in error["hint"]
    answer = json.loads(str(read[1]))["result"]["structuredContent"]
    assert (answer["total"], answer["seq"], answer["freshness"]) == (3, 0, "overlay")
    tally.done(at_least=5)


def tool_call(name: str, **arguments: object) -> dict[str, object]:
    """Return the message that calls a tool."""
    return {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


@pytest.mark.sliced(2)
@pytest.mark.fault("F11")
@pytest.mark.parametrize("planted", ["a link", "a folder that others write to", "a file", "a link as repository"])
def test_a_cache_folder_that_is_not_the_users_own_is_not_used(root, planted, tally) -> None:
    home, elsewhere = root.parent / "home", root.parent / "elsewhere"
    elsewhere.mkdir()
    (home / ".cache").mkdir()
    kept = home / ".cache" / "kb"
    if planted == "a link":
        kept.symlink_to(elsewhere)
    elif planted == "a file":
        kept.write_text("mine")
    elif planted == "a folder that others write to":
        kept.mkdir()
        kept.chmod(0o777)
    else:
        shut(root, "mode", ["query"])
        [own] = kept.iterdir()
        shutil.rmtree(own)
        own.symlink_to(elsewhere)
        subprocess.run(["chmod", "-R", "u+w", root / ".git"], check=True)
    [(status, out, err)] = shut(root, "mode", ["query"])
    tally.tried()
    assert status == 0, err
    assert json.loads(str(out))["total"] == 3
    assert list(elsewhere.iterdir()) == []
    assert list((root.parent / "tmp").iterdir()) == []
    tally.done()


@pytest.mark.sliced(1)
@pytest.mark.fault("F11")
@pytest.mark.parametrize("how", ["mode", "mount"])
def test_who_keeps_stores_in_the_worktree_writes_although_gits_folder_is_shut(tmp_path, how, tally) -> None:
    settings = tmp_path / "home/.config/kb/config.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"store": "worktree"}')
    (tmp_path / "tmp").mkdir()
    root = make_repository(tmp_path / "p")
    assert run_kb(root, "init", "--no-hooks", env=environment({"HOME": str(tmp_path / "home")})).status == 0
    write(root, DOCUMENTS)
    ran = shut(root, how, ["sync"], ["query"], ["status"], ["doctor"])
    tally.tried(len(ran))
    assert [status for status, _, _ in ran] == [0, 0, 0, 0], ran
    assert json.loads(str(ran[1][1]))["total"] == 3
    assert (root / ".kb/branches/main/journal-0000000001.jsonl").is_file()
    assert not (root / ".git/kb").exists()
    untracked = git(root, "status", "--porcelain", "--untracked-files=all", ".kb").splitlines()
    assert not [line for line in untracked if "/branches" in line or "/cache" in line], untracked
    tally.done()


@pytest.mark.fault("F11")
def test_stores_that_are_in_the_git_directory_stay_the_ones_in_use(root, tally) -> None:
    settings = root.parent / "home/.config/kb/config.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"store": "worktree"}')
    ran = run_kb(root, "query", "--json", env=environment({"HOME": str(root.parent / "home")}))
    tally.tried()
    assert ran.json["total"] == 3
    tally.done()
