"""``kb`` and ``kb-mcp`` that begin with everything imported: ``python -m tests.support.processes.forked PROGRAM FD``.

One process for each of the two imports what the program needs, opens nothing and starts no thread. What is asked of it
becomes a fork of it, with streams, environment and working directory of its own; it can be signalled and killed, and
ends as the program does. What is about the start of the program starts the program.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import pkgutil
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple, Never

from tests.support.processes.stand_in import ask, receive_number, send_number
from tests.support.repository.repos import git_env

ROOT = Path(__file__).resolve().parents[3]
_MODULES = {"kb": "kbcli.app", "kb-mcp": "kbmcp.server"}
_PACKAGES = {"kb": ("kbcore", "kbcli", "kbweb"), "kb-mcp": ("kbcore", "kbmcp")}
"""The packages that they import from."""
_LATER = ("difflib", "encodings.idna", "encodings.utf_8_sig", "gherkin", "pwd", "zoneinfo")
"""Modules that are imported while a command runs: another user may not be allowed to read this Python."""

AS_ANOTHER = "KB_TEST_AS"
"""The variable that makes a fork another user: uid, gid, one more group and umask, with blanks between them."""

_STREAMS = 3
_AT_ONCE = 64
"""Programs that may be asked for while another one is made."""


class Forked:
    """A running program, with as much of the face of ``subprocess.Popen`` as tests look at."""

    def __init__(
        self,
        program: str,
        arguments: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        streams: Sequence[int] | None = None,
    ) -> None:
        """Start it with these standard streams; without them with pipes, whose other ends are members of this."""
        its_own = self._pipes() if streams is None else ()
        self._line = ask(_mother(program), streams or its_own, arguments, env.items(), str(cwd))
        for fd in its_own:
            os.close(fd)
        self.pid = receive_number(self._line)
        self.returncode: int | None = None

    def _pipes(self) -> tuple[int, int, int]:
        (its_in, writes), (reads, its_out), (hears, its_err) = os.pipe(), os.pipe(), os.pipe()
        self.stdin, self.stdout, self.stderr = os.fdopen(writes, "wb"), os.fdopen(reads, "rb"), os.fdopen(hears, "rb")
        return its_in, its_out, its_err

    def wait(self, timeout: float | None = None) -> int:
        """Return the status once the program has ended. Raises: ``TimeoutExpired``."""
        if self.returncode is None:
            if not select.select([self._line], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = receive_number(self._line)
            self._line.close()
        return self.returncode

    def poll(self) -> int | None:
        """Return the status, None while the program runs."""
        is_over = self.returncode is not None or bool(select.select([self._line], [], [], 0)[0])
        return self.wait() if is_over else None

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the program."""
        self.send_signal(signal.SIGKILL)


def stand_in(program: str) -> Path:
    """Return a script of the program's name, alone in its folder, that has a fork do what it is asked for."""
    script = Path(_mother(program)).with_name("bin") / program
    if not script.exists():
        script.parent.mkdir()
        words = [
            sys.executable,
            "-SEs",
            str(ROOT / "tests" / "support" / "processes" / "stand_in.py"),
            _mother(program),
        ]
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return script


@cache
def _mother(program: str) -> str:
    """Return the address of the process that a program is a fork of; it ends with this one."""
    folder = Path(tempfile.mkdtemp(prefix="kb-test-"))
    address = str(folder / "line")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(_AT_ONCE)
        command = [sys.executable, "-m", "tests.support.processes.forked", program, str(listener.fileno())]
        mother = subprocess.Popen(
            command, cwd=ROOT, env=git_env(), stdin=subprocess.PIPE, pass_fds=[listener.fileno()]
        )  # fmt: skip

    def end() -> None:
        mother.communicate()
        shutil.rmtree(folder)

    atexit.register(end)
    return address


class _Asked(NamedTuple):
    arguments: list[str]
    env: dict[str, str]
    cwd: str
    streams: list[int]


def main() -> int:
    """Make a fork for every request; in a fork, return the status of the program."""
    program, descriptor = sys.argv[1:]
    listener = socket.socket(fileno=int(descriptor))
    start: Callable[[Sequence[str]], int] | None = None
    running: dict[int, socket.socket] = {}
    ends, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    while True:
        ready, _, _ = select.select([listener, ends, sys.stdin], [], [])
        if ends in ready:
            os.read(ends, select.PIPE_BUF)
            _tell_of_the_ended(running)
        if listener in ready:
            line, _ = listener.accept()
            start = start or _imported(program)
            asked = _heard(line)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for one in (
                    ends,
                    woken,
                    listener.detach(),
                    line.detach(),
                    *(each.detach() for each in running.values()),
                ):
                    os.close(one)
                _become(program, asked)
                _end(start(asked.arguments))
            for fd in asked.streams:
                os.close(fd)
            running[pid] = line
            send_number(line, pid)
        elif sys.stdin in ready:
            return 0


def _imported(program: str) -> Callable[[Sequence[str]], int]:
    """Return what a program begins with, once all that it may need is imported."""
    module = importlib.import_module(_MODULES[program])
    for name in _PACKAGES[program]:
        for one in pkgutil.walk_packages(importlib.import_module(name).__path__, f"{name}."):
            importlib.import_module(one.name)
    for name in _LATER:
        importlib.import_module(name)
    start: Callable[[Sequence[str]], int] = module.main
    return start


def _heard(line: socket.socket) -> _Asked:
    said, streams, _, _ = socket.recv_fds(line, 1 << 16, _STREAMS)
    while more := line.recv(1 << 16):
        said += more
    count, cwd, *words = os.fsdecode(said).split("\0")
    env = dict(word.split("=", 1) for word in words[int(count) :])
    return _Asked(words[: int(count)], env, cwd, streams)


def _tell_of_the_ended(running: dict[int, socket.socket]) -> None:
    """Tell those who wait for a program that has ended its status."""
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with running.pop(pid) as line, contextlib.suppress(BrokenPipeError):  # perhaps nobody waits any more
            send_number(line, os.waitstatus_to_exitcode(status))


def _become(program: str, asked: _Asked) -> None:
    """Take over streams, environment, place and words of a program."""
    for number, fd in enumerate(asked.streams):
        os.dup2(fd, number)
        os.close(fd)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115 - for good
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115 - likewise
    os.environ.clear()
    os.environ.update(asked.env)
    os.chdir(asked.cwd)
    if AS_ANOTHER in os.environ:
        uid, gid, team, umask = map(int, os.environ.pop(AS_ANOTHER).split())
        os.setgroups([team])
        os.setgid(gid)
        os.setuid(uid)
        os.umask(umask)
    sys.argv = [program, *asked.arguments]


def _end(status: int) -> Never:
    """End as Python does, but for the taking down of all that was imported, which takes longer than most commands."""
    threading._shutdown()  # as Python itself does, to wait for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


if __name__ == "__main__":
    sys.exit(main())
