"""Starts KB's own MCP server as a client would, greets it, and ends it again."""

from __future__ import annotations

import os
import selectors
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from kbcore.clock import Clock

PATIENCE_S: Final = 20.0
"""The least that the clients that KB knows allow a server is half of this."""

_ENDING_S: Final = 5.0
_READ_BYTES: Final = 64 * 1024
_MAX_ANSWER_BYTES: Final = 1024 * 1024
_MAX_SAID: Final = 300
_GREETING: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "kb doctor", "version": "1"},
    },
}


def try_to_start(
    command: Sequence[str], folder: Path, env: Mapping[str, str], clock: Clock, *, patience_s: float = PATIENCE_S
) -> str:
    """Start a server in a folder and greet it; return what went wrong, "" when it answered as it should.

    The process has ended when this returns.
    """
    with tempfile.TemporaryFile() as complaints:
        try:
            # Without a buffer, since closing one writes again what a broken pipe did not take.
            process = subprocess.Popen(
                command,
                bufsize=0,
                cwd=folder,
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=complaints,
            )
        except OSError as error:
            return f"it cannot be started: {error.strerror}"
        try:
            answer = _greet(process, clock, clock.monotonic_s() + patience_s)
        finally:
            _end(process)
        if _is_welcome(answer):
            return ""
        complaints.seek(0)
        said = " ".join(complaints.read(_READ_BYTES).decode("utf-8", "replace").split())[-_MAX_SAID:]
    if answer is None:
        return f"it gave no answer within {patience_s:g} s" + (f"; it said: {said}" if said else "")
    if not answer:
        return f"it ended with status {process.returncode}" + (
            f": {said}" if said else ", and wrote nothing to standard error"
        )
    return f"it answered something else: {answer[:_MAX_SAID].decode('utf-8', 'replace').strip()}"


def _greet(process: subprocess.Popen[bytes], clock: Clock, end_s: float) -> bytes | None:
    """Return the first line that comes back, what there is of it when it ends early, None when time is up."""
    pipes: tuple[IO[bytes] | None, IO[bytes] | None] = (process.stdin, process.stdout)
    asking, answering = pipes
    if asking is None or answering is None:
        return b""
    with suppress(BrokenPipeError):  # what it wrote before it closed its input is its answer
        asking.write(msgspec.json.encode(_GREETING) + b"\n")
    answer = b""
    with selectors.DefaultSelector() as waiting:
        waiting.register(answering, selectors.EVENT_READ)
        while b"\n" not in answer and len(answer) < _MAX_ANSWER_BYTES:
            if not waiting.select(max(0.0, end_s - clock.monotonic_s())):
                return None
            more = os.read(answering.fileno(), _READ_BYTES)
            if not more:
                break
            answer += more
    return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    """Let a server end by itself, as its input is closed; otherwise end it."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(_ENDING_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _is_welcome(answer: bytes | None) -> bool:
    try:
        message: Any = msgspec.json.decode((answer or b"").partition(b"\n")[0])
    except (msgspec.DecodeError, RecursionError):
        return False
    return isinstance(message, dict) and isinstance(message.get("result"), dict)
