"""One engine as a child process: a request is a term, a reply one line of JSON.

Invariant: a call ends within its time limit plus the time to kill a process. An engine that does not answer in time, or
that takes more memory than it may, is killed; nothing that it held is lost, since a new one is loaded from the records.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from kbcore import limits
from kbcore.clock import SystemClock
from kbcore.limits import MIB
from kbcore.logic.engine.installation import Launch
from kbcore.logic.engine.libraries import LISTED, names_term
from kbcore.process import interrupting

Reason = Literal["timeout", "memory", "stack", "killed", "crash"]
"""It was ended here for its time or its memory; or it ended because its stack was used up, was killed, or died."""

START_LIMIT_S: Final = 60.0
_EXIT_LIMIT_S: Final = 5.0
"""The time from the end of its output to the end of a process."""
_REASONS: Final[dict[int | None, Reason]] = {71: "stack", -signal.SIGKILL: "killed"}
"""By the status of a process that has ended; ``launcher.js`` has the first."""
_TICK_S: Final = 0.05
"""The time between two looks at the memory of an engine that works."""
_clock: Final = SystemClock()
_READ_BYTES: Final = MIB
_MAX_REPLY_BYTES: Final = 256 * MIB
"""A line that is longer is of an engine that does not work."""
_PIPE_BYTES: Final = MIB
"""Of each pipe to an engine, where the system can set it: a large request needs fewer switches between processes."""
_PAGE_BYTES: Final = resource.getpagesize()
_WATCHDOG: Final = 'read -r line <&0; kill -9 "$1" 2>/dev/null; /bin/rm -rf "$2"'
"""The program of a shell that waits until this process ends, however it ends, and then kills the engine.

