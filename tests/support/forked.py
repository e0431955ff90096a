"""Servers of MCP that begin with everything imported: ``python -m tests.support.forked FD``.

One process imports what a server needs, opens nothing and starts no thread. Each server is a fork of it, with streams,
environment and working directory of its own; it can be signalled and killed, and ends as the program does. What is
about the start of the program starts the program.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.repos import git_env

ROOT = Path(__file__).resolve().parents[2]
_STREAMS = 3
_NUMBER_BYTES = 8


class Forked:
    """A server, with as much of the face of ``subprocess.Popen`` as its clients look at."""

    def __init__(self, arguments: Sequence[str], env: Mapping[str, str], cwd: Path) -> None:
        (its_in, writes), (reads, its_out), (hears, its_err) = os.pipe(), os.pipe(), os.pipe()
        self.stdin, self.stdout, self.stderr = os.fdopen(writes, "wb"), os.fdopen(reads, "rb"), os.fdopen(hears, "rb")
        self._life, its_life = socket.socketpair()
        asked = json.dumps({"arguments": list(arguments), "env": dict(env), "cwd": str(cwd)}).encode()
        with its_life:
            socket.send_fds(_mother(), [asked], [its_in, its_out, its_err, its_life.fileno()])
        for fd in (its_in, its_out, its_err):
            os.close(fd)
        self.pid = self._told()
        self.returncode: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Return the status once the server has ended. Raises: ``TimeoutExpired``."""
        if self.returncode is None:
            if not select.select([self._life], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("kb-mcp", timeout or 0)
            self.returncode = self._told()
            self._life.close()
        return self.returncode

    def _told(self) -> int:
        return int.from_bytes(self._life.recv(_NUMBER_BYTES), signed=True)

    def poll(self) -> int | None:
        """Return the status, None while the server runs."""
        is_over = self.returncode is not None or bool(select.select([self._life], [], [], 0)[0])
        return self.wait() if is_over else None

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the server has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the server."""
        self.send_signal(signal.SIGKILL)


@cache
def _mother() -> socket.socket:
    """Return the line to the process that servers are forks of; it ends with this one."""
    mine, its = socket.socketpair()
    with its:
        command = [sys.executable, "-m", "tests.support.forked", str(its.fileno())]
        mother = subprocess.Popen(command, cwd=ROOT, env=git_env(), pass_fds=[its.fileno()])

    def end() -> None:
        mine.close()
        mother.wait()

    atexit.register(end)
    return mine


def main() -> int:
    """Make a server of every request; in a server, return its status."""
    from kbmcp import server, serving  # noqa: F401 - what takes long

    control = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a watcher ended
    while True:
        asked, fds, _, _ = socket.recv_fds(control, 1 << 16, _STREAMS + 1)
        if not asked:
            return 0
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            control.close()
            pid = os.fork()
            if pid == 0:
                return server.main(_become(json.loads(asked), fds))
            _watch(pid, fds)
        for fd in fds:
            os.close(fd)


def _watch(pid: int, fds: Sequence[int]) -> None:
    """Tell the number of a server and, in the end, its status."""
    for fd in fds[:_STREAMS]:
        os.close(fd)
    with socket.socket(fileno=fds[_STREAMS]) as life:
        life.sendall(pid.to_bytes(_NUMBER_BYTES))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        life.sendall(status.to_bytes(_NUMBER_BYTES, signed=True))
    os._exit(0)


def _become(asked: dict[str, Any], fds: Sequence[int]) -> list[str]:
    """Take over streams, environment and place of a server, and return its arguments."""
    for number, fd in enumerate(fds[:_STREAMS]):
        os.dup2(fd, number)
    for fd in fds:
        os.close(fd)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    return list(asked["arguments"])


if __name__ == "__main__":
    sys.exit(main())
