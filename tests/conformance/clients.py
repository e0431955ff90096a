"""Run clients of agents for real, with what `kb agents install` writes, against a scripted model on loopback.

Of each client: its hooks give the model what `kb prime` says, at the start and with a file that is about to be edited,
its server offers its tools, and it reads the block of instructions. After `kb agents remove` none of that is there, and
the repository is as it was. `kb prove --client` has the client do a job, and judges it by what its model called.
``python -m tests.conformance.clients [CLIENT…]``; it is part of ``make conformance``.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance import model, npm
from tests.conformance.model import Call, ScriptedModel
from tests.support.repository.repos import git, make_repository, use_empty_home

FILE = "docs/requirements/login.md"
DOCUMENT = "---\nid: REQ-1\ntype: req\nstatus: accepted\n---\n# Log in within one second\n\nText.\n"
AT_THE_START = "Branch main at seq 1"
WITH_THE_FILE = "Recorded facts that bind this:"
INSTRUCTIONS = "This repository has a knowledge base, KB:"
TOOL = "kb_query"
WAIT_S = 180.0
_WAITING: Call = ("exec_command", {"cmd": "sleep 15", "yield_time_ms": 16_000})
_PATCH = f"*** Begin Patch\n*** Update File: {FILE}\n@@\n-Text.\n+Texts.\n*** End Patch\n"


@dataclass(frozen=True)
class Client:
    """A client that runs here: its npm package, the calls that its model makes, and how it is set up and started.

    ``set_up`` writes into the home what a user would have written, and returns variables of the environment.
    """

    package: str
    calls: Callable[[Path], list[Call]]
    set_up: Callable[[Path, Path, str], Mapping[str, str]]
    program: Callable[[Path], list[str]]
    name: str
    """The name of its program on the PATH."""
    words: Sequence[str]
    """The arguments that make it do one request, after the program."""
    upsert: str
    """Its name of the tool ``kb_upsert`` of the server ``kb``."""
    leaves: str = ""
    """Files that the client itself leaves in the repository."""
    is_started_at_once: bool = False
    """It does not wait for servers, so that its first call needs some time."""


def main(names: list[str]) -> int:
    """Run the clients that are named, or all, and return the status: 3 where one could not be run."""
    use_empty_home()
    faults, missing = list[str](), False
    for name in names or CLIENTS:
        client = CLIENTS[name]
        try:
            folder = npm.client(client.package)
        except npm.Missing as error:
            print(f"conformance: NOT RUN, {name}: {error}.", file=sys.stderr)
            missing = True
            continue
        version = client.package.rpartition("@")[2]
        for check, held in (
            (_held, "server, hooks and instructions reach the model"),
            (_proved, "does a job of `kb prove`"),
        ):
            found = list(check(name, client, folder))
            faults += found
            if not found:
                print(f"conformance: {name} {version}: {held}")
    for fault in faults:
        print(f"conformance: {fault}", file=sys.stderr)
    return 1 if faults else 3 if missing else 0


def repository(folder: Path) -> tuple[Path, Path, dict[str, str]]:
    """Return a repository with KB and one document, an empty home, and the environment of their user."""
    root, home = folder / "repository", folder / "home"
    home.mkdir()
    make_repository(root)
    (root / FILE).parent.mkdir(parents=True)
    (root / FILE).write_text(DOCUMENT)
    env = {"HOME": str(home), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    env |= {"LANG": "C.UTF-8", "NO_COLOR": "1"}
    _kb(root, env, "init", "--yes")
    _kb(root, env, "sync")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "all")
    return root, home, env


def untold(name: str, client: Client, root: Path, said: list[str] | str, text: str) -> Iterator[str]:
    """Yield what the requests to a model lack of what KB gives it; ``text`` is what a file of KB's own tells it."""
    if isinstance(said, str):
        yield f"{name}: {said}"
        return
    agent = [one for one in said if f'"{client.calls(root)[0][0]}"' in one]
    first = agent[0] if agent else ""
    for what, wanted, where in (
        ("the session's start is not told", AT_THE_START, first),
        ("the instructions or the skill are not read", text, first),
        ("the tools of the server are not offered", TOOL, "".join(agent)),
        ("nothing is told with the file", WITH_THE_FILE, agent[-1] if len(agent) > 1 else ""),
    ):
        if wanted not in where:
            yield f"{name}: {what}: {wanted!r} is in none of {len(said)} requests"
    if WITH_THE_FILE in first:
        yield f"{name}: facts of the file are told before it is named"


