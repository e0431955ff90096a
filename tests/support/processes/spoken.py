"""A server of MCP as a process, spoken to in lines: for tests that send what no client would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.support.processes.server_lines import ServerLines
from tests.support.repository.repos import git_env

ROOT = Path(__file__).resolve().parents[3]
WAIT_S = 120.0


class Spoken:
    """A running server; every line that it writes is kept."""

    def __init__(
        self, root: Path, *, command: Sequence[str] = ("-m", "kbmcp.server"), prefix: Sequence[str] = ()
    ) -> None:
        process = subprocess.Popen(
            [*prefix, sys.executable, *command, "-C", str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=git_env({"PYTHONPATH": str(ROOT)}),
            cwd=ROOT,
        )
        self._server = ServerLines(process)
        self.process, self.write = process, self._server.write
        self.lines, self.errors = self._server.lines, self._server.errors
        for reader in self._server.readers:
            reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(WAIT_S)
        for reader in self._server.readers:
            reader.join(WAIT_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream
            stream.close()

    def ask(self, key: int | str, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return the answer to it, whatever comes before."""
        message = {"jsonrpc": "2.0", "id": key, "method": method} | (
            {"params": dict(params)} if params is not None else {}
        )
        self.write(json.dumps(message).encode() + b"\n")
        while True:
            line = self._server.arrived.get(timeout=WAIT_S)
            if not line:
                raise AssertionError(f"the server has ended: {self.errors[-2000:].decode(errors='replace')}")
            answer: dict[str, Any] = json.loads(line)
            if answer.get("id") == key:
                return answer

    def greet(self) -> None:
        client = {"name": "spoken", "version": "1"}
        self.ask("hello", "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client})
        self.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def call(self, key: int | str, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return the document of its answer, an error too."""
        answer = self.ask(key, "tools/call", {"name": name, "arguments": arguments})
        found: dict[str, Any] = json.loads(answer["result"]["content"][0]["text"])
        return found

    def end(self) -> int:
        """Close the server's input and return the status that it ends with."""
        assert self.process.stdin
        self.process.stdin.close()
        status = self.process.wait(WAIT_S)
        self._server.readers[0].join(WAIT_S)
        return status


def is_there(program: str) -> bool:
    """Tell whether a program is in the path."""
    return any(os.access(Path(folder) / program, os.X_OK) for folder in os.get_exec_path())


def use_every_tool(server: Spoken) -> None:
    """Use every tool in a store with one record, and end the server."""
    server.greet()
    assert len(server.ask(1, "tools/list")["result"]["tools"]) >= 5
    server.call(2, "kb_query", type="req", text="title", edges=True)
    entity = {"id": "N", "type": "req", "title": "new", "status": "open"}
    assert server.call(3, "kb_upsert", entities=[entity])["applied"]
    server.call(4, "kb_upsert", entities=[entity | {"text_ref": "../../secret.md"}])
    assert {one["rule"] for one in server.call(5, "kb_check", rules=["mine"])["violations"]} == {"mine"}
    for action in ({"action": "log"}, {"action": "show", "seq": 2}, {"action": "diff", "seq": 1, "to": 2}):
        assert "error" not in server.call(6, "kb_history", **action)
    assert server.call(7, "kb_delete", entities=[{"id": "N", "expected_version": 2}])["applied"]
    assert server.call(8, "kb_history", action="revert", seq=3)["applied"]
    assert server.end() == 0
