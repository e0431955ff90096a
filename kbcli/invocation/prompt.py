"""A prompt: reads lines, gives each to a conversation, and repeats until the user leaves.

Nothing that is typed ends the prompt but the wish to leave it: what is interrupted is dropped.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from kbcore.process.interrupting import Stopped
from kbcore.storage.scratch import user_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kbcli.invocation.context import Session

LEAVING: Final = frozenset({"exit", "quit", "\\q", ".exit", ".quit"})
_MAX_LINES: Final = 1000
"""Lines of the history that are kept, in the user's state folder; never in ``.kb``."""
_FOLDER: Final = "kb"
_PRIVATE: Final = 0o700


class Conversation(Protocol):
    """The other side of a prompt."""

    first: str
    """The prompt of a new input."""
    next: str
    """The prompt of a further line."""
    breaks: str
    """The characters at which words end, for completion."""
    history: str
    """The name of the file of the history."""
    leaving: frozenset[str]
    """The lines that end the prompt."""

    @property
    def typed(self) -> list[str]:
        """Return the lines of an input that is not whole yet."""

    def take(self, line: str) -> None:
        """Take a line, and carry out the input that it completes."""

    def candidates(self, before: str, word: str) -> Sequence[str]:
        """Return what a word may become; ``before`` is all that was typed in front of it."""

    def interrupted(self) -> None:
        """Drop what was carried out."""


def converse(session: Session, conversation: Conversation, greeting: str) -> int:
    """Read lines until the user leaves; return the exit status."""
    session.signals.go_on_after_sigint()
    with _Lines(session, conversation) as lines:
        session.output.note(greeting)
        while True:
            try:
                line = _line(session, conversation, lines)
                if line is None:
                    return 0
                _take(session, conversation, line)
            except (KeyboardInterrupt, Stopped):  # a further one while the first was shown
                _drop(session, conversation)


def _take(session: Session, conversation: Conversation, line: str) -> None:
    session.signals.renew()
    session.begin_request(writes=False)
    try:
        conversation.take(line)
    except (KeyboardInterrupt, Stopped):
        _drop(session, conversation)
        became = " A write that was in progress was applied completely or not at all." if session.writes else ""
        session.output.note(f"Interrupted.{became}")
    session.output.flush()
    with contextlib.suppress(KeyboardInterrupt, Stopped):  # the next command publishes it
        session.publish_views()
    # An interruption of the next input interrupts no write.
    session.signals.renew()


def _drop(session: Session, conversation: Conversation) -> None:
    conversation.typed.clear()
    conversation.interrupted()
    session.output.forget()


def _line(session: Session, conversation: Conversation, lines: _Lines) -> str | None:
    """Return the next line, None where the user leaves."""
    while True:
        try:
            line = lines.read(conversation.next if conversation.typed else conversation.first)
        except KeyboardInterrupt:
            conversation.typed.clear()
            session.output.data("\n")
            continue
        except EOFError:
            session.output.data("\n")
            return None
        return None if not conversation.typed and line.strip() in conversation.leaving else line


class _Lines:
    """The lines that a person types, with history and completion where this Python has them."""

    def __init__(self, session: Session, conversation: Conversation) -> None:
        self._session = session
        self._conversation = conversation
        self._history = _place(session.env, conversation.history)
        self._readline: Any = None
        self._found: Sequence[str] = ()

    def __enter__(self) -> Self:
        try:
            import readline
        except ImportError:  # not every Python has it; the prompt works all the same
            return self
        self._readline = readline
        _load(readline, self._history)
        readline.set_completer(self._complete)
        readline.set_completer_delims(self._conversation.breaks)
        readline.parse_and_bind("tab: complete")
        return self

    def __exit__(self, *_: object) -> None:
        if self._readline:
            self._readline.set_completer(None)
            _save(self._readline, self._history)

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
            before = "\n".join([*self._conversation.typed, line])
            self._found = self._conversation.candidates(before, word)
        return self._found[state] if state < len(self._found) else None


def _place(env: Mapping[str, str], name: str) -> Path | None:
    """Return where a history is kept: below XDG_STATE_HOME, else ``~/.local/state``; None where there is no home."""
    state = user_folder(env, "XDG_STATE_HOME", ".local/state")
    return state / _FOLDER / name if state else None


def _load(readline: Any, path: Path | None) -> None:
    """Let the prompt know what was typed before; where that cannot be read, it works without it."""
    readline.set_history_length(_MAX_LINES)
    if path:
        with contextlib.suppress(OSError):
            readline.read_history_file(path)


def _save(readline: Any, path: Path | None) -> None:
    """Keep the last lines that were typed, readable only for this user."""
    if path:
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE)
            readline.write_history_file(path)
            path.chmod(0o600)
