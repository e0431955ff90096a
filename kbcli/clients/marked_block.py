"""The block of lines that KB puts into a file of instructions, between two marks. Pure.

The first mark names the clients that need the block, and a digest of the lines: so that a block is known which a
person has changed.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, Literal

import msgspec

State = Literal["missing", "installed", "outdated", "changed"]

_DIGEST_CHARS: Final = 16
_BLOCK: Final = re.compile(
    r"^(?:<!--|//) kb:begin (?P<clients>[a-z,-]*) sha256:(?P<digest>[0-9a-f]*)[^\n]*\n"
    r"(?P<body>(?:(?!(?:<!--|//) kb:(?:begin|end)\b)[^\n]*\n)*)"
    r"(?:<!--|//) kb:end[^\n]*(?:\n|\Z)",
    re.MULTILINE,
)
_MARK: Final = re.compile(r"^(?:<!--|//) kb:(?:begin|end)\b", re.MULTILINE)


class Mangled(Exception):
    """The marks are not one pair, so that the end of the block is not known."""


class MarkedBlock(msgspec.Struct, frozen=True):
    """The block as it is in a file: its clients, its lines, and whether a person has changed them."""

    clients: tuple[str, ...]
    body: str
    is_changed: bool
    start: int
    end: int


def find(text: str) -> MarkedBlock | None:
    """Return the block of a text, None where there is none. Raises: ``Mangled``."""
    found = [*_BLOCK.finditer(text)]
    if len(found) > 1 or len(_MARK.findall(text)) != 2 * len(found):
        raise Mangled
    if not found:
        return None
    [one] = found
    body = one["body"].replace("\r\n", "\n")
    clients = tuple(filter(None, one["clients"].split(",")))
    return MarkedBlock(clients, body, _digest(body) != one["digest"], one.start(), one.end())


def with_block(text: str, clients: tuple[str, ...], body: str, *, is_script: bool = False) -> str:
    """Return the text with this block in the place of an earlier one, else at its end. Raises: ``Mangled``."""
    there = find(text)
    newline = "\r\n" if "\r\n" in text else "\n"
    opening, closing = ("// ", "") if is_script else ("<!-- ", " -->")
    head = f"{opening}kb:begin {','.join(clients)} sha256:{_digest(body)}{closing}\n"
    block = f"{head}{body}{opening}kb:end{closing}\n".replace("\n", newline)
    if there:
        return text[: there.start] + block + text[there.end :]
    ending = "" if not text or text.endswith("\n") else newline
    return text + ending + (newline if text else "") + block


def without_block(text: str) -> str:
    """Return the text without the block and the empty line before it. Raises: ``Mangled``."""
    there = find(text)
    if there is None:
        return text
    before, after = text[: there.start], text[there.end :]
    newline = "\r\n" if before.endswith("\r\n") else "\n"
    return before.removesuffix(newline) + after if before.endswith(newline * 2) or before == newline else before + after


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:_DIGEST_CHARS]
