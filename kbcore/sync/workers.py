"""Processes that do the work of a large sync: they are started when there is much to read, and end with the sync.

Invariant: no process is left when ``stop`` returns, and none goes on for longer than one job when this process is
killed: a worker ends at the end of its input. Whatever a worker was asked and did not answer is given back undone.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeVar

import msgspec

from kbcore import limits
from kbcore.process import interrupting, system_limits

K = TypeVar("K")

_PROGRAM: Final = str(Path(__file__).with_name("worker_program.py"))
_MOST: Final = 4
"""Processes: of more the one that collects their results is too slow."""
_AHEAD: Final = 2
"""Jobs that wait for each process while it works: it has none to wait for, and they take little memory."""
_TICK_S: Final = 0.05
"""The time between two looks at whether the work was stopped."""
_LENGTH_BYTES: Final = 8
_PIPE_BYTES: Final = 1024 * 1024


def usual_count() -> int:
    """Return how many workers this machine has room for; 0 where this process alone is as quick, or has little memory.

    Where the address space is limited, a thread or a process more may be too many.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, _MOST) if cores > 1 and system_limits.address_space() is None else 0


class _Job(NamedTuple):
    key: Any
    message: bytes


class Workers:
    """Up to ``count`` processes, started by the first job. For one thread.

    Without any, each job is given back undone: whoever asked does the same work here, and holds as little at once.
    """

    def __init__(self, count: int | None = None, least_files: int = limits.MIN_PARALLEL_FILES) -> None:
        """``count`` is the number of processes, that of the machine if it is not given.

        ``least_files`` is the number of files from which on they are of use.
        """
        self.count = usual_count() if count is None else count
        self.least_files = least_files
        self.ended: list[int] = []
        """The statuses of the processes that ended before they were to: a negative one is of a signal."""
        self._prepared: list[bytes] = []
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[tuple[Any, bytes | None]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._threads: list[threading.Thread] = []
        self._working = 0
        self._is_stopping = False

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the processes."""
        self.stop()

    def are_for(self, files: int) -> bool:
        """Tell whether so many files are to be read and planned in jobs, also where there is no process for them."""
        return files >= self.least_files

    @property
    def pids(self) -> list[int]:
        """Return the numbers of the processes that were started."""
        return [process.pid for process in self._processes]

    @property
    def warnings(self) -> list[str]:
        """Return a sentence for the user where processes have ended before they were to."""
        if not self.ended:
            return []
        statuses = ", ".join(map(str, sorted(set(self.ended))))
        ended = "A process that read files" if len(self.ended) == 1 else f"{len(self.ended)} processes that read files"
        return [f"{ended} ended before the sync did (status {statuses}); what was left was read without it."]

    def prepare(self, message: bytes) -> None:
        """Send each process this message before its next job; its answer is not given to anybody."""
        self._prepared.append(message)

    def results(self, jobs: Iterable[tuple[K, bytes]]) -> Iterator[tuple[K, bytes | None]]:
        """Yield the answer to each job with its key, as they come; None for one that no process has answered.

        Jobs are taken as processes are free for them. Raises: as ``interrupting.check``; what ``jobs`` raises.
        """
        self._start()
        waiting = 0
        for key, message in jobs:
            self._jobs.put(_Job(key, message))
            waiting += 1
            while waiting > (_AHEAD + 1) * max(1, len(self._processes)):
                yield self._next()
                waiting -= 1
        for _ in range(waiting):
            yield self._next()

    def stop(self) -> None:
        """End all processes at once. A later job starts new ones."""
        self._is_stopping = True
        for process in self._processes:
            process.kill()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()
        for process in self._processes:
            process.wait()
        self._processes, self._threads = [], []
        self._jobs, self._done = queue.SimpleQueue(), queue.SimpleQueue()
        self._is_stopping = False

    def _next(self) -> tuple[Any, bytes | None]:
        interrupting.check()
        if not self._threads and (job := self._jobs.get()):
            return job.key, None
        while True:
            try:
                return self._done.get(timeout=_TICK_S)
            except queue.Empty:
                interrupting.check()

    def _start(self) -> None:
        """Start the processes, as many as the system has room for."""
        if self._threads:
            return
        for _ in range(self.count):
            try:
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", _PROGRAM],
                    env=system_limits.child_environment(),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    # An interrupt at the terminal is for this process, which ends the worker itself.
                    start_new_session=True,
                    pipesize=_PIPE_BYTES,
                )
            except OSError:
                break
            self._processes.append(process)
        self._working = len(self._processes)
        for process in self._processes:
            thread = threading.Thread(target=self._serve, args=(process,), name="kb-worker", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        """Give one process its jobs until there are no more, or it ends."""
        sent, is_alive = 0, _send(process, json.dumps(_import_path()).encode())
        while (job := self._jobs.get()) is not None:
            while is_alive and sent < len(self._prepared):
                is_alive = _send(process, self._prepared[sent]) and _answer(process) is not None
                sent += 1
            answer = _answer(process) if is_alive and _send(process, job.message) else None
            self._done.put((job.key, answer))
            if answer is None:
                break
        is_last = self._note_end(process)
        # Nobody else is there to give the jobs back that are left.
        while is_last and job is not None:
            job = self._jobs.get()
            if job is not None:
                self._done.put((job.key, None))

    def _note_end(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for the end of a process; tell whether it was the last one."""
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what it did not take any more is of no use to anybody
                    stream.close()
        status = process.wait()
        with self._lock:
            if not self._is_stopping:
                self.ended.append(status)
            self._working -= 1
            return not self._working


def _import_path() -> list[str]:
    """Return where a worker finds KB and the packages that it needs, by whatever means this process found them."""
    places = [Path(__file__).parents[2], *([Path(msgspec.__file__).parents[1]] if msgspec.__file__ else [])]
    return list(dict.fromkeys([*map(str, places), *(one for one in sys.path if one)]))


def _send(process: subprocess.Popen[bytes], message: bytes) -> bool:
    """Send a message; tell whether the process takes it."""
    try:
        process.stdin.write(len(message).to_bytes(_LENGTH_BYTES, "big"))  # type: ignore[union-attr] # it is a pipe
        process.stdin.write(message)  # type: ignore[union-attr]
        process.stdin.flush()  # type: ignore[union-attr]
    except OSError:
        return False
    return True


def _answer(process: subprocess.Popen[bytes]) -> bytes | None:
    """Return the next answer of a process, None where it gives none."""
    head = process.stdout.read(_LENGTH_BYTES)  # type: ignore[union-attr] # it is a pipe
    length = int.from_bytes(head, "big") if len(head) == _LENGTH_BYTES else -1
    body = process.stdout.read(length) if length >= 0 else b""  # type: ignore[union-attr]
    return body if len(body) == length else None
