"""Places in a journal: before, at and after a record. Plain data.

Invariant: a position names the record before it by hash, so going on from it in another history is noticed.
"""

from __future__ import annotations

import msgspec

from kbcore.storage.frame import Flaw, Frame


class Position(msgspec.Struct, frozen=True, gc=False):
    """A place between two records: record ``seq``, with that hash, ends at byte ``offset`` of ``file``."""

    seq: int
    hash: str
    file: str
    offset: int


class RecordPosition(msgspec.Struct, frozen=True, gc=False):
    """One record and its place."""

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


class BrokenWalk(msgspec.Struct, frozen=True):
    """The place where a walk had to stop before its limit."""

    at: Position
    """The end of the last good record."""
    flaw: Flaw
    length: int
    """Of the line as found, newline included if it has one."""


class MissingRecords(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Records that are missing since a salvage: first and last seq, and the chain around them."""

    first: int
    last: int
    before: str
    """``sum`` of the record before the first one."""
    after: str
    """``sum`` of the last one, as the next record or the head names it."""


def record_range(first: int, last: int) -> str:
    """Return ``record 3`` or ``records 3 to 5``: records without a gap between them, by their numbers."""
    return f"record {first}" if first == last else f"records {first} to {last}"
