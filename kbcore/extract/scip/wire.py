"""The wire format of Protocol Buffers, as far as SCIP uses it: fields of a message in their order.

https://protobuf.dev/programming-guides/encoding/ describes it. Groups, which SCIP does not have, are refused. A field
of a known number with another wire type than its own is a fault, not an unknown field.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_VARINT, _BYTES = 0, 2
_FIXED_BYTES: Final = {1: 8, 5: 4}
"""Wire types of a fixed width."""
_MAX_VARINT_BYTES: Final = 10
_MAX_INT32: Final = 2**31 - 1


class BrokenIndexError(ValueError):
    """Bytes that are no message of the expected form. The message says why."""


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:  # noqa: C901 - one loop: it runs for each field
    """Yield number and value of each field of a message; of a fixed one nothing. Raises: ``BrokenIndexError``."""
    at, end = 0, len(data)
    try:
        while at < end:
            key = data[at]
            at += 1
            if key > 0x7F:  # noqa: PLR2004 - more bytes follow
                key, at = _varint(data, at - 1)
            kind = key & 7
            if kind == _BYTES:
                length = data[at]
                at += 1
                if length > 0x7F:  # noqa: PLR2004 - as above
                    length, at = _varint(data, at - 1)
                start, at = at, at + length
                if at > end:
                    break
                yield key >> 3, data[start:at]
            elif kind == _VARINT:
                value = data[at]
                at += 1
                if value > 0x7F:  # noqa: PLR2004 - as above
                    value, at = _varint(data, at - 1)
                yield key >> 3, value
            elif kind in _FIXED_BYTES:
                at += _FIXED_BYTES[kind]
            else:
                raise BrokenIndexError(f"it has a field of the wire type {kind}, which SCIP does not use")
    except IndexError:
        at = end + 1
    if at > end:
        raise BrokenIndexError("it ends within a field")


def message(value: int | bytes) -> bytes:
    """Return the bytes of a field that is a message, a text or a packed list. Raises: ``BrokenIndexError``."""
    if isinstance(value, int):
        raise BrokenIndexError("a number is where a text or a message must be")
    return value


def text(value: int | bytes) -> str:
    """Return a field that is a text. Raises: ``BrokenIndexError``."""
    try:
        return message(value).decode()
    except UnicodeDecodeError:
        raise BrokenIndexError("a text is not UTF-8") from None


def number(value: int | bytes) -> int:
    """Return a field that is a number. Raises: ``BrokenIndexError``."""
    if isinstance(value, bytes):
        raise BrokenIndexError("a text or a message is where a number must be")
    return value


def numbers(value: int | bytes) -> list[int]:
    """Return a field of a list of numbers, packed or a single one; none is negative. Raises: ``BrokenIndexError``."""
    if isinstance(value, int):
        found = [value]
    else:
        if value.isascii():
            return [*value]  # each number is one byte
        found, at = [], 0
        try:
            while at < len(value):
                one, at = _varint(value, at)
                found.append(one)
        except IndexError:
            raise BrokenIndexError("it ends within a number") from None
    if any(one > _MAX_INT32 for one in found):
        raise BrokenIndexError("a line or column is out of range")
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number and where it ends. Raises: ``IndexError`` where the data ends, ``BrokenIndexError``."""
    value = shift = 0
    for _ in range(_MAX_VARINT_BYTES):
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the last byte
            return value, at
        shift += 7
    raise BrokenIndexError("a number has more than ten bytes")
