"""A copy of a scene for one job: connections of clients to its server, their calls, and what is taken of answers."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from kbcli.demo import project
from kbcli.prove.job import AGENT, SHELL, JobStep, System
from kbcli.prove.scene import KB, MARKDOWN, Scene
from kbcore.text.tokens import tokens_of

if TYPE_CHECKING:
    from kbcli.demo.client import ServerConnection

KB_SERVER: Final = (sys.executable, "-m", "kbmcp.server")
SHELL_PROGRAM: Final = "/bin/sh"


class AnsweredCall(msgspec.Struct, frozen=True):
    """A call and its answer."""

    tool: str
    arguments: Mapping[str, Any]
    text: str
    is_error: bool

    @property
    def tokens_in(self) -> int:
        """Return the tokens of the call."""
        return tokens_of(f"{self.tool} {compact_json(self.arguments)}")

    @property
    def tokens_out(self) -> int:
        """Return the tokens of the answer."""
        return tokens_of(self.text)


class Situation:
    """A copy of the scene for one job, and the connections of the clients to its server."""

    def __init__(self, scene: Scene, system: System, memory: Path | None = None, *, session: str = "") -> None:
        """Make the copy. ``session`` is the id of the agent's session, "" where each connection has its own."""
        self.home = scene.copy(KB if system in {"kb", "client"} else MARKDOWN)
        self.env = scene.env_of(self.home)
        self._of_agent = {"KB_SESSION": session} if session else {}
        self._server: tuple[str, ...] = KB_SERVER
        if system == "memory":
            self._server = (SHELL_PROGRAM, "-c", 'exec "$0" 2>/dev/null', str(memory))  # it greets on standard error
            self.env["MEMORY_FILE_PATH"] = str(scene.memory_file())
        self._connections: dict[str, ServerConnection] = {}
        self._taken: dict[str, Any] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        # A server that a client has started may still be ending; the rest goes with the folder of the scene.
        shutil.rmtree(self.home.parent, ignore_errors=bool(self._of_agent))

    def connection(self, client: str) -> ServerConnection:
        """Return the connection of a client, made at its first call."""
        from kbcli.demo.client import ServerProgram, connected

        if client not in self._connections:
            env = {**self.env, **(self._of_agent if client == AGENT else {})}
            server = ServerProgram(self._server[0], self._server[1:], env, self.home)
            self._connections[client] = self._stack.enter_context(connected(server, client))
        return self._connections[client]

    def take_all(self, steps: Iterable[JobStep]) -> list[AnsweredCall]:
        """Make calls one after the other."""
        return [self.take(step) for step in steps]

    def take(self, step: JobStep) -> AnsweredCall:
        """Make a call, and keep what it takes of the answer."""
        from kbcli.demo.client import ServerCall

        arguments = _filled(step.arguments, self._taken)
        if step.tool == SHELL:
            status, text = project.spawn([SHELL_PROGRAM, "-c", arguments["command"]], self.home, self.env)
            # grep ends with 1 where it finds nothing
            return AnsweredCall(SHELL, arguments, text, is_error=status > 1)
        answer = self.connection(step.client).call(ServerCall(step.tool, arguments))
        for name, place in step.takes.items():
            self._taken[name] = _at(answer.document, place)
        return AnsweredCall(step.tool, arguments, answer.text, answer.is_error)


def texts_of(asked: Iterable[AnsweredCall]) -> str:
    """Return the texts of answers, one after the other."""
    return "\n".join(one.text for one in asked)


def compact_json(value: Any) -> str:
    """Return JSON without blanks."""
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