def _held(name: str, client: Client, folder: Path) -> Iterator[str]:
    """Yield what is not as it should be with one client."""
    with tempfile.TemporaryDirectory(prefix="kb-client-") as made:
        root, home, env = repository(Path(made))
        _kb(root, env, "agents", "install", name, "--write")
        _kb(root, env, "agents", "check", name)
        said = run(client, folder, root, home, env)
        yield from untold(name, client, root, said, INSTRUCTIONS)
        if isinstance(said, str):
            return
        (root / FILE).write_text(DOCUMENT)
        _kb(root, env, "agents", "remove", name, "--write")
        left = git(root, "status", "--porcelain", "--ignored").split("\n")
        if more := [one for one in left if one not in {"", "!! .kb/branches", client.leaves}]:
            yield f"{name}: after removal the repository has {more}"
        said = run(client, folder, root, home, env)
        whole = said if isinstance(said, str) else "".join(said)
        for text in (AT_THE_START, WITH_THE_FILE, INSTRUCTIONS, TOOL):
            if text in whole:
                yield f"{name}: after removal {text!r} is still there"


def _proved(name: str, client: Client, folder: Path) -> Iterator[str]:
    """Yield what is not as it should be where a client does a job of `kb prove`."""
    with tempfile.TemporaryDirectory(prefix="kb-client-") as made:
        root, home, env = repository(Path(made))
        program = Path(made) / "bin" / client.name
        _write(program, f'#!/bin/sh\nexec {shlex.join(client.program(folder))} "$@"\n')
        program.chmod(0o755)
        calls: list[Call] = [_WAITING] if client.is_started_at_once else []
        calls += [
            (client.upsert, {"entities": [{"type": "note", "title": "The carrier answers no calls before nine"}]})
        ]
        with model.serving(ScriptedModel(calls)) as scripted:
            more = client.set_up(root, home, scripted.url)
            path = {"PATH": f"{program.parent}{os.pathsep}{env['PATH']}"}
            words = ["kb", "prove", "--client", name, "--job", "remember", "--json"]
            done = subprocess.run(
                words,
                cwd=made,
                env={**env, **more, **path},
                capture_output=True,
                text=True,
                timeout=WAIT_S,
                check=False,
            )
    found = json.loads(done.stdout)["results"][0] if done.stdout else {}
    if done.returncode or (found.get("verdict"), found.get("calls")) != ("done", 1):
        yield f"{name}: kb prove: status {done.returncode}: {done.stdout} {done.stderr[-1500:]}"