It removes the folder of the engine as well, which nobody else would.
"""

Facts = Callable[[], Iterable[str]]
"""The facts of the graph as terms with their full stop, made when an engine asks for them."""


class EngineEnded(Exception):
    """The engine is gone: it was killed for its time or its memory, or it died. Never shown to a user."""

    def __init__(self, reason: Reason, status: int | None = None) -> None:
        """Say why it ended, and the status of a process that ended by itself: a negative one is of a signal."""
        super().__init__(reason)
        self.reason = reason
        self.status = status
        self.is_loading = False
        """It ended while it loaded the clauses of the workspace."""


class EngineProcess:
    """A started engine. It is used by one thread at a time."""

    def __init__(self, launch: Launch) -> None:
        """Start the engine.

        Raises:
            EngineEnded: it did not start.
        """
        self.name = launch.name
        self.is_killed = False
        # In sessions of their own: an interrupt at the terminal is for this process, which kills the engine itself.
        self._folder = tempfile.TemporaryDirectory(prefix="kb-prolog-")
        self._processes: list[subprocess.Popen[bytes]] = []
        try:
            self._start(launch)
        except OSError as error:
            self.kill()
            raise EngineEnded("crash") from error
        except BaseException:
            self.kill()
            raise

    def _start(self, launch: Launch) -> None:
        self._child = subprocess.Popen(
            launch.usable_command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self._folder.name,
            env={**launch.environment, "TMPDIR": self._folder.name},
            close_fds=True,
            start_new_session=True,
            pipesize=_PIPE_BYTES,
        )
        self._processes.append(self._child)
        watchdog = subprocess.Popen(
            ["/bin/sh", "-c", _WATCHDOG, "sh", str(self._child.pid), self._folder.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            start_new_session=True,
        )
        self._processes.append(watchdog)
        if launch.limits_address_space:
            _limit_address_space(self._child.pid)
        self._received = bytearray()
        self._to_engine, self._from_engine = _number(self._child.stdin), _number(self._child.stdout)
        self._writable, self._readable = _poll(self._to_engine, select.POLLOUT), _poll(self._from_engine, select.POLLIN)
        os.set_blocking(self._to_engine, False)
        most = f"{limits.MAX_GOAL_INFERENCES},{limits.MAX_GOAL_CHARS},{limits.MAX_ARITY}"
        hello = f"hello({names_term(LISTED)},{most}).\n"
        self.version: int = self.command(hello, time_limit_s=START_LIMIT_S)["version"]

    @property
    def pid(self) -> int:
        """Return the number of the process."""
        return self._child.pid

    def command(self, request: str | Iterable[str], *, time_limit_s: float) -> dict[str, Any]:
        """Do as ``ask`` for a request that can only fail for lack of memory.

        Raises: as ``ask``; ``RuntimeError`` for a request that the engine refused.
        """
        reply = self.ask(request, time_limit_s=time_limit_s)
        if reply["status"] == "error":
            self.kill()
            if reply["kind"] == "memory":
                raise EngineEnded("memory")
            raise RuntimeError(f"the engine refused a request: {reply['kind']}: {reply['message']}")
        return reply

    def ask(self, request: str | Iterable[str], *, time_limit_s: float, facts: Facts | None = None) -> dict[str, Any]:
        """Send a request, which ends with a full stop and a line break, and return the reply.

        A reply that comes in parts has them as ``parts``, and the time limit is for each part.
        ``facts`` are sent where the engine asks for the graph while it works on the request; the time that they take
        to make does not count.

        Raises:
            EngineEnded: it was killed, or died; the object cannot be used any more.
            Stopped: the work that this is done for was asked to end; the engine was killed.
        """
        if self.is_killed:
            raise EngineEnded("killed")
        text = request if isinstance(request, str) else "".join(request)
        until = _clock.monotonic_s() + time_limit_s
        try:
            self._send(text.encode("utf-8", "replace"), until)
            parts: list[dict[str, Any]] = []
            while True:
                reply: dict[str, Any] = msgspec.json.decode(self._line(until))
                if reply["status"] in {"start", "part"}:
                    if reply["status"] == "start":
                        parts.clear()
                    else:
                        parts.append(reply)
                    until = _clock.monotonic_s() + time_limit_s
                    continue
                if reply["status"] != "need_graph":
                    return reply | {"parts": parts} if parts else reply
                if facts is None:  # the request is not one that may ask for them
                    raise EngineEnded("crash")  # noqa: TRY301 - as everything that ends the engine
                begun = _clock.monotonic_s()
                terms = [*facts()]
                until += _clock.monotonic_s() - begun
                self._send("\n".join([f"facts({len(terms)}).", *terms, ""]).encode("utf-8", "replace"), until)
        except OSError as error:
            ended = self._died()
            self.kill()
            raise ended from error
        except msgspec.DecodeError as error:
            self.kill()
            raise EngineEnded("crash") from error
        except BaseException:  # an engine that waits for the rest of a request cannot be used
            self.kill()
            raise

    def interrupt(self) -> None:
        """End the engine from another thread; the call that waits for it raises ``EngineEnded``."""
        self._child.send_signal(signal.SIGKILL)

    def kill(self) -> None:
        """End the engine at once. It may be called twice."""
        self.is_killed = True
        for process in reversed(self._processes):  # the watchdog first: it kills by a number
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()
        self._folder.cleanup()

    def _send(self, data: bytes, until: float) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(self._to_engine, left) :]
            except BlockingIOError:
                self._ready(self._writable, until)

    def _line(self, until: float) -> bytes:
        seen = 0
        while (end := self._received.find(b"\n", seen)) < 0:
            seen = len(self._received)
            if self._ready(self._readable, until):
                part = os.read(self._from_engine, _READ_BYTES)
                if not part:
                    raise self._died()
                if len(self._received) > _MAX_REPLY_BYTES:
                    raise EngineEnded("memory")
                self._received += part
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        return line

    def _died(self) -> EngineEnded:
        """Return the error for an engine that has ended its input or output."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(_EXIT_LIMIT_S)
        status = self._child.returncode
        return EngineEnded(_REASONS.get(status, "crash"), status)

    def _ready(self, poll: select.poll, until: float) -> bool:
        """Wait a moment; tell whether the stream is ready."""
        left = until - _clock.monotonic_s()
        if left <= 0:
            raise EngineEnded("timeout")
        if poll.poll(min(left, _TICK_S) * 1000):
            return True
        interrupting.check()
        if _resident_bytes(self._child.pid) > limits.MAX_ENGINE_BYTES:
            raise EngineEnded("memory")
        return False


def _poll(stream: int, event: int) -> select.poll:
    poll = select.poll()
    poll.register(stream, event)
    return poll


def _number(stream: Any) -> int:
    """Return the descriptor of a pipe."""
    number: int = stream.fileno()
    return number


def _limit_address_space(pid: int) -> None:
    """Limit what the process can address, where the system can set that for another process (Linux)."""
    prlimit = getattr(resource, "prlimit", None)
    if prlimit is not None:
        with contextlib.suppress(ProcessLookupError):
            prlimit(pid, resource.RLIMIT_AS, (limits.MAX_ENGINE_BYTES, limits.MAX_ENGINE_BYTES))
            prlimit(pid, resource.RLIMIT_CORE, (0, 0))


def _resident_bytes(pid: int) -> int:
    """Return the resident size of a process; 0 where the system has no ``/proc``, or the process is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * _PAGE_BYTES
    except (OSError, IndexError):
        return 0
