"""Hints name the usual culprit."""

from __future__ import annotations

import pytest

from kbcore.storage import byte_diagnosis


@pytest.mark.parametrize(
    ("line", "word"),
    [
        (b"\n", "empty line"),
        (b'\xef\xbb\xbf{"v":1}\n', "byte-order mark"),
        (b"\xff\xfe{\0", "UTF-16"),
        (b"<<<<<<< HEAD\n", "merge marker"),
        (b"=======\n", "merge marker"),
        (b"=======\r\n", "merge marker"),
        (b">>>>>>> topic\n", "merge marker"),
        (b"||||||| base\n", "merge marker"),
        (b"\0", "zero bytes"),
        (b"\0" * 4096, "zero bytes"),
        (b'{"v":1,"se\0\0\0\n', "zero bytes"),
        (b'{"v":1}\r\n', "CRLF"),
        (b'{"a":"\xc3"}\n', "not UTF-8"),
        (b'{"v":1,"seq', "no newline"),
        (b"hello\n", "does not begin like a record"),
        (b'{"v":1}\n', "edited by hand"),
    ],
)
def test_the_bytes_of_a_line_point_to_their_cause(line: bytes, word: str) -> None:
    assert word in byte_diagnosis.diagnose_bytes(line)
