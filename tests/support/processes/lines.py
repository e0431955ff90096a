"""Messages between two processes over one socket: JSON objects, one a line. The end of the other is the end of it."""

from __future__ import annotations

import json
import select
import socket
import time
from typing import Any

Message = dict[str, Any]


class Line:
    """One end of the socket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.is_ended = False
        self._read = b""

    def send(self, **message: Any) -> None:
        """Send a message; reading reports that the other process is gone, and not this."""
        try:
            self.connection.sendall(json.dumps(message).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            return

    def receive(self, wait_s: float | None = None) -> Message | None:
        """Return what comes next, None at the end.

        Raises: ``TimeoutError`` when nothing came in that time.
        """
        end_s = time.monotonic() + wait_s if wait_s is not None else None
        while b"\n" not in self._read:
            if self.is_ended:
                return None
            left_s = None if end_s is None else max(0.0, end_s - time.monotonic())
            if not select.select([self.connection], [], [], left_s)[0]:
                raise TimeoutError(f"nothing came in {wait_s:g} s")
            self._take()
        line, _, self._read = self._read.partition(b"\n")
        message: Message = json.loads(line)
        return message

    def waiting(self) -> list[Message]:
        """Return what has come, without waiting for more."""
        while not self.is_ended and select.select([self.connection], [], [], 0)[0]:
            self._take()
        *whole, self._read = self._read.split(b"\n")
        return [json.loads(line) for line in whole]

    def is_spoken_to(self) -> bool:
        """Tell whether something has come, or the other end is gone; without waiting."""
        return b"\n" in self._read or bool(select.select([self.connection], [], [], 0)[0])

    def _take(self) -> None:
        try:
            part = self.connection.recv(1 << 16)
        except ConnectionResetError:
            part = b""
        self._read += part
        self.is_ended = not part
        if self.is_ended:
            # What a killed process had said by half is not said.
            self._read = self._read[: self._read.rfind(b"\n") + 1]
