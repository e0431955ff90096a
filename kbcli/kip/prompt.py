"""The prompt of ``kb kip``: reads commands line by line until they are complete, runs them, and repeats.

Nothing that is typed ends the prompt but the wish to leave it: a refusal is shown, what is interrupted is dropped.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Self

from kbcli.kip import answers, history
from kbcli.kip.answers import write_answer
from kbcli.kip.asking import carried_out, names
from kbcli.kip.completion import BREAKS, KipNames, candidates
from kbcli.kip.requests import is_whole, parameters_of, request_of
from kbcore.errors import KBError, KipRefused
from kbcore.interrupting import Stopped
from kbcore.kip.errors import envelope

if TYPE_CHECKING:
    from kbcli.invocation.context import Session

FIRST: Final = "kip> "
NEXT: Final = " ... "
_PARAMETER: Final = re.compile(r":(\w+)\s*=\s*(.*)")
LEAVING: Final = frozenset({"exit", "quit", "\\q", ".exit", ".quit"})
HELP: Final = """\
A command on one line runs as soon as it is complete. One of several lines ends with an empty line, or with a `;`.
Tab completes keywords, types, predicates and variables; the arrow keys recall earlier input.

  :name = Alice                            from now on :name means Alice
  DESCRIBE PRIMER                          who you are, and what there is
  DESCRIBE CONCEPT TYPES                   the types; DESCRIBE CONCEPT TYPE "Person" shows one
  SEARCH CONCEPT "login"                   what mentions it
  FIND(?r.name, ?r.attributes.title) WHERE { ?r {type: "Requirement"} } LIMIT 5

Ctrl-C drops what is typed, Ctrl-D or `exit` leaves. docs/kip.md has the rest."""


def converse(session: Session, parameters: Mapping[str, Any], *, dry_run: bool) -> int:
    """Read and carry out commands until the user leaves; return the exit status."""
    prompt = _Prompt(session, parameters, dry_run=dry_run)
    _ = session.workspace  # where there is no KB, no prompt is of use
    session.signals.go_on_after_sigint()
    with _Lines(session, prompt) as lines:
        session.output.note("KIP on your branch. `help` says how it works; Ctrl-D leaves.")
        prompt.run(lines)
    return 0


class _Prompt:
    """The input of the prompt, and its execution."""

    def __init__(self, session: Session, parameters: Mapping[str, Any], *, dry_run: bool) -> None:
        self._session = session
        self._parameters = dict(parameters)
        self._dry_run = dry_run
        self.typed: list[str] = []
        """The lines of a command that is not whole yet."""

    def run(self, lines: _Lines) -> None:
        """Read lines until there are no more."""
        while True:
            try:
                line = lines.read(NEXT if self.typed else FIRST)
            except KeyboardInterrupt:
                self.typed.clear()
                self._write("\n")
                continue
            except EOFError:
                self._write("\n")
                return
            if not self.typed and line.strip() in LEAVING:
                return
            self._session.signals.renew()
            self._session.begin_request(writes=False)
            try:
                self._take(line)
            except (KeyboardInterrupt, Stopped):
                self.typed.clear()
                self._session.output.forget()
                became = (
                    " A write that was in progress was applied completely or not at all."
                    if self._session.writes
                    else ""
                )
                self._session.output.note(f"Interrupted.{became}")
            self._session.output.flush()
            with contextlib.suppress(KeyboardInterrupt, Stopped):  # the next command publishes it
                self._session.publish_views()
            # An interruption of the next input interrupts no write.
            self._session.signals.renew()

    def _take(self, line: str) -> None:
        if not self.typed and line.strip() in {"help", "\\h", ".help", "?"}:
            self._session.output.data(f"{HELP}\n")
            return
        given = _PARAMETER.fullmatch(line.strip())
        if not self.typed and given:
            self._parameters |= parameters_of([f"{given[1]}={given[2]}"])
            return
        has_end, is_end = line.rstrip().endswith(";"), not line.strip()
        self.typed.append(line.rstrip()[:-1] if has_end else line)
        text = "\n".join(self.typed)
        if not text.strip():
            self.typed.clear()
            return
        try:
            is_done = has_end or (is_whole(text) and (is_end or len(self.typed) == 1))
            if not is_done:
                return
            self.typed.clear()
            request = request_of(text, self._parameters, dry_run=self._dry_run)
        except KipRefused as error:
            self.typed.clear()
            answers.write_error(self._session.output, envelope(error)["error"])
            return
        try:
            answer, branch = carried_out(self._session, request)
        except KBError as error:
            self._session.show_error(error)
            return
        write_answer(self._session, request, answer, branch)

    def _write(self, text: str) -> None:
        self._session.output.data(text)
        self._session.output.flush()


class _Lines:
    """The lines that a person types, with history and completion where this Python has them."""

    def __init__(self, session: Session, prompt: _Prompt) -> None:
        self._session = session
        self._prompt = prompt
        self._readline: Any = None
        self._found: list[str] = []

    def __enter__(self) -> Self:
        try:
            import readline
        except ImportError:  # not every Python has it; the prompt works all the same
            return self
        self._readline = readline
        history.load(readline, history.place(self._session.env))
        readline.set_completer(self._complete)
        readline.set_completer_delims(BREAKS)
        readline.parse_and_bind("tab: complete")
        return self

    def __exit__(self, *_: object) -> None:
        if self._readline:
            self._readline.set_completer(None)
            history.save(self._readline, history.place(self._session.env))

    def read(self, prompt: str) -> str:
        """Return the next line. Raises: ``EOFError``, ``KeyboardInterrupt``."""
        self._session.output.flush()
        if self._readline is None or not self._session.output.is_terminal:
            sys.stderr.write(prompt)
            sys.stderr.flush()
            line = sys.stdin.readline()
            if not line:
                raise EOFError
            return line.rstrip("\n")
        return input(prompt)

    def _complete(self, word: str, state: int) -> str | None:
        if not state:
            line = self._readline.get_line_buffer()[: self._readline.get_begidx()]
            before = "\n".join([*self._prompt.typed, line])
            types, predicates = names(self._session)
            self._found = candidates(before, word, KipNames(types, predicates))
        return self._found[state] if state < len(self._found) else None
