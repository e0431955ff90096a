"""One journal line and its frame; format in ``docs/journal-format.md``. Pure.

Invariant: for one (seq, prev, payload) there is exactly one line, and ``decode`` accepts no other.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from kbcore.errors import LimitExceeded
from kbcore.limits import MAX_RECORD_BYTES
from kbcore.storage import byte_diagnosis

FORMAT: Final = 1
"""The frame format that this version writes, and the newest it reads."""

MAX_LINE_BYTES: Final = MAX_RECORD_BYTES + 1024
"""No line can be longer: the payload's limit and room for the frame around it."""

_SHOWN_CHARS: Final = 80


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One record as framed: what the chain needs, and the payload's bytes as written."""

    v: int
    seq: int
    prev: str
    """``sum`` of the record before; for record 1 the lineage of the store."""
    sum: str
    rec: bytes


class Flaw(msgspec.Struct, frozen=True):
    """The reason why a line is not the expected frame."""

    what: str
    expected: str = ""
    actual: str = ""
    cause: str = ""
    """One sentence on what usually leaves a line like this."""
    too_new: bool = False
    """The line is a frame of a newer format, not damage."""

    def sentence(self) -> str:
        """Return what is wrong, with both sides."""
        return f"{self.what} (expected {self.expected}, found {self.actual})"


class _Envelope(msgspec.Struct, frozen=True, gc=False):
    v: int
    seq: int
    prev: str
    sum: str
    rec: msgspec.Raw


class _Versioned(msgspec.Struct, frozen=True):
    v: int


class _Timed(msgspec.Struct, frozen=True):
    at: str = ""
    clock: str = ""


_UNREADABLE: Final = (msgspec.DecodeError, UnicodeError, RecursionError)
"""Errors of a line that is no JSON of the right shape, no UTF-8, or nested too deeply."""

_decode = msgspec.json.Decoder(_Envelope).decode
_encode_lines = msgspec.json.Encoder().encode_lines
_sha256 = hashlib.sha256


def checksum(v: int, seq: int, prev: str, rec: bytes) -> str:
    """Return ``sum``: SHA-256 over a line of fixed width (tag, v, seq, prev), then the payload's bytes."""
    total = _sha256(b"kb-record %010d %020d %b\n" % (v, seq, prev.encode()))
    # A record may be large: nothing here makes a copy of it without need.
    total.update(rec)
    return total.hexdigest()


def encode(seq: int, prev: str, rec: bytes) -> tuple[Frame, bytes]:
    """Frame a payload, and return the frame with its line (newline included).

    Args:
        seq: the record's position, from 1.
        prev: ``sum`` of the record before it, 64 hex digits.
        rec: one JSON object in UTF-8 without a newline.

    Raises:
        LimitExceeded: the payload is longer than any record may be.
        ValueError: the payload could not be read back; a bug in the caller.
    """
    if len(rec) > MAX_RECORD_BYTES:
        raise LimitExceeded(f"the record has {len(rec)} bytes, and {MAX_RECORD_BYTES} is the most KB allows")
    total = checksum(FORMAT, seq, prev, rec)
    line = _encode_lines([_Envelope(FORMAT, seq, prev, total, msgspec.Raw(rec))])
    if b"\n" in rec or not rec.startswith(b"{"):
        raise ValueError("a payload is one JSON object on one line")
    if not rec.isascii():
        rec.decode("utf-8")
    if not _is_read_back(line, rec):
        raise ValueError("a payload is one JSON object")
    return Frame(FORMAT, seq, prev, total, rec), line


def _is_read_back(line: bytes, rec: bytes) -> bool:
    """Tell whether a line that was just encoded has this payload. It is not copied for that: it may be large."""
    try:
        found = _decode(line)
    except _UNREADABLE:
        return False
    return memoryview(found.rec) == rec


def beginning(seq: int, prev: str) -> bytes:
    """Return how the line of a record begins, up to the hash of the record before it."""
    return b'{"v":%d,"seq":%d,"prev":"%b"' % (FORMAT, seq, prev.encode())


