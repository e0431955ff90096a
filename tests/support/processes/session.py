"""A real MCP session: a server of its own as the installed program, spoken to line by line, in either era."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.support.processes.cli import environment, program

WAIT_S = 60.0
_INFO = {"name": "crowd", "version": "1"}
_ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": _INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Gone(Exception):
    """The server ended before it had answered."""


class Session:
    """One server and the client at its other end; one request at a time."""

    def __init__(
        self, root: Path, *options: str, is_modern: bool = False, env: Mapping[str, str] | None = None
    ) -> None:
        path = f"{Path(program()[0]).parent}{os.pathsep}{os.environ['PATH']}"
        env = environment({**(env or {}), "PATH": path})
        self._server = subprocess.Popen(
            [*program(), "-C", str(root), "mcp", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
        )
        self._is_modern = is_modern
        self._serial = 0
        self._read = b""
        if is_modern:
            self.ask("server/discover", {})
        else:
            self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": _INFO})
            self._send({"method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return the document of its answer, ``{"error": …}`` for a refusal.

        Raises: ``Gone``; ``TimeoutError`` when no answer came.
        """
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        answer: dict[str, Any] = json.loads(result["content"][0]["text"])
        assert bool(result.get("isError")) == ("error" in answer), result
        return answer

    def kill(self) -> None:
        """Kill the server, whatever it is at."""
        self._server.send_signal(signal.SIGKILL)

    def close(self) -> int:
        """Close the server's input, and return the status that it ends with."""
        assert self._server.stdin
        assert self._server.stdout
        with contextlib.suppress(BrokenPipeError):  # what a killed server does not get any more
            self._server.stdin.close()
        status = self._server.wait(WAIT_S)
        self._server.stdout.close()
        return status

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result.

        Raises: ``Gone``; ``TimeoutError`` when no answer came.
        """
        self._serial += 1
        envelope = {"_meta": _ENVELOPE} if self._is_modern else {}
        self._send({"id": self._serial, "method": method, "params": {**params, **envelope}})
        while (message := json.loads(self._line())).get("id") != self._serial:
            continue
        assert "result" in message, message
        result: dict[str, Any] = message["result"]
        return result

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server.stdin
        try:
            self._server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._server.stdin.flush()
        except BrokenPipeError as error:
            raise Gone from error

    def _line(self) -> bytes:
        assert self._server.stdout
        end_s = time.monotonic() + WAIT_S
        while b"\n" not in self._read:
            if not select.select([self._server.stdout], [], [], max(0.0, end_s - time.monotonic()))[0]:
                raise TimeoutError("the server does not answer")
            part = os.read(self._server.stdout.fileno(), 1 << 16)
            if not part:
                raise Gone
            self._read += part
        line, _, self._read = self._read.partition(b"\n")
        return line
