"""The output of the program: text for people, JSON for programs. Stored text is data and never acts on a terminal.

Invariant: every byte of an answer is written, or the command ends with a status that says so.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

from kbcli.terminal import colours
from kbcli.terminal.colours import Style, When
from kbcore.errors.remedies import for_shell
from kbcore.text.escaping import json_text

if TYPE_CHECKING:
    from kbcli.terminal.progress_bar import Bar

_FLUSH_CHARS: Final = 64 * 1024


class OutputClosed(Exception):
    """The reader of standard output went away; nothing is wrong."""


class OutputFailed(Exception):
    """Standard output takes no more, for the reason in the message."""


class Output:
    """The output streams of a command. ``say`` is for people, ``document`` and ``data`` are what was asked for."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._pending: list[str] = []
        self._pending_chars = 0
        self.is_json = False
        self.is_quiet = False
        self.color: When = colours.when_coloured(env)
        self.is_paged = False
        """Show a long answer in a pager, if standard output is a terminal."""
        self.is_aligned: bool | None = None
        """Lists are aligned for a reader; None: they are where a person reads them."""
        self._after_pager: list[str] = []
        self.around: dict[str, Any] = {}
        """Members of every document of the answer."""
        self._bar: Bar | None = None

    @property
    def is_terminal(self) -> bool:
        """Return whether a person reads standard output."""
        return _is_terminal(sys.stdout)

    @property
    def is_interactive(self) -> bool:
        """Return whether a person can be asked."""
        return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)

    @property
    def width(self) -> int | None:
        """Return the columns of the terminal, None when lines may be as long as they are."""
        return shutil.get_terminal_size().columns if self.is_terminal else None

    @property
    def is_coloured(self) -> bool:
        """Return whether the answer has colours."""
        return self._has_colours(on_stderr=False)

    def _has_colours(self, *, on_stderr: bool) -> bool:
        return self.color == "always" or (self.color == "auto" and _is_terminal(_stream(on_stderr=on_stderr)))

    def styled(self, text: str, style: Style, *, on_stderr: bool = False) -> str:
        """Return text in a colour, where colour is wanted."""
        return colours.coloured(text, style) if self._has_colours(on_stderr=on_stderr) else text

    def say(self, text: str) -> None:
        """Write a line for people: what happened. Neither ``--json`` nor ``--quiet`` wants it."""
        self.say_as_it_is(self.flowed(text))

    def say_as_it_is(self, text: str) -> None:
        """Write lines for people that no narrow terminal changes: an answer that is shown, or text to be copied."""
        if not (self.is_json or self.is_quiet):
            self.data(text + "\n")

    def say_difference(self, lines: Iterable[str]) -> None:
        """Write the lines of a difference, those that come in green and those that go in red."""
        from kbcore.text.escaping import escape_controls

        for line in lines:
            style: Style | None = "green" if line.startswith("+") else "red" if line.startswith("-") else None
            text = escape_controls(line)
            self.say_as_it_is(self.styled(text, style) if style else text)

    @property
    def aligns(self) -> bool:
        """Return whether lists are aligned for a reader; all others get them separated by tabs."""
        return self.is_terminal if self.is_aligned is None else self.is_aligned

    def table(self, head: Sequence[str], rows: Iterable[Sequence[str]], *, indent: str = "") -> list[str]:
        """Return the lines of a table that fits the terminal, indented; a pipe gets it whole."""
        from kbcli.terminal.tables import aligned

        width = None if self.width is None else self.width - len(indent)
        return [indent + line for line in aligned(head, rows, width, self.styled)]

    def list_lines(self, head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
        """Return the lines of a list: a table for a reader, cells separated by tabs for other programs."""
        from kbcli.terminal.tables import tab_separated

        return self.table(head, rows) if self.aligns else list(tab_separated(head, rows))

    def wrapped(self, text: str, indent: str = "") -> list[str]:
        """Return text in lines that fit the terminal, indented; a pipe gets one line."""
        from kbcli.terminal.cells import wrapped

        return [indent + line for line in wrapped(text, None if self.width is None else self.width - len(indent))]

    def flowed(self, text: str) -> str:
        """Return lines of text, broken between words where the terminal is narrow."""
        return _flowed(for_shell(text), self.width)

    def document(self, value: Any) -> None:
        """Write the one JSON document of the answer, with what is ``around`` it where it is an object."""
        if isinstance(value, dict):
            value = {**value, **self.around}
        self.data(json_text(value, 2 if self.is_terminal else None) + "\n")

    def document_of(
        self, head: Mapping[str, Any], lists: Mapping[str, Iterable[Any]], rest: Mapping[str, Any] | None = None
    ) -> None:
        """Write the one JSON document of an answer with long lists, item by item where no person reads it."""
        if self.is_terminal:
            self.document({**head, **{name: list(items) for name, items in lists.items()}, **(rest or {})})
            return
        head = {**head, **self.around}
        self.data(json_text(head)[:-1])
        for place, (name, items) in enumerate(lists.items()):
            self.data(f"{',' if head or place else ''}{json_text(name)}:[")
            self.stream(("," if at else "") + json_text(item) for at, item in enumerate(items))
            self.data("]")
        self.data(f",{json_text(rest)[1:]}\n" if rest else "}\n")

    def stream(self, texts: Iterable[str]) -> None:
        """Write what was asked for, piece by piece."""
        for text in texts:
            self.data(text)

    def data(self, text: str) -> None:
        """Write what was asked for, as it is: the caller has made it visible."""
        self._pending.append(text)
        self._pending_chars += len(text)
        if self._pending_chars > _FLUSH_CHARS:
            self._keep_order()

    def note(self, text: str) -> None:
        """Write a note on standard error that is no part of the answer; after it, where a pager shows it."""
        if not self.is_quiet:
            self.note_always(text)

    def part(self, text: str) -> None:
        """Write a part of a line on standard error, which is no part of the answer: it comes bit by bit."""
        if not self.is_quiet:
            self.flush()
            self._draw(text)

    def note_always(self, text: str) -> None:
        """Do as ``note``, also with ``--quiet``: without it the answer would mislead."""
        if self._waits_for_pager:
            self._after_pager.append(text)
            return
        self.flush()
        self._to_stderr(text)

    def warn(self, text: str) -> None:
        """Write a warning on standard error, also with ``--quiet``."""
        self._keep_order()
        self._to_stderr(f"{self.styled('warning:', 'yellow', on_stderr=True)} {text}")

    def fault(self, severity: Literal["error", "warning"], text: str) -> None:
        """Write what is wrong in a file on standard error, also with ``--quiet``; the command continues."""
        self._keep_order()
        colour: Style = "red" if severity == "error" else "yellow"
        self._to_stderr(f"{self.styled(f'{severity}:', colour, on_stderr=True)} {text}")

    def error(self, message: str) -> None:
        """Write an error on standard error."""
        self._to_stderr(f"{self.styled('error:', 'red', on_stderr=True)} {message}")

    def error_detail(self, text: str) -> None:
        """Write a further line of an error: where, or what to do."""
        self._to_stderr(text)

    def _keep_order(self) -> None:
        """Write what is pending before something else is written, unless it waits for the pager."""
        if not self._waits_for_pager:
            self.flush()

    @property
    def _waits_for_pager(self) -> bool:
        return self.is_paged and self.is_terminal and not self.is_json

    def flush(self) -> None:
        """Write all that is pending.

        Raises: ``OutputClosed``, ``OutputFailed``.
        """
        text = "".join(self._pending)
        self._pending.clear()
        self._pending_chars = 0
        if self._bar:
            self._bar.clear()
        if text and not (self._waits_for_pager and self._is_shown_in_pager(text)):
            write_all(sys.stdout, text)
        for note in self._after_pager:
            self._to_stderr(note)
        self._after_pager.clear()

    def _is_shown_in_pager(self, text: str) -> bool:
        from kbcli.terminal import pager

        return pager.show(text, self._env)

    def forget(self) -> None:
        """Drop what is pending: an error takes its place."""
        self._pending.clear()
        self._after_pager.clear()

    @contextlib.contextmanager
    def progress(self) -> Iterator[None]:
        """Show at a terminal how far the work inside the block has come, wherever it takes over a second."""
        if not _is_terminal(sys.stderr) or self._env.get("TERM") == "dumb":
            yield
            return
        from kbcli.terminal.progress_bar import Bar
        from kbcore import progress
        from kbcore.clock import SystemClock

        def is_wanted() -> bool:
            return not (self.is_quiet or self.is_json)

        self._bar = Bar(self._draw, SystemClock(), lambda: shutil.get_terminal_size().columns, is_wanted)
        try:
            with progress.listener(self._bar.note):
                yield
        finally:
            self._bar.close()

    def waiting(self, what: str) -> contextlib.AbstractContextManager[None]:
        """Say on a terminal what takes so long, as long as the work inside the block counts nothing."""
        return self._bar.named(what) if self._bar else contextlib.nullcontext()

    @staticmethod
    def _draw(text: str) -> None:
        # It cannot be reported that standard error is closed.
        with contextlib.suppress(OutputClosed, OutputFailed):
            write_all(sys.stderr, text)

    def _to_stderr(self, text: str) -> None:
        if self._bar:
            self._bar.clear()
        width = shutil.get_terminal_size().columns if _is_terminal(sys.stderr) else None
        self._draw(_flowed(for_shell(text), width) + "\n")


def _flowed(text: str, width: int | None) -> str:
    if width is None or len(text) * 2 <= width:
        return text
    from kbcli.terminal.flowing import flowed

    return "\n".join(part for line in text.split("\n") for part in flowed(line, width))


def write_all(stream: TextIO | None, text: str) -> None:
    """Write every character to a stream, also to a pipe that takes only a part at a time.

    Raises: ``OutputClosed`` when the reader has closed it, ``OutputFailed`` for any other refusal.
    """
    if stream is None:
        raise OutputFailed("it is closed")
    data = text.encode(_encoding(stream), "backslashreplace")
    try:
        stream.flush()
        descriptor = _descriptor(stream)
        if descriptor is None:
            stream.write(text)
            stream.flush()
            return
        left = memoryview(data)
        while left:
            try:
                left = left[os.write(descriptor, left[:_FLUSH_CHARS]) :]
            except BlockingIOError:
                select.select([], [descriptor], [])
    except BrokenPipeError as error:
        raise OutputClosed from error
    except OSError as error:
        if error.errno in {errno.EPIPE, errno.ESHUTDOWN}:
            raise OutputClosed from error
        raise OutputFailed(error.strerror or str(error)) from error


def _stream(*, on_stderr: bool) -> TextIO | None:
    return sys.stderr if on_stderr else sys.stdout


def _encoding(stream: TextIO) -> str:
    """Return UTF-8, as files and programs expect it whatever the locale, unless a terminal says otherwise."""
    return (stream.encoding or "utf-8") if _is_terminal(stream) else "utf-8"


def _descriptor(stream: TextIO) -> int | None:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):  # a stream in memory, as tests have
        return None


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # it is closed
        return False