def decode(line: bytes, seq: int, prev: str) -> Frame | Flaw:
    """Read one line (newline included) as record ``seq`` after the record whose ``sum`` is ``prev``."""
    try:
        found = _decode(line)
        rec = bytes(found.rec)
        if (
            found.v == FORMAT
            and found.seq == seq
            and found.prev == prev
            and found.sum == checksum(FORMAT, seq, prev, rec)
            # The one spelling: no stray spaces, no second key, no CR, no byte-order mark.
            and _encode_lines([found]) == line
        ):
            return Frame(FORMAT, seq, prev, found.sum, rec)
    except _UNREADABLE as error:
        return _not_a_frame(line, error)
    return _not_this_frame(line, found, seq, prev)


def peek(line: bytes) -> Frame | None:
    """Return a line that is a sound frame by itself, wherever it belongs; None if it is none.

    For diagnosis only: it says nothing about the chain.
    """
    try:
        found = _decode(line)
    except _UNREADABLE:
        return None
    sound = decode(line, found.seq, found.prev)
    return None if isinstance(sound, Flaw) else sound


def times_of(rec: bytes) -> tuple[str, str]:
    """Return the payload's top-level ``at`` and ``clock``, which storage looks at alone; empty where there are none."""
    try:
        found = msgspec.json.decode(rec, type=_Timed)
    except _UNREADABLE:
        return "", ""
    return found.at, found.clock


def time_of(rec: bytes) -> str:
    """Return the payload's top-level ``at``; empty if there is none."""
    return times_of(rec)[0]


def _not_a_frame(line: bytes, error: Exception) -> Flaw:
    version = _version_of(line)
    if version > FORMAT:
        return _newer(version)
    if not line.endswith(b"\n"):
        what = "the line is cut off"
    elif isinstance(error, msgspec.ValidationError):
        what = "the line is JSON, but not a record"
    else:
        what = "the line is not JSON"
    return Flaw(what, "a record", _shown(line), byte_diagnosis.diagnose_bytes(line))


def _not_this_frame(line: bytes, found: _Envelope, seq: int, prev: str) -> Flaw:
    rec = bytes(found.rec)
    cause = byte_diagnosis.diagnose_bytes(line)
    # A frame of format 1 with a damaged ``v`` gives itself away by its checksum.
    if found.v > FORMAT and found.sum != checksum(FORMAT, found.seq, found.prev, rec):
        return _newer(found.v)
    if _encode_lines([found]) != line:
        what = "the line is cut off" if not line.endswith(b"\n") else "the line is not spelled as KB spells it"
        return Flaw(what, "the frame byte for byte", _shown(line), cause)
    if found.v != FORMAT:
        return Flaw("the record states a format that its checksum does not", f"v {FORMAT}", f"v {found.v}", cause)
    if found.sum != checksum(FORMAT, found.seq, found.prev, rec):
        return Flaw(
            "the checksum does not match the record",
            checksum(FORMAT, found.seq, found.prev, rec),
            found.sum,
            cause,
        )
    if found.seq != seq:
        moved = "Lines were removed, doubled, moved, or come from another file."
        return Flaw("the record is out of order", f"seq {seq}", f"seq {found.seq}", moved)
    other = "The record belongs to another history: files of two stores or two times were mixed."
    return Flaw("the record does not follow the one before it", f"prev {prev}", f"prev {found.prev}", other)


def _newer(version: int) -> Flaw:
    return Flaw(f"the record has format {version}, and this KB reads up to {FORMAT}", too_new=True)


def _version_of(line: bytes) -> int:
    try:
        return msgspec.json.decode(line, type=_Versioned).v
    except _UNREADABLE:
        return 0


def _shown(line: bytes) -> str:
    text = ascii(line[: _SHOWN_CHARS + 1])[1:]
    return text if len(line) <= _SHOWN_CHARS else ascii(line[:_SHOWN_CHARS])[1:] + "…"
