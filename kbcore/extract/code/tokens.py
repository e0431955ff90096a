"""The tokens of code without its comments and white space: their digest, and a sketch by which bodies are compared.

A sketch has the smallest digests of pairs of neighbouring tokens. Of a short body these are all of them; of a longer
one they are a sample, from which the share of pairs that two bodies have in common is estimated.
"""

from __future__ import annotations

import base64
import hashlib
import re
import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Final
from zlib import crc32

SIMILAR: Final = 0.5
"""The least share of pairs of tokens that two bodies have in common, where one is the other one after a change."""
SKETCH_PAIRS: Final = 24
MIN_TOKENS: Final = 8
"""Shorter bodies are too much alike to be compared: such a body has no sketch."""

STATEMENT: Final = b"\x01"
"""The token where a statement begins that ends with its line."""
BLOCK_END: Final = b"\x02"
"""The token where a block ends that has no bracket."""
_OWN_NAME: Final = b"\x00"
_BETWEEN: Final = b"\x1f"

split: Final = re.compile(rb"[A-Za-z0-9_$\x80-\xff]+|[^\s\w$\x80-\xff]").findall
"""Returns the tokens of code: words, and each other character by itself."""
split_by_lines: Final = re.compile(rb"[A-Za-z0-9_$\x80-\xff]+|[^\s\w$\x80-\xff;\\]").findall
"""The same for a language where a semicolon and a backslash at the end of a line say no more than the line does."""


def digest(tokens: Sequence[bytes], own_name: bytes = b"") -> str:
    """Return 16 hex digits that are the same for the same tokens; the symbol's own name counts as any other name.

    After a dot it is the name of something else.
    """
    text = _BETWEEN + _BETWEEN.join(tokens) + _BETWEEN
    own = _BETWEEN + own_name + _BETWEEN
    if own_name and own in text:
        member, kept = b"." + own, b"." + _BETWEEN + _OWN_NAME + own_name + _BETWEEN
        text = text.replace(member, kept).replace(own, _BETWEEN + _OWN_NAME + _BETWEEN).replace(kept, member)
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def sketch(tokens: Sequence[bytes]) -> str:
    """Return the sketch of a body as text, "" for a short one."""
    if len(tokens) < MIN_TOKENS:
        return ""
    pairs = sorted({*map(crc32, map(b" ".join, {*pairwise(tokens)}))})[:SKETCH_PAIRS]
    return base64.b64encode(struct.pack(f">{len(pairs)}H", *[pair >> 16 for pair in pairs])).decode().rstrip("=")


def likeness(one: frozenset[int], other: frozenset[int]) -> float:
    """Return the share of pairs, from 0 to 1, that two bodies have in common, by the pairs of their sketches."""
    if not (one and other):
        return 0.0
    smallest = sorted(one | other)[:SKETCH_PAIRS]
    return len(one.intersection(smallest) & other) / len(smallest)


def pairs_of(sketch: str) -> frozenset[int]:
    """Return the digests of pairs of tokens that a sketch has; none of an empty one."""
    data = base64.b64decode(sketch + "=" * (-len(sketch) % 4)) if sketch else b""
    return frozenset(int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2))
