"""A prompt of ``kb`` at a pseudo-terminal, as a person has it."""

from __future__ import annotations

import os
import pty
import select
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.support.processes.cli import environment

_PRESSES: Final = 20
"""The most times that Ctrl-C is pressed: Python may not be listening yet."""


class Terminal:
    """A command that shows a prompt; ``shown`` is what the terminal has shown since the last text that was awaited."""

    def __init__(self, cwd: Path, state: Path, prompt: str, *words: str, env: Mapping[str, str] | None = None) -> None:
        """Start ``kb`` with these words, and wait for its prompt."""
        own = {"TERM": "dumb", "COLUMNS": "80", "XDG_STATE_HOME": str(state), "INPUTRC": "/dev/null"}
        started = environment(own | dict(env or {}))
        self.child, self.screen = pty.fork()
        if self.child == 0:
            os.chdir(cwd)
            os.execve(sys.executable, [sys.executable, "-m", "kbcli.app", *words], started)
        self.shown = ""
        self._prompt = prompt
        self.until(prompt)

    def until(self, text: str, *, wait_s: float = 20.0) -> str:
        """Read until the terminal shows a text, and return what it showed."""
        assert self.shows(text, wait_s), f"no {text!r} in {self.shown!r}"
        before, _, self.shown = self.shown.partition(text)
        return before.replace("\r\n", "\n")

    def shows(self, text: str, wait_s: float) -> bool:
        """Read until the terminal shows a text, or the time is over; tell whether it did."""
        end = time.monotonic() + wait_s
        while text not in self.shown and (left := end - time.monotonic()) > 0:
            if select.select([self.screen], [], [], left)[0]:
                self.shown += os.read(self.screen, 4096).decode()
        return text in self.shown

    def interrupt(self, until: str = "") -> str:
        """Press Ctrl-C; once more where Python was not listening yet, as people do. Return what is shown then."""
        for _ in range(_PRESSES):
            os.write(self.screen, b"\x03")
            if self.shows(until or self._prompt, wait_s=1):
                break
        return self.until(until or self._prompt)

    def type(self, text: str, until: str = "") -> str:
        """Type a text, and return what is shown up to the prompt, or up to another text."""
        os.write(self.screen, text.encode())
        return self.until(until or self._prompt)

    def leave(self, typed: str = "\x04") -> int:
        """Type what ends the command, and return its status."""
        os.write(self.screen, typed.encode())
        _, status = os.waitpid(self.child, 0)
        os.close(self.screen)
        return os.waitstatus_to_exitcode(status)
