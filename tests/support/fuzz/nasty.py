"""Inputs that are made to hurt a parser: too deep, too long, too wide, no text, or more than they seem."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial

from tests.support.effort.scale import tries

LONG = tries(20_000, 3_000_000)
"""Bytes of what is one long line, text or sign."""
WIDE = tries(1_000, 200_000)
"""Lines, members or items of what has many."""

_BOMB = b"a: &a [x, x, x, x, x, x, x, x, x]\n" + b"".join(
    b"%c: &%c [%b]\n" % (new, new, b", ".join([b"*%c" % old] * 9)) for old, new in itertools.pairwise(b"abcdefghij")
)
_MERGE_BOMB = b"a: &a {x: 1}\n" + b"".join(
    b"%c: &%c {<<: [%b]}\n" % (new, new, b", ".join([b"*%c" % old] * 40))
    for old, new in itertools.pairwise(b"abcdefghij")
)


def _deep(opener: bytes, closer: bytes = b"") -> list[Callable[[], bytes]]:
    return [partial(lambda n: opener * n + b"1" + closer * n, n) for n in (40, 1000, 100_000)]


def _front(body: bytes) -> Callable[[], bytes]:
    return lambda: b"---\nid: A\ntitle: T\n" + body + b"\n---\n# T\n"


NASTY: tuple[Callable[[], bytes], ...] = (
    *(_deep(b"[", b"]") + _deep(b'{"a":', b"}") + _deep(b'[{"entities":', b"}]") + _deep(b"- ") + _deep(b"{a: [")),
    lambda: b"".join(b" " * depth + b"a:\n" for depth in range(1000)),
    lambda: b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001,
    *(lambda: _BOMB, _front(_BOMB), lambda: b"symbols:\n- id: A\n  x: &x [*x]\n", lambda: _MERGE_BOMB),
    *(_front(_MERGE_BOMB), lambda: b"entities:\n- &a {id: A, title: *a}\n", lambda: b"a: &a b\n" * (WIDE // 4)),
    *(lambda: b'{"entities": [{"id": "A", "attributes": {"n": NaN, "i": -Infinity, "e": 1e999}}]}', lambda: b"NaN"),
    *(lambda: b"9" * 100_000, lambda: b'{"expected_seq": ' + b"9" * 100_000 + b"}", lambda: b"-" + b"1" * 5000),
    *(lambda: b'{"id": ' + b"1" * 400 + b', "method": "x"}', lambda: b'{"lockWaitSeconds": 1e400, "x": 1E-999999}'),
    *(lambda: b"\0" * 10_000, lambda: b"\0", lambda: b"", lambda: b"\n" * (WIDE // 2), lambda: b"\xff" * 10_000),
    *(
        lambda: b'"\\ud800"',
        lambda: b'{"id": "\\ud800", "method": "x"}',
        lambda: b"\xed\xa0\x80",
        lambda: b"a: \xed\xb0\x80",
    ),
    *(lambda: b'{"a": 1, "a": 2, "id": "x", "id": "y"}', lambda: b"id: a\nid: b\n", _front(b"id: b\nid: c")),
    *(lambda: b"\xef\xbb\xbf{}", lambda: b"\xef\xbb\xbf\xef\xbb\xbf---\nid: a\n---\n", lambda: "{}".encode("utf-16")),
    *(lambda: b"---\r\nid: A\r\n---\r\n", lambda: b"{\r\n}\r", lambda: b"rules:\r- id: a\r\n\r  sql: x"),
    *(lambda: b"a" * LONG, lambda: b'{"a": "' + b"x" * LONG + b'"}', lambda: b"# " + b"#" * (LONG // 3)),
    *(
        lambda: b"k" * (LONG // 10) + b": v",
        lambda: b"id: " + b"x " * (LONG // 10),
        lambda: b"{" * (LONG // 3),
        lambda: b'"' * (LONG // 3),
    ),
    *(lambda: b"- a\n" * WIDE, lambda: b'{"entities": [' + b"{}," * WIDE + b"{}]}", lambda: b"\\" * (LONG // 3)),
    lambda: b'{"entities": {' + b",".join(b'"k%d": 1' % n for n in range(WIDE // 2)) + b"}}",
    lambda: b"@a " * (WIDE // 2) + b"\nFeature: x\n  Scenario: y\n",
    lambda: b"Feature: x\n" + b"  Scenario: y\n    Given z\n" * 5000,
    lambda: b"|" * WIDE + b"\n" + b" | " * (WIDE // 2),
)
"""Inputs that every target gets, in every run."""
