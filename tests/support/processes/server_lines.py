"""The lines that a server process writes, all of them kept, and the bytes that are written to it."""

from __future__ import annotations

import queue
import subprocess
import threading

from tests.support.processes.forked import Forked


class ServerLines:
    """A server process: its lines in their order, and what it says on its standard error."""

    def __init__(self, process: subprocess.Popen[bytes] | Forked) -> None:
        self.process = process
        self.lines: list[bytes] = []
        self.errors = bytearray()
        self.arrived: queue.Queue[bytes] = queue.Queue()
        """The lines that nobody has taken yet; an empty one is the end."""
        self.readers = [threading.Thread(target=reader, daemon=True) for reader in (self._read, self._read_errors)]

    def write(self, data: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line)
            self.arrived.put(line)
        self.arrived.put(b"")

    def _read_errors(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.errors += line
