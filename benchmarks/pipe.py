"""A client of MCP over pipes that does next to nothing itself, so that what is timed is the server."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from benchmarks.measure import ProcessFailed, Sample, ended

EMPTY_TOOL = "nothing"
"""The tool of ``empty_server``, which only the process of that server imports: the SDK takes much memory."""

_PROTOCOL = "2025-11-25"


def answer(result: Mapping[str, Any]) -> Any:
    """Return what a tool answered in JSON, as the text of its result."""
    return json.loads(result["content"][0]["text"])


class Pipe:
    """One server and one conversation with it, one request at a time."""

    def __init__(self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> None:
        """Start the server and shake hands."""
        self._start = time.perf_counter()
        self._words = words
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the server runs
        self._child = subprocess.Popen(
            list(words), cwd=cwd, env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        self._number = 0
        client = {"name": "bench", "version": "1"}
        self._ask("initialize", {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, arguments: Mapping[str, Any]) -> tuple[Sample, dict[str, Any]]:
        """Call a tool and return how long the answer took, with the answer.

        Raises: ``ProcessFailed`` when the answer is an error, or none.
        """
        line = self._request("tools/call", {"name": tool, "arguments": arguments})
        start = time.perf_counter()
        self._write(line)
        said = self._read()
        sample = Sample(time.perf_counter() - start)
        return sample, self._answer(said)

    def begin(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Call a tool and do not wait; ``finish`` takes the answer, before anything else is asked."""
        self._write(self._request("tools/call", {"name": tool, "arguments": arguments}))

    def finish(self) -> dict[str, Any]:
        """Return the answer of the call that was begun.

        Raises: ``ProcessFailed`` when the answer is an error, or none.
        """
        return self._answer(self._read())

    @property
    def pid(self) -> int:
        """The process id of the server."""
        return self._child.pid

    @property
    def answers(self) -> IO[bytes]:
        """The pipe that answers come from, to wait for one of several servers."""
        assert self._child.stdout
        return self._child.stdout

    def close(self) -> Sample:
        """End the conversation and return what the server took in all."""
        assert self._child.stdin
        assert self._child.stdout
        self._child.stdin.close()
        rest = self._child.stdout.read()
        self._child.stdout.close()
        sample, status = ended(self._child, self._start)
        if status or rest:
            raise ProcessFailed(f"{self._named()} ended with status {status} and {rest[:200]!r}")
        self._log.close()
        return sample

    def _ask(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._write(self._request(method, params))
        return self._result(self._read())

    def _request(self, method: str, params: Mapping[str, Any]) -> bytes:
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        return json.dumps(message, separators=(",", ":")).encode() + b"\n"

    def _send(self, message: Mapping[str, Any]) -> None:
        self._write(json.dumps(message).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        assert self._child.stdin
        self._child.stdin.write(line)
        self._child.stdin.flush()

    def _read(self) -> bytes:
        assert self._child.stdout
        return self._child.stdout.readline()

    def _answer(self, line: bytes) -> dict[str, Any]:
        result = self._result(line)
        if result.get("isError"):
            raise ProcessFailed(f"the tool answered {line.decode()[:2000]}")
        return result

    def _result(self, line: bytes) -> dict[str, Any]:
        message = json.loads(line or b"{}")
        if message.get("id") != self._number or "result" not in message:
            raise ProcessFailed(f"{self._named()} answered {line.decode()[:2000]!r}")
        result: dict[str, Any] = message["result"]
        return result

    def _named(self) -> str:
        """Return the command, with the end of what it wrote to standard error."""
        self._log.seek(0)
        return f"{' '.join(self._words)} ({self._log.read().decode(errors='replace')[-2000:].strip()})"
