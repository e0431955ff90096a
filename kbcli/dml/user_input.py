"""Lines of a person or another program for a run that asks: from the terminal, or from standard input."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from kbcore.errors import InvalidQuery
from kbcore.limits import MAX_TEXT_BYTES
from kbcore.process.daemon_calls import in_daemon
from kbcore.text.escaping import escape_lines

if TYPE_CHECKING:
    from kbcli.terminal.output import Output

_READ_BYTES: Final = 65_536


class UserInput:
    """Answers the questions of a run, each with one line of standard input."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._read = bytearray()
        """Text that was read and is not given out yet."""

    async def ask(self, prompt: str) -> str:
        """Return the next line; where a person can be asked, the prompt is shown before.

        Raises: ``InvalidQuery`` where there is no further line, or it is too long.
        """
        if self._output.is_interactive and not self._output.is_json:
            self._output.note_always(escape_lines(prompt))
        # A thread that waits for a line cannot be interrupted.
        given = await in_daemon(self._next_line, "kb-dml input")
        if not given:
            raise InvalidQuery(
                "The program asks for input, and standard input has no further line.",
                hint="Write a line for each question, or run it at a terminal.",
            )
        if len(given) > MAX_TEXT_BYTES:
            raise InvalidQuery(f"A line of standard input has more than {MAX_TEXT_BYTES:,} bytes.")
        return given.decode("utf-8", "replace").rstrip("\r\n")

    def _next_line(self) -> bytes:
        """Return the next line with its end, and no more than a line may have; nothing at the end of the input."""
        while b"\n" not in self._read and len(self._read) <= MAX_TEXT_BYTES:
            more = _more_bytes()
            if not more:
                break
            self._read += more
        end = self._read.find(b"\n") + 1 or len(self._read)
        line, self._read = bytes(self._read[:end]), self._read[end:]
        return line


def _more_bytes() -> bytes:
    """Return what standard input has, past Python's buffer: a process cannot end while a thread waits in that."""
    if sys.stdin is None:
        return b""
    try:
        return os.read(sys.stdin.fileno(), _READ_BYTES)
    except (OSError, ValueError):  # a stream in memory, as tests have; or it is closed
        return b"" if sys.stdin.closed else sys.stdin.buffer.read(_READ_BYTES)
