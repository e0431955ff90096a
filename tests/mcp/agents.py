"""Clients for tests: the SDK's own on a server in this process or on one of its own, and a raw one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
from anyio.from_thread import start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client import Transport
from mcp.client.session import ElicitationFnT

from kbcore.storage.layout import LOCK
from kbcore.text.escaping import IS_DATA
from kbmcp.tools.answers import DATA_NOTE
from kbmcp.tools.call import Client as ClientName
from kbmcp.tools.run_call import run_tool
from kbmcp.tools.service import ServerOptions, Service
from kbmcp.tools.tool_list import by_name
from tests.mcp.wiring import wired
from tests.support.processes.cli import worded
from tests.support.processes.forked import Forked
from tests.support.processes.server_lines import ServerLines
from tests.support.repository.repos import git_env

ROOT = Path(__file__).resolve().parents[2]
MODES = ("legacy", "2026-07-28")
SERVER = (sys.executable, "-m", "kbmcp.server")
WAIT_S = 30.0
TOOLS_OF = {
    "core": ["kb_query", "kb_upsert", "kb_delete", "kb_check", "kb_history"],
    "kip": ["execute_kip", "execute_kip_readonly", "kb_sleep"],
    "logic": ["clauses", "files", "workspace", "query_start", "query_next", "query_close", "help"],
}
"""The tools of each toolset, in the order in which they are listed; together they are all."""


def server_env(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    env = git_env({"PYTHONPATH": str(ROOT), **(extra or {})})
    return {name: value for name, value in env.items() if not name.startswith("COV_")}


class Agent:
    """A synchronous face of the SDK's client."""

    def __init__(self, client: Client, portal: Any) -> None:
        self._client = client
        self._portal = portal

    @property
    def instructions(self) -> str:
        return self._client.instructions or ""

    @property
    def protocol_version(self) -> str:
        return self._client.protocol_version

    def tools(self) -> list[types.Tool]:
        return self._portal.call(self._client.list_tools).tools

    def listing(self) -> str:
        """Return the result of ``tools/list`` as it went over the wire."""
        result = self._portal.call(self._client.list_tools)
        return json.dumps(result.model_dump(mode="json", by_alias=True, exclude_none=True), separators=(",", ":"))

    def result(self, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        return self._portal.call(self._client.call_tool, name, dict(arguments))

    def call(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, insist that it succeeds, and return its answer."""
        result = self.result(name, {key.removesuffix("_"): value for key, value in arguments.items()})
        assert not result.is_error, text_of(result)
        return answer_of(result)

    def refused(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, insist that it fails, and return the error."""
        result = self.result(name, {key.removesuffix("_"): value for key, value in arguments.items()})
        assert result.is_error, text_of(result)
        return answer_of(result)["error"]


def text_of(result: types.CallToolResult) -> str:
    """Return the text of an answer; beside one of KIP is another text, which begins with the note on stored text."""
    block, *others = result.content
    assert isinstance(block, types.TextContent)
    for other in others:
        assert isinstance(other, types.TextContent)
        without_note(json.loads(other.text))
    return block.text


def answer_of(result: types.CallToolResult) -> dict[str, Any]:
    """Return an answer without its note on stored text, after a look at both of its forms."""
    found = json.loads(worded(text_of(result)))
    assert found == result.structured_content
    return found if len(result.content) > 1 else without_note(found)


def without_note(found: dict[str, Any]) -> dict[str, Any]:
    """Return what an answer says beside the note on stored text, which it begins with, the repository and advice."""
    assert next(iter(found.items())) == next(iter(DATA_NOTE.items()))
    return {name: value for name, value in found.items() if name not in {*DATA_NOTE, "repository", "advice"}}


def unfenced(text: str) -> str:
    """Return what is in the fence of a text that is nothing but the sentence about it and the fence."""
    sentence, begin, *held, end = text.split("\n")
    assert sentence == IS_DATA
    assert re.fullmatch(r"<kb-data-[0-9a-f]{24}>", begin)
    assert end == f"</{begin[1:]}"
    assert begin[9:-1] not in "\n".join(held)
    return "\n".join(held)


@contextmanager
def agent(
    root: Path,
    *options: str,
    mode: str = "legacy",
    env: Mapping[str, str] | None = None,
    name: str = "tester",
    person: ElicitationFnT | None = None,
) -> Iterator[Agent]:
    """Give an agent that speaks one of the two eras a server of its own in this process.

    With ``person`` its client answers the questions of the server.
    """
    with _connected(wired(["-C", str(root), *options], server_env(env)), mode, name, person) as found:
        yield found


@contextmanager
def spawned(
    root: Path, *options: str, mode: str = "legacy", env: Mapping[str, str] | None = None, name: str = "tester"
) -> Iterator[Agent]:
    """Start the program for an agent, for what a server in this process cannot show."""
    command, *arguments = SERVER
    parameters = StdioServerParameters(
        command=command, args=[*arguments, "-C", str(root), *options], env=server_env(env), cwd=ROOT
    )
    with _connected(parameters, mode, name) as found:
        yield found


@contextmanager
def _connected(
    server: StdioServerParameters | Transport, mode: str, name: str, person: ElicitationFnT | None = None
) -> Iterator[Agent]:
    info = types.Implementation(name=name, version="1.2")
    with start_blocking_portal() as portal:
        client = Client(server, mode=mode, client_info=info, read_timeout_seconds=WAIT_S, elicitation_callback=person)
        connection = portal.wrap_async_context_manager(client)
        try:
            yield Agent(connection.__enter__(), portal)
        finally:  # what a test raises is none of the connection's business, and stays as it was raised
            connection.__exit__(None, None, None)


class Raw:
    """A server process, the lines that it wrote, and a hand to write any bytes to it."""

    def __init__(self, process: subprocess.Popen[bytes] | Forked) -> None:
        self._server = ServerLines(process)
        self.process, self.write = process, self._server.write
        self.lines, self.errors = self._server.lines, self._server.errors
        self._others: list[Any] = []

    def start(self, *, reads: bool = True) -> Raw:
        for reader in self._server.readers if reads else self._server.readers[1:]:
            reader.start()
        return self

    def send(self, method: str, params: Mapping[str, Any] | None = None, key: int | str | None = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        message |= {"params": dict(params)} if params is not None else {}
        message |= {"id": key} if key is not None else {}
        self.write(json.dumps(message).encode() + b"\n")

    def greet(self) -> dict[str, Any]:
        """Open the connection as clients of the older era do, and return the server's answer."""
        client = {"name": "raw", "version": "1"}
        self.send("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}, "hello")
        answer = self.reply("hello")
        self.send("notifications/initialized")
        return answer

    def call(self, key: int | str, name: str, arguments: Mapping[str, Any] | None = None) -> None:
        self.send("tools/call", {"name": name} | ({"arguments": dict(arguments)} if arguments is not None else {}), key)

    def reply(self, key: int | str, wait_s: float = WAIT_S) -> dict[str, Any]:
        """Return the answer to a request, whatever comes before it."""
        return self._next(lambda message: isinstance(message, dict) and message.get("id") == key, str(key), wait_s)

    def refusal(self, wait_s: float = WAIT_S) -> dict[str, Any]:
        """Return the next error that names no request."""
        found = self._next(lambda message: "error" in message and message["id"] is None, "a bad line", wait_s)
        return found["error"]

    def batch(self, wait_s: float = WAIT_S) -> list[dict[str, Any]]:
        """Return the next answer to a batch."""
        return self._next(lambda message: isinstance(message, list), "a batch", wait_s)

    def _next(self, is_it: Callable[[Any], bool], name: str, wait_s: float) -> Any:
        for message in self._others:
            if is_it(message):
                self._others.remove(message)
                return message
        while True:
            line = self._server.arrived.get(timeout=wait_s)
            assert line, f"the server has ended without an answer to {name}: {self.errors.decode()}"
            message = json.loads(line)
            if is_it(message):
                return message
            self._others.append(message)

    def answer(self, key: int | str) -> dict[str, Any]:
        """Return what a call of a tool answered."""
        first, *others = [json.loads(worded(block["text"])) for block in self.reply(key)["result"]["content"]]
        for other in others:  # beside an answer of KIP
            without_note(other)
        return first if others else without_note(first)

    def complained(self, text: str, since: int = 0, wait_s: float = WAIT_S) -> bool:
        """Tell whether the server says that on its standard error, in what comes after the first ``since`` bytes."""
        until_s = time.monotonic() + wait_s
        while text.encode() not in self.errors[since:] and time.monotonic() < until_s:
            time.sleep(0.002)
        return text.encode() in self.errors[since:]

    def close(self, wait_s: float = WAIT_S) -> int:
        """Close the server's input, wait for its end and return its status."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        return self.ended(wait_s)

    def ended(self, wait_s: float = WAIT_S) -> int:
        status = self.process.wait(wait_s)
        for reader in self._server.readers:
            if reader.is_alive():
                reader.join(wait_s)
        return status

    def destroy(self) -> None:
        self.process.kill()
        self.process.wait(WAIT_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream and not stream.closed:
                stream.close()

    def assert_only_messages(self) -> None:
        """Insist that every line on standard output is a message of JSON-RPC."""
        for line in self.lines:
            message = types.jsonrpc_message_adapter.validate_json(line)
            assert message.jsonrpc == "2.0"


@contextmanager
def raw(root: Path, *options: str, env: Mapping[str, str] | None = None, reads: bool = True) -> Iterator[Raw]:
    """Give a server in a process of its own that has imported what it needs already."""
    with _served(Forked("kb-mcp", ["-C", str(root), *options], server_env(env), ROOT), reads=reads) as server:
        yield server


@contextmanager
def program(
    root: Path, *options: str, env: Mapping[str, str] | None = None, command: Sequence[str] = SERVER
) -> Iterator[Raw]:
    """Start the program, for what is about its start, or another ``command`` that serves."""
    process = subprocess.Popen(
        [*command, "-C", str(root), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=server_env(env),
        cwd=ROOT,
    )
    with _served(process) as server:
        yield server


@contextmanager
def _served(process: subprocess.Popen[bytes] | Forked, *, reads: bool = True) -> Iterator[Raw]:
    server = Raw(process).start(reads=reads)
    try:
        yield server
    finally:
        server.destroy()


def pages_of(agent_: Agent, name: str, key: str, **arguments: Any) -> Iterator[list[Any]]:
    """Yield the rows of one page after the other, and insist that each page keeps to its budget."""
    cursor: dict[str, str] = {}
    while True:
        result = agent_.result(name, arguments | cursor)
        assert not result.is_error, text_of(result)
        assert len(text_of(result)) <= 20_000
        answer = answer_of(result)
        yield answer[key]
        if not answer.get("next_cursor"):
            return
        cursor = {"cursor": answer["next_cursor"]}


@contextmanager
def locked(directory: Path, name: str = LOCK) -> Iterator[None]:
    """Hold the lock of a branch's store, or another one, as a writer of another process would."""
    import fcntl

    fd = os.open(directory / name, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


class Direct:
    """Calls of the tools in this process, in a loop as the server makes them: for what needs no wire."""

    def __init__(self, service: Service, portal: Any) -> None:
        self.service = service
        self._portal = portal

    def answer(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return the document of its answer, an error too."""
        tool = by_name(self.service)[name]
        given = {key.removesuffix("_"): value for key, value in arguments.items()}
        result = self._portal.call(run_tool, self.service, tool, given, ClientName("direct", "1"))
        return json.loads(worded(text_of(result)))


@contextmanager
def direct(root: Path, *, branch: str | None = None, is_read_only: bool = False) -> Iterator[Direct]:
    """Give the tools of a repository."""
    service = Service(ServerOptions(root, branch=branch, is_read_only=is_read_only, env=git_env()))
    with start_blocking_portal() as portal:
        try:
            yield Direct(service, portal)
        finally:
            service.close()
