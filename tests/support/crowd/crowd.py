"""Many processes at once, to be killed, stopped and listened to: each member does a job of ``crowd_jobs``."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.processes.lines import Line, Message
from tests.support.repository.repos import git_env

ROOT = Path(__file__).resolve().parents[3]
WAIT_S = 60.0
"""Longer than anything takes here; whoever says nothing for that long hangs."""
_MEMORY = Path("/dev/shm")
_LEAST_FREE_BYTES = 512 << 20


class Member(Line):
    """One process of a crowd, as the test sees it."""

    def __init__(self, crowd: Crowd, connection: socket.socket, pid: int, name: str) -> None:
        super().__init__(connection)
        self.pid = pid
        self.name = name
        self.is_reaped = False
        self._crowd = crowd

    def heard(self, wait_s: float = WAIT_S) -> Message:
        """Return what the member says next, which must be something, and no failure."""
        message = self.receive(wait_s)
        assert message is not None, f"{self.name} has ended"
        assert "failed" not in message, f"{self.name}: {message['failed']}"
        return message

    def news(self) -> list[Message]:
        """Return what the member has said meanwhile; a failure is one of the test."""
        messages = self.waiting()
        for message in messages:
            assert "failed" not in message, f"{self.name}: {message['failed']}"
        return messages

    def signal(self, number: signal.Signals) -> None:
        """Send a signal. The member is there, as a zombie at least, until it is reaped."""
        if not self.is_reaped:
            os.kill(self.pid, number)

    def kill(self) -> list[Message]:
        """Kill the member, and return the last that it said."""
        self.signal(signal.SIGKILL)
        return self.ended()[0]

    def ended(self, wait_s: float = WAIT_S) -> tuple[list[Message], int]:
        """Wait for the end of the member; return the last that it said, and its status."""
        last = []
        end_s = time.monotonic() + wait_s
        while (message := self.receive(end_s - time.monotonic())) is not None:
            last.append(message)
        self.is_reaped = True
        self.connection.close()
        return last, self._crowd.reap(self)

    def dismissed(self, wait_s: float = WAIT_S) -> list[Message]:
        """Tell the member to stop, and return the last that it said; it must end well."""
        self.send(stop=True)
        last, status = self.ended(wait_s)
        failures = [message["failed"] for message in last if "failed" in message]
        assert not failures, f"{self.name}: {failures[0]}"
        assert status == 0, f"{self.name} ended with {status}"
        return last


class Crowd:
    """The processes of one test module, and the nursery that makes them."""

    def __init__(self) -> None:
        mine, its = socket.socketpair()
        with its:
            command = [sys.executable, "-m", "tests.support.processes.nursery", str(its.fileno())]
            self._nursery = subprocess.Popen(command, cwd=ROOT, env=git_env(), pass_fds=[its.fileno()])
        self._control = mine
        self._control.settimeout(WAIT_S)
        self._members: set[Member] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()
        self._control.close()
        self._nursery.wait(WAIT_S)

    def member(self, job: str, **given: Any) -> Member:
        """Start a process that does a job, named ``module:function``, with these arguments."""
        mine, its = socket.socketpair()
        with its:
            request = json.dumps({"job": job, "given": given}).encode()
            assert len(request) < 1 << 16, "too much for one request; send it later"
            socket.send_fds(self._control, [request], [its.fileno()])
        pid = self._answer()
        made = Member(self, mine, pid, f"{job} {given.get('name', '')} ({pid})")
        self._members.add(made)
        return made

    def reap(self, member: Member) -> int:
        """Forget a process that has ended, and return its status."""
        self._members.discard(member)
        self._control.sendall(json.dumps({"reap": member.pid}).encode())
        return self._answer()

    def clear(self) -> None:
        """Kill whoever is left."""
        for member in list(self._members):
            member.kill()

    def _answer(self) -> int:
        answer = b""
        while not answer.endswith(b"\n"):
            part = self._control.recv(64)
            assert part, "the nursery has ended"
            answer += part
        return int(answer)


@contextlib.contextmanager
def crowded() -> Iterator[Callable[[], Crowd]]:
    """Give what returns a crowd; the nursery begins when it is asked for first."""
    with contextlib.ExitStack() as stack:
        made: list[Crowd] = []

        def crowd() -> Crowd:
            if not made:
                made.append(stack.enter_context(Crowd()))
            return made[0]

        yield crowd


@contextlib.contextmanager
def fast_place(otherwise: Path) -> Iterator[Path]:
    """Give a folder in memory where there is one: calls take less time there, so more of them meet."""
    is_there = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK | os.X_OK)
    if not is_there or shutil.disk_usage(_MEMORY).free < _LEAST_FREE_BYTES:
        yield otherwise
        return
    with tempfile.TemporaryDirectory(prefix="kb-crowd-", dir=_MEMORY) as folder:
        yield Path(folder)


def until(is_so: Callable[[], bool], members: Iterable[Member] = (), wait_s: float = WAIT_S) -> None:
    """Wait until something is so. Raises: ``TimeoutError``."""
    end_s = time.monotonic() + wait_s
    while not is_so():
        if time.monotonic() > end_s:
            raise TimeoutError(f"not within {wait_s:g} s; left are {[member.name for member in members]}")
        time.sleep(0.001)
