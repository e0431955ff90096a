"""Running jobs, each in new copies of the repositories, with real servers and commands, and counting their tokens."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from kbcli.demo import project
from kbcli.prove.job import AGENT, SHELL, Job, Result, Script, Step, System, Verdict
from kbcli.prove.scene import KB, MARKDOWN, Scene
from kbcore.text.tokens import tokens_of

if TYPE_CHECKING:
    from kbcli.demo.client import Connection

KB_SERVER: Final = (sys.executable, "-m", "kbmcp.server")
MEMORY_PROGRAM: Final = "mcp-server-memory"
_SHELL_PROGRAM: Final = "/bin/sh"
_NO_MEMORY: Final = f"{MEMORY_PROGRAM} is not installed."


class Asked(msgspec.Struct, frozen=True):
    """A call and its answer."""

    tool: str
    arguments: Mapping[str, Any]
    text: str
    is_error: bool


class Runner:
    """Runs jobs in copies of a scene. ``memory`` is the program of the memory server, None where there is none."""

    def __init__(self, scene: Scene, memory: Path | None) -> None:
        self._scene = scene
        self._memory = memory

    def run(self, job: Job, system: System) -> Result:
        """Do a job with a system, and judge it.

        Raises: what a server raises that does not start.
        """
        script = job.scripts[system]
        if script.impossible:
            return Result(job.name, system, "impossible", why=script.impossible)
        if system == "memory" and self._memory is None:
            return Result(job.name, system, "not run", why=_NO_MEMORY)
        with _Situation(self._scene, system, self._memory) as situation:
            for step in script.before:
                situation.take(step)
            counted = [asked for step in script.calls if (asked := situation.take(step)) and step.client == AGENT]
            left = [situation.take(step) for step in script.afterwards]
        refused = [
            asked for asked, step in zip(counted, _counted(script), strict=True) if asked.is_error != step.is_refused
        ]
        why = (
            f"{refused[0].tool} answered: {refused[0].text[:500]}"
            if refused
            else _fault(job, "\n".join(one.text for one in counted), "\n".join(one.text for one in left), script)
        )
        done: Verdict = "by reading" if script.is_read else "done"
        return Result(
            job.name,
            system,
            "wrong" if why else done,
            len(counted),
            sum(tokens_of(f"{one.tool} {_compact(one.arguments)}") for one in counted),
            sum(tokens_of(one.text) for one in counted),
            why,
        )

    def listing_tokens(self, system: System) -> int:
        """Return the tokens of the list of tools that a system puts before each session; none for a shell."""
        if system == "markdown" or (system == "memory" and self._memory is None):
            return 0
        with _Situation(self._scene, system, self._memory) as situation:
            listed = situation.connection(AGENT).tools()
        shown = [{"name": one.name, "description": one.description, "inputSchema": one.input_schema} for one in listed]
        return tokens_of(_compact(shown))


class _Situation:
    """A copy of the scene for one job, and the connections of the clients to its server."""

    def __init__(self, scene: Scene, system: System, memory: Path | None) -> None:
        self._system = system
        self._home = scene.copy(KB if system == "kb" else MARKDOWN)
        self._env = scene.env_of(self._home)
        self._server: tuple[str, ...] = KB_SERVER
        if system == "memory":
            self._server = (_SHELL_PROGRAM, "-c", 'exec "$0" 2>/dev/null', str(memory))  # it greets on standard error
            self._env["MEMORY_FILE_PATH"] = str(scene.memory_file())
        self._connections: dict[str, Connection] = {}
        self._taken: dict[str, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        shutil.rmtree(self._home.parent)

    def connection(self, client: str) -> Connection:
        """Return the connection of a client, made at its first call."""
        from kbcli.demo.client import Server, connected

        if client not in self._connections:
            server = Server(self._server[0], self._server[1:], self._env, self._home)
            self._connections[client] = self._stack.enter_context(connected(server, client))
        return self._connections[client]

    def take(self, step: Step) -> Asked:
        """Make a call, and keep what it takes of the answer."""
        from kbcli.demo.client import ToolCall

        arguments = _filled(step.arguments, self._taken)
        if step.tool == SHELL:
            status, text = project.spawn([_SHELL_PROGRAM, "-c", arguments["command"]], self._home, self._env)
            return Asked(SHELL, arguments, text, is_error=status > 1)  # 1 is what grep says where there is nothing
        answer = self.connection(step.client).call(ToolCall(step.tool, arguments))
        for name, place in step.takes.items():
            self._taken[name] = _at(answer.document, place)
        return Asked(step.tool, arguments, answer.text, answer.is_error)


def find_memory(path: str | None) -> Path | None:
    """Return the program of the memory server, None where it is not installed."""
    found = shutil.which(MEMORY_PROGRAM, path=path)
    return Path(found) if found else None


def version_of(program: Path) -> str:
    """Return the version of the memory server as its package says, "unknown" where it says none."""
    package = program.resolve().parent.parent / "package.json"
    try:
        return str(msgspec.json.decode(package.read_bytes())["version"])
    except (OSError, msgspec.DecodeError, KeyError):
        return "unknown"


def _counted(script: Script) -> list[Step]:
    return [step for step in script.calls if step.client == AGENT]


def _fault(job: Job, answers: str, left: str, script: Script) -> str:
    """Return the first sign that a job was not done, "" where there is none."""
    for text, needed, where in ((answers, job.facts, "the answers"), (left, job.holds, "the result")):
        for one in needed:
            if one not in text:
                return f"{one!r} is missing in {where}."
    unwanted = (answers, () if script.is_read else job.not_facts, "the answers"), (left, job.not_holds, "the result")
    for text, refused, where in unwanted:
        for one in refused:
            if one in text:
                return f"{one!r} is in {where}."
    return ""


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _filled(value: Any, taken: Mapping[str, Any]) -> Any:
    """Return arguments with the values that were taken from answers."""
    if isinstance(value, Mapping):
        return {key: _filled(one, taken) for key, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, taken) for one in value]
    if isinstance(value, str) and value[:1] == "{" and value[1:-1] in taken:
        return taken[value[1:-1]]
    return value


def _at(document: Any, place: str) -> Any:
    """Return the value at a place, "" where there is none: the next call is refused then."""
    for key in place.split("."):
        if isinstance(document, list):
            document = dict(enumerate(document)).get(int(key), "")
        else:
            document = document.get(key, "") if isinstance(document, dict) else ""
    return document
