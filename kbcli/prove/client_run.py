"""Jobs that a client of agents does with its own model: it gets the request, and a project that has KB installed.

The client decides on the calls. They are read from what its server of KB received and sent; what it does by other
means is not counted. Its home is the user's, because it has to sign in to its model; KB's own programs have another.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from kbcli.clients import kinds, setup
from kbcli.prove.job import AGENT, Job, Result, Verdict, find_fault
from kbcli.prove.scene import Scene
from kbcli.prove.situation import KB_SERVER, SHELL_PROGRAM, AnsweredCall, Situation, texts_of
from kbcore import git
from kbcore.clock import SystemClock
from kbcore.errors import InvalidQuery
from kbcore.storage.fs import RealFs
from kbcore.store.folders import CACHE, data_dir_of
from kbcore.store.pool import Machine
from kbcore.text.escaping import in_quotes
from kbcore.text.suggest import did_you_mean

WAIT_S: Final = 900.0
_VERSION_WAIT_S: Final = 60.0
_SESSION: Final = "agent"
"""The session of all that the agent writes, before and with the client."""
_TAKES_TURNS: Final = "A colleague has to write between two calls of the agent."
_SHOWN_CHARS: Final = 500
_KB: Final = (sys.executable, "-m", "kbcli.app")
_FOLDER: Final = "{folder}"


class ClientProgram(msgspec.Struct, frozen=True):
    """The words by which a client does one request, without anybody to ask, before the request itself.

    ``{folder}`` in them is the repository. ``env`` is added to its environment.
    """

    words: tuple[str, ...]
    env: Mapping[str, str] = {}


PROGRAMS: Final[Mapping[str, ClientProgram]] = {
    "claude-code": ClientProgram(
        (
            *("claude", "--mcp-config", ".mcp.json", "--permission-mode", "acceptEdits"),
            *("--allowedTools", "mcp__kb,Bash(kb:*)", "-p"),
        )
    ),
    "codex": ClientProgram(
        (
            *("codex", "exec", "--sandbox", "workspace-write", "--dangerously-bypass-hook-trust"),
            *("-c", 'projects={"{folder}"={trust_level="trusted"}}'),
            *("-c", 'mcp_servers.kb.default_tools_approval_mode="approve"'),
        )
    ),
    "gemini": ClientProgram(("gemini", "--yolo", "--prompt"), {"GEMINI_CLI_TRUST_WORKSPACE": "true"}),
    "opencode": ClientProgram(("opencode", "run")),
}
"""The clients that can be started for one request."""


class ClientRunner:
    """Runs jobs by a client, each in a copy of a scene, with the environment of the user."""

    def __init__(self, client: str, env: Mapping[str, str]) -> None:
        """Find the client. Raises: ``InvalidQuery`` for one that cannot be started so, or that is not there."""
        self._client = client
        self._env = env
        self._words = _found(client, env)
        self._more = PROGRAMS[client].env

    def version(self) -> str:
        """Return the version that the client names, "unknown" where it names none."""
        _, said, _ = _ended([self._words[0], "--version"], Path("/"), self._env, _VERSION_WAIT_S)
        return next((word for word in said.split() if word[:1].isdigit()), "unknown")

    def run(self, scene: Scene, job: Job) -> Result:
        """Have the client do a job, and judge it by the checks that the scripts are judged by.

        It is done where the client's answer has the facts, and ``by reading`` where only what it read has them.
        """
        script = job.scripts["kb"]
        if any(step.client != AGENT for step in script.calls):
            return Result(job.name, "client", "not run", why=_TAKES_TURNS)
        with Situation(scene, "client", session=_SESSION) as situation:
            situation.take_all(script.before)
            programs = situation.home.parent / "programs"
            _write_programs(programs, situation.env, self._env)
            _install(self._client, situation, programs)
            words = [word.replace(_FOLDER, str(situation.home)) for word in self._words]
            status, said, complaint = _ended(
                [*words, job.request], situation.home, self._env_with(programs, situation.env), WAIT_S
            )
            asked = list(exchanged(programs))
            left = texts_of(situation.take_all(script.afterwards))
        verdict, why = _judged(job, said, texts_of(asked), left)
        if status:
            verdict = "wrong"
            last = (complaint.strip() or said.strip())[-_SHOWN_CHARS:]
            why = f"{Path(self._words[0]).name} ended with {status}: {last}"
        tokens_in, tokens_out = sum(one.tokens_in for one in asked), sum(one.tokens_out for one in asked)
        return Result(job.name, "client", verdict, len(asked), tokens_in, tokens_out, why)

    def _env_with(self, programs: Path, of_kb: Mapping[str, str]) -> dict[str, str]:
        """Return the user's environment, with KB's programs of the job in front, and git as in the repository."""
        users = {name: value for name, value in self._env.items() if not name.startswith(("KB_", "GIT_"))}
        gits = {name: value for name, value in of_kb.items() if name.startswith("GIT_")}
        path = os.pathsep.join([str(programs), self._env.get("PATH", os.defpath)])
        return {**users, **gits, **self._more, "PATH": path}


def exchanged(folder: Path) -> Iterator[AnsweredCall]:
    """Yield the calls of tools that servers received, and their answers, from the files of ``_write_programs``."""
    for requests in sorted(folder.glob("*.requests")):
        answers = {one["id"]: one for one in _messages(requests.with_suffix(".answers")) if "method" not in one}
        for one in _messages(requests):
            if one.get("method") == "tools/call":
                answer, asked = answers.get(one["id"], {}), one["params"]
                result = answer.get("result", {"isError": True, "content": [{"text": _refused(answer)}]})
                text = "".join(block.get("text", "") for block in result.get("content", ()))
                yield AnsweredCall(asked["name"], asked.get("arguments") or {}, text, bool(result.get("isError")))


def _refused(answer: Mapping[str, Any]) -> str:
    return str(answer.get("error", {}).get("message", ""))


def _messages(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the messages of a file, one a line; the last one may be cut, where the client has ended its server."""
    for line in path.read_bytes().splitlines():
        try:
            message = msgspec.json.decode(line)
        except msgspec.DecodeError:
            continue
        if isinstance(message, dict) and "id" in message:
            yield message


