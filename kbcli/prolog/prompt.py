"""The prompt of ``kb prolog``: reads goals until their full stop, and shows one solution after the other."""

from __future__ import annotations

import os
import sys
import termios
import tty
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kbcli.invocation import prompt
from kbcli.prolog import statements
from kbcli.prolog.inputs import HALT, Inputs
from kbcore.errors import KBError

if TYPE_CHECKING:
    from kbcli.prolog.prolog_call import Asking
    from kbcli.prolog.running import InputRunner

_MORE: Final = frozenset("; nr\t")
_KEYS: Final = """
  ; n r Space Tab   the next solution
  h ?               this text
  any other key     stop
"""


def converse(asking: Asking, runner: InputRunner) -> int:
    """Read and run inputs until the user leaves; return the exit status."""
    asking.source()  # where there is no KB, no prompt is of use
    goals = _Goals(asking, runner)
    greeting = "Prolog on your branch. `:help` says how it works; Ctrl-D leaves."
    return prompt.converse(asking.session, goals, greeting)


class _Goals:
    """The input of the prompt, and its execution."""

    first = "?- "
    next = "|    "
    breaks = " \t\n(){}[],|;'\"`<>=\\+-*/"
    history = "prolog-history"
    leaving = HALT

    def __init__(self, asking: Asking, runner: InputRunner) -> None:
        self._asking = asking
        self._runner = runner
        self._inputs = Inputs(asking)
        self._known: list[str] = []

    @property
    def typed(self) -> list[str]:
        """Return the lines of an input that is not whole yet."""
        return self._inputs.typed

    def take(self, line: str) -> None:
        """Take a line, and run what it completes."""
        session = self._asking.session
        try:
            for text in self._inputs.feed(line):
                self._runner.run(text, self._wants)
        except KBError as error:
            session.output.flush()
            session.show_error(error)
        self._asking.show_notices()

    def candidates(self, before: str, word: str) -> Sequence[str]:
        """Return what a word may become: a statement at the beginning of an input, else a predicate."""
        if not before.strip() and word.startswith(":"):
            return [name for name in statements.NAMES if name.startswith(word)]
        if not word:
            return []
        try:
            names = self._asking.prolog.known_names(self._asking.source())
        except KBError:
            return []
        return sorted({name for name in (one.rpartition("/")[0] for one in names) if name.startswith(word)})

    def interrupted(self) -> None:
        """End the engine: it may be in the middle of a goal. The next request starts another one."""
        self._asking.close()

    def _wants(self) -> bool:
        output = self._asking.session.output
        output.data(" ")
        while (key := _read_key(output.flush)) in {"h", "?"}:
            output.data(_KEYS)
        return key in _MORE


def _read_key(show: Callable[[], None]) -> str:
    """Wait for a key at standard input, a terminal, and return its first character, "" at the end. It is not shown.

    ``show`` writes what asks for the key, after the terminal has stopped showing keys.
    """
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor, termios.TCSADRAIN)
        show()
        return os.read(descriptor, 1).decode("utf-8", "replace")
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
