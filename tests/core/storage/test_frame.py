"""Laws of the frame: one record, one line, and no other line for it."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbcore.errors import LimitExceeded
from kbcore.storage import frame
from kbcore.storage.frame import Flaw, Frame
from tests.core.storage.making import LINEAGE

HASHES = st.binary(min_size=32, max_size=32).map(bytes.hex)
SEQS = st.integers(min_value=1, max_value=10**12)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
PAYLOADS = st.dictionaries(st.text(), VALUES, max_size=4).map(
    lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
)


def line_of(seq: int = 1, prev: str = LINEAGE, rec: bytes = b'{"n":1}') -> bytes:
    return frame.encode(seq, prev, rec)[1]


@given(SEQS, HASHES, PAYLOADS)
@example(1, LINEAGE, b'{"a": [1, 2] , "b":\t{}}')
def test_what_is_framed_is_read_back_byte_for_byte(seq: int, prev: str, rec: bytes) -> None:
    framed, line = frame.encode(seq, prev, rec)
    assert frame.decode(line, seq, prev) == framed == Frame(1, seq, prev, framed.sum, rec)
    assert line.count(b"\n") == 1
    assert line.endswith(b"}\n")
    assert frame.peek(line) == framed


@given(SEQS, HASHES, PAYLOADS, st.data())
def test_no_other_bytes_are_accepted_in_its_place(seq: int, prev: str, rec: bytes, data: st.DataObject) -> None:
    line = line_of(seq, prev, rec)
    at = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.binary(max_size=3))
    length = data.draw(st.integers(0, 3))
    changed = line[:at] + other + line[at + length :]
    result = frame.decode(changed, seq, prev)
    assert isinstance(result, Flaw) or changed == line


@given(SEQS, HASHES, HASHES, PAYLOADS)
def test_the_checksum_covers_position_and_predecessor(seq: int, prev: str, other: str, rec: bytes) -> None:
    sums = {frame.checksum(1, seq, prev, rec), frame.checksum(1, seq + 1, prev, rec), frame.checksum(2, seq, prev, rec)}
    assert len(sums) == 3
    assert prev == other or frame.checksum(1, seq, other, rec) not in sums


def test_the_checksum_is_the_one_that_the_format_page_gives() -> None:
    covered = f"kb-record 0000000001 00000000000000000007 {LINEAGE}\n".encode() + b'{"n":1}'
    assert frame.checksum(1, 7, LINEAGE, b'{"n":1}') == hashlib.sha256(covered).hexdigest()


def test_every_bit_flip_of_a_line_is_found() -> None:
    line = line_of(41, LINEAGE, '{"at":"2026","text":"pâté \\n"}'.encode())
    for bit in range(8 * len(line)):
        flipped = bytearray(line)
        flipped[bit // 8] ^= 1 << bit % 8
        found = frame.decode(bytes(flipped), 41, LINEAGE)
        assert isinstance(found, Flaw), bit
        assert not found.too_new, f"bit {bit} looks like a newer format"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda line: line[:-1], "the line is cut off"),
        (lambda line: line[:-20], "the line is cut off"),
        (lambda line: line[:-1] + b"\r\n", "the line is not spelled as KB spells it"),
        (lambda line: b" " + line, "the line is not spelled as KB spells it"),
        (lambda line: line.replace(b'"seq":2', b'"seq": 2'), "the line is not spelled as KB spells it"),
        (lambda line: line.replace(b'{"v":1,', b'{"v":1,"v":1,'), "the line is not spelled as KB spells it"),
        (lambda line: line.replace(b"}}\n", b'},"x":1}\n'), "the line is not spelled as KB spells it"),
        (lambda line: b"\xef\xbb\xbf" + line, "the line is not JSON"),
        (lambda line: b"\n", "the line is not JSON"),
        (lambda line: b"[]\n", "the line is JSON, but not a record"),
        (lambda line: b'{"v":1}\n', "the line is JSON, but not a record"),
        (lambda line: line.replace(b'"n":1', b'"n":2'), "the checksum does not match the record"),
        (lambda line: line.replace(b'"seq":2', b'"seq":3'), "the checksum does not match the record"),
        (lambda line: line.replace(b'"v":1', b'"v":0'), "the record states a format that its checksum does not"),
        (lambda line: line_of(3), "the record is out of order"),
        (lambda line: line_of(2, "b" * 64), "the record does not follow the one before it"),
    ],
)
def test_a_flaw_says_what_is_wrong(change, what: str) -> None:
    found = frame.decode(change(line_of(2)), 2, LINEAGE)
    assert isinstance(found, Flaw)
    assert (found.what, found.too_new) == (what, False)


def test_a_flaw_shows_both_sides() -> None:
    found = frame.decode(line_of(3), 2, LINEAGE)
    assert isinstance(found, Flaw)
    assert found.sentence() == "the record is out of order (expected seq 2, found seq 3)"
    long = frame.decode(b"x" * 500 + b"\n", 2, LINEAGE)
    assert isinstance(long, Flaw)
    assert len(long.actual) < 90


@pytest.mark.parametrize(
    "line",
    [
        line_of().replace(b'"v":1', b'"v":2').replace(b'"n":1', b'"n":9'),
        b'{"v":2,"another":"shape"}\n',
        b'{"v":9000}\n',
    ],
)
def test_a_newer_format_is_not_called_damage(line: bytes) -> None:
    found = frame.decode(line, 1, LINEAGE)
    assert isinstance(found, Flaw)
    assert found.too_new
    assert found.what.endswith("and this KB reads up to 1")


@pytest.mark.parametrize("digit", [b"0", b"3", b"5", b"9", b"-1"])
def test_a_damaged_format_number_is_called_damage(digit: bytes) -> None:
    found = frame.decode(line_of().replace(b'"v":1', b'"v":' + digit), 1, LINEAGE)
    assert isinstance(found, Flaw)
    assert not found.too_new


@pytest.mark.parametrize("rec", [b"", b"1", b"[]", b'{"a":\n1}', b'{"a":1} ', b"{", b'{"a":"\xff"}', b'{"a":1}{}'])
def test_a_payload_that_could_not_be_read_back_is_a_bug(rec: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the kind is the point, the words vary
        frame.encode(1, LINEAGE, rec)


def test_a_payload_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "MAX_RECORD_BYTES", 10)
    with pytest.raises(LimitExceeded, match="the record has 13 bytes, and 10 is the most KB allows"):
        frame.encode(1, LINEAGE, b'{"n":1234567}')


def test_the_time_of_a_payload_is_its_top_level_at() -> None:
    assert frame.time_of(b'{"x":{"at":"no"},"at":"2026-11-20"}') == "2026-11-20"
    assert frame.time_of(b'{"x":1}') == ""
    assert frame.time_of(b'{"at":7}') == ""