def _judged(job: Job, said: str, read: str, left: str) -> tuple[Verdict, str]:
    if not find_fault(job, said, left, is_read=False):
        return "done", ""
    why = find_fault(job, f"{said}\n{read}", left, is_read=True)
    return ("wrong", why) if why else ("by reading", "")


def _found(client: str, env: Mapping[str, str]) -> list[str]:
    if client not in PROGRAMS:
        message = f"--client: {in_quotes(client)} cannot be started for one request."
        raise InvalidQuery(message, hint=did_you_mean(client, PROGRAMS))
    name, *words = PROGRAMS[client].words
    found = shutil.which(name, path=env.get("PATH"))
    if found is None:
        title = kinds.KINDS[client].title
        raise InvalidQuery(f"{name} is not on the PATH.", hint=f"Install {title}, and sign in to its model.")
    return [found, *words]


def _write_programs(folder: Path, of_kb: Mapping[str, str], users: Mapping[str, str]) -> None:
    """Write `kb` and `kb-mcp`, which run with the environment of the job; the server keeps a copy of what passes it.

    A server that runs as process N writes ``N.requests`` and ``N.answers``. Only variables that differ from the user's
    are in the files: what a client passes on is not known.
    """
    given = {name: value for name, value in of_kb.items() if users.get(name) != value} | {"KB_SESSION": _SESSION}
    lines = [f"#!{SHELL_PROGRAM}"]
    lines += [f"unset {name}" for name in sorted(users) if name.startswith("XDG_")]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(given.items())]
    place = shlex.quote(f"{folder}/")
    server = f'tee -a {place}$$.requests | {shlex.join(KB_SERVER)} "$@" | tee -a {place}$$.answers'
    folder.mkdir()
    for name, run in (("kb", f'exec {shlex.join(_KB)} "$@"'), ("kb-mcp", server)):
        path = folder / name
        path.write_text("\n".join([*lines, run, ""]), encoding="utf-8")
        path.chmod(0o755)


def _install(client: str, situation: Situation, programs: Path) -> None:
    """Install KB for a client as `kb agents install` does, with the programs of the job."""
    machine = Machine(RealFs(), SystemClock(), situation.env)
    repo = git.find_own_repository(situation.home, situation.env)
    data_dir = data_dir_of(repo)
    around = setup.Surroundings(
        machine=machine,
        worktree=repo.worktree,
        common_dir=repo.common_dir,
        data_dir=data_dir,
        cache_dir=data_dir / CACHE,
        home=None,
        platform=sys.platform,
        server_command={"project": [str(programs / "kb-mcp")]},
        hook_command={"project": [str(programs / "kb")]},
    )
    for target in setup.targets(around, client, "project"):
        setup.install(around, target, write=True)


def _ended(words: list[str], folder: Path, env: Mapping[str, str], limit_s: float) -> tuple[str, str, str]:
    """Run a program; return how it failed, "" where it did not, and what it wrote to its two streams."""
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {limit_s:g} s", "", ""
    said, complaint = (one.decode("utf-8", "backslashreplace") for one in (done.stdout, done.stderr))
    return f"status {done.returncode}" if done.returncode else "", said, complaint
