"""Changes of inputs, as a plain mutating fuzzer makes them: bits, spans, splices, words, lines and values of JSON."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

MOST_BYTES = 64 * 1024
"""An input that grew longer is cut: long ones are among the fixed nasty inputs."""

TOKENS = (
    *(
        b"",
        b"\0",
        b"\xff",
        b"\xed\xa0\x80",
        b"\\ud800",
        b"\\u0000",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"\r\n",
        b"\r",
        b"\t",
    ),
    *(
        b"\n",
        b"\n\n",
        b" ",
        b"'",
        b'"',
        b"`",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b"(",
        b")",
        b":",
        b": ",
        b",",
        b"-",
        b"- ",
    ),
    *(b"---\n", b"...\n", b"&a ", b"*a", b"<<: ", b"!!python/name:os ", b"|\n", b">\n", b"? ", b"%", b"@", b"#", b"//"),
    *(b"null", b"true", b"~", b"NaN", b"Infinity", b"-1", b"0", b"1e999", b"9" * 30, b"1.5", b"0x10", b"2026-02-30"),
    *(b"../../etc/passwd", b"/etc/passwd", b"$(id)", b"; drop table node", b"' or 1=1 --", b"%00", b"\xe2\x80\xae"),
    *(b"\x1b[31m", b"<<<<<<< HEAD\n", b"=======\n", b">>>>>>> x\n", b"\xc3\xa9", b"\xf0\x9f\x98\x80", b"id", b"type"),
    *(b"entities", b"edges", b"links", b"req", b"\xe2\x80\xa8", b"a" * 250),
)

_WORDS = re.compile(rb"[A-Za-z0-9_]+|\s+|[^A-Za-z0-9_\s]")


def mutated(chance: random.Random, seeds: Sequence[bytes]) -> bytes:
    """Return a seed with one to six changes."""
    data = chance.choice(seeds)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        data = chance.choice(_CHANGES)(chance, data, seeds)
    return data[:MOST_BYTES]


def _flipped(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    if not data:
        return b"\x01"
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def _span(chance: random.Random, data: bytes) -> tuple[int, int]:
    start = chance.randrange(len(data) + 1)
    return start, min(len(data), start + chance.choice((1, 2, 8, 40, 400)))


def _without(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _span(chance, data)
    return data[:start] + data[end:]


def _repeated(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _span(chance, data)
    return data[:end] + data[start:end] * chance.choice((1, 1, 2, 50, 300)) + data[end:]


def _spliced(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    other = chance.choice(seeds)
    start, end = _span(chance, other)
    at = chance.randrange(len(data) + 1)
    return data[:at] + other[start:end] + data[at:]


def _with_token(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start, end = _span(chance, data)
    return data[:start] + chance.choice(TOKENS) + data[chance.choice((start, end)) :]


def _swapped(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Exchange two words, or put a token in the place of one."""
    words = _WORDS.findall(data)
    if len(words) < 2:
        return data
    one, other = chance.randrange(len(words)), chance.randrange(len(words))
    words[one], words[other] = words[other], chance.choice((words[one], chance.choice(TOKENS)))
    return b"".join(words)


def _shuffled_lines(chance: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    lines = data.split(b"\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], chance.choice((b"  ", b"\t", b"")) + lines[one]
    return b"\n".join(lines)


def _grafted(chance: random.Random, data: bytes, seeds: Sequence[bytes]) -> bytes:
    """Put an odd value in the place of one in a JSON text; another text is changed in another way."""
    try:
        root = json.loads(data)
    except (ValueError, RecursionError):
        return _with_token(chance, data, seeds)
    holder: Any = [root]
    top, at = holder, 0
    while isinstance(inner := holder[at], dict | list) and inner and chance.random() < 0.8:
        holder, at = inner, chance.choice(list(inner) if isinstance(inner, dict) else range(len(inner)))
    if isinstance(holder, dict) and chance.random() < 0.3:
        at = chance.choice(("", "id", "type", "x" * 101, "a.b", "\ud800", "__proto__", "from"))
    holder[at] = chance.choice(_VALUES)
    return json.dumps(top[0], ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")


_DEEP: Any = []
for _depth in range(40):
    _DEEP = [_DEEP] if _depth % 2 else {"a": _DEEP}
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**63, -(2**63), 10**30, 0.5, 1e308, float("nan"), float("inf"), "", " ", "x" * 300),
    *(
        "\0",
        "\ud800",
        "\u202e",
        "\n",
        "REQ-1",
        "link:" + "0" * 32,
        "2026-02-30",
        "'; drop table node; --",
        "$.x",
        "^",
        "=",
    ),
    *([], {}, [[]], [None], ["a"] * 1200, [1, "a", None], {"": 1}, {"a": {"b": None}}, [{}], _DEEP, "../../x", "-"),
)

_CHANGES = (
    *(_grafted, _grafted, _grafted),
    *(_flipped, _without, _repeated, _spliced, _with_token, _with_token, _swapped, _swapped, _shuffled_lines),
)
