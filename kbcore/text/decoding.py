"""Bytes of a file to its text: UTF-8 or a problem that says where. Nothing is guessed.

Text leaves this module with line feeds as its only line breaks, so that lines count as editors count them.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kbcore.text.problems import FileProblem

_UTF8_MARK: Final = b"\xef\xbb\xbf"
_OTHER_MARKS: Final = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
_AS_UTF8: Final = "Save the file as UTF-8 (without a byte order mark)."


class Decoded(msgspec.Struct, frozen=True):
    """The text of a file, or None when it cannot be read, and what its author should know."""

    text: str | None
    problems: tuple[FileProblem, ...] = ()


def decode(data: bytes) -> Decoded:
    """Return the text of a file, its lines separated by line feeds, without a leading byte order mark."""
    problems: tuple[FileProblem, ...] = ()
    if data.startswith(_UTF8_MARK):
        data = data[len(_UTF8_MARK) :]
        message = "the file begins with a byte order mark; it was passed over"
        problems = (FileProblem(1, "byte_order_mark", message, _AS_UTF8, "note"),)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return Decoded(None, (_wrong_encoding(data, error.start),))
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    at = text.find("\0")
    if at >= 0:
        line, column = place(text, at)
        message = f"the file holds a NUL character in line {line}"
        hint = "Remove the NUL; if this is no text file, exclude it from the configured paths."
        return Decoded(None, (FileProblem(line, "nul_character", message, hint, column=column),))
    return Decoded(text, problems)


def place(text: str, at: int, first_line: int = 1) -> tuple[int, int]:
    """Return line and column, both from 1, of a position in a text that begins on ``first_line``."""
    return first_line + text.count("\n", 0, at), at - text.rfind("\n", 0, at)


def _wrong_encoding(data: bytes, at: int) -> FileProblem:
    name = _OTHER_MARKS.get(data[:2])
    if name:
        message = f"the file is {name}, not UTF-8"
        return FileProblem(1, "wrong_encoding", message, _AS_UTF8)
    before = data[:at].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    line = before.count(b"\n") + 1
    message = f"the byte 0x{data[at]:02X} at offset {at}, line {line}, is not UTF-8"
    return FileProblem(line, "wrong_encoding", message, _AS_UTF8, column=len(before) - before.rfind(b"\n"))
