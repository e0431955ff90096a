"""Places in a journal: before, at and after a record. Plain data.

Invariant: a position names the record before it by hash, so going on from it in another history is noticed.
"""

from __future__ import annotations

import msgspec

from kbcore.storage.frame import Flaw, Frame
from kbcore.storage.head import Head, Segment


class Position(msgspec.Struct, frozen=True, gc=False):
    """A place between two records: record ``seq``, with that hash, ends at byte ``offset`` of ``file``."""

    seq: int
    hash: str
    file: str
    offset: int


class Entry(msgspec.Struct, frozen=True, gc=False):
    """One record and where it stands."""

    frame: Frame
    file: str
    offset: int
    """Of its first byte."""
    length: int
    """Of its line in bytes, newline included."""

    @property
    def end(self) -> Position:
        """The position just after this record."""
        return Position(self.frame.seq, self.frame.sum, self.file, self.offset + self.length)


class Broken(msgspec.Struct, frozen=True):
    """Where a walk had to stop before its limit."""

    at: Position
    """The end of the last good record."""
    flaw: Flaw
    length: int
    """Of the line as found, newline included if it has one."""


def beginning(of: Head) -> Position:
    """Return the position before the first record that is still there."""
    return start_of(of.segments[0])


def start_of(segment: Segment) -> Position:
    """Return the position before a segment's first record."""
    return Position(segment.first_seq - 1, segment.base_hash, segment.file, 0)


def end_of(of: Head) -> Position:
    """Return the position of the head itself."""
    return Position(of.seq, of.hash, of.head.file, of.head.length)