def run(client: Client, folder: Path, root: Path, home: Path, env: Mapping[str, str]) -> list[str] | str:
    """Run a client once; return the requests to its model, or what went wrong."""
    scripted = ScriptedModel(client.calls(root))
    with model.serving(scripted):
        words = [*client.program(folder), *client.words]
        more = client.set_up(root, home, scripted.url)
        try:
            done = subprocess.run(
                words, cwd=root, env={**env, **more}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                timeout=WAIT_S, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"it did not end within {WAIT_S:g} s; {len(scripted.requests)} requests were made"
    if done.returncode or model.SAID not in done.stdout:
        return f"it ended with status {done.returncode}: {done.stdout[-500:]} {done.stderr[-1500:]}"
    return scripted.requests


def _kb(root: Path, env: Mapping[str, str], *words: str) -> None:
    done = subprocess.run(["kb", *words], cwd=root, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AssertionError(f"kb {' '.join(words)}: status {done.returncode}: {done.stdout} {done.stderr}")


def _write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


def _set_up_codex(root: Path, home: Path, url: str) -> Mapping[str, str]:
    """Name the model, which has the tool for patches, and trust the project."""
    known = {
        "slug": model.NAME, "display_name": model.NAME, "description": "", "supported_reasoning_levels": [],
        "shell_type": "unified_exec", "visibility": "list", "supported_in_api": True, "priority": 1,
        "base_instructions": "Do it.", "supports_reasoning_summaries": False, "support_verbosity": False,
        "apply_patch_tool_type": "freeform", "truncation_policy": {"mode": "bytes", "limit": 10_000},
        "supports_parallel_tool_calls": False, "context_window": 100_000, "experimental_supported_tools": [],
    }  # fmt: skip
    _write(home / ".codex/models.json", {"models": [known]})
    lines = [
        f'model = "{model.NAME}"', 'model_provider = "loopback"', f'model_catalog_json = "{home}/.codex/models.json"',
        "[model_providers.loopback]", 'name = "loopback"', f'base_url = "{url}/v1"', 'wire_api = "responses"',
        'env_key = "LOOPBACK_KEY"', f'[projects."{root}"]', 'trust_level = "trusted"',
    ]  # fmt: skip
    _write(home / ".codex/config.toml", "\n".join(lines) + "\n")
    return {"LOOPBACK_KEY": "none"}


def _set_up_gemini(root: Path, home: Path, url: str) -> Mapping[str, str]:
    del root
    _write(home / ".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}})
    return {
        "GEMINI_API_KEY": "none", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_MODEL": "gemini-2.5-flash",
    }  # fmt: skip


def _set_up_opencode(root: Path, home: Path, url: str) -> Mapping[str, str]:
    del root
    options = {"baseURL": f"{url}/v1", "apiKey": "none"}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "loopback", "options": options,
                "models": {model.NAME: {"name": model.NAME}}}  # fmt: skip
    settings = {
        "model": f"loopback/{model.NAME}",
        "provider": {"loopback": provider},
        "autoupdate": False,
        "share": "disabled",
    }
    _write(home / ".config/opencode/opencode.json", settings)
    names = ("OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_LSP_DOWNLOAD")
    return dict.fromkeys(names, "1")


def _set_up_claude(root: Path, home: Path, url: str) -> Mapping[str, str]:
    """Approve the project's servers, and have their tools listed instead of searched for."""
    del root
    _write(home / ".claude/settings.json", {"enableAllProjectMcpServers": True})
    return {
        "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ENABLE_TOOL_SEARCH": "false", "IS_SANDBOX": "1", "ANTHROPIC_MODEL": "claude-sonnet-4-5",
    }  # fmt: skip


def _claude(folder: Path) -> list[str]:
    [program] = folder.glob("node_modules/@anthropic-ai/claude-code-*/claude*")
    return [str(program)]


def _opencode(folder: Path) -> list[str]:
    return [str(next(iter(sorted(folder.glob("node_modules/opencode-*/bin/opencode")))))]


def _of_node(script: str) -> Callable[[Path], list[str]]:
    return lambda folder: ["node", str(folder / "node_modules" / script)]


CLIENTS = {
    "codex": Client(
        "@openai/codex@0.171.0",
        lambda _: [_WAITING, ("apply_patch", _PATCH)],
        _set_up_codex,
        _of_node("@openai/codex/bin/codex.js"),
        "codex",
        # Whoever installs hooks is asked once whether they may run; nobody is there to ask.
        ("exec", "--dangerously-bypass-hook-trust", "-s", "workspace-write", "Change it."),
        "mcp__kb/kb_upsert",
        is_started_at_once=True,
    ),
    "gemini": Client(
        "@google/gemini-cli@0.61.0",
        lambda _: [("read_file", {"file_path": FILE})],
        _set_up_gemini,
        _of_node("@google/gemini-cli/bundle/gemini.js"),
        "gemini",
        ("-y", "-p", "Read it."),
        "mcp_kb_kb_upsert",
    ),
    "opencode": Client(
        "opencode-ai@1.18.33",
        lambda root: [("read", {"filePath": str(root / FILE)})],
        _set_up_opencode,
        _opencode,
        "opencode",
        ("run", "Read it."),
        "kb_kb_upsert",
        leaves="!! .opencode/",
    ),
    "claude-code": Client(
        "@anthropic-ai/claude-code@2.1.332",
        lambda root: [
            ("Read", {"file_path": str(root / FILE)}),
            ("Edit", {"file_path": str(root / FILE), "old_string": "Text.", "new_string": "Texts."}),
        ],
        _set_up_claude,
        _claude,
        "claude",
        ("-p", "--permission-mode", "bypassPermissions", "Change it."),
        "mcp__kb__kb_upsert",
    ),
}
"""The clients that npm brings, and that may be told where their model is. The others have no program to run here."""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
