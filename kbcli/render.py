"""What leaves the program: text for people, JSON for programs. Stored text is data and never acts on a terminal.

Invariant: every byte of an answer is written, or the command ends with a status that says so.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TextIO

from kbcore.visible import json_text

Style = Literal["bold", "dim", "red", "green", "yellow", "cyan"]

_CODES: Final[Mapping[Style, str]] = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}
_FLUSH_CHARS: Final = 64 * 1024
_WAIT_S: Final = 1.0


class OutputClosed(Exception):
    """The reader of standard output went away; nothing is wrong."""


class OutputFailed(Exception):
    """Standard output takes no more, for the reason in the message."""


def width_of(text: str) -> int:
    """Return how many columns a terminal needs for text without control characters."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text
    )


def shortened(text: str, width: int) -> str:
    """Return text in at most so many columns; what was cut off shows as an ellipsis."""
    if width_of(text) <= width:
        return text
    kept, used = [], 0
    for one in text:
        used += width_of(one)
        if used > width - 1:
            break
        kept.append(one)
    return "".join(kept) + "…"


class Output:
    """Where a command writes. ``say`` is for people, ``document`` and ``data`` are what was asked for."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self._pending: list[str] = []
        self._pending_chars = 0
        self.is_json = False
        self.is_quiet = False
        self.no_color = bool(env.get("NO_COLOR")) or env.get("TERM") == "dumb"
        self.is_paged = False
        """Show a long answer in a pager, if standard output is a terminal."""

    @property
    def is_terminal(self) -> bool:
        """Tell whether a person reads standard output."""
        return _is_terminal(sys.stdout)

    @property
    def is_interactive(self) -> bool:
        """Tell whether a person can be asked."""
        return _is_terminal(sys.stdin) and _is_terminal(sys.stderr)

    @property
    def width(self) -> int | None:
        """Return the columns of the terminal, None when lines may be as long as they are."""
        return shutil.get_terminal_size().columns if self.is_terminal else None

    def styled(self, text: str, style: Style, *, on_stderr: bool = False) -> str:
        """Return text in a colour, where colour is wanted."""
        if self.no_color or not _is_terminal(sys.stderr if on_stderr else sys.stdout):
            return text
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m"

    def say(self, text: str) -> None:
        """Write a line for people: what happened. Neither ``--json`` nor ``--quiet`` wants it."""
        if not (self.is_json or self.is_quiet):
            self.data(text + "\n")

    def document(self, value: Any) -> None:
        """Write the one JSON document of the answer."""
        self.data(json_text(value, 2 if self.is_terminal else None) + "\n")

    def data(self, text: str) -> None:
        """Write what was asked for, as it is: the caller has made it visible."""
        self._pending.append(text)
        self._pending_chars += len(text)
        if self._pending_chars > _FLUSH_CHARS:
            self._keep_order()

    def note(self, text: str) -> None:
        """Tell people something on standard error that is no part of the answer."""
        if not self.is_quiet:
            self._keep_order()
            self._to_stderr(text)

    def warn(self, text: str) -> None:
        """Write a warning on standard error, also with ``--quiet``."""
        self._keep_order()
        self._to_stderr(f"{self.styled('warning:', 'yellow', on_stderr=True)} {text}")

    def error(self, message: str) -> None:
        """Write an error on standard error."""
        self._to_stderr(f"{self.styled('error:', 'red', on_stderr=True)} {message}")

    def error_detail(self, text: str) -> None:
        """Write a further line of an error: where, or what to do."""
        self._to_stderr(text)

    def _keep_order(self) -> None:
        """Write what is pending before something else is written, unless it waits for the pager."""
        if not (self.is_paged and self.is_terminal):
            self.flush()

    def flush(self) -> None:
        """Write all that is pending.

        Raises: ``OutputClosed``, ``OutputFailed``.
        """
        text = "".join(self._pending)
        self._pending.clear()
        self._pending_chars = 0
        if not text:
            return
        if self.is_paged and self.is_terminal and not self.is_json:
            from kbcli import pager

            if pager.show(text, self._env):
                return
        write_all(sys.stdout, text)

    def forget(self) -> None:
        """Drop what is pending: an error takes its place."""
        self._pending.clear()

    @contextlib.contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """Say on a terminal what takes so long, once it has taken over a second; and take that back at the end."""
        if self.is_quiet or not _is_terminal(sys.stderr):
            yield
            return
        import threading

        shown = threading.Event()

        def show() -> None:
            shown.set()
            self._to_stderr(f"{what} …", end="")

        timer = threading.Timer(_WAIT_S, show)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            if shown.is_set():
                self._to_stderr("\r\x1b[K", end="")

    @staticmethod
    def _to_stderr(text: str, end: str = "\n") -> None:
        # Nobody can be told that standard error is gone.
        with contextlib.suppress(OutputClosed, OutputFailed):
            write_all(sys.stderr, text + end)


def write_all(stream: TextIO | None, text: str) -> None:
    """Write every character to a stream, also to a pipe that takes only a part at a time.

    Raises: ``OutputClosed`` when the reader is gone, ``OutputFailed`` for any other refusal.
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
